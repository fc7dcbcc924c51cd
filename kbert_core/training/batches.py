"""Labelled examples → rows with their targets, as a recipe has them → batches, step by step.

The rows of an example are a function of (seed, epoch, its number) alone. Texts
are read once for a whole training. Rows that an epoch doesn't change are made once
too, and kept; the others are made anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import cycle
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from kbert_core.data.labelled import Example
from kbert_core.errors import DataError
from kbert_core.knowbert.reader import link_targets
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.labels import IGNORED, OUTSIDE, WRONG
from kbert_core.reader import Reader, Reading
from kbert_core.tasks import Task
from kbert_core.training.options import Recipe, TrainOptions
from kbert_core.training.recipe import Augmented, Augmenter, type_relations
from kbert_core.training.vocabulary import MASKED_SHARE, Masking

BATCH = "batch"  # of an item: numbers that say which examples it holds
LINKED = "linked"  # of an item: whether it trains the linker, beside another task
READ_AT_ONCE = 512  # texts
KEPT_TOKENS = 5_000_000  # of rows, about a gigabyte
SHOWN_EXAMPLES = 5  # of a batch that is named in an error
Ints = np.ndarray[Any, np.dtype[np.int64]]


def grown_texts(
    reader: Reader,
    examples: Sequence[Example],
    graph: KnowledgeGraph,
    config: Any,
    *,
    windows: bool = False,
) -> list[Any]:
    """Read many examples as far as a recipe changes them; see :meth:`Reader.grown`."""
    grown: list[Any] = []
    for start in range(0, len(examples) or 1, READ_AT_ONCE):  # none: it may be refused
        texts = [example.sentences for example in examples[start : start + READ_AT_ONCE]]
        grown += reader.grown(texts, graph, config, windows=windows)
    return grown


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """One row of a batch and its target."""

    row: Any  # N tokens, as the system reads them
    target: int | Ints  # a class, or labels (N,) or (C,) with ``IGNORED`` where there is none
    input_ids: Ints | None = None  # (N,) ids where they differ from the row's (hidden tokens)


@dataclass(eq=False)
class RowMaker:
    """Makes the rows of labelled examples.

    ``hiding`` is for the twin without knowledge: another graph, and the examples
    read with it. The mentions that a model with this graph would
    have hidden, by the same seed, are hidden here too, and nothing of it is
    injected.

    Raises:
        OptionError: a recipe for a system without nodes.
    """

    examples: Sequence[Example]  # what is trained on
    task: Task
    reader: Reader
    labels: Mapping[str, int]  # label → number
    graph: KnowledgeGraph  # knowledge; the empty graph for the twin
    config: Any = None  # how texts are read; None: as the reader is configured
    _: KW_ONLY
    recipe: Recipe = Recipe()  # what happens to knowledge
    type_labels: Mapping[str, str] | None = None  # tail → label, see ``learn_type_labels``
    texts: Sequence[Any] | None = None  # see ``grown_texts``, where they are read already
    hiding: tuple[KnowledgeGraph, Sequence[Any]] | None = None
    seed: int = 0
    held_out: bool = False  # to be scored: no knowledge may tell what is hidden

    def __post_init__(self) -> None:
        self.config = self.reader.configured(self.config)
        self._augment: Augmenter | None = None
        recipe, types, options = self.recipe, dict(self.type_labels or {}), self.config.options
        if recipe != Recipe():
            typed = type_relations(self.hiding[0] if self.hiding else self.graph, types, options)
            relations = typed if recipe.invented else {}
            self._augment = Augmenter(recipe, options, types, relations, self.task.name == "ner")
            if self.texts is None:
                windows = self.task.windows
                self.texts = grown_texts(
                    *(self.reader, self.examples, self.graph, self.config), windows=windows
                )
        self._masking = Masking(self.reader.tokenizer.hugging_face)
        self._kept: dict[int, list[TrainingRow]] = {}
        self._room = KEPT_TOKENS

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what another process makes for itself."""
        return {**self.__dict__, "_kept": {}}

    def rows(self, numbers: Sequence[int], epoch: int) -> list[list[TrainingRow]]:
        """Make the rows of some examples (by number) for one epoch; several for a long text."""
        randoms = [np.random.default_rng((self.seed, epoch, number)) for number in numbers]
        changes = list(map(self._change, numbers, randoms))
        readings = iter(self._laid([change.text for change in changes if change is not None]))
        same = self._unchanged([n for n, own in zip(numbers, changes, strict=True) if not own])
        rows = []
        for number, random, change in zip(numbers, randoms, changes, strict=True):
            if change is None:
                own = same[number]
            else:
                own = self.with_targets(number, next(readings), change, random)
            if self.task.name == "mask" and self.examples[number].label is None:
                own = [self._masked(row.row, random) for row in own]
            rows.append(own)
        return rows

    def _change(self, number: int, random: np.random.Generator) -> Augmented | None:
        """What the recipe makes of an example in this epoch; None: it stays as it is."""
        if self._augment is None or self.texts is None:
            return None
        example, text = self.examples[number], self.texts[number]
        if self.hiding is None:
            change = self._augment(text, example, random)
        else:
            hidden = self._augment(self.hiding[1][number], example, random).hidden
            change = Augmented(text, list(example.spans), hidden)
        same = change.text is text and not change.hidden and change.spans == list(example.spans)
        return None if same else change

    def _unchanged(self, numbers: Sequence[int]) -> dict[int, list[TrainingRow]]:
        """Rows that the recipe doesn't change, from those kept where they are."""
        new = [number for number in dict.fromkeys(numbers) if number not in self._kept]
        readings: Sequence[Reading] = []
        if self.texts is not None:
            readings = self._laid([self.texts[number] for number in new])
        elif new:
            texts = [self.examples[number].sentences for number in new]
            readings = self.reader.read(texts, self.graph, self.config, windows=self.task.windows)
        made = {}
        for number, reading in zip(new, readings, strict=True):
            made[number] = rows = self.with_targets(number, reading)
            self._room -= sum(len(row.row) for row in rows)
            if self._room >= 0:
                self._kept[number] = rows
        return {n: made[n] if n in made else self._kept[n] for n in numbers}

    def _laid(self, texts: Sequence[Any]) -> Sequence[Reading]:
        if not texts:
            return []
        return self.reader.lay(texts, self.config, windows=self.task.windows)

    def with_targets(
        self,
        number: int,
        reading: Reading,
        change: Augmented | None = None,
        random: np.random.Generator | None = None,
    ) -> list[TrainingRow]:
        """Make the rows of an example from a reading, perhaps as the recipe changed it."""
        example = self.examples[number]
        if self.task.name == "link":
            base = len(self.config.bases) - 1
            return [
                TrainingRow(row, link_targets(row, example.links, base)) for row in reading.rows
            ]
        if self.task.name == "mask" and example.label is not None:
            return self._filled(example, example.label, reading)
        if self.task.name != "ner":
            target = IGNORED if self.task.name == "mask" else self.labels[example.label or ""]
            return [TrainingRow(row, target) for row in reading.rows]
        size = len(example.sentences[0])
        names = np.full(size + 1, OUTSIDE, object)  # per character
        for start, end, label in change.spans if change else example.spans:
            names[start], names[start + 1 : end] = f"B-{label}", f"I-{label}"
        rows = []
        for row in reading.rows:
            places, numbers = _places(row)
            starts = np.asarray(reading.tokens[0].starts, np.int64)[numbers]
            tags = names[np.minimum(starts, size)]
            again = np.flatnonzero(starts[1:] == starts[:-1]) + 1  # a word's further pieces are I-
            tags[again] = [tag.replace("B-", "I-", 1) for tag in tags[again]]
            targets = np.full(len(row), IGNORED)
            targets[places] = [self.labels[tag] for tag in tags]
            ids = None
            if change and change.hidden and random is not None:
                ids = np.array(row.input_ids)
                for mention in change.hidden:
                    inside = places[(starts >= mention.start) & (starts < mention.end)]
                    ids[inside] = self._masking.stand_ins(len(inside), random)
            rows.append(TrainingRow(row, targets, ids))
        return rows

    def _filled(self, example: Example, filling: str, reading: Reading) -> list[TrainingRow]:
        """Let the masks of a text be filled with what its label says; nothing else is hidden.

        Raises:
            DataError: it has not as many tokens as the text has masks.
        """
        tokenizer, text = self.reader.tokenizer, example.sentences[0]
        ids = [token for own in tokenizer.tokenize([filling]) for token in own.ids]
        count = len(tokenizer.mask_spans(text))
        if count != len(ids):
            raise DataError(
                f"{example.place}: the text has {count} masks, and '{filling[:40]}' is {len(ids)} "
                "tokens. Write a mask for each token of it."
            )
        gold = np.full(len(reading.tokens[0]), IGNORED)
        masks = np.flatnonzero(np.asarray(reading.tokens[0].ids) == self._masking.mask_id)
        gold[masks] = ids[: len(masks)]
        rows = []
        for row in reading.rows:
            places, numbers = _places(row)
            target = np.full(len(row), IGNORED)
            target[places] = gold[numbers]
            rows.append(TrainingRow(row, target))
        return rows

    def _masked(self, row: Any, random: np.random.Generator) -> TrainingRow:
        """Hide tokens of the text, to be told from the rest; one at least."""
        ids, (places, _) = np.array(row.input_ids), _places(row)
        places = places[~self._masking.special(ids[places])]
        chosen = np.zeros(len(ids), bool)
        if len(places):
            count = max(1, round(MASKED_SHARE * len(places)))
            chosen[random.permutation(places)[:count]] = True
        read, target = self._masking.hide(ids, chosen, random)
        guarded = self.reader.guarded(row, chosen, None if self.held_out else random)
        return TrainingRow(guarded, target, read)


