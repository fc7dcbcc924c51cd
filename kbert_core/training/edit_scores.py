"""How a model's named entities answer to edits of the graph."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert_core.data.labelled import Example
from kbert_core.kbert.sentence_tree import Node, SentenceTree, grow_trees
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.selection import InjectionOptions, TripleScorer
from kbert_core.knowledge.triple import Triple
from kbert_core.pipeline import Pipeline
from kbert_core.tasks import NerPrediction
from kbert_core.training.recipe import overlaps, type_relations
from kbert_core.training.scores import SpanKey

GROUPS = ("unseen", "seen")  # in training, of an edited name
OUTCOMES = ("new", "kept", "other", "lost")  # of a replaced tail
ADDED = "added"  # where the figures of added triples stand
MOST_ADDED = 300  # mentions of a group a triple is added for, so that a small graph costs no more

Place = tuple[int, int]
Spans = Mapping[Place, str]  # place → label


@dataclass(frozen=True)
class _Edit:
    """One edit, and the sentence as it is read after it.

    Attributes:
        number: of the example.
        place: of the gold mention whose name was edited.
        old, label: what the mention is, and what the graph says after the edit;
            the same where a triple was added.
        tree: the sentence with the edited graph.
        added: whether a triple was added, not replaced.
    """

    number: int
    place: Place
    old: str
    label: str
    tree: SentenceTree
    added: bool = False

    @property
    def meant(self) -> list[Place]:
        """Every mention of the edited name in the sentence: they are meant to change."""
        name = next(n.mention.entity for n in self.tree.nodes if _place(n) == self.place)
        return [_place(n) for n in self.tree.nodes if n.mention.entity == name]


def edit_response(
    pipeline: Pipeline,
    examples: Sequence[Example],
    graph: KnowledgeGraph,
    type_labels: Mapping[str, str],
    *,
    seen: set[str],
    seed: int = 0,
    batch_size: int = 32,
    **reading: Any,
) -> dict[str, Any]:
    """Measure what an edited triple does to the prediction.

    *Replaced*: for every entity that is tagged rightly and whose triple names
    its type, that tail is replaced by another type's and the sentence read
    again; needs two tails that name a label. *Added*: for every gold mention
    that the graph doesn't know, the triple that names its type is added and
    the sentence read again; at most ``MOST_ADDED`` unseen and as many seen
    names, drawn at random.

    Args:
        type_labels: tail → label, see ``learn_type_labels``.
        seen: surface forms labelled in training.
        seed: which other type is taken, and which mentions are drawn.
        reading: ``config`` and its fields, as for a call of the pipeline.

    Returns:
        For "unseen" and "seen" names the number of replaced tails ("n") and
        the share of them after which the exact span has the new type ("new"),
        the old ("kept"), another ("other") or is gone ("lost").

        Under "added", for the same two groups, the mentions a triple was added
        for ("n"); the share of them that is right, span and type, before
        ("right_before") and after ("right_after"); how many weren't right
        before ("missed") and the share of those that is right after
        ("missed_right").

        In each of the four, of the other spans that the model found in these
        sentences before the edit, counted once for every edit: the share that
        is gone or has another type after it ("others_changed"); and how many
        spans elsewhere are new, as a share of the same number ("others_new").
        A span whose borders move counts in both. What touches a mention of
        the edited name is meant to change, and counts in neither.

        A share of nothing is None.
    """
    config = pipeline.reader.configured(**reading)
    options, scorer = config.options, pipeline.kbert.scorer(config.options)

    def predicted(trees: Iterable[SentenceTree]) -> list[NerPrediction]:
        readings = pipeline.lay(list(trees), config)
        return [own.prediction for own in pipeline.predicted(readings, batch_size=batch_size)]

    trees = grow_trees([e.sentences for e in examples], graph, options, scorer=scorer)
    before = [_spans(prediction) for prediction in predicted(trees)]
    edits = [
        *_replaced(examples, trees, before, graph, type_labels, options, seed, scorer),
        *_added(examples, trees, graph, type_labels, seen, options, seed, scorer),
    ]
    after = predicted(edit.tree for edit in edits)
    counts = {(group, added): Counter[str]() for group in GROUPS for added in (False, True)}
    for edit, prediction in zip(edits, after, strict=True):
        group = _group(examples[edit.number], edit.place, seen)
        counts[group, edit.added].update(_outcome(edit, before[edit.number], _spans(prediction)))
    return {
        **{group: _replaced_shares(counts[group, False]) for group in GROUPS},
        ADDED: {group: _added_shares(counts[group, True]) for group in GROUPS},
    }


def _replaced(
    examples: Sequence[Example],
    trees: Sequence[SentenceTree],
    before: Sequence[Spans],
    graph: KnowledgeGraph,
    type_labels: Mapping[str, str],
    options: InjectionOptions,
    seed: int,
    scorer: TripleScorer | None,
) -> Iterator[_Edit]:
    """Another type's tail for every rightly tagged entity whose triple names its type."""
    random = np.random.default_rng(seed)
    for number, (example, tree) in enumerate(zip(examples, trees, strict=True)):
        right = {
            (s, e): label for s, e, label in example.spans if before[number].get((s, e)) == label
        }
        for node in tree.nodes:
            label = right.get(_place(node))
            triple = next(
                (b.triple for b in node.branches if type_labels.get(b.triple.tail) == label), None
            )
            others = [t for t in type_labels if triple is not None and t != triple.tail]
            if label is None or triple is None or not others:
                continue
            tail = others[random.integers(len(others))]
            new = Triple(triple.head, triple.relation, tail)
            if new not in graph:
                grown = grow_trees(
                    [example.sentences], graph.replace(triple, new), options, scorer=scorer
                )[0]
                yield _Edit(number, _place(node), label, type_labels[tail], grown)


