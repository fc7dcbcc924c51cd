"""How a model's named entities answer to edits of the graph."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert_core.data.labelled import Example
from kbert_core.kbert.sentence_tree import Node, SentenceTree, grow_trees
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import Triple
from kbert_core.pipeline import Pipeline
from kbert_core.training.recipe import another_type, overlaps, type_relations
from kbert_core.training.scores import SpanKey

GROUPS = ("unseen", "seen")  # in training, of an edited name
OUTCOMES = ("new", "kept", "other", "lost")  # of a replaced tail
ADDED_OUTCOMES = ("right_before", "right_after", "missed_right")
ADDED = "added"  # where the figures of added triples stand
MOST_ADDED = 300  # mentions of a group a triple is added for, so that a small graph costs no more

Place = tuple[int, int]
Spans = Mapping[Place, str]  # place → label
_Mention = tuple[int, SpanKey, str]  # number of the example, span, tail that says its label


@dataclass(frozen=True)
class _Edit:
    """One edit of a gold mention's name, and the sentence as it is read after it."""

    number: int  # of the example
    place: Place  # of the mention
    old: str  # the mention's label
    label: str  # what the graph says after the edit; the same where a triple was added
    tree: SentenceTree
    added: bool = False

    @property
    def meant(self) -> list[Place]:
        """Every mention of the edited name in the sentence: they are meant to change."""
        name = next(n.mention.entity for n in self.tree.nodes if _place(n) == self.place)
        return [_place(n) for n in self.tree.nodes if n.mention.entity == name]

    def outcome(self, before: Spans, after: Spans) -> dict[str, int]:
        """What it did, as counts."""
        meant = self.meant
        was = {place: label for place, label in before.items() if not overlaps(place, meant)}
        others = {
            "n": 1,
            "others": len(was),
            "others_changed": sum(after.get(place) != label for place, label in was.items()),
            "others_new": sum(p not in before and not overlaps(p, meant) for p in after),
        }
        now = after.get(self.place)
        if not self.added:
            became = {self.label: "new", self.old: "kept", None: "lost"}.get(now, "other")
            return {**others, became: 1}
        was_right, is_right = before.get(self.place) == self.label, now == self.label
        return {
            **others,
            "right_before": was_right,
            "right_after": is_right,
            "missed": not was_right,
            "missed_right": is_right and not was_right,
        }


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

    *Replaced*: of every entity that is tagged rightly and whose triple names
    its type, that tail becomes another type's; needs two tails that name a
    label. *Added*: for every gold mention that the graph doesn't know, the
    triple that names its type is added; at most ``MOST_ADDED`` unseen and as
    many seen names, drawn at random. The sentence is read again each time.

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
    scorer = pipeline.kbert.scorer(config.options)
    texts = [e.sentences for e in examples]
    trees = grow_trees(texts, graph, config.options, scorer=scorer)

    def predicted(trees: Iterable[SentenceTree]) -> list[Spans]:
        readings = pipeline.lay(list(trees), config)
        traces = pipeline.predicted(readings, batch_size=batch_size)
        return [{(s.start, s.end): s.label for s in own.prediction.spans} for own in traces]

    def read_again(number: int, changed: KnowledgeGraph) -> SentenceTree:
        return grow_trees([texts[number]], changed, config.options, scorer=scorer)[0]

    before = predicted(trees)
    types = type_relations(graph, type_labels, config.options)
    missing = _missing(examples, trees, {type_labels[tail]: tail for tail in types})
    edits = list(_replaced(examples, trees, before, graph, type_labels, read_again, seed))
    for number, (start, end, label), tail in _drawn(examples, missing, seen, seed):
        triple = Triple(texts[number][0][start:end].strip(), types[tail], tail)
        if triple.problem() or not normalise_name(triple.head) or triple in graph:
            continue
        tree = read_again(number, graph.add(triple, index=0))
        hung = {_place(node): [b.triple for b in node.branches] for node in tree.nodes}
        if triple in hung.get((start, end), ()):  # not so where it is a part of a word
            edits.append(_Edit(number, (start, end), label, label, tree, added=True))
    counts = {(group, added): Counter[str]() for group in GROUPS for added in (False, True)}
    for edit, spans in zip(edits, predicted(edit.tree for edit in edits), strict=True):
        group = _group(examples[edit.number], edit.place, seen)
        counts[group, edit.added].update(edit.outcome(before[edit.number], spans))
    return {
        **{group: _shares(counts[group, False], OUTCOMES) for group in GROUPS},
        ADDED: {group: _shares(counts[group, True], ADDED_OUTCOMES) for group in GROUPS},
    }


def _replaced(
    examples: Sequence[Example],
    trees: Sequence[SentenceTree],
    before: Sequence[Spans],
    graph: KnowledgeGraph,
    type_labels: Mapping[str, str],
    read_again: Callable[[int, KnowledgeGraph], SentenceTree],
    seed: int,
) -> Iterator[_Edit]:
    """Another type's tail for every rightly tagged entity whose triple names its type."""
    random = np.random.default_rng(seed)
    for number, (example, tree) in enumerate(zip(examples, trees, strict=True)):
        right = {(s, e): la for s, e, la in example.spans if before[number].get((s, e)) == la}
        for node in tree.nodes:
            label = right.get(_place(node))
            edit = label and another_type(node, label, type_labels, random)
            if label and edit and edit[1] not in graph:
                old, new = node.branches[edit[0]].triple, edit[1]
                again = read_again(number, graph.replace(old, new))
                yield _Edit(number, _place(node), label, type_labels[new.tail], again)


def _missing(
    examples: Sequence[Example], trees: Sequence[SentenceTree], tails: Mapping[str, str]
) -> list[_Mention]:
    """Gold mentions that the graph doesn't know, with the tail that says their label."""
    return [
        (number, span, tails[span[2]])
        for number, (example, tree) in enumerate(zip(examples, trees, strict=True))
        for span in example.spans
        if span[2] in tails and not overlaps(span[:2], [_place(node) for node in tree.nodes])
    ]


def _drawn(
    examples: Sequence[Example], mentions: Sequence[_Mention], seen: set[str], seed: int
) -> Iterator[_Mention]:
    """At most ``MOST_ADDED`` mentions of either group."""
    random = np.random.default_rng(seed)
    for group in GROUPS:
        own = [m for m in mentions if _group(examples[m[0]], m[1], seen) == group]
        if len(own) > MOST_ADDED:
            numbers = random.choice(len(own), MOST_ADDED, replace=False)
            own = [own[number] for number in sorted(numbers)]
        yield from own


def _group(example: Example, place: Sequence[Any], seen: set[str]) -> str:
    return "seen" if example.sentences[0][place[0] : place[1]] in seen else "unseen"


def _shares(count: Counter[str], outcomes: Sequence[str]) -> dict[str, float | None]:
    """Counts as shares of what they are of; how many mentions and missed ones as they are."""
    of = {"missed_right": "missed", "others_changed": "others", "others_new": "others"}
    shares: dict[str, float | None] = {}
    for name in (*outcomes, "others_changed", "others_new"):
        whole = count[of.get(name, "n")]
        shares[name] = count[name] / whole if whole else None
    if "missed_right" in outcomes:
        shares["missed"] = count["missed"]
    return {**shares, "n": count["n"]}


def _place(node: Node) -> Place:
    return node.mention.start, node.mention.end