def _places(row: Any) -> tuple[Ints, Ints]:
    """Where the text's own tokens stand in a row, rising; and which tokens of the text they are."""
    parts, none = row.trunk_parts, [np.empty(0, np.int64)]
    places = [np.arange(part.start, part.end) for part in parts]
    numbers = [np.arange(part.first, part.first + part.end - part.start) for part in parts]
    return np.concatenate(places or none), np.concatenate(numbers or none)


def batch_of(rows: Sequence[TrainingRow], reader: Reader, config: Any) -> tuple[Any, Tensor]:
    """Pad rows to the longest of them.

    Returns:
        The system's batch, and labels (B, N), (B, C) or (B,) int64.
    """
    batch = reader.collate([row.row for row in rows], config)
    for number, row in enumerate(rows):
        if row.input_ids is not None:
            batch.input_ids[number, : len(row.input_ids)] = torch.from_numpy(row.input_ids)
    targets = [row.target for row in rows]
    if isinstance(targets[0], int):
        return batch, torch.tensor(targets)
    labels = torch.full((len(rows), max(1, *map(np.size, targets), 1)), IGNORED)
    for number, target in enumerate(targets):
        labels[number, : np.size(target)] = torch.as_tensor(target)
    return batch, labels


class Batches(Dataset[dict[str, Tensor]]):
    """Every batch of a whole training, in order.

    Batches hold examples of similar length, so that hardly a position is
    padding; their order and content depend on the seed alone, so that a run
    can go on where it was cut off.

    Args:
        links: makes rows of entity links, which train the linker in steps between the others
            (KnowBert, Algorithm 1).
        parts: into how many items the batch of an optimiser step is cut, one
            after the other: one for each process and each time gradients are
            accumulated. Each has about ``batch_tokens``.

    Attributes:
        epoch_ends: after how many steps an epoch ends.
        tokens: real ones before each step, and in all.
    """

    def __init__(
        self, maker: RowMaker, options: TrainOptions, *, parts: int, links: RowMaker | None = None
    ) -> None:
        self.maker, self.links, self.parts = maker, links, parts
        self.examples = [*maker.examples, *(links.examples if links else ())]
        lengths = _lengths(maker) + (_lengths(links) if links else [])
        own, linked = np.split(np.arange(len(lengths)), [len(maker.examples)])
        self.steps: list[tuple[int, list[int]]] = []
        self.epoch_ends: list[int] = []
        self.tokens = [0]
        steps = options.optimiser
        for epoch in range(steps.epochs):
            random = np.random.default_rng((options.run.seed, epoch))
            read = own
            if steps.negatives is not None:
                read = np.array(with_negatives(maker.examples, steps.negatives, random))
            groups = bucketed(lengths, parts * steps.batch_tokens, random, among=read)
            if links:
                more = bucketed(lengths, parts * steps.batch_tokens, random, among=linked)
                groups = mixed(groups, more, options.link_share, random)
            for numbers in groups:
                self.steps.append((epoch, numbers))
                self.tokens.append(self.tokens[-1] + sum(lengths[n] for n in numbers))
            self.epoch_ends.append(len(self.steps))

    @cached_property
    def kind(self) -> type[Any]:
        """The class of the system's batches."""
        return type(self._batch([0], 0)[0])

    def __len__(self) -> int:
        return len(self.steps) * self.parts

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        step, part = divmod(index, self.parts)
        epoch, whole = self.steps[step]
        own = np.array_split(whole, self.parts)[part].tolist()
        numbers = own or whole[:1]  # the step may have fewer examples than parts
        batch, labels = self._batch(numbers, epoch)
        if not own:
            labels.fill_(IGNORED)
        linked = torch.tensor(numbers[0] >= len(self.maker.examples))
        return {**vars(batch), "labels": labels, BATCH: torch.tensor(numbers), LINKED: linked}

    def _batch(self, numbers: Sequence[int], epoch: int) -> tuple[Any, Tensor]:
        maker, first = self.maker, len(self.maker.examples)
        if self.links is not None and numbers[0] >= first:
            maker, numbers = self.links, [number - first for number in numbers]
        rows = [row for rows in maker.rows(numbers, epoch) for row in rows]
        return batch_of(rows, maker.reader, maker.config)

    def described(self, numbers: Sequence[int]) -> str:
        """Say in words which examples a batch holds."""
        shown = []
        for e in [self.examples[n] for n in numbers[:SHOWN_EXAMPLES]]:
            source = f" ({e.source.unit} {e.line} of {e.source.name})" if e.source else ""
            shown.append(f"'{e.sentences[0][:30]}'{source}")
        if len(numbers) > SHOWN_EXAMPLES:
            shown.append(f"and {len(numbers) - SHOWN_EXAMPLES} more")
        return "; ".join(shown)


