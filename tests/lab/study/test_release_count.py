"""The release's count of entities, against its own rows read slowly."""

from types import SimpleNamespace

import pytest
import torch
from conftest import BIO
from hypothesis import given
from hypothesis import strategies as st

from kbert_core import KnowledgeGraph, Triple, Words, flatten, grow_trees
from kbert_lab.data.labelled import Example
from kbert_lab.study.counts import (
    branch_begins,
    release_count_of_spans,
    release_scores,
    release_spans,
)

TAGS = ("O", "B-A", "I-A", "B-B", "I-B")


def test_the_release_reads_an_entity_to_the_next_o_or_beginning_whatever_its_type():
    tags = ["I-A", "B-A", "I-B", "B-B", "O", "I-A", "B-A"]
    assert release_spans(range(7), tags, 7) == [(1, 3), (3, 4), (6, 7)]
    assert release_spans([0, 3, 9], ["B-A", "I-A", "O"], 12) == [(0, 9)]
    assert release_spans([0, 3, 9], ["S-A", "[ENT]", "[PAD]"], 12) == [(0, 9)]


def test_the_release_counts_no_type_and_divides_by_what_begins_on_branches():
    gold, found = [[(0, 2), (3, 4)], []], [[(0, 2)], [(5, 6)]]
    scores = release_scores(gold, found, [0, 2])
    assert (scores["right"], scores["predicted"], scores["gold"]) == (1, 4, 2)
    assert (scores["precision"], scores["recall"]) == (0.25, 0.5)
    assert scores["f1"] == pytest.approx(1 / 3)
    assert (scores["on_branches"], scores["trunk_f1"]) == (2, 0.5)
    assert release_scores([[]], [[]], [0])["f1"] == 0.0


# Per token: gold tag, predicted tag, and what is predicted on the branch tokens after it.
TOKENS = st.lists(
    st.tuples(
        st.sampled_from(TAGS), st.sampled_from(TAGS), st.lists(st.sampled_from(TAGS), max_size=3)
    ),
    min_size=1,
    max_size=10,
)


def as_the_release_counts(sentences):
    """Slowly, on rows as the release has them: branches between, one padding token at the end."""
    right = predicted = gold_count = 0
    for tokens in sentences:
        gold, found = [], []
        for gold_tag, tag, branch in tokens:
            gold += [gold_tag] + ["injected"] * len(branch)
            found += [tag, *branch]
        gold, found = [*gold, "padding"], [*found, "O"]
        gold_count += sum(tag[0] == "B" for tag in gold)
        predicted += sum(tag[0] == "B" for tag in found[:-1])
        borders = []
        for tags in (gold, found):
            pairs = set()
            for i, tag in enumerate(tags):
                if tag[0] == "B" and gold[i] != "injected":
                    later = (
                        k
                        for k in range(i + 1, len(tags))
                        if gold[k] != "injected" and tags[k][0] in "OBp"
                    )
                    pairs.add((i, next(later) - 1))
            borders.append(pairs)
        right += len(borders[0] & borders[1])
    return right, predicted, gold_count


@given(st.lists(TOKENS, min_size=1, max_size=4))
def test_the_releases_count_agrees_with_a_slow_one_on_its_own_rows(sentences):
    gold = [release_spans(range(len(t)), [g for g, _, _ in t], len(t)) for t in sentences]
    found = [release_spans(range(len(t)), [p for _, p, _ in t], len(t)) for t in sentences]
    begun = [sum(tag[0] == "B" for _, _, branch in t for tag in branch) for t in sentences]
    scores = release_scores(gold, found, begun)
    counts = as_the_release_counts(sentences)
    assert (scores["right"], scores["predicted"], scores["gold"]) == counts


def test_a_dictionarys_spans_count_by_their_borders_alone():
    text = "有甲病查乙图"
    sick = Example(
        (text,), None, tuple((i, i + 1) for i in range(6)), "O B-D I-D O B-E I-E".split()
    )
    counted = release_count_of_spans([sick], [[(1, 3, "E"), (3, 4, "E")]])
    # 甲病 of another type is right; 查 isn't; 乙图 is missing
    assert [counted[f"release_{name}"] for name in ("right", "predicted", "gold")] == [1, 2, 2]
    assert counted["release_f1"] == counted["release_trunk_f1"] == pytest.approx(0.5)


def test_a_dictionarys_span_goes_to_the_next_word():
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
