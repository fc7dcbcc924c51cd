"""The response to edits: what a changed triple does to a model's predictions."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from unicodedata import category

import numpy as np

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import Triple
from kbert_core.pipeline import Pipeline
from kbert_core.reader import Reading
from kbert_lab.data.labelled import Example
from kbert_lab.training.evaluate import BATCH, progress_logged
from kbert_lab.training.recipe import another_type, overlaps, type_relations

GROUPS = ("unseen", "seen")  # in training, of an edited name
OUTCOMES = ("new", "kept", "other", "lost")  # of a replaced tail
OTHERS = ("others_changed", "others_new")  # what became of other spans
ADDED_OUTCOMES = ("right_before", "right_after", "missed_right")
ADDED = "added"  # where the figures of added triples stand
INVENTED = "invented"  # where those of invented names stand
MOST_ADDED = 300  # mentions of a group a triple is added for, so that a small graph costs no more
MOST_INVENTED = 200  # mentions that get an invented name
LEAST_LETTERS = 2  # of an invented name; a shorter one is a word already
Place = tuple[int, int]
Spans = Mapping[Place, str]  # place → label


@dataclass(frozen=True)
class _Edit:
    """One edit of a graph, and the sentence as it is read after it."""

    table: str  # "" for a replaced tail, ADDED or INVENTED
    row: str  # of the table: one of GROUPS, or a label
    place: Place  # of the name
    label: str  # what the graph says of it after the edit
    reading: Reading
    before: Spans  # what was found in the sentence before
    old: str = ""  # the label of a name whose tail was replaced

    def outcome(self, after: Spans) -> dict[str, int]:
        """What it did, as counts. Every mention of the edited name is meant to change."""
        now, before = after.get(self.place), self.before
        if self.table == INVENTED:
            return {"n": 1, "followed": now == self.label}
        mentions = self.reading.mentions
        name = next(mention.entity for mention in mentions if _place(mention) == self.place)
        meant = [_place(mention) for mention in mentions if mention.entity == name]
        was = {place: label for place, label in before.items() if not overlaps(place, meant)}
        others = {
            "n": 1,
            "others": len(was),
            "others_changed": sum(after.get(place) != label for place, label in was.items()),
            "others_new": sum(p not in before and not overlaps(p, meant) for p in after),
        }
        if not self.table:
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
    batch_size: int = BATCH,
    **reading: Any,
) -> dict[str, Any]:
    """Measure what an edited triple does to the prediction.

    *Replaced*: of every entity that is tagged rightly and whose triple names
    its type, that tail becomes another type's; needs two tails that name a
    label. *Added*: for every gold mention that the graph doesn't know, the
    triple that names its type is added; at most ``MOST_ADDED`` unseen and as
    many seen names, drawn at random. *Invented*: a name that nobody has seen
    takes the place of a gold mention, and one triple says its type, each type
    in turn; ``MOST_INVENTED`` mentions, drawn at random. The sentence is read
    again each time.

    Args:
        type_labels: tail → label, see ``learn_type_labels``.
        seen: surface forms labelled in training.
        seed: which other type is taken, which mentions are drawn, and the
            invented names.
        reading: ``config`` and its fields, as for a call of the pipeline.

    Returns:
        For "unseen" and "seen" names: how many tails were replaced ("n"), and
        the shares after which the exact span has the new type ("new"), the old
        ("kept"), another ("other") or is gone ("lost").

        Under "added", for the same two: how many mentions got a triple ("n");
        the shares right, span and type, before ("right_before") and after it
        ("right_after"); how many weren't right before ("missed"), and the share
        of those that is right after ("missed_right").

        In each of the four, of the other spans found before an edit: the share
        that is gone or has another type after it ("others_changed"), and new
        spans elsewhere as a share of the same number ("others_new"). A span
        whose borders move counts in both. What touches a mention of the edited
        name is meant to change, and counts in neither.

        Under "invented", for every label: how many names got a triple that says
        it ("n"), and the share whose exact span has this label ("followed").

        A share of nothing is None.
    """
    config = pipeline.reader.configured(**reading)
    editor = _Editor(pipeline, examples, graph, type_labels, seen, seed, config)
    readings = editor.read([e.sentences for e in examples], graph)

    def predicted(readings: Sequence[Reading]) -> list[Spans]:
        with progress_logged(len(readings), "response to edits"):
            traces = pipeline.predicted(readings, batch_size=batch_size)
            return [{(s.start, s.end): s.label for s in own.prediction.spans} for own in traces]

    before = predicted(readings)
    of_data = [*editor.replaced(readings, before), *editor.added(readings, before)]
    counts: dict[tuple[str, str], Counter[str]] = {}
    for edits in (of_data, list(editor.invented())):
        for edit, after in zip(edits, predicted([edit.reading for edit in edits]), strict=True):
            counts.setdefault((edit.table, edit.row), Counter()).update(edit.outcome(after))

    def shares(table: str, row: str, outcomes: Sequence[str]) -> dict[str, float | None]:
        return _shares(counts.get((table, row), Counter()), outcomes)

    return {
        **{group: shares("", group, (*OUTCOMES, *OTHERS)) for group in GROUPS},
        ADDED: {group: shares(ADDED, group, (*ADDED_OUTCOMES, *OTHERS)) for group in GROUPS},
        INVENTED: {label: shares(INVENTED, label, ("followed",)) for label in editor.types},
    }


@dataclass(frozen=True)
class _Editor:
    """Makes the edits of :func:`edit_response`, which says what each of these is."""

    pipeline: Pipeline
    examples: Sequence[Example]
    graph: KnowledgeGraph
    type_labels: Mapping[str, str]
    seen: set[str]
    seed: int
    config: Any

    @cached_property
    def types(self) -> dict[str, tuple[str, str]]:
        """Label → relation and tail of a triple that says it."""
        relations = type_relations(self.graph, self.type_labels, self.config.options)
        return {self.type_labels[tail]: (relation, tail) for tail, relation in relations.items()}

    def read(self, texts: Sequence[Sequence[str]], graph: KnowledgeGraph) -> Sequence[Reading]:
        """Read texts as the scores were."""
        return self.pipeline.readings(texts, graph=graph, config=self.config)

    def replaced(self, readings: Sequence[Reading], before: Sequence[Spans]) -> Iterator[_Edit]:
        """Another type's tail for every rightly tagged entity whose triple names its type."""
        random = np.random.default_rng(self.seed)
        for example, reading, found in zip(self.examples, readings, before, strict=True):
            right = {(s, e): label for s, e, label in example.spans if found.get((s, e)) == label}
            for mention, triples in reading.by_mention:
                label = right.get(place := _place(mention))
                edit = label and another_type(triples, label, self.type_labels, random)
                if label and edit and edit[1] not in self.graph:
                    old, new = triples[edit[0]], edit[1]
                    (again,) = self.read([example.sentences], self.graph.replace(old, new))
                    said = self.type_labels[new.tail]
                    yield _Edit("", self._group(example, place), place, said, again, found, label)

    def added(self, readings: Sequence[Reading], before: Sequence[Spans]) -> Iterator[_Edit]:
        """The missing triple of gold mentions, at most ``MOST_ADDED`` of either group."""
        missing = [
            (example, found, (start, end), label)
            for example, reading, found in zip(self.examples, readings, before, strict=True)
            for start, end, label in example.spans
            if label in self.types
            and not overlaps((start, end), list(map(_place, reading.mentions)))
        ]
        random = np.random.default_rng(self.seed)
        for group in GROUPS:
            own = [row for row in missing if self._group(row[0], row[2]) == group]
            for example, found, place, label in _drawn(own, MOST_ADDED, random):
                if again := self._with_triple(example.sentences, place, label):
                    yield _Edit(ADDED, group, place, label, again, found)

    def invented(self) -> Iterator[_Edit]:
        """A triple of each type for invented names that nobody has seen."""
        for text, place in _with_invented_names(self.examples, self.seed):
            name = text[slice(*place)]
            if name not in self.seen and not self.graph.triples_of(name):
                for label in self.types:
                    if again := self._with_triple((text,), place, label):
                        yield _Edit(INVENTED, label, place, label, again, {})

    def _with_triple(self, sentences: Sequence[str], place: Place, label: str) -> Reading | None:
        """Read with one more triple; None where it isn't read there, as in a part of a word."""
        triple = Triple(sentences[0][slice(*place)].strip(), *self.types[label])
        if triple.problem() or not normalise_name(triple.head) or triple in self.graph:
            return None
        (again,) = self.read([sentences], self.graph.add(triple, index=0))
        read = {_place(mention): triples for mention, triples in again.by_mention}
        return again if triple in read.get(place, ()) else None

    def _group(self, example: Example, place: Place) -> str:
        return "seen" if example.sentences[0][slice(*place)] in self.seen else "unseen"