def _added(
    examples: Sequence[Example],
    trees: Sequence[SentenceTree],
    graph: KnowledgeGraph,
    type_labels: Mapping[str, str],
    seen: set[str],
    options: InjectionOptions,
    seed: int,
    scorer: TripleScorer | None,
) -> Iterator[_Edit]:
    """The true type's triple for gold mentions that the graph doesn't know.

    A name that the matcher doesn't find even then, such as a part of a word,
    is left out.
    """
    relations = type_relations(graph, type_labels, options)
    tails = {type_labels[tail]: tail for tail in relations}
    unknown = [
        (number, span)
        for number, (example, tree) in enumerate(zip(examples, trees, strict=True))
        for span in example.spans
        if span[2] in tails and not overlaps(span[:2], [_place(node) for node in tree.nodes])
    ]
    random = np.random.default_rng(seed)
    for number, (start, end, label) in _drawn(examples, unknown, seen, random):
        texts, tail = examples[number].sentences, tails[label]
        triple = Triple(texts[0][start:end].strip(), relations[tail], tail)
        if triple.problem() or not normalise_name(triple.head) or triple in graph:
            continue
        tree = grow_trees([texts], graph.add(triple, index=0), options, scorer=scorer)[0]
        if any(_place(n) == (start, end) and triple in _hung(n) for n in tree.nodes):
            yield _Edit(number, (start, end), label, label, tree, added=True)


def _drawn(
    examples: Sequence[Example],
    mentions: Sequence[tuple[int, SpanKey]],
    seen: set[str],
    random: np.random.Generator,
) -> Iterator[tuple[int, SpanKey]]:
    """At most ``MOST_ADDED`` mentions of either group."""
    for group in GROUPS:
        own = [m for m in mentions if _group(examples[m[0]], m[1], seen) == group]
        if len(own) > MOST_ADDED:
            numbers = random.choice(len(own), MOST_ADDED, replace=False)
            own = [own[number] for number in sorted(numbers)]
        yield from own


def _group(example: Example, place: Sequence[Any], seen: set[str]) -> str:
    return "seen" if example.sentences[0][place[0] : place[1]] in seen else "unseen"


def _outcome(edit: _Edit, before: Spans, after: Spans) -> dict[str, int]:
    """What one edit did, as counts."""
    meant = edit.meant
    was = {place: label for place, label in before.items() if not overlaps(place, meant)}
    others = {
        "n": 1,
        "others": len(was),
        "others_changed": sum(after.get(place) != label for place, label in was.items()),
        "others_new": sum(p not in before and not overlaps(p, meant) for p in after),
    }
    now = after.get(edit.place)
    if not edit.added:
        return {**others, {edit.label: "new", edit.old: "kept", None: "lost"}.get(now, "other"): 1}
    was_right, is_right = before.get(edit.place) == edit.label, now == edit.label
    return {
        **others,
        "right_before": was_right,
        "right_after": is_right,
        "missed": not was_right,
        "missed_right": is_right and not was_right,
    }


def _replaced_shares(count: Counter[str]) -> dict[str, float | None]:
    shares = {outcome: _share(count[outcome], count["n"]) for outcome in OUTCOMES}
    return {**shares, **_of_others(count), "n": count["n"]}


def _added_shares(count: Counter[str]) -> dict[str, float | None]:
    n, missed = count["n"], count["missed"]
    return {
        "right_before": _share(count["right_before"], n),
        "right_after": _share(count["right_after"], n),
        "missed_right": _share(count["missed_right"], missed),
        **_of_others(count),
        "missed": missed,
        "n": n,
    }


def _of_others(count: Counter[str]) -> dict[str, float | None]:
    return {name: _share(count[name], count["others"]) for name in ("others_changed", "others_new")}


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _spans(prediction: Any) -> dict[Place, str]:
    return {(s.start, s.end): s.label for s in prediction.spans}


def _place(node: Node) -> Place:
    return node.mention.start, node.mention.end


def _hung(node: Node) -> list[Triple]:
    return [branch.triple for branch in node.branches]
