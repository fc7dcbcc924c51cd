"""What a curator is told of a graph."""

import pytest

from kbert_core import KnowledgeGraph, Triple
from kbert_core.knowledge.triple import AliasRelations
from kbert_lab.graphs.check import check


def found(*triples, **options):
    graph = KnowledgeGraph(Triple(*t) for t in triples)
    return {finding.kind: finding for finding in check(graph, **options)}


def texts(finding):
    return [str(example) for example in finding.examples]


def test_every_kind_of_doubt_is_found_with_examples():
    doubts = found(
        ("糖尿病", "类别", "疾病"),
        ("糖尿病", "类别", "症状"),
        ("Aspirin", "treats", "pain"),
        ("aspirin", "Treats", "Ｐain"),
        ("the", "treats", "pain"),
        ("肝", "类别", "部位"),
        ("消渴", "别名", "消渴症"),
        ("消渴症", "别名", "消渴"),
        ("丙肝", "别名", "丙型肝炎"),
        ("丙型肝炎", "类别", "疾病"),
        ("胃", "类别", "胃"),
        ("阿司匹林", "说明", "长" * 41),
        ("阿司匹林", "说明", "长" * 40),
        ("华法林", "监测", "凝血"),
        ("WHO", "is_a", "organisation"),
        ("112", "is_a", "number"),
        ("heart_attack", "is_a", "disease"),
        ("Crohn&#39;s disease", "is_a", "disease"),
        ("Crohn disease", "is_a", "disease"),
        ("α-synuclein", "is_a", "protein"),
        ("alpha-synuclein", "is_a", "protein"),
        ("bacterium", "is_a", "organism"),
        ("Bacteria", "is_a", "organism"),
        ("non-", "is_a", "prefix"),
        ("-itis", "is_a", "suffix"),
        ("Cl-", "is_a", "ion"),
    )
    assert {kind: texts(finding) for kind, finding in doubts.items()} == {
        "several_types": ["糖尿病: 疾病, 症状"],
        "duplicate": ["(Aspirin, treats, pain) and (aspirin, Treats, Ｐain)"],
        "stop_word": ["the"],
        "acronym": ["WHO"],
        "number": ["112"],
        "word_part": ["non-", "-itis"],
        "unlike_text": ["heart_attack", "Crohn&#39;s disease"],
        "other_spelling": [
            "Crohn&#39;s disease and Crohn disease",
            "alpha-synuclein and α-synuclein",
            "Bacteria and bacterium",
        ],
        "one_character": ["肝", "胃"],
        "alias_cycle": ["消渴症 → 消渴 → 消渴症"],
        "alias_entity": ["丙型肝炎: another name of 丙肝, and (丙型肝炎, 类别, 疾病)"],
        "dangling_alias": ["(消渴, 别名, 消渴症)", "(消渴症, 别名, 消渴)"],
        "own_tail": ["(胃, 类别, 胃)"],
        "long_tail": [f"阿司匹林 · 说明 · {'长' * 40}…"],
        "relation_once": ["(aspirin, Treats, Ｐain)", "(华法林, 监测, 凝血)"],
    }
    assert all(len(finding.examples) == finding.count for finding in doubts.values())
    assert all(finding.remedy.endswith(".") for finding in doubts.values())


@pytest.mark.parametrize(
    ("count", "last", "told"), [(10, "a", True), (9, "a", False), (10, "b", False)]
)
def test_a_relation_with_one_tail_says_nothing(count, last, told):
    tails = [*["a"] * (count - 1), last]
    doubts = found(*[(f"name {n}", "type", tail) for n, tail in enumerate(tails)])
    assert ("one_tail" in doubts) == told


def test_an_alias_leads_to_itself_or_round_in_a_circle():
    doubts = found(
        ("Tim Cook", "alias", "tim  cook"),
        ("a1", "又名", "b1"),
        ("b1", "also known as", "c1"),
        ("a1", "synonym_of", "c1"),  # c1 → b1 → a1 → c1
        ("c1", "类别", "疾病"),
    )
    assert texts(doubts["own_alias"]) == ["(Tim Cook, alias, tim  cook)"]
    assert texts(doubts["alias_cycle"]) == ["b1 → a1 → c1 → b1"]
    assert len(doubts["alias_cycle"].examples[0].triples) == 3


def test_very_many_aliases_in_a_circle_are_shown_by_the_first():
    names = [f"n{i}" for i in range(5_000)]
    doubts = found(*((a, "alias", b) for a, b in zip(names, [*names[1:], names[0]], strict=True)))
    assert doubts["alias_cycle"].count == 1
    assert texts(doubts["alias_cycle"])[0].endswith(" → …")


def test_alias_relations_and_the_number_of_examples_are_chosen():
    triples = [("a1", "nick", "b1"), ("a2", "nick", "b2")]
    assert set(found(*triples)) == set()
    chosen = found(*triples, alias_relations=AliasRelations(frozenset({"NICK"})), examples=1)
    assert chosen["dangling_alias"].count == 2
    assert len(chosen["dangling_alias"].examples) == 1
    letters = found(*((c, "r", "t") for c in "abcdefghijklmnopqrstuvwxyz"))["one_character"]
    assert letters.count == 24  # "a" and "i" are everyday words
    assert len(letters.examples) == 5


def test_what_is_switched_off_is_no_doubt_any_more():
    the = Triple("the", "treats", "pain")
    graph = KnowledgeGraph([the, Triple("aspirin", "treats", "pain")])
    assert [finding.kind for finding in check(graph)] == ["stop_word"]
    assert check(graph.switch_off(the)) == []
