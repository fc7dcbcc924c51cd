"""Counts a sentence, what the statistics are made of; and the release's, against its own rows."""

from types import SimpleNamespace

import pytest
import torch
from conftest import BIO

from kbert_core import KnowledgeGraph, Triple, Words, flatten, grow_trees
from kbert_lab.data.labelled import Example
from kbert_lab.study.counts import (
    branch_begins,
    release_count_of_spans,
    release_scores,
    release_spans,
    sentence_counts,
)
from kbert_lab.study.statistics import packed, unpacked
from kbert_lab.training.scores import ranking_scores

TEXT = "有甲病查乙图"
SICK = Example(
    (TEXT,), None, tuple((i, i + 1) for i in range(6)), ("O", "B-D", "I-D", "O", "B-E", "I-E")
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


# The release's count


def test_the_release_reads_an_entity_to_the_next_o_or_beginning_whatever_its_type():
    tags = ["I-A", "B-A", "I-B", "B-B", "O", "I-A", "B-A"]
    assert release_spans(range(7), tags, 7) == [(1, 3), (3, 4), (6, 7)]
    assert release_spans([0, 3, 9], ["B-A", "I-A", "O"], 12) == [(0, 9)]
    assert release_spans([0, 3, 9], ["S-A", "[ENT]", "[PAD]"], 12) == [(0, 9)]


def text_of(tags):
    """A text of one character a token."""
    return Example(("x" * len(tags),), None, tuple((i, i + 1) for i in range(len(tags))), tags)


def test_the_release_counts_no_type_and_divides_by_what_begins_on_branches():
    gold = [text_of(("B-A", "I-A", "O", "B-A", "O", "O")), text_of(("O",) * 6)]
    scores = release_scores(gold, [[(0, 2)], [(5, 6)]], [0, 2])
    wanted = {"right": 1, "predicted": 4, "gold": 2, "precision": 0.25, "recall": 0.5, "f1": 1 / 3}
    wanted |= {"on_branches": 2, "trunk_f1": 0.5}
    assert scores == pytest.approx({f"release_{name}": value for name, value in wanted.items()})
    assert release_scores(gold[1:], [[]], [0])["release_f1"] == 0.0


# Per token: gold tag, predicted tag, and what is predicted on the branch tokens after it.


def test_a_dictionarys_spans_count_by_their_borders_alone_and_go_to_the_next_word():
    counted = release_count_of_spans([SICK], [[(1, 3, "E"), (3, 4, "E")]])
    # 甲病 of another type is right; 查 isn't; 乙图 is missing
    assert [counted[f"release_{name}"] for name in ("right", "predicted", "gold")] == [1, 2, 2]
    assert counted["release_f1"] == counted["release_trunk_f1"] == pytest.approx(0.5)
    words = Example(("tea for two",), None, ((0, 3), (4, 7), (8, 11)), ("B-D", "O", "B-E"))
    assert release_count_of_spans([words], [[(0, 3, "D"), (8, 11, "E")]])["release_f1"] == 1.0


class Reader:
    """Tags the branches of the one text it reads as it is told; every text is two windows."""

    def __init__(self, *tags):
        self.tags, self.labels = tags, dict(enumerate(BIO))

    @property
    def reader(self):
        return self

    def readings(self, texts, graph):
        flats = flatten(grow_trees(texts, graph), Words(special=True))
        return [SimpleNamespace(rows=(flat, flat)) for flat in flats]

    def outputs(self, readings):
        made = []
        for rows in (reading.rows for reading in readings):
            logits = torch.zeros(len(rows[0]), len(BIO))
            for placed, tags in zip(rows[0].branches, self.tags, strict=True):
                for index, tag in zip(range(placed.start, placed.end), tags, strict=True):
                    logits[index, BIO.index(tag)] = 99
            made.append([logits, logits])
        return made


def test_tokens_of_branches_that_begin_an_entity_count_once_where_windows_overlap():
    graph = KnowledgeGraph([Triple("糖尿病", "类别", "疾病"), Triple("糖尿病", "别名", "糖病")])
    reader = Reader(("B-疾病", "B-治疗"), ("I-治疗", "O"))
    examples = [Example(("有 糖尿病",)), Example(("有 糖尿病",))]
    assert branch_begins(reader, examples, graph) == [2, 2]
    assert branch_begins(reader, examples, KnowledgeGraph()) == [0, 0]
