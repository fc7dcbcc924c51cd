"""What is put side by side: two to four scenes, each with its name.

Presets are made of the Lab's scene: the systems, K-BERT's parts, the twin, the graph as loaded,
the matrix by the tree. Free choice names model, graph and ablation of every panel.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kbert_core.kbert.visible import Ablation
from kbert_core.systems import K_BERT
from kbert_lab.lab.scene import Choice, Scene
from kbert_lab.lab.session import Reads

FEWEST = 2


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


def chosen(now: Scene, choice: Choice, loaded: Scene | None, reads: Reads) -> Panel:
    """The panel of a free choice.

    Args:
        loaded: the graph as it was loaded; None: it has not been edited.
        reads: of the model that it is read with.
    """
    graphs = {"edited": now, "loaded": loaded or now, "none": now.without_knowledge()}
    scene = graphs[choice.graph].without_interventions()
    if choice.model and choice.model != now.model:
        scene = scene.read_by(choice.model, reads.options, reads.ablation)
    trees = choice.system in ("", K_BERT) and reads.has_matrix
    ablation = choice.ablation if trees else Ablation()
    return Panel("", replace(scene, ablation=ablation, system=choice.system))
