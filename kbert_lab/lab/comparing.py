"""What the reading on the page is compared with: an earlier one, or others that stand beside it.

All is made of the session: the scene before the last edit, without a graph, as it was pinned; or
the systems, K-BERT's parts, the twin, the graph as loaded, the matrix by the tree; or panels of
which model, graph and ablation are chosen freely.
"""

from dataclasses import dataclass, replace
from typing import Any

from kbert_core.kbert.kbert import KBertTrace
from kbert_core.kbert.visible import Ablation
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.roof.roof_bert import RoofTrace
from kbert_core.systems import K_BERT
from kbert_lab.lab.history import Edited
from kbert_lab.lab.log import log_of
from kbert_lab.lab.offer import Offer
from kbert_lab.lab.scene import Choice, GraphRef, Scene
from kbert_lab.lab.session import AUTO, NO_TASK, Session

FEWEST = 2  # side by side
BERT, ORIGINAL, PINNED = "bert", "original", "pinned"
UNTOUCHED = "untouched"  # the scene without interventions
FREE = "free"  # panels that the visitor chooses


@dataclass(frozen=True, slots=True)
class Panel:
    """One of the scenes side by side."""

    name: str  # a key of ``sides.NAMES``, or empty: its number is its name
    scene: Scene  # what is run


def kinds(session: Session, offer: Offer) -> tuple[str, ...]:
    """What there is to compare with; the first unless another is chosen."""
    pinned = [PINNED] if _pinned(session, offer) else []
    untouched = [UNTOUCHED] if session.standing else []
    return (AUTO, BERT, ORIGINAL, *pinned, *untouched, *presets(session, offer), FREE)


def _pinned(session: Session, offer: Offer) -> Scene | None:
    """The pinned scene; None: there is none, or another kind of system reads it."""
    own = session.pinned
    fits = own and offer.reads(own.model).has_trees == session.reads.has_trees
    return own if fits else None


def earlier(session: Session, offer: Offer) -> tuple[Scene, str]:
    """The one scene that the page compares with, and of which kind it is."""
    now, log, last = session.scene(), log_of(session), session.last_step()
    chosen, pinned = session.compare, _pinned(session, offer)
    if chosen == PINNED and pinned is not None:
        return pinned, PINNED
    intervened = last is None or not isinstance(last.what, Edited)
    if now.interventions and (chosen == UNTOUCHED or (chosen == AUTO and intervened)):
        return now.without_interventions(), UNTOUCHED
    if chosen == ORIGINAL:
        return _on(now, log.first), ORIGINAL
    if chosen == BERT or log.before is None:
        return now.without_knowledge(), BERT
    return _on(now, *log.before), AUTO


def before_last(session: Session, of: Scene) -> Scene | None:
    """A scene before the last edit; None: there was none, or the scene reads without it."""
    log = log_of(session)
    if log.before is None or (of.graph, of.edits) != (GraphRef.of(session.base), log.done):
        return None
    return _on(of, *log.before)


def loaded(session: Session) -> Scene | None:
    """The scene with the graph as it was loaded, or the workspace as it began; None: unedited."""
    log = log_of(session)
    if not log.done and log.first.fingerprint == log.graph.fingerprint:
        return None
    return _on(session.scene(), log.first)


def _on(scene: Scene, graph: KnowledgeGraph, edits: tuple[Edit, ...] = ()) -> Scene:
    """A scene with its graph as it was before."""
    return replace(scene, graph=GraphRef.of(graph), edits=edits)


def beside(session: Session, offer: Offer) -> tuple[Panel, ...]:
    """What is chosen to stand side by side; empty: nothing is."""
    if session.compare == FREE:
        return tuple(_chosen(session, offer, one) for one in choices(session, offer))
    return presets(session, offer).get(session.compare, ())


def presets(session: Session, offer: Offer) -> dict[str, tuple[Panel, ...]]:
    """What can stand side by side without choosing anything, by kind."""
    now, as_loaded = session.scene(), loaded(session)
    here, has_task = now.without_interventions(), session.task != NO_TASK
    systems = offer.systems(now) if has_task else {}
    twin = offer.twin_scene(now) if has_task else None
    found: dict[str, tuple[Panel, ...]] = {}
    if len(systems) >= FEWEST:
        found["systems"] = tuple(Panel(*system) for system in systems.items())
    if session.reads.has_matrix:
        found["parts"] = (
            Panel("bert", replace(now.without_knowledge(), ablation=Ablation())),
            Panel("kbert", replace(here, ablation=Ablation())),
            Panel("hard", replace(here, ablation=Ablation("hard", "tree"))),
            Panel("all", replace(here, ablation=Ablation("soft", "all"))),
        )
    if now.interventions:
        found["matrix"] = (Panel("untouched", here), Panel("intervened", now))
    if twin is not None:
        plain = Panel("off", now.without_knowledge())
        found["models"] = (Panel("now", now), plain, Panel("twin", twin))
    if as_loaded is not None:
        plain = Panel("bert", now.without_knowledge())
        found["graphs"] = (plain, Panel("loaded", as_loaded), Panel("edited", now))
    return found


def choices(session: Session, offer: Offer) -> tuple[Choice, ...]:
    """What panels are freely made of, as far as it is here."""
    models, graph = offer.names(session.task), loaded(session)
    return tuple(
        replace(
            one,
            model=one.model if one.model in models else "",
            graph=one.graph if one.graph != "loaded" or graph else "edited",
        )
        for one in session.panels
    )


def _chosen(session: Session, offer: Offer, choice: Choice) -> Panel:
    now, reads = session.scene(), session.reads
    graphs = {"edited": now, "loaded": loaded(session) or now, "none": now.without_knowledge()}
    scene = graphs[choice.graph].without_interventions()
    if choice.model not in ("", now.model):
        reads = offer.reads(choice.model)
        scene = scene.read_by(choice.model, reads.options, reads.ablation)
    trees = choice.system in ("", K_BERT) and reads.has_matrix
    ablation = choice.ablation if trees else Ablation()
    return Panel("", replace(scene, ablation=ablation, system=choice.system))


def same_knowledge(before: Any, now: Any) -> bool:
    """Whether two traces of one system read the same text with the same knowledge."""
    if isinstance(now, KBertTrace):
        return bool(before.tree == now.tree)
    texts = before.reading.sentences == now.reading.sentences
    part = "nodes" if isinstance(now, RoofTrace) else "spans"
    return texts and bool(getattr(before.reading, part) == getattr(now.reading, part))
