"""Scenes are values."""

from dataclasses import replace

import pytest

from kbert_core import Ablation, Triple
from kbert_core.knowledge.edit import Edit
from kbert_lab.lab.scene import GraphRef, Scene, content_key

OFF = Edit("switch_off", Triple("a", "b", "c"))
SCENE = Scene(("text",), "words", GraphRef("f", "g"), (OFF,))


def test_content_key_depends_on_the_triples_and_not_on_the_way_to_them(graph):
    triple = next(iter(graph))
    back = graph.switch_off(triple).switch_on(triple)
    key = content_key(SCENE, graph, "")
    assert content_key(SCENE, back, "") == key
    assert content_key(SCENE, graph.switch_off(triple), "") != key


@pytest.mark.parametrize(
    "other",
    [
        replace(SCENE, sentences=("other",)),
        replace(SCENE, sentences=("te", "xt")),
        replace(SCENE, ablation=Ablation(positions="hard")),
        replace(SCENE, model="characters"),
    ],
)
def test_content_key_changes_with_what_is_run(graph, other):
    assert content_key(other, graph, "") != content_key(SCENE, graph, "")
