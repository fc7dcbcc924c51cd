"""Which examples each step of a training reads, and the batches made of them."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from kbert_core.data.labelled import Example
from kbert_core.labels import IGNORED, WRONG
from kbert_core.training.options import TrainOptions
from kbert_core.training.rows import READ_AT_ONCE, RowMaker, batch_of
from kbert_core.training.trainer import BATCH

SHOWN_EXAMPLES = 5  # of a batch that is named in an error


class Batches(Dataset[dict[str, Tensor]]):
    """Every batch of a whole training, in order.

    Batches hold examples of similar length, so that hardly a position is
    padding; their order and content depend on the seed alone, so that a run
    can go on where it was cut off.

    Args:
        maker: makes the rows of the examples.
        options: epochs, seed and tokens.
        parts: into how many items the batch of an optimiser step is cut, one
            after the other: one for each process and each time gradients are
            accumulated. Each has about ``batch_tokens``, and the step
            ``parts`` times as many.

    Attributes:
        epoch_ends: after how many steps an epoch ends.
        tokens: real ones before each step, and in all.
    """

    def __init__(self, maker: RowMaker, options: TrainOptions, *, parts: int) -> None:
        self.examples, self.maker, self.parts = maker.examples, maker, parts
        lengths = [
            sum(len(row.row) for row in rows)
            for start in range(0, len(self.examples), READ_AT_ONCE)
            for rows in maker.rows(range(len(self.examples))[start : start + READ_AT_ONCE], 0)
        ]
        self.steps: list[tuple[int, list[int]]] = []
        self.epoch_ends: list[int] = []
        self.tokens = [0]
        steps = options.optimiser
        for epoch in range(steps.epochs):
            random = np.random.default_rng((options.run.seed, epoch))
            read = None
            if steps.negatives is not None:
                read = with_negatives(self.examples, steps.negatives, random)
            for numbers in bucketed(lengths, parts * steps.batch_tokens, random, among=read):
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
        numbers = np.array_split(whole, self.parts)[part].tolist()
        empty = not numbers  # the step has fewer examples than parts
        numbers = numbers or whole[:1]
        batch, labels = self._batch(numbers, epoch)
        if empty:
            labels.fill_(IGNORED)
        return {**vars(batch), "labels": labels, BATCH: torch.tensor(numbers)}

    def _batch(self, numbers: Sequence[int], epoch: int) -> tuple[Any, Tensor]:
        rows = [row for rows in self.maker.rows(numbers, epoch) for row in rows]
        return batch_of(rows, self.maker.reader, self.maker.config)

    def described(self, numbers: Sequence[int]) -> str:
        """Say in words which examples a batch holds."""
        shown = []
        for example in [self.examples[n] for n in numbers[:SHOWN_EXAMPLES]]:
            text = f"'{example.sentences[0][:30]}'"
            if example.source:
                text += f" ({example.source.unit} {example.line} of {example.source.name})"
            shown.append(text)
        rest = len(numbers) - SHOWN_EXAMPLES
        return f"{'; '.join(shown)}{f'; and {rest} more' if rest > 0 else ''}"


def with_negatives(
    examples: Sequence[Example], negatives: int, random: np.random.Generator
) -> list[int]:
    """Draw what an epoch reads of candidate answers: all right ones, and some wrong ones.

    Args:
        negatives: wrong answers of each question; all, where there are fewer.

    Returns:
        Numbers of examples, rising.
    """
    wrong: dict[str, list[int]] = {}
    for number, example in enumerate(examples):
        if example.label == WRONG:
            wrong.setdefault(example.group, []).append(number)
    left_out = {
        number
        for all_of_it in wrong.values()
        for number in random.permutation(all_of_it)[negatives:]
    }
    return [number for number in range(len(examples)) if number not in left_out]


def bucketed(
    lengths: Sequence[int],
    batch_tokens: int,
    random: np.random.Generator,
    *,
    among: Sequence[int] | None = None,
) -> list[list[int]]:
    """Group numbers of similar length, each group within a budget of tokens.

    Args:
        lengths: of every example, in tokens.
        batch_tokens: the longest of a group times its size stays within it,
            unless one example alone is over it.
        among: the numbers to group; None: all.

    Returns:
        Groups in random order; every number in exactly one.
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
