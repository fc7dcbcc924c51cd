"""A labelled file read with knowledge and without: rows, groups, scores, and what is pruned."""

import json
from dataclasses import replace

import pytest
import torch
from explaining import GRAPH, HAS_SYMPTOM, IS_CURE, IS_DISEASE, TEXT
from tagged_texts import classed, entities, tagged, triple

from kbert_core import KnowledgeGraph, Pipeline
from kbert_core.errors import DataError
from kbert_lab.data.labelled import Example
from kbert_lab.study import whole_file
from kbert_lab.study.whole_file import (
    KINDS,
    LeftOut,
    Verdict,
    WholeFile,
    each_left_out,
    each_row,
    prune,
)
from kbert_lab.training.scores import span_scores

A, B, C = triple("cat eats fish"), triple("cat is animal"), triple("dog is animal")
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


def test_rows_hold_what_is_said_with_knowledge_and_without(ner, monkeypatch):
    monkeypatch.setattr(whole_file, "TEXTS_AT_ONCE", 2)
    rows = list(each_row(ner, [GOLD, PLAIN, LONG], GRAPH))
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
    assert rows[1].triples == () and rows[1].gain == 0
    assert rows[2].triples == tuple(GRAPH)  # each once, though it is named four times
    assert abs(rows[0].gain) > 1e-4


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


def test_a_file_of_masks_and_labels_nobody_knows_are_refused(ner, checkpoints):
    with pytest.raises(DataError, match="for the task 'mask', whose texts have no single label"):
        list(each_row(Pipeline.from_pretrained(checkpoints["mask"], device="cpu"), [PLAIN], GRAPH))
    with pytest.raises(DataError, match="the label 'B-Q' is not among those of the model"):
        list(each_row(ner, [tagged(TEXT, ("患者", "Q"))], GRAPH))


SPANS = {"d": (0, 2, "D"), "e": (4, 6, "E"), "!": (7, 8, "D")}


@pytest.mark.parametrize(
    ("gold", "known", "plain", "verdict"),
    [
        ("good", "good", "bad", Verdict.HELPED),
        ("good", "bad", "good", Verdict.HURT),
        ("good", "bad", "fair", Verdict.NEUTRAL),
        ("de", "de", "d!", Verdict.HELPED),
        ("d", "d!", "d", Verdict.HURT),
        ("de", "d", "e", Verdict.NEUTRAL),
    ],
)
def test_a_verdict_counts_what_is_wrong(gold, known, plain, verdict):
    said = (gold, known, plain)
    if gold == "good":
        row = classed(0, *said)
    else:
        row = entities(0, *([SPANS[name] for name in names] for names in said))
    assert (row.verdict, row.changed) == (verdict, True)
    assert not classed(0, "good", "good", "good").changed


# Groups and scores


ROWS = (
    classed(0, "good", "good", "bad", [A, B], gain=2.0),
    classed(1, "good", "bad", "good", [C], gain=-1.0),
    classed(2, "bad", "good", "bad", [C], gain=-3.0),
    classed(3, "bad", "bad", "bad", [B], gain=0.5),
    classed(4, "bad", "bad", "bad"),
)
FILE = WholeFile("classify", "animals", ROWS, 5)
D, E, NONE = (0, 2, "D"), (4, 6, "E"), (7, 9, "D")
NER = WholeFile(
    "ner",
    "animals",
    (
        entities(0, [D, E], [D, E], [D], [A]),
        entities(1, [D, E], [E], [D, E, NONE], [B]),
        entities(2, [D], [D], [D]),
    ),
    3,
)


def counts(found, by):
    return {g.name: (g.count, g.helped, g.hurt, g.neutral) for g in found.groups(by)}


def test_groups_count_the_texts_that_a_triple_stood_in():
    assert counts(FILE, "entity") == {"dog": (2, 0, 2, 0), "cat": (2, 1, 0, 1)}
    assert counts(FILE, "relation") == {"is": (4, 1, 2, 1), "eats": (1, 1, 0, 0)}
    assert counts(FILE, "triple") == {
        "dog · is · animal": (2, 0, 2, 0),
        "cat · eats · fish": (1, 1, 0, 0),
        "cat · is · animal": (2, 1, 0, 1),
    }
    assert FILE.groups("triple")[0].triple == C
    assert FILE.groups("relation")[0].triple is None


def test_classes_are_counted_by_texts_and_entities_by_spans():
    assert counts(FILE, "label") == {"good": (2, 1, 1, 0), "bad": (3, 0, 1, 2)}
    assert {g.unit for g in FILE.groups("label")} == {"texts"}
    assert counts(NER, "label") == {"D": (3, 0, 1, 2), "E": (2, 1, 0, 1)}
    assert {g.unit for g in NER.groups("label")} == {"entities"}
    assert counts(NER, "entity") == {"cat": (2, 1, 0, 1)}  # the second text is as wrong as before


def test_mean_gain_is_of_the_score_of_what_is_right():
    dog, cat = FILE.groups("entity")
    assert (dog.mean_gain, cat.mean_gain) == (-2.0, 1.25)


