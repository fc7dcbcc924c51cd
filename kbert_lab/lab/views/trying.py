"""Sentences to try a graph on: made of its own names, kept where the graph changes what is read."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

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
_KINDS = {
    kind: frozenset(names.split())
    for kind, names in {
        "disease": "疾病 病 病症 disease disorder syndrome condition",
        "symptom": "症状 体征 symptom sign finding",
        "test": "检查 检验 化验 test examination procedure",
        "cure": "治疗 药物 药品 药 手术 drug medicine medication chemical treatment",
        "part": "部位 器官 身体部位 body_part organ anatomy",
    }.items()
}
_CHINESE = {
    "disease": ("考虑{X}。", "患者既往有{X}病史。"),
    "symptom": ("有{X}。", "患者出现{X}三天。"),
    "test": ("复查{X}。", "行{X}未见异常。"),
    "cure": ("曾行{X}。", "给予{X}治疗。"),
    "part": ("{X}未见异常。", "{X}疼痛一周。"),
    "": ("{X}是什么？", "关于{X}的说明。"),
    "classify": ("房间{X}。", "服务{X}。", "感觉{X}。"),
    "pair": ("怎么找{X}？\n{X}在哪里？", "{X}是什么？\n什么叫{X}？"),
    "rank": ("{X}是什么？\n{X}的{R}是{T}。",),
    "mask": ("{X}是一种[MASK][MASK]。", "{X}的[MASK][MASK]。"),
}
_ENGLISH = {
    "disease": ("The patient was diagnosed with {X}.", "There was no {X}."),
    "symptom": ("The patient had {X} for three days.", "There was no {X}."),
    "test": ("The {X} was repeated.", "The {X} showed nothing."),
    "cure": ("The patient was given {X}.", "After two weeks {X} was stopped."),
    "part": ("The {X} was normal.", "The patient had pain in the {X}."),
    "": ("What is {X}?", "We read about {X}."),
    "classify": ("The room was {X}.", "The service was {X}."),
    "pair": ("Where is {X}?\nHow do I find {X}?",),
    "rank": ("What is {X}?\n{X}: {R} {T}.",),
    "mask": ("{X} is a [MASK].",),
    "link": ("We talked about the {X}.", "They saw the {X} there."),
}


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
        chinese = any("\u4e00" <= c <= "\u9fff" for c in name)
        if head or (1 < len(name) <= LONGEST[chinese] and name.isprintable()):
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
    if isinstance(after, NerPrediction):
        was, now = _span(before, place), _span(after, place)
        weight = _moved(before, after)
        weight += FLIP * ((was and was[0]) != (now and now[0])) + (now is not None)
        return Tried(candidate, weight, was, now)
    if isinstance(after, ClassPrediction | MaskPrediction):
        was, now = map(_chosen, (before, after))
        moved = abs(now[1] - was[1])
        if isinstance(after, ClassPrediction):
            moved = abs(now[1] - before.probabilities[now[0]])
        return Tried(candidate, FLIP * (was[0] != now[0]) + moved, was, now)
    if isinstance(after, LinkPrediction):
        link = next((x for x in after.links if x.entity and x.start < place[1]), None)
        if link is not None and link.entity is not None:
            return Tried(candidate, link.weight, None, (link.entity, link.weight))
    return Tried(candidate, 0.0)


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
    return next((kind for kind, names in _KINDS.items() if types & names), "")


def _templates(name: str, kind: str, task: str | None) -> tuple[str, ...]:
    forms = _CHINESE if any("\u4e00" <= c <= "\u9fff" for c in name) else _ENGLISH
    if task in forms:
        return forms[task]
    return (*forms[kind], *forms[""]) if kind else forms[""]


def _filled(form: str, name: str, triple: Triple) -> tuple[str, ...]:
    parts = {"{R}": triple.relation, "{T}": triple.tail, "{X}": name}
    for sign, text in parts.items():
        form = form.replace(sign, text)
    return tuple(form.split("\n"))


def _span(prediction: NerPrediction, place: tuple[int, int]) -> tuple[str, float] | None:
    """The entity that covers most of a place."""

    def shared(span: Any) -> int:
        return min(span.end, place[1]) - max(span.start, place[0])

    found = max(prediction.spans, key=shared, default=None)
    if found is None or 2 * shared(found) <= place[1] - place[0]:
        return None
    return found.label, found.probability


def _moved(before: NerPrediction, after: NerPrediction) -> float:
    """The largest share of a token's probability that went to other tags."""
    pairs = zip(before.tokens, after.tokens, strict=True)
    shifts = (
        sum(max(0.0, p - now.probabilities.get(tag, 0.0)) for tag, p in was.probabilities.items())
        for was, now in pairs
    )
    return max(shifts, default=0.0)


def _chosen(prediction: ClassPrediction | MaskPrediction) -> tuple[str, float]:
    """The label, or the likeliest tokens together and the least of their probabilities."""
    if isinstance(prediction, ClassPrediction):
        return prediction.label, prediction.probabilities[prediction.label]
    best = [filling.candidates[0] for filling in prediction.fillings]
    return "".join(token for token, _ in best), min(p for _, p in best)
