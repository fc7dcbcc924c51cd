"""Labelled texts read with knowledge and without, against runs of their own."""

import pytest
import torch
from explaining import GRAPH, IS_CURE, IS_DISEASE, TEXT
from lab.explain.labelled import classed, entities
from tagged_texts import tagged

from kbert_core import InjectionOptions, KnowledgeGraph, Pipeline, Triple
from kbert_core.errors import DataError
from kbert_lab.data.labelled import Example
from kbert_lab.study.file_rows import Verdict, each_row

GOLD = tagged(TEXT, ("糖尿病", "疾病"), ("布洛芬", "治疗"))
PLAIN = tagged("患者给予口服", ("口服", "治疗"))
LONG = tagged(TEXT * 4, ("糖尿病", "疾病"))


def slow_tags_score(pipeline, example, graph):
    """Mean log-probability of the gold tags, a character a token."""
    prediction = pipeline(*example.sentences, graph=graph).prediction
    pairs = zip(prediction.tokens, example.tags, strict=True)
    return sum(float(torch.tensor(tok.probabilities[tag]).log()) for tok, tag in pairs) / len(
        example.tags
    )


def test_rows_hold_what_is_said_with_knowledge_and_without(ner):
    rows = list(each_row(ner, [GOLD, PLAIN, LONG], GRAPH, at_once=2))
    assert [row.number for row in rows] == [0, 1, 2]
    for row, example in zip(rows, (GOLD, PLAIN, LONG), strict=True):
        for answer, graph in ((row.known, GRAPH), (row.plain, KnowledgeGraph())):
            prediction = ner(*example.sentences, graph=graph).prediction
            assert answer.said == tuple((s.start, s.end, s.label) for s in prediction.spans)
            slow = slow_tags_score(ner, example, graph)
            assert answer.score == pytest.approx(slow, abs=1e-4)
            gold = set(example.spans)
            assert answer.wrong == len(gold - set(answer.said)) + len(set(answer.said) - gold)
    assert rows[0].triples == tuple(GRAPH)
    assert rows[1].hung == () and rows[1].gain == 0
    assert [m.start for m, t in rows[2].hung if t == IS_CURE] == [9, 25, 41, 57]
    assert abs(rows[0].gain) > 1e-4


def test_a_text_without_a_triple_is_run_once(ner, monkeypatch):
    seen = []
    real = ner.reader.logits

    def counted(inputs, **arguments):
        seen.append(len(inputs))
        return real(inputs, **arguments)

    monkeypatch.setattr(ner.reader, "logits", counted)
    list(each_row(ner, [GOLD, PLAIN], GRAPH))
    assert seen == [3]


def test_a_class_is_scored_by_its_log_odds(classifier):
    example = Example((TEXT,), "good")
    (row,) = each_row(classifier, [example], GRAPH)
    for answer, graph in ((row.known, GRAPH), (row.plain, KnowledgeGraph())):
        prediction = classifier(TEXT, graph=graph).prediction
        assert answer.said == prediction.label
        assert answer.wrong == int(prediction.label != "good")
        p = prediction.probabilities["good"]
        odds = float(torch.tensor(p / (1 - p)).log())
        assert answer.score == pytest.approx(odds, abs=1e-4)


def test_options_of_reading_count(ner):
    one = InjectionOptions(max_triples=1, tail_only=True)
    (row,) = each_row(ner, [GOLD], GRAPH, options=one)
    assert row.triples == (IS_DISEASE, IS_CURE)


def test_a_file_of_masks_and_labels_nobody_knows_are_refused(ner, checkpoints):
    with pytest.raises(DataError, match="for the task 'mask', whose texts have no single label"):
        list(each_row(Pipeline.from_pretrained(checkpoints["mask"], device="cpu"), [PLAIN], GRAPH))
    with pytest.raises(DataError, match="the label 'B-Q' is not among those of the model"):
        list(each_row(ner, [tagged(TEXT, ("患者", "Q"))], GRAPH))


@pytest.mark.parametrize(
    ("known", "plain", "verdict", "changed"),
    [
        ("good", "bad", Verdict.HELPED, True),
        ("bad", "good", Verdict.HURT, True),
        ("bad", "fair", Verdict.NEUTRAL, True),
        ("good", "good", Verdict.NEUTRAL, False),
    ],
)
def test_verdict_of_a_class(known, plain, verdict, changed):
    row = classed(0, "good", known, plain)
    assert (row.verdict, row.changed) == (verdict, changed)


def test_verdict_of_entities_counts_what_is_wrong():
    d, e, other = (0, 2, "D"), (4, 6, "E"), (7, 8, "D")
    helped = entities(0, [d, e], [d, e], [d, other])
    assert (helped.verdict, only(helped)) == (Verdict.HELPED, ((e,), ()))
    hurt = entities(0, [d], [d, other], [d])
    assert (hurt.verdict, only(hurt)) == (Verdict.HURT, ((), ()))
    even = entities(0, [d, e], [d], [e])
    assert (even.verdict, even.changed, only(even)) == (Verdict.NEUTRAL, True, ((d,), (e,)))


def only(row):
    return row.gold_only(row.known, row.plain), row.gold_only(row.plain, row.known)


def test_triples_of_a_row_are_told_once():
    t = Triple("h", "r", "t")
    assert classed(0, "good", "good", "good", [t, t]).triples == (t,)