def _with_invented_names(examples: Sequence[Example], seed: int) -> Iterator[tuple[str, Place]]:
    """Texts with an invented name at a gold mention; each of its letters becomes another.

    The new letter is of the same kind (capital, small, Chinese), of those in the texts, so
    that the name stays as long.
    """
    kinds: dict[str, list[str]] = {}
    for letter in sorted({c for e in examples for c in e.sentences[0] if c.isalpha()}):
        kinds.setdefault(category(letter), []).append(letter)
    mentions = [
        (example.sentences[0], (start, end))
        for example in examples
        for start, end, _ in example.spans
        if sum(map(str.isalpha, example.sentences[0][start:end])) >= LEAST_LETTERS
    ]
    random = np.random.default_rng(seed)
    for text, (start, end) in _drawn(mentions, MOST_INVENTED, random):
        choices = [kinds[category(c)] if c.isalpha() else [c] for c in text[start:end]]
        name = "".join(letters[random.integers(len(letters))] for letters in choices)
        yield text[:start] + name + text[end:], (start, end)


def _drawn(rows: Sequence[Any], most: int, random: np.random.Generator) -> Sequence[Any]:
    """At most so many rows, in their order."""
    if len(rows) <= most:
        return rows
    return [rows[number] for number in sorted(random.choice(len(rows), most, replace=False))]


def _shares(count: Counter[str], outcomes: Sequence[str]) -> dict[str, float | None]:
    """Counts as shares of what they are of; how many mentions and missed ones as they are."""
    of = {"missed_right": "missed", "others_changed": "others", "others_new": "others"}
    whole = {name: count[of.get(name, "n")] for name in outcomes}
    missed = {"missed": count["missed"]} if "missed_right" in outcomes else {}
    shares = {name: count[name] / whole[name] if whole[name] else None for name in whole}
    return {**shares, **missed, "n": count["n"]}


def _place(mention: Mention) -> Place:
    return mention.start, mention.end
