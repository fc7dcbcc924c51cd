"""Scene: everything a run depends on, as one frozen value.

Every figure is a function of a scene, and of a selection that never re-runs
the model. Undo is an older scene, a comparison is two of them.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated
from unicodedata import category

from pydantic import Field

from kbert_core.kbert.visible import Ablation
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.options import option_fields
from kbert_core.systems import SYSTEMS
from kbert_lab.lab.written import (
    STRICT,
    Folder,
    Name,
    Number,
    OneEdit,
    OneIntervention,
    Options,
    many,
    one_of,
)

MOST_EDITS = 2_000  # that a link or a session file holds
MOST_INTERVENTIONS = 32  # at once
WORDS = "words"
CHARACTERS = "characters"
NO_MODEL = (WORDS, CHARACTERS)  # readers that cut a text without a model
MOST_PANELS = 4  # side by side
GRAPHS = ("edited", "loaded", "none")  # that a free panel may read with


UNSEEN = ("Cc", "Cf", "Zl", "Zp", "Zs")  # categories of characters that draw nothing
FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"  # of others that draw nothing


def is_blank(text: str) -> bool:
    """Whether nothing of a text can be seen."""
    return all(category(c) in UNSEEN or c in FILLERS for c in text)


@dataclass(frozen=True, slots=True)
class GraphRef:
    """Names the graph a scene starts from; the triples live elsewhere."""

    __pydantic_config__ = STRICT

    fingerprint: Name  # of the graph as loaded
    name: Name  # shown to people

    @classmethod
    def of(cls, graph: KnowledgeGraph) -> "GraphRef":
        """Name a graph by its content."""
        return cls(graph.fingerprint, graph.name)


@dataclass(frozen=True, slots=True)
class Scene:
    """What is read, by which model, with which knowledge, and how."""

    __pydantic_config__ = STRICT

    sentences: Annotated[tuple[str, ...], Field(min_length=1, max_length=2)]  # one text or two
    model: Folder  # a checkpoint's folder or hub name, or one of NO_MODEL
    graph: GraphRef  # the graph before the edits
    edits: Annotated[tuple[OneEdit, ...], many(MOST_EDITS)] = ()  # made to the graph, oldest first
    options: Options = InjectionOptions()  # how much knowledge a mention gets
    ablation: Ablation = Ablation()  # soft or hard positions, tree or everything visible
    device: Annotated[str, Field(exclude=True)] = "auto"  # where the model runs
    # cells of the visible matrix blocked and opened, in order
    interventions: Annotated[tuple[OneIntervention, ...], many(MOST_INTERVENTIONS)] = ()
    # how knowledge is read; empty: as the model was trained
    system: Annotated[str, one_of("", *SYSTEMS)] = ""
    threshold: Number | None = None  # δ of a KnowBert's linker; None: as the model was trained

    @property
    def has_model(self) -> bool:
        """Whether a checkpoint reads the text, and not just a splitter."""
        return self.model not in NO_MODEL

    def original(self) -> "Scene":
        """Return the scene with the graph as it was loaded."""
        return replace(self, edits=())

    def without_knowledge(self) -> "Scene":
        """Return the scene of the same text without any graph, nothing blocked or opened."""
        return replace(self, graph=NO_GRAPH, edits=(), interventions=())

    def without_interventions(self) -> "Scene":
        """Return the scene with the visible matrix as the tree gives it."""
        return replace(self, interventions=())

    def read_by(self, model: str, options: InjectionOptions, ablation: Ablation) -> "Scene":
        """Return the scene with another model that reads as it was trained."""
        return replace(self, model=model, options=options, ablation=ablation, interventions=())


def ablatable(sentences: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """What can be taken away where a text or a pair is read: parts of an ablation, their values."""
    options = option_fields(Ablation).items()
    pair = len(sentences) == 2
    return {name: f.metadata["choices"] for name, f in options if pair or name != "segments"}


NO_GRAPH = GraphRef("", "no knowledge")


@dataclass(frozen=True, slots=True)
class Choice:
    """What a panel is made of that a visitor chooses freely."""

    __pydantic_config__ = STRICT

    model: Folder = ""  # a path or reader; empty: the Lab's
    graph: Annotated[str, one_of(*GRAPHS)] = "edited"
    ablation: Ablation = Ablation()  # how the tree is read
    # how knowledge is read; empty: as the model was trained
    system: Annotated[str, one_of("", *SYSTEMS)] = ""


PANELS = (  # what a free choice begins with
    Choice(graph="none"),
    Choice(),
    Choice(ablation=Ablation("hard", "tree")),
    Choice(ablation=Ablation("soft", "all")),
)


def content_key(scene: Scene, graph: KnowledgeGraph, model_stamp: str) -> str:
    """Hash all that a result depends on: two equal keys, one equal result.

    Args:
        scene: what is run.
        model_stamp: changes when the checkpoint's files do.
    """
    content = (
        scene.sentences,
        scene.model,
        model_stamp,
        scene.device,
        graph.fingerprint,
        scene.options,
        scene.ablation,
        scene.interventions,
        scene.system,
        scene.threshold,
    )
    return hashlib.sha256(repr(content).encode()).hexdigest()
