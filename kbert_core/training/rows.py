"""Labelled example → rows of a batch with their targets, as a recipe has them.

The rows of an example are a function of (seed, epoch, its number) alone. Trees
grow once for a whole training. Rows that an epoch doesn't change are made once
too, and kept; the others are made anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kbert_core.data.labelled import Example
from kbert_core.errors import OptionError
from kbert_core.kbert.reader import KBertReader
from kbert_core.kbert.sentence_tree import SentenceTree
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention
from kbert_core.labels import IGNORED, OUTSIDE
from kbert_core.reader import Reader, Reading
from kbert_core.tasks import Task
from kbert_core.training.masking import MASKED_SHARE, Masking
from kbert_core.training.options import Recipe
from kbert_core.training.recipe import Augmented, Augmenter, GoldSpan, type_relations

READ_AT_ONCE = 512  # texts
KEPT_TOKENS = 5_000_000  # of rows, about a gigabyte
Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """One row of a batch and its target.

    Attributes:
        row: N tokens, as the system reads them.
        target: a class, or (N,) labels with ``IGNORED`` where there is none.
        input_ids: (N,) ids where they differ from the row's (hidden tokens).
    """

    row: Any
    target: int | Ints
    input_ids: Ints | None = None


class RowMaker:
    """Makes the rows of labelled examples.

    Args:
        examples: what is trained on.
        task, reader: of the model.
        labels: label → number.
        graph: knowledge; the empty graph for the twin.
        config: how texts are read; None: as the reader is configured.
        recipe: what happens to knowledge; for systems with sentence trees.
        type_labels: tail → label, for the counterfactuals; see ``learn_type_labels``.
        trees: of the examples with the graph, where they are grown already.
        hiding: for the twin without knowledge: another graph, and the trees of
            the examples with it. The mentions that a model with this graph would
            have hidden, by the same seed, are hidden here too, and nothing of it
            is injected.

    Raises:
        OptionError: a recipe for a system without sentence trees.
    """

    def __init__(
        self,
        examples: Sequence[Example],
        task: Task,
        reader: Reader,
        labels: Mapping[str, int],
        graph: KnowledgeGraph,
        config: Any = None,
        *,
        recipe: Recipe = Recipe(),
        type_labels: Mapping[str, str] | None = None,
        trees: Sequence[SentenceTree] | None = None,
        hiding: tuple[KnowledgeGraph, Sequence[SentenceTree]] | None = None,
        seed: int = 0,
    ) -> None:
        self.examples, self.task, self.reader, self.labels = examples, task, reader, labels
        self.config, self.graph, self.seed = reader.configured(config), graph, seed
        self._augment: Augmenter | None = None
        if recipe != Recipe():
            types, options = dict(type_labels or {}), self.config.options
            typed = type_relations(hiding[0] if hiding else graph, types, options)
            relations = typed if recipe.invented else {}
            self._augment = Augmenter(recipe, options, types, relations, task.name == "ner")
            if trees is None:
                trees = trees_of(reader, examples, graph, self.config)
        self._trees, self._hiding = trees, hiding[1] if hiding else None
        self._masking = Masking(reader.tokenizer.hugging_face)
        self._kept: dict[int, list[TrainingRow]] = {}
        self._room = KEPT_TOKENS

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what another process makes for itself."""
        return {**self.__dict__, "_kept": {}}

    @property
    def changing(self) -> bool:
        """Whether an epoch's rows differ from those of another."""
        return self._augment is not None or self.task.name == "mask"

    def rows(self, numbers: Sequence[int], epoch: int) -> list[list[TrainingRow]]:
        """Make the rows of some examples for one epoch; several for a long text.

        Args:
            numbers: of the examples.
        """
        randoms = [np.random.default_rng((self.seed, epoch, number)) for number in numbers]
        changes = list(map(self._change, numbers, randoms))
        same = [n for n, change in zip(numbers, changes, strict=True) if change is None]
        kept = iter(self._as_they_are(same))
        trees = [change.tree for change in changes if change is not None]
        readings = iter(self._laid(trees))
        rows = []
        for number, random, change in zip(numbers, randoms, changes, strict=True):
            if change is None:
                own = next(kept)
            else:
                own = self._targeted(number, next(readings), change.spans, change.hidden, random)
            if self.task.name == "mask":
                own = [self._masked(row.row, random) for row in own]
            rows.append(own)
        return rows

    def with_targets(self, number: int, reading: Reading) -> list[TrainingRow]:
        """Make the rows of an example from a reading made elsewhere."""
        return self._targeted(number, reading, self.examples[number].spans)

    def _change(self, number: int, random: np.random.Generator) -> Augmented | None:
        """What the recipe makes of an example in this epoch; None: it stays as it is."""
        if self._augment is None or self._trees is None:
            return None
        example, tree = self.examples[number], self._trees[number]
        if self._hiding is None:
            change = self._augment(tree, example, random)
        else:
            hidden = self._augment(self._hiding[number], example, random).hidden
            change = Augmented(tree, list(example.spans), hidden)
        same = change.tree is tree and not change.hidden and change.spans == list(example.spans)
        return None if same else change

    def _as_they_are(self, numbers: Sequence[int]) -> list[list[TrainingRow]]:
        """Rows that the recipe doesn't change, from those kept where they are."""
        new = [number for number in dict.fromkeys(numbers) if number not in self._kept]
        readings: Sequence[Reading] = []
        if self._trees is not None:
            readings = self._laid([self._trees[number] for number in new])
        elif new:
            texts = [self.examples[number].sentences for number in new]
            readings = self.reader.read(texts, self.graph, self.config, windows=self.task.windows)
        made = {n: self.with_targets(n, own) for n, own in zip(new, readings, strict=True)}
        for number, rows in made.items():
            self._room -= sum(len(row.row) for row in rows)
            if self._room >= 0:
                self._kept[number] = rows
        return [made[n] if n in made else self._kept[n] for n in numbers]

    def _laid(self, trees: Sequence[SentenceTree]) -> Sequence[Reading]:
        if not trees:
            return []
        return _with_trees(self.reader).lay(trees, self.config, windows=self.task.windows)

    def _targeted(
        self,
        number: int,
        reading: Reading,
        spans: Sequence[GoldSpan],
        hidden: Sequence[Mention] = (),
        random: np.random.Generator | None = None,
    ) -> list[TrainingRow]:
        example, rows = self.examples[number], []
        for row in reading.rows:
            if self.task.name == "mask":
                rows.append(TrainingRow(row, IGNORED))
                continue
            if self.task.name != "ner":
                rows.append(TrainingRow(row, self.labels[example.label or ""]))
                continue
            places, starts = _places(row), _starts(row, reading)
            target = np.full(len(row), IGNORED)
            target[places] = self._tags(starts, len(example.sentences[0]), spans)
            ids = None
            if hidden and random is not None:
                ids = np.array(row.input_ids)
                for mention in hidden:
                    inside = places[(starts >= mention.start) & (starts < mention.end)]
                    ids[inside] = self._masking.stand_ins(len(inside), random)
            rows.append(TrainingRow(row, target, ids))
        return rows

    def _tags(self, starts: Ints, size: int, spans: Sequence[GoldSpan]) -> Ints:
        """Labels of tokens by the characters they start at; a word's further pieces are I-."""
        names = np.full(size + 1, OUTSIDE, object)
        for start, end, label in spans:
            names[start], names[start + 1 : end] = f"B-{label}", f"I-{label}"
        tags = names[np.minimum(starts, size)]
        again = np.flatnonzero(starts[1:] == starts[:-1]) + 1  # a character of several tokens
        tags[again] = [tag.replace("B-", "I-", 1) for tag in tags[again]]
        return np.array([self.labels[tag] for tag in tags], np.int64)

    def _masked(self, row: Any, random: np.random.Generator) -> TrainingRow:
        """Hide tokens of the text, to be told from the rest; one at least."""
        ids, places = np.array(row.input_ids), _places(row)
        places = places[~self._masking.special(ids[places])]
        chosen = np.zeros(len(ids), bool)
        if len(places):
            count = max(1, round(MASKED_SHARE * len(places)))
            chosen[random.permutation(places)[:count]] = True
        read, target = self._masking.hide(ids, chosen, random)
        return TrainingRow(row, target, read)