def _lengths(maker: RowMaker) -> list[int]:
    """Tokens of every example."""
    numbers = range(len(maker.examples))
    return [
        sum(len(row.row) for row in rows)
        for start in range(0, len(numbers), READ_AT_ONCE)
        for rows in maker.rows(numbers[start : start + READ_AT_ONCE], 0)
    ]


def mixed(
    groups: list[list[int]], more: list[list[int]], share: float, random: np.random.Generator
) -> list[list[int]]:
    """Put groups of a second kind between those of a first, at random places.

    Args:
        share: of all groups that are of the second kind; these begin anew where they don't reach.
    """
    count = round(len(groups) * share / (1 - share))
    kinds = random.permutation(np.arange(len(groups) + count) < count)
    first, second = iter(groups), cycle(more)
    return [next(second if kind else first) for kind in kinds]


def with_negatives(
    examples: Sequence[Example], negatives: int, random: np.random.Generator
) -> list[int]:
    """Draw the numbers of the candidate answers that an epoch reads, rising.

    They are all right ones, and of each question so many wrong ones, or all.
    """
    wrong: dict[str, list[int]] = {}
    for number, example in enumerate(examples):
        if example.label == WRONG:
            wrong.setdefault(example.group, []).append(number)
    left_out = {n for numbers in wrong.values() for n in random.permutation(numbers)[negatives:]}
    return [number for number in range(len(examples)) if number not in left_out]


def bucketed(
    lengths: Sequence[int],
    batch_tokens: int,
    random: np.random.Generator,
    *,
    among: Sequence[int] | Ints | None = None,
) -> list[list[int]]:
    """Group numbers of similar length, each group within a budget of tokens.

    Args:
        lengths: of every example, in tokens.
        batch_tokens: the longest of a group times its size stays within it,
            unless one example alone is over it.
        among: the numbers to group; None: all.

    Returns:
        Groups in random order.
    """
    numbers = np.arange(len(lengths)) if among is None else np.array(among)
    noisy = np.array(lengths)[numbers] * random.uniform(0.9, 1.1, len(numbers))
    groups: list[list[int]] = [[]]
    longest = 0
    for number in numbers[np.argsort(noisy, kind="stable")]:
        longest = max(longest, lengths[number])
        if groups[-1] and longest * (len(groups[-1]) + 1) > batch_tokens:
            groups.append([])
            longest = lengths[number]
        groups[-1].append(int(number))
    return [groups[i] for i in random.permutation(len(groups))]
