"""Rows → batches of similar length, step by step, in an order that the seed fixes."""

from collections.abc import Sequence
from itertools import count, cycle
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from kbert_core.labels import IGNORED, WRONG
from kbert_core.reader import tokens_of
from kbert_lab.data.labelled import Example
from kbert_lab.training.options import TrainOptions
from kbert_lab.training.rows import RowMaker

READ = "read"  # of an item: the system's batch
BATCH = "batch"  # of an item: numbers that say which examples it holds
TARGETS = "targets"  # of an item, that the loss takes
LINKED = "linked"  # of an item: whether it trains the linker, beside another task
SHOWN_EXAMPLES = 5  # of a batch that is named in an error
Ints = np.ndarray[Any, np.dtype[np.int64]]


class Batches(Dataset[dict[str, Any]]):
    """Every batch of a whole training, in order.

    Batches hold examples of similar length, so that there is hardly any padding.
    Their order and content depend on the seed alone, so that a run can go on
    where it was cut off.

    Args:
        links: makes rows of entity links, which train the linker in steps between the others
            (KnowBert, Algorithm 1).
        parts: into how many items the batch of an optimiser step is cut, one
            after the other: one for each process and each time gradients are
            accumulated. Each has about ``batch_tokens``.

    Attributes:
        epoch_ends: the steps after which an epoch ends; with a given number of steps, equal parts.
        tokens: the number of tokens without padding, before each step and in all.
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
        for epoch in count() if steps.steps else range(steps.epochs):
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
            if steps.steps and len(self.steps) >= steps.steps:
                del self.steps[steps.steps :], self.tokens[steps.steps + 1 :]
                parts_of = range(1, steps.epochs + 1)
                self.epoch_ends = [round(steps.steps * n / steps.epochs) for n in parts_of]
                break

    def __len__(self) -> int:
        return len(self.steps) * self.parts

    def __getitem__(self, index: int) -> dict[str, Any]:
        step, part = divmod(index, self.parts)
        epoch, whole = self.steps[step]
        own = np.array_split(whole, self.parts)[part].tolist()
        numbers = own or whole[:1]  # the step may have fewer examples than parts
        first = len(self.maker.examples)
        maker = self.links if self.links and numbers[0] >= first else self.maker
        linked = maker is self.links
        batch, labels = maker.batch([number - first * linked for number in numbers], epoch)
        if not own:
            labels.fill_(IGNORED)
        return {
            READ: batch,
            TARGETS: labels,
            "labels": maker.task.counted(labels),  # as the trainer calls what it counts
            BATCH: torch.tensor(numbers),
            LINKED: linked,
        }

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
    """Return the number of tokens of every example."""
    numbers = range(len(maker.examples))
    return [sum(tokens_of(row.row) for row in maker.rows([n], 0)[0]) for n in numbers]


def mixed(
    groups: list[list[int]], more: list[list[int]], share: float, random: np.random.Generator
) -> list[list[int]]:
    """Put groups of a second kind between those of a first, at random places.

    Args:
        share: the share of groups of the second kind; if there are too few, they are repeated.
    """
    added = round(len(groups) * share / (1 - share))
    kinds = random.permutation(np.arange(len(groups) + added) < added)
    first, second = iter(groups), cycle(more)
    return [next(second if kind else first) for kind in kinds]


def with_negatives(
    examples: Sequence[Example], negatives: int, random: np.random.Generator
) -> list[int]:
    """Draw the candidate answers that an epoch reads; return their numbers, ascending.

    All right answers are read, and for each question some wrong ones, or all.
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
        lengths: the length of every example, in tokens.
        batch_tokens: the limit of a group's size times its longest example; an example
            that is longer than that is a group by itself.
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