@pytest.mark.parametrize(
    ("helped", "hurt", "verdict"),
    [
        (0, 3, Verdict.NEUTRAL),
        (0, 4, Verdict.HURT),
        (4, 0, Verdict.HELPED),
        (1, 6, Verdict.NEUTRAL),
        (1, 9, Verdict.HURT),
        (0, 0, Verdict.NEUTRAL),
    ],
)
def test_a_group_hurts_only_where_its_interval_says_so(helped, hurt, verdict):
    rows = [classed(n, "a", "a", "b", [A]) for n in range(helped)]
    rows += [classed(n, "a", "b", "a", [A]) for n in range(hurt)]
    rows += [classed(n, "a", "a", "a", [A]) for n in range(50)]
    (group,) = WholeFile("classify", "g", tuple(rows), len(rows)).groups("triple")
    assert group.verdict is verdict


def test_scores_are_those_of_evaluation_and_their_difference_is_paired():
    said = FILE.scores
    assert said.metric == "accuracy"
    assert said.main["with the graph"].mean == pytest.approx(0.6)
    difference = said.difference
    assert difference.mean == pytest.approx(0.6 - 0.8)
    assert difference.low < 0 <= difference.high
    ner = NER.scores
    gold = [row.example.spans for row in NER.rows]
    f1 = span_scores(gold, [row.plain.said for row in NER.rows])["f1"]
    assert ner.main["without a graph"].mean == pytest.approx(f1)


def test_results_are_rows_plain_data_and_figures():
    for found in (FILE, NER):
        data = json.loads(json.dumps(found.as_dict()))
        assert list(data["groups"]) == list(KINDS)
        assert len(data["rows"]) == len(found.changed)
        for by in KINDS:
            groups = [group["hurt"] for group in data["groups"][by]]
            assert groups == [group.hurt for group in found.groups(by)]
            found.figure(by)
    assert NER.rows[0].as_dict()["gold"] == "ab D, ef E"
    (panel,) = FILE.figure("entity").axes
    named = [label.get_text() for label in panel.get_yticklabels()]
    assert named == ["dog  (n = 2)", "cat  (n = 2)"]


def test_answers_are_ranked_by_question():
    right = [("q1", "1", 2.0), ("q1", "0", -1.0), ("q2", "0", -0.5), ("q2", "1", 3.0)]
    rows = []
    for number, (group, gold, score) in enumerate(right):
        row = classed(number, gold, gold, "0", gain=abs(score))
        rows.append(replace(row, example=replace(row.example, group=group)))
    found = WholeFile("rank", "g", tuple(rows), 4)
    assert found.scores.metric == "MRR"
    assert found.scores.main["with the graph"].mean == 1


# A graph without what hurts

OFF = triple("dog is off")
ANIMALS = KnowledgeGraph([A, B, C, OFF, triple("cow is animal")], name="animals").switch_off(OFF)
READ = (
    classed(0, "good", "good", "bad", [A, B]),
    classed(1, "good", "bad", "good", [C, B]),
    classed(2, "good", "bad", "good", [C]),
    classed(3, "good", "good", "good", [A]),
)


def test_what_hurt_more_texts_than_it_helped_goes():
    pruned = prune(ANIMALS, READ)
    (gone,) = pruned.removed
    assert (gone.name, gone.texts, gone.helped, gone.hurt) == ("dog · is · animal", 2, 0, 2)
    assert list(pruned.graph) == [A, B, OFF, triple("cow is animal")]
    assert not pruned.graph.is_on(OFF)
    assert (pruned.graph.name, pruned.texts) == ("animals pruned", 4)
    assert "may not help on others" in str(pruned)
    assert len(ANIMALS) == 5


def test_leaving_one_out_tells_triples_of_one_text_apart():
    left_out = [
        LeftOut(0, A, 1.0, 1),
        LeftOut(0, B, -0.1, 0),
        LeftOut(1, C, 0.2, 0),
        LeftOut(1, B, -2.0, -1),
        LeftOut(2, C, 0.1, 0),
        LeftOut(3, A, 0.0, 0),
    ]
    pruned = prune(ANIMALS, READ, left_out, rule="leave one out")
    assert [gone.name for gone in pruned.removed] == ["cat · is · animal"]
    assert (pruned.removed[0].texts, pruned.removed[0].hurt) == (2, 1)
    json.dumps(pruned.as_dict())


def test_every_triple_is_left_out_of_every_text_it_stood_in(ner, score):
    rows = list(each_row(ner, [GOLD, tagged("患者"), GOLD], GRAPH))
    found = list(each_left_out(ner, rows, GRAPH))
    assert [(one.number, one.triple) for one in found] == [
        (number, t) for number in (0, 2) for t in (IS_DISEASE, HAS_SYMPTOM, IS_CURE)
    ]
    for one in found[:3]:
        (less,) = each_row(ner, [GOLD], GRAPH.switch_off(one.triple))
        assert one.effect == pytest.approx(rows[0].known.score - less.known.score, abs=1e-5)
        assert one.wrong == less.known.wrong - rows[0].known.wrong
        assert abs(one.effect) > 1e-5
