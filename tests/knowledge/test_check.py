"""What a curator is told of a graph."""

from kbert_core import KnowledgeGraph, Triple
from kbert_core.knowledge.check import check


def found(*triples):
    graph = KnowledgeGraph(Triple(*t) for t in triples)
    return {finding.kind: finding for finding in check(graph)}


def test_a_graph_without_faults_has_no_findings():
    assert not found(("糖尿病", "类别", "疾病"), ("胃镜", "类别", "检查"))
    assert check(KnowledgeGraph()) == []


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
    )
    assert {kind: finding.count for kind, finding in doubts.items()} == {
        "several_types": 1,
        "duplicate": 1,
        "stop_word": 1,
        "one_character": 2,
        "dangling_alias": 2,
        "own_tail": 1,
        "long_tail": 1,
        "relation_once": 2,  # Treats, 监测
    }
    assert doubts["several_types"].examples == ["糖尿病: 疾病, 症状"]
    assert doubts["duplicate"].examples == ["(Aspirin, treats, pain) and (aspirin, Treats, Ｐain)"]
    assert doubts["one_character"].examples == ["肝", "胃"]
    assert doubts["dangling_alias"].examples == ["(消渴, 别名, 消渴症)", "(消渴症, 别名, 消渴)"]
    assert all(finding.remedy.endswith(".") for finding in doubts.values())


def test_examples_are_few_and_all_are_counted():
    doubts = found(*((c, "r", "t") for c in "abcdefghijklmnopqrstuvwxyz"))
    assert doubts["one_character"].count == 24  # "a" and "i" are everyday words
    assert len(doubts["one_character"].examples) == 5
