"""What is put side by side: two to four scenes, each with its name.

Presets are made of the Lab's scene: the systems, K-BERT's parts, the twin, the graph as loaded,
the matrix by the tree. Free choice names model, graph and ablation of every panel.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import Field

from kbert_core.kbert.visible import Ablation
from kbert_core.systems import SYSTEMS
from kbert_lab.lab.scene import Scene
from kbert_lab.lab.written import STRICT, Folder, Options, one_of

FEWEST, MOST = 2, 4
GRAPHS = ("edited", "loaded", "none")  # of a free choice


@dataclass(frozen=True, slots=True)
class Panel:
    """One of the scenes side by side."""

    name: str  # a key of the texts sides.name.…, or empty: its number is its name
    scene: Scene  # what is run


@dataclass(frozen=True, slots=True)
class Known:
    """The scenes there are besides the Lab's own."""

    twin: Scene | None = None  # the model's twin reads the text; None: there is none
    loaded: Scene | None = None  # the graph as it was loaded; None: it has not been edited
    # the text as each system reads it that has a model here
    systems: Mapping[str, Scene] = field(default_factory=dict)


def presets(now: Scene, known: Known, *, matrix: bool = True) -> dict[str, tuple[Panel, ...]]:
    """What can be compared without choosing anything, by the keys of ``compare.…``.

    Args:
        matrix: whether what reads the scene has positions and a visible matrix to change.
    """
    here = now.without_interventions()
    found: dict[str, tuple[Panel, ...]] = {}
    if len(known.systems) >= FEWEST:
        found["systems"] = tuple(Panel(*system) for system in known.systems.items())
    if matrix:
        found["parts"] = (
            Panel("bert", replace(now.without_knowledge(), ablation=Ablation())),
            Panel("kbert", replace(here, ablation=Ablation())),
            Panel("hard", replace(here, ablation=Ablation("hard", "tree"))),
            Panel("all", replace(here, ablation=Ablation("soft", "all"))),
        )
    if now.interventions:
        found["matrix"] = (Panel("untouched", here), Panel("intervened", now))
    if known.twin is not None:
        found["models"] = (
            Panel("now", now),
            Panel("off", now.without_knowledge()),
            Panel("twin", known.twin),
        )
    if known.loaded is not None:
        found["graphs"] = (
            Panel("bert", now.without_knowledge()),
            Panel("loaded", known.loaded),
            Panel("edited", now),
        )
    return found


@dataclass(frozen=True, slots=True)
class Choice:
    """What a free panel is made of."""

    __pydantic_config__ = STRICT

    model: Folder = ""  # a path or reader; empty: the Lab's
    # what that model was trained with; None: the Lab's
    options: Annotated[Options | None, Field(exclude=True)] = None
    graph: Annotated[str, one_of(*GRAPHS)] = "edited"
    ablation: Ablation = Ablation()  # how the tree is read
    # how knowledge is read; empty: as the model was trained
    system: Annotated[str, one_of("", *SYSTEMS)] = ""


def chosen(now: Scene, choice: Choice, loaded: Scene | None) -> Panel:
    """The panel of a free choice."""
    graphs = {"edited": now, "loaded": loaded or now, "none": now.without_knowledge()}
    scene = replace(graphs[choice.graph].without_interventions(), ablation=choice.ablation)
    if choice.model and choice.model != now.model:
        scene = scene.read_by(choice.model, choice.options or now.options, choice.ablation)
    return Panel("", replace(scene, system=choice.system))
