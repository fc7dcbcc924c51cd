"""The seven lessons: what they claim is what comes out."""

import math

import pytest
from conftest import FIGURE_2

from app import services
from app.learning import read
from kbert_core import KnowledgeGraph, Triple
from kbert_lab.lab import texts
from kbert_lab.lab.views.lessons import LESSON, LESSONS, exercise


def made(lesson):
    return exercise(lesson, read, services.demo_graph)


def told(lesson, found):
    """What is said with the answer."""
    own = [texts.t(text, **found.values) for text in LESSON[lesson].get("why", ())]
    return " ".join([*own, *found.reasons])


@pytest.mark.parametrize(
    ("lesson", "right"),
    [
        ("tokens", "14"),  # 6 words, 2 special tokens, 3 branches of relation and tail
        ("tree", "CEO"),
        ("positions", "3"),  # [CLS] 0, Tim 1, Cook 2, is 3
        ("visible", "Cook"),
        ("attention", "masked"),
    ],
)
def test_figure_2_has_the_answers_worked_out_by_hand(lesson, right):
    found = made(lesson)
    assert found.right == right
    assert len(found.choices) == 4
    assert len(set(found.choices.values())) == 4


def test_masked_attention_is_the_softmax_over_what_is_visible():
    found = made("attention")
    visible = {"Tim": 1, "Cook": 2, "CEO": 1, "Apple": 0}  # all that “Apple” sees in Figure 2
    weight = math.exp(2) / sum(math.exp(score) for score in visible.values())
    assert found.choices["masked"] == f"{100 * weight:.1f} %" == "53.4 %"
    assert found.choices["masked"] in told("attention", found)
    everywhere = sum(math.exp(score) for score in visible.values()) + 10 * math.exp(1)
    assert found.choices["unmasked"] == f"{100 * math.exp(2) / everywhere:.1f} %"
    hidden = [row for row in found.revealed.split("<tr") if "kb-dull" in row]
    assert len(hidden) == 10
    assert all(">0</span></td></tr>" in row for row in hidden)


def test_answers_come_from_the_graph_and_are_not_written_down():
    fewer = {"figure2": KnowledgeGraph(FIGURE_2[1:])}
    assert exercise("tokens", read, fewer.get).right == "12"
    assert exercise("tree", read, fewer.get).right == "is"
    twice = {"figure2": KnowledgeGraph([*FIGURE_2, Triple("Cook", "is_a", "Person")])}
    assert exercise("visible", read, twice.get).right == "Cook"  # “Tim Cook” is the longer match


def test_no_lesson_tells_its_answer_before_it_is_revealed():
    for lesson in ("tokens", "tree", "positions", "visible", "attention"):
        found = made(lesson)
        pictured = found.picture
        assert "kb-pos" not in pictured or pictured.startswith('<div class="kb-no-positions">')
        assert found.choices.get("masked", "nowhere") not in pictured


def test_every_lesson_has_its_texts_in_both_languages(monkeypatch):
    for language in ("en", "zh"):
        monkeypatch.setattr(texts, "language_of", lambda: language)  # noqa: B023
        for lesson in LESSONS:
            found = made(lesson)
            said = told(lesson, found) + "".join(found.choices.values())
            said += texts.t(LESSON[lesson]["text"], **found.values)
            assert "{" not in said + texts.t(LESSON[lesson]["question"], **found.values)


# With the shipped model


def test_noise_changes_tags_only_where_everything_is_visible():
    found = made("noise")
    assert found.right == "only_all"
    assert "noise changes 0 with the visible matrix and" in told("noise", found)
    read_tree = read(found.setting)
    assert [len(node.branches) for node in read_tree.tree.nodes] == [7, 7]  # 5 of them noise
    relations = {branch.triple.relation for n in read_tree.tree.nodes for branch in n.branches[:5]}
    own = set(services.demo_graph("medical_zh").relations())
    assert relations.isdisjoint(own)


def test_a_wrong_triple_hurts_what_the_model_knew_without_it():
    found = made("hurts")
    assert found.right == "Examine"
    assert "Without any knowledge: Disease" in told("hurts", found)
    right, wrong = found.values["old"], found.values["new"]
    assert right in found.setting.graph and wrong not in found.setting.graph
    assert wrong in found.setting.edited and right not in found.setting.edited
