"""Sentences to try a graph on: made of its own names, kept where the graph changes what is read."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.surface_forms import without_sense
from kbert_core.knowledge.triple import TYPE_RELATIONS, Triple
from kbert_core.tasks import ClassPrediction, LinkPrediction, MaskPrediction, NerPrediction
from kbert_lab.lab.models import ModelInfo
from kbert_lab.lab.texts import t
from kbert_lab.lab.views.prediction import percent

MOST = 24  # sentences that are read, with the graph and without
SHOWN = 3
FLIP, LEAST = 2.0, 0.02  # weights: another label, and what is worth a look
MOST_LOOKED_AT = 20_000  # entities; a visitor waits for them
LONGEST = {True: 10, False: 30}  # characters of a name, Chinese or not
_FORMS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A text made with a name of the graph."""

    sentences: tuple[str, ...]  # one or two
    name: str  # as it stands in the first
    kind: str  # of its entity, "" where that isn't known
    triple: Triple  # the entity's first


@dataclass(frozen=True, slots=True)
class Tried:
    """What the graph changes in a text; (label, share of probability), None: no label."""

    candidate: Candidate  # the text
    weight: float = 1.0  # how much it changes, for the order
    # without and with the graph; both None: nothing predicted it
    before: tuple[str, float] | None = None
    after: tuple[str, float] | None = None


def candidates(graph: KnowledgeGraph, task: str | None, head: str = "") -> tuple[Candidate, ...]:
    """Make texts of a graph's own names, of each kind of entity as many.

    Args:
        graph: as edited; its first ``MOST_LOOKED_AT`` entities are looked at.
        task: of the model that is to read them.
        head: make them of this entity alone; "": of any.
    """
    items = [(head, graph.triples_of(head))] if head else islice(graph.items(), MOST_LOOKED_AT)
    kinds: dict[str, dict[str, Triple]] = {}
    for _, triples in items:
        on = [triple for triple in triples if graph.is_on(triple)]
        name = _name(on, graph) if on else ""
        if head or (1 < len(name) <= LONGEST[_is_chinese(name)] and name.isprintable()):
            kinds.setdefault(_kind(on), {}).setdefault(name, on[0])
    each = -(-MOST // max(1, len(kinds)))
    made = []
    for kind, names in kinds.items():
        step = max(1, len(names) // each)
        for number, name in enumerate(islice(names, 0, None, step)):
            triple = names[name]
            forms = _templates(name, kind, task)
            chosen = forms if head else forms[number % len(forms) :][:1]
            made += [
                Candidate(_filled(form, name, triple), name, kind, triple)
                for form in chosen[: MOST if head else each]
            ]
            if not head and number + 1 >= each:
                break
    return tuple(made[:MOST])


def effect(candidate: Candidate, before: Any, after: Any) -> Tried:
    """Measure what a graph changed at the name, from two predictions for one text."""
    start = candidate.sentences[0].find(candidate.name)
    place = (start, start + len(candidate.name))
    was, now = _said_of(before, place), _said_of(after, place)
    (old, p), (new, q) = was or ("", 0.0), now or ("", 0.0)
    return Tried(candidate, FLIP * (old != new) + abs(q - p) + bool(now and old != new), was, now)


def best(tried: Sequence[Tried]) -> tuple[Tried, ...]:
    """The texts that the graph changes most, of different kinds where there are some."""
    order = sorted((one for one in tried if one.weight >= LEAST), key=lambda one: -one.weight)
    first: dict[str, Tried] = {}
    for one in order:
        first.setdefault(one.candidate.kind, one)
    leading = [one for one in first.values() if one.weight >= FLIP]
    chosen = [*leading, *(one for one in order if one not in leading)]
    names: dict[str, Tried] = {}
    for one in chosen:
        names.setdefault(one.candidate.name, one)
    return tuple(sorted([*names.values()][:SHOWN], key=lambda one: -one.weight))


def said(tried: Tried, info: ModelInfo | None) -> str:
    """Say in a few words what a graph changes: before → after; plain text."""
    was, now = tried.before, tried.after
    if was is None and now is None:
        triple = tried.candidate.triple
        return f"{triple.relation} {triple.tail}"
    labels = [info.label(side[0]) if side and info else side and side[0] for side in (was, now)]
    if labels[0] == labels[1] and was and now:
        return f"{labels[0]}: {percent(was[1])} → {percent(now[1])}"
    return " → ".join(label or t("none") for label in labels)


def _name(triples: Sequence[Triple], graph: KnowledgeGraph) -> str:
    """How a text writes an entity: one of a sense by its other name."""
    head = triples[0].head
    if "." not in head:
        return without_sense(head) or head
    other = (x.tail for x in triples if x.relation in graph.aliases.names_of_head)
    return next(other, head)


def _kind(triples: Sequence[Triple]) -> str:
    types = {normalise_name(x.tail) for x in triples if x.relation in TYPE_RELATIONS}
    return next((kind for kind, names in _FORMS["kinds"].items() if types & {*names}), "")


def _is_chinese(name: str) -> bool:
    return any("\u4e00" <= c <= "\u9fff" for c in name)


def _templates(name: str, kind: str, task: str | None) -> Sequence[str]:
    forms = _FORMS["chinese" if _is_chinese(name) else "english"]
    return forms[task] if task in forms else [*forms[kind], *(forms[""] if kind else ())]


def _filled(form: str, name: str, triple: Triple) -> tuple[str, ...]:
    parts = {"{R}": triple.relation.replace("_", " "), "{T}": triple.tail, "{X}": name}
    for sign, text in parts.items():
        form = form.replace(sign, text)
    return tuple(form.split("\n"))


def _said_of(prediction: Any, place: tuple[int, int]) -> tuple[str, float] | None:
    """What is predicted of a place, or of the whole text: a label and how sure it is."""
    if isinstance(prediction, NerPrediction):

        def shared(span: Any) -> int:
            return min(span.end, place[1]) - max(span.start, place[0])

        found = max(prediction.spans, key=shared, default=None)
        if found is None or 2 * shared(found) <= place[1] - place[0]:
            return None
        return found.label, found.probability
    if isinstance(prediction, ClassPrediction):
        return prediction.label, prediction.probabilities[prediction.label]
    if isinstance(prediction, MaskPrediction):
        best = [filling.candidates[0] for filling in prediction.fillings]
        return "".join(token for token, _ in best), min(p for _, p in best)
    if isinstance(prediction, LinkPrediction):
        links = (own for own in prediction.links if own.entity and own.start < place[1])
        return next(((str(own.entity), own.weight) for own in links), None)
    return None
