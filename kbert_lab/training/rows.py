"""Labelled examples → rows with their targets, as a recipe has them.

The rows of an example depend only on the seed, the epoch and its number. Texts
are read once for a whole training. Rows that no epoch changes are made once, too,
and kept; the others are made again in every epoch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kbert_core.errors import DataError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.labels import IGNORED, OUTSIDE
from kbert_core.reader import Reader, Reading
from kbert_core.tasks import Task
from kbert_core.tasks.qa import END, START
from kbert_core.tokens import Tokens
from kbert_lab.data.labelled import Example
from kbert_lab.data.splits import by_fold
from kbert_lab.training.options import Recipe
from kbert_lab.training.recipe import Augmented, Augmenter, learn_type_labels, type_relations
from kbert_lab.training.vocabulary import MASKED_SHARE, Masking

READ_AT_ONCE = 512  # texts
FOLDS = 6  # of training's names, of which an epoch has one
KEPT_TOKENS = 5_000_000  # of rows, about a gigabyte
Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """One row of a batch and its target."""

    row: Any  # N tokens, as the system reads them
    # A class; labels (N,) or (C,), ``IGNORED`` where there is none; or (K,) of 0 and 1.
    target: int | Ints
    input_ids: Ints | None = None  # (N,) ids where they differ from the row's (hidden tokens)


@dataclass(eq=False)
class RowMaker:
    """Makes the rows of labelled examples.

    ``only_hides`` is for the twin without knowledge: the mentions that a model with this graph
    would have hidden, by the same seed, are hidden here too, and nothing of it is injected.

    Raises:
        OptionError: a recipe for a system without nodes.
    """

    examples: Sequence[Example]  # what is trained on
    task: Task
    reader: Reader
    labels: Mapping[str, int]  # label → number
    graph: KnowledgeGraph  # knowledge
    config: Any = None  # how texts are read; None: as the reader is configured
    _: KW_ONLY
    recipe: Recipe = Recipe()  # what happens to knowledge
    type_labels: Mapping[str, str] | None = None  # tail → label; None: ``learn_type_labels``
    only_hides: bool = False
    seed: int = 0
    held_out: bool = False  # to be scored: no knowledge may tell what is hidden

    def __post_init__(self) -> None:
        self.config = self.reader.configured(self.config)
        self._windows = self.task.windows and bool(self.config.windows)
        self.texts, named = self._queried(), self.task.name == "ner"
        if self.type_labels is None:
            self.type_labels = learn_type_labels(self.examples, self.texts) if named else {}
        recipe, types, options = self.recipe, self.type_labels, self.config.options
        relations = type_relations(self.graph, types, options) if recipe.invented else {}
        self._augment = Augmenter(recipe, options, types, relations, tagged=named)
        self._fold: tuple[int, RowMaker] | None = None  # of the newest epoch
        self._masking = Masking(self.reader.tokenizer.hugging_face)
        self._kept: dict[int, list[TrainingRow]] = {}
        self._room = KEPT_TOKENS

    def _queried(self) -> list[Any]:
        """The texts as a recipe can change them; a system that knows no recipes reads them."""
        changes = self.recipe != Recipe() or self.only_hides
        reader, texts = self.reader, [example.sentences for example in self.examples]
        read = reader.query if changes or type(reader).query is not Reader.query else reader.read
        queried: list[Any] = []
        for start in range(0, len(texts) or 1, READ_AT_ONCE):  # none: it may be refused
            some = texts[start : start + READ_AT_ONCE]
            queried += read(some, self.graph, self.config, windows=self._windows)
        return queried

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what another process can make for itself."""
        return {**self.__dict__, "_kept": {}, "_fold": None}

    def batch(self, numbers: Sequence[int], epoch: int) -> tuple[Any, Tensor]:
        """Make a batch of some examples (by number) for one epoch, and its labels."""
        rows = [row for rows in self.rows(numbers, epoch) for row in rows]
        return batch_of(rows, self.reader, self.config)

    def rows(self, numbers: Sequence[int], epoch: int) -> list[list[TrainingRow]]:
        """Make the rows of some examples (by number) for one epoch; a long text has several."""
        share = self.recipe.new_names if self.task.name == "ner" else 0.0
        rows = []
        for number in numbers:
            draw = np.random.default_rng((self.seed, FOLDS, epoch, number)).random()
            maker = self._of_fold(epoch) if draw < share else self
            rows.append(maker._rows(number, epoch))
        return rows

    def _of_fold(self, epoch: int) -> "RowMaker":
        """The maker of the rows that have this epoch's names."""
        number = epoch % FOLDS
        if self._fold is None or self._fold[0] != number:
            examples = by_fold(self.examples, FOLDS, number, seed=self.seed)
            common = (self.task, self.reader, self.labels, self.graph, self.config)
            how = {name: getattr(self, name) for name in ("recipe", "type_labels", "only_hides")}
            self._fold = number, RowMaker(examples, *common, **how, seed=self.seed)
        return self._fold[1]

    def _rows(self, number: int, epoch: int) -> list[TrainingRow]:
        random = np.random.default_rng((self.seed, epoch, number))
        if change := self._change(number, random):
            rows = self.with_targets(number, self._read(change.text), change, random)
        elif (rows := self._kept.get(number, [])) == []:
            rows = self.with_targets(number, self._read(self.texts[number]))
            self._room -= sum(len(row.row) for row in rows)
            if self._room >= 0:
                self._kept[number] = rows
        if self.task.name == "mask" and self.examples[number].label is None:
            rows = [self._masked(row.row, random) for row in rows]
        return rows

    def _change(self, number: int, random: np.random.Generator) -> Augmented | None:
        """Return an example as the recipe changes it in this epoch; None: it doesn't."""
        if self.recipe == Recipe():
            return None
        example, text = self.examples[number], self.texts[number]
        change = self._augment(text, example, random)
        if self.only_hides:
            change = Augmented(text, list(example.spans), change.hidden)
        same = change.text is text and not change.hidden and change.spans == list(example.spans)
        return None if same else change

    def _read(self, text: Any) -> Reading:
        """Read a text as it is in ``texts``, or as the recipe has changed it."""
        if self.only_hides:
            text = text.with_nodes(())
        flatten = getattr(self.reader, "flatten", None)  # of a system that knows recipes
        return flatten([text], self.config, windows=self._windows)[0] if flatten else text

    def with_targets(
        self,
        number: int,
        reading: Reading,
        change: Augmented | None = None,
        random: np.random.Generator | None = None,
    ) -> list[TrainingRow]:
        """Make the rows of an example from its reading, which the recipe may have changed."""
        example = self.examples[number]
        if self.task.name == "link":
            base = len(self.config.bases) - 1
            return [
                TrainingRow(row, link_targets(row, example.links, base)) for row in reading.rows
            ]
        if self.task.name == "qa":
            made = [_with_answer(row, example, reading) for row in reading.rows]
            trained = [row for row in made if (np.asarray(row.target) != IGNORED).any()]
            holding = [row for row in trained if np.max(row.target) > 0]
            without = [row for row in trained if np.max(row.target) == 0]
            some = without[number % len(without) :][:1] if without else []  # one is enough
            return [*holding, *some] or made[:1]
        if self.task.name == "mask" and example.label is not None:
            return self._filled(example, example.label, reading)
        if self.task.name == "multilabel":
            given = np.zeros(len(self.labels), np.int64)
            given[[self.labels[label] for label in example.classes]] = 1
            return [TrainingRow(row, given) for row in reading.rows]
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
        """Make the label the target of a text's masks; nothing else is hidden.

        Raises:
            DataError: the label doesn't have as many tokens as the text has masks.
        """
        tokenizer, text = self.reader.tokenizer, example.sentences[0]
        ids = [token for own in tokenizer.tokenize([filling]) for token in own.ids]
        count = len(tokenizer.mask_spans(text))
        if count != len(ids):
            raise DataError(
                f"{example.place}: masks in the text: {count}, tokens of '{filling[:40]}': "
                f"{len(ids)}. Write a mask for each token."
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
        """Hide at least one token of the text, which the model has to guess."""
        ids, (places, _) = np.array(row.input_ids), _places(row)
        places = places[~self._masking.special(ids[places])]
        chosen = np.zeros(len(ids), bool)
        if len(places):
            count = max(1, round(MASKED_SHARE * len(places)))
            chosen[random.permutation(places)[:count]] = True
        read, target = self._masking.hide(ids, chosen, random)
        row = self.reader.hide_knowledge(row, chosen, None if self.held_out else random)
        return TrainingRow(row, target, read)


def _with_answer(row: Any, example: Example, reading: Reading) -> TrainingRow:
    """Return targets for the first answer in the paragraph: start and end, or "not in this row".

    Rows that contain only a part of the answer aren't trained, nor are paragraphs without it.
    """
    places, numbers = _places(row, sentence=1)
    target = np.full(len(row), IGNORED)
    answer = next((own for own in example.answers if own[0] >= 0), None)
    span = answer and answer_tokens(reading.tokens[1], *answer)
    if span:
        inside = (numbers >= span[0]) & (numbers < span[1])
        if inside.sum() in (0, span[1] - span[0]):
            target[places] = START * (numbers == span[0]) + END * (numbers == span[1] - 1)
    return TrainingRow(row, target)


def answer_tokens(tokens: Tokens, start: int, text: str) -> tuple[int, int] | None:
    """Find an answer among the paragraph's tokens that are read: first, last + 1.

    None: the answer isn't in the paragraph, or not all of it is read.
    """
    end = start + len(text.rstrip())
    first, last = tokens.over(start, end)
    whole = last < len(tokens) or (last and tokens.ends[last - 1] >= end)
    return (first, last) if start >= 0 and first < last and whole else None


def link_targets(row: Any, links: Sequence[Any], base: int = 0) -> Any:
    """Return the right candidate of each span of the last knowledge base.

    Args:
        links: the gold links, with ``start``, ``end`` and ``entities``.
        base: number of the last knowledge base.

    Returns:
        (C,) int64; ``IGNORED`` for a span without a gold entity among its candidates: it doesn't
        train (the released code trains it towards its first candidate).
    """
    gold = {(own.start, own.end): own.entities for own in links}
    targets = []
    for own in row.of_base(base):
        entities = gold.get((own.span.mention.start, own.span.mention.end), ())
        right = (k for k, c in enumerate(own.span.candidates) if c.entity in entities)
        targets.append(next(right, IGNORED))
    return np.array(targets, np.int64)


def _places(row: Any, sentence: int | None = None) -> tuple[Ints, Ints]:
    """Return the places of the text's own tokens in a row, ascending, and their numbers."""
    parts = [part for part in row.trunk_parts if sentence in (None, part.sentence)]
    none = [np.empty(0, np.int64)]
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
