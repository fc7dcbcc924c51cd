"""A scene in words: its edits, and how it is read."""

from collections.abc import Sequence

from kbert_core.kbert.kbert import KBertTrace
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.triple import Triple
from kbert_lab.lab.scene import Scene
from kbert_lab.lab.texts import N_, listed, t
from kbert_lab.lab.views.html import rendered, scrolling
from kbert_lab.lab.views.interventions import describe as describe_intervention
from kbert_lab.lab.views.knowledge import describe
from kbert_lab.lab.views.prediction import Place
from kbert_lab.lab.views.tree import ablated
from kbert_lab.lab.words import OPTIONS_STRATEGY, READERS


def edits_html(edits: Sequence[Edit]) -> str:
    """Draw edits as a table, oldest first; escaped."""
    rows = [[str(number), describe(edit)] for number, edit in enumerate(edits, start=1)]
    return scrolling(rendered("table", heads=("#", t("edit")), rows=rows))


def how_it_is_read(scene: Scene) -> list[str]:
    """Say with which options, ablation and interventions a scene is read; plain text."""
    made = [describe_intervention(one, None) for one in scene.interventions]
    return [*_options(scene.options), *ablated(scene.ablation), *made]


def model_name(model: str) -> str:
    """What a model, or a reader without one, is called."""
    return t(READERS.get(model, model))


def _options(options: InjectionOptions) -> list[str]:
    how = t("tail only" if options.tail_only else "relation and tail")
    said = [t("{n} triples per mention, {how}", n=options.max_triples, how=how)]
    said.append(t(OPTIONS_STRATEGY[options.strategy]))
    if options.threshold is not None:
        said.append(t("threshold {value}", value=f"{options.threshold:g}"))
    if options.one_sense:
        said.append(t("One meaning per name"))
    for key, names in (
        (N_("only {relations}"), options.relations or ()),
        (N_("without {relations}"), options.not_relations),
        (N_("first {relations}"), options.first_relations),
    ):
        if names:
            said.append(t(key, relations=listed(names)))
    return said


def place_of(trace: KBertTrace, triple: Triple) -> Place:
    """Where the first mention stands that a triple hangs from."""
    mentions = (n.mention for n in trace.tree.nodes if triple in n.used)
    return next(((m.start, m.end) for m in mentions), (0, 0))
