"""Mentions of many texts at once, beside those of each text by itself."""

import random

import pytest

from kbert_core import KnowledgeGraph, Triple, find_mentions
from kbert_core.knowledge.scan import scan

ALPHABET = "ab cAB中文-心國国Ⅱ℃éｃs\u0301·😀\0\x01（）"


def random_text(dice, longest, alphabet=ALPHABET):
    return "".join(dice.choice(alphabet) for _ in range(dice.randint(1, longest)))


def random_graph(dice):
    triples = [Triple(random_text(dice, 7), "r", random_text(dice, 3)) for _ in range(25)]
    graph = KnowledgeGraph(triples)
    for triple in dice.sample(list(graph), min(3, len(graph))):
        graph = dice.choice((graph.remove, graph.switch_off))(triple)
    return graph.add(Triple(f"中{dice.choice('ab文')}", "new", "name"))


def by_text(texts, graph):
    found = scan(texts, graph)
    mentions = [[] for _ in texts]
    for row, start, end, entities in zip(
        found.rows.tolist(), found.starts.tolist(), found.ends.tolist(), found.entities, strict=True
    ):
        shift = int(found.offsets[row])
        mentions[row].append((start - shift, end - shift, entities))
    return mentions


@pytest.mark.parametrize("seed", range(60))
def test_scan_finds_what_find_mentions_finds(seed):
    dice = random.Random(seed)
    graph = random_graph(dice)
    texts = [random_text(dice, 25) for _ in range(40)] + ["", "\ue000中", "\uffff", "a  b"]
    wanted = [[(m.start, m.end, m.entities) for m in find_mentions(text, graph)] for text in texts]
    assert by_text(texts, graph) == wanted


def test_scan_finds_no_name_across_the_border_of_two_texts():
    graph = KnowledgeGraph([Triple("糖尿", "类别", "疾病"), Triple("尿病", "类别", "疾病")])
    assert by_text(["糖", "尿", "病"], graph) == [[], [], []]


def test_scan_tests_word_borders_at_the_ends_of_a_text():
    graph = KnowledgeGraph([Triple("cat", "is", "animal"), Triple("cats", "are", "animals")])
    assert by_text(["cat", "cats", "catsy"], graph) == [
        [(0, 3, ("cat",))],
        [(0, 4, ("cats",))],
        [],
    ]


def test_scan_of_no_text_is_empty():
    assert scan([], KnowledgeGraph([Triple("a", "b", "c")])).entities == []
