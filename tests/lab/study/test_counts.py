"""Counts a sentence: what the statistics and baselines are made of."""

from types import SimpleNamespace

import pytest

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.triple import Triple
from kbert_lab.data.labelled import Example
from kbert_lab.study import counts
from kbert_lab.study.counts import score_run, score_spans, sentence_counts
from kbert_lab.study.statistics import packed, unpacked
from kbert_lab.training.scores import ranking_scores

TEXT = "有甲病查乙图"
SICK = Example(
    (TEXT,),
    None,
    tuple((i, i + 1) for i in range(6)),
    ("O", "B-D", "I-D", "O", "B-E", "I-E"),
)
GRAPH = KnowledgeGraph([Triple("乙图", "类别", "检查")])


def columns(task, examples, found, seen=frozenset(), graph=GRAPH):
    return sentence_counts(task, examples, found, set(seen), graph).columns


def test_spans_are_counted_by_sentence_and_by_what_was_seen_and_is_covered():
    made = columns("ner", [SICK, SICK], [[(1, 3, "D"), (0, 1, "E")], [(4, 6, "E")]])
    assert made == {
        "right": [1, 1],
        "predicted": [2, 1],
        "gold": [2, 2],
        "unseen": [2, 2],
        "unseen_right": [1, 1],
        "covered": [1, 1],  # 乙图 is in the graph, 甲病 isn't
        "covered_right": [0, 1],
    }
    seen = columns("ner", [SICK], [[(4, 6, "E")]], seen={"乙图"})
    assert (seen["unseen"], seen["unseen_right"], seen["covered"]) == ([1], [0], [0])


def test_a_span_of_the_wrong_type_is_not_right():
    assert columns("ner", [SICK], [[(1, 3, "E")]])["right"] == [0]


def test_classes_and_pairs_are_right_or_not():
    examples = [Example(("甲", "乙"), label) for label in ("1", "0", "1", "0")]
    made = columns("pair", examples, ["1", "1", "0", "0"])
    assert made["right"] == [1, 0, 0, 1]
    assert made["positive"] == [1, 0, 1, 0]
    assert made["positive_predicted"] == [1, 1, 0, 0]
    assert made["positive_right"] == [1, 0, 0, 0]
    assert set(columns("classify", examples, ["1"] * 4)) == {"right", "count"}
    three = [Example(("甲", "乙"), label) for label in "012"]
    assert "positive" not in columns("pair", three, ["0", "1", "2"])


def test_questions_agree_with_the_ranking_scores():
    rows = [("q1", "0", 0.9), ("q1", "1", 0.5), ("q2", "1", 0.4), ("q2", "0", 0.4), ("q3", "0", 1)]
    examples = [Example((q, f"答{i}"), label, group=q) for i, (q, label, _) in enumerate(rows)]
    made = columns("rank", examples, [score for *_, score in rows])
    assert made == {"reciprocal": [0.5, 1.0], "first": [0, 1], "count": [1, 1]}
    scores = ranking_scores(
        [q for q, *_ in rows], [label == "1" for _, label, _ in rows], [s for *_, s in rows]
    )
    assert sum(made["reciprocal"]) / 2 == scores["mrr"]
    assert sum(made["first"]) / 2 == scores["p_at_1"]


def test_spans_of_a_dictionary_are_scored_like_those_of_a_model():
    made = score_spans([SICK], [[(1, 3, "D")]], {"甲病"}, GRAPH)
    assert made["scores"]["test"]["f1"] == pytest.approx(2 / 3)
    assert made["scores"]["test"]["unseen"] == {"recall": 0.0, "gold": 1, "right": 0}


def test_predictions_are_kept_of_test_alone(monkeypatch):
    prediction = SimpleNamespace(label="1")
    monkeypatch.setattr(counts, "predict_all", lambda *_: [prediction])
    monkeypatch.setattr(counts, "scores_of", lambda *_, seen: {"accuracy": 1.0})
    splits = {"train": [], "dev": [Example(("甲",), "1")]}
    task = SimpleNamespace(name="classify")
    fitted = SimpleNamespace(
        pipeline=SimpleNamespace(task=task), splits=splits, graph=(), type_labels={}
    )
    made, predictions, _ = score_run(fitted, GRAPH)
    assert (list(made["scores"]), predictions) == (["dev"], [])
    splits["test"] = splits["dev"]
    assert score_run(fitted, GRAPH)[1] == ["1"]


def test_columns_come_back_from_json_and_hold_no_text():
    made = sentence_counts("ner", [SICK], [[(1, 3, "D")]], set(), GRAPH)
    written = packed(made)
    assert TEXT not in str(written)
    assert unpacked(written) == made


def test_a_sentence_has_the_same_id_wherever_it_stands():
    other = Example(("别的句子",), None, ((0, 1),), ("O",))
    one = sentence_counts("ner", [SICK, other], [[], []], set(), GRAPH).ids
    two = sentence_counts("ner", [other, SICK], [[], []], {"甲病"}, GRAPH).ids
    assert one == two[::-1]
    assert len(set(one)) == 2