def trees_of(
    reader: Reader, examples: Sequence[Example], graph: KnowledgeGraph, config: Any
) -> list[SentenceTree]:
    """Grow the trees of many examples.

    Raises:
        OptionError: the reader's system has none.
    """
    grower = _with_trees(reader)
    trees: list[SentenceTree] = []
    for start in range(0, len(examples), READ_AT_ONCE):
        texts = [example.sentences for example in examples[start : start + READ_AT_ONCE]]
        trees += grower.trees(texts, graph, config.options)
    return trees


def batch_of(rows: Sequence[TrainingRow], reader: Reader, config: Any) -> tuple[Any, Tensor]:
    """Pad rows to the longest of them.

    Returns:
        The system's batch, and labels (B, N) or (B,) int64.
    """
    batch = reader.collate([row.row for row in rows], config)
    for number, row in enumerate(rows):
        if row.input_ids is not None:
            batch.input_ids[number, : len(row.input_ids)] = torch.from_numpy(row.input_ids)
    targets = [row.target for row in rows]
    if isinstance(targets[0], int):
        return batch, torch.tensor(targets)
    labels = torch.full(batch.input_ids.shape, IGNORED)
    for number, target in enumerate(targets):
        labels[number, : len(rows[number].row)] = torch.as_tensor(target)
    return batch, labels


def _with_trees(reader: Reader) -> KBertReader:
    if isinstance(reader, KBertReader):
        return reader
    raise OptionError(
        f"The system '{reader.system}' grows no sentence trees, which a recipe changes. Leave the "
        "recipe's options out."
    )


def _places(row: Any) -> Ints:
    """The text's own tokens among a row's, rising."""
    runs = [np.arange(part.start, part.end) for part in row.trunk_parts]
    return np.concatenate(runs) if runs else np.empty(0, np.int64)


def _starts(row: Any, reading: Reading) -> Ints:
    """Where each of them starts in a text of one sentence, in characters."""
    starts = np.asarray(reading.tokens[0].starts, np.int64)
    runs = [starts[part.first :][: part.end - part.start] for part in row.trunk_parts]
    return np.concatenate(runs) if runs else np.empty(0, np.int64)
