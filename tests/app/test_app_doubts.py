"""What is said of a triple while it is being typed."""

import pytest

from app.view_models.doubts import doubts
from kbert_core import KnowledgeGraph, Triple

SCOPE = Triple("胃镜", "类别", "检查")
PART = Triple("胃镜", "部位", "ｕｐｐｅｒ gi")
GRAPH = KnowledgeGraph([SCOPE, PART, Triple("Off", "is", "off")]).switch_off(
    Triple("Off", "is", "off")
)


@pytest.mark.parametrize(
    ("typed", "kinds"),
    [
        (("", "", ""), []),
        (("胃镜", "", ""), []),
        (("胃", "", ""), ["one_character"]),
        (("the", "", ""), ["stop_word"]),
        (("胃镜", "类别", "检查"), ["there"]),
        (("Off", "is", "off"), ["there"]),
        (("胃镜", "类别", "疾病"), ["several_types"]),
        (("胃镜", "类别", "检 查 "), ["several_types"]),
        (("胃镜", "部位", "Upper  GI"), ["duplicate"]),
        (("CT", "is", "ct"), ["own_tail"]),
        (("CT", "", "x" * 41), ["long_tail"]),
        (("C\x00T", "is", "x"), ["control"]),
        (("CT", "is", "x" * 50_001), ["too_long"]),
        (("心电图", "类别", "检查"), []),
    ],
)
def test_doubts_are_named_as_the_form_fills(typed, kinds):
    assert [doubt.kind for doubt in doubts(GRAPH, *typed)] == kinds


def test_a_triple_is_not_compared_with_the_one_it_replaces():
    assert doubts(GRAPH, "胃镜", "类别", "检查", replacing=SCOPE) == ()
    assert doubts(GRAPH, "胃镜", "类别", "疾病", replacing=SCOPE) == ()
    other = doubts(GRAPH, "胃镜", "类别", "检查", replacing=PART)
    assert [(doubt.kind, doubt.refused) for doubt in other] == [("there", True)]


def test_what_cannot_be_kept_is_refused_and_the_rest_only_doubted():
    assert all(d.refused for d in doubts(GRAPH, "a\tb", "is", "x"))
    assert not any(d.refused for d in doubts(GRAPH, "的", "类别", "检查"))
