"""A scene in words: its edits, and how it is read."""

from collections.abc import Sequence
from typing import Any

from kbert_core.errors import KBertError
from kbert_core.kbert.kbert import KBertTrace
from kbert_core.kbert.visible import Ablation
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.surface_forms import RULES
from kbert_core.knowledge.triple import Triple
from kbert_core.tasks import ClassPrediction, LabelsPrediction, LinkPrediction, NerPrediction
from kbert_lab.lab.models import ModelInfo, type_name
from kbert_lab.lab.scene import CHARACTERS, WORDS, Scene
from kbert_lab.lab.texts import N_, clauses, listed, t
from kbert_lab.lab.views.html import escape, scrolling, table_html
from kbert_lab.lab.views.interventions import describe as describe_intervention
from kbert_lab.lab.views.knowledge import describe
from kbert_lab.lab.views.links import meant
from kbert_lab.lab.views.prediction import (
    best_of,
    chances,
    is_score,
    labels_given,
    percent,
    span_changes,
)
from kbert_lab.lab.words import NAME_RULE, OPTIONS_STRATEGY

MOST_TURNED = 3  # that are said


def edits_html(edits: Sequence[Edit]) -> str:
    """Draw edits as a table, oldest first; escaped."""
    rows = [[str(number), escape(describe(edit))] for number, edit in enumerate(edits, start=1)]
    return scrolling(table_html(("#", t("edit")), rows))


def turning(info: ModelInfo, text: str, now: Any, before: Any) -> str:
    """Say what a prediction has become, "癫痫: Disease → Examine"; empty: the same. Plain text.

    Args:
        text: that was read, of a pair the second.
        now, before: predictions of one kind.
    """
    if isinstance(now, NerPrediction):
        found = [
            (own.text, *(side and type_name(side[0]) for side in (own.before, own.after)))
            for own in span_changes(before.spans, now.spans)
        ]
    elif isinstance(now, LinkPrediction):
        found = [(text[slice(*place)], *sides) for place, sides in meant(now, before)]
    else:
        found = list(zip(_chosen(info, before), _chosen(info, now), strict=False))
    turned = [(*named, was, is_) for *named, was, is_ in found if was != is_]
    nothing = t("none")
    return clauses(
        (t("{name}: {what}", name=named[0], what=what) if named else what)
        for *named, was, is_ in turned[:MOST_TURNED]
        for what in [f"{was or nothing} → {is_ or nothing}"]
    )


def _chosen(info: ModelInfo, prediction: Any) -> list[str]:
    """The likeliest label or answer, or that of every [MASK]; of a score its percentage."""
    best = map(best_of, chances(info, prediction).values())
    if isinstance(prediction, LabelsPrediction):
        return [labels_given(info, prediction)]
    if isinstance(prediction, ClassPrediction) and is_score(info, prediction):
        return [percent(value) for _, value in best]
    return [text for text, _ in best]


def how_it_is_read(scene: Scene) -> list[str]:
    """Say with which options, ablation and interventions a scene is read; plain text."""
    made = [describe_intervention(one, None) for one in scene.interventions]
    return [*_options(scene.options), *_ablation(scene.ablation), *made]


def model_name(model: str) -> str:
    """What a model, or a reader without one, is called."""
    readers = {
        WORDS: N_("No model: words as tokens"),
        CHARACTERS: N_("No model: characters as tokens"),
    }
    return t(readers[model]) if model in readers else model


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
    off = [t(NAME_RULE[rule.upper()]) for rule in RULES if not getattr(options.names, rule)]
    if off:
        said.append(t("names not compared by: {rules}", rules=listed(off)))
    return said


def _ablation(ablation: Ablation) -> list[str]:
    said = []
    if ablation.positions == "hard":
        said.append(t("the model reads the hard positions"))
    if ablation.visible == "all":
        said.append(t("everything visible"))
    return said


Place = tuple[int, int]  # in characters of the first text, end exclusive


def outcome(info: ModelInfo, now: Any, after: Any, at: Place) -> tuple[str, bool]:
    """Say what would be predicted, and whether it is another prediction than now; plain text.

    Args:
        now: its prediction.
        after: the same after an edit; an error where the edit can't be made.
        at: the mention that the edit is about; what changes there is said first.
    """
    if isinstance(after, KBertError):
        return t("not possible"), False
    if isinstance(after, NerPrediction):
        changes = [c for c in span_changes(now.spans, after.spans) if c.change != "same"]
        changes.sort(key=lambda c: (not _meet((c.start, c.end), at), c.after is None))
        for change in changes[:1]:
            here = _meet((change.start, change.end), at)
            label, probability = change.after or ("", 0.0)
            said = f"{type_name(label)} {percent(probability)}" if label else t("none")
            return said if here else t("“{text}” {label}", text=change.text, label=said), True
    elif isinstance(after, LabelsPrediction):
        if now.labels != after.labels:
            return labels_given(info, after), True
    else:
        was, own = ([*map(best_of, chances(info, one).values())] for one in (now, after))
        turns = [text for text, _ in was] != [text for text, _ in own]
        if turns or (isinstance(after, ClassPrediction) and is_score(info, after)):
            text = "".join(text for text, _ in own)
            return f"{text} {percent(min(p for _, p in own))}", turns or now.label != after.label
    return t("no change"), False


def place_of(trace: KBertTrace, triple: Triple) -> Place:
    """Where the first mention stands that a triple hangs from."""
    mentions = (n.mention for n in trace.tree.nodes if triple in n.used)
    return next(((m.start, m.end) for m in mentions), (0, 0))


def _meet(one: Place, other: Place) -> bool:
    return one[0] < other[1] and other[0] < one[1]
