"""Token labelling: named entities as BIO tags on the trunk's tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForTokenClassification

from kbert_core.kbert.flat_tree import FlatTree, flatten_windows
from kbert_core.kbert.sentence_tree import SentenceTree
from kbert_core.labels import OUTSIDE, bio_spans
from kbert_core.tasks.base import Task
from kbert_core.text import Tokenizer


@dataclass(frozen=True, slots=True)
class Span:
    """A named entity.

    Attributes:
        start, end: in characters of the text, end exclusive.
        label: its type.
        text: the text's own characters.
        probability: geometric mean of its tags' probabilities.
    """

    start: int
    end: int
    label: str
    text: str
    probability: float


@dataclass(frozen=True, slots=True)
class LabelledToken:
    """One token of the trunk with its tag.

    Attributes:
        start, end: in characters of the text, end exclusive.
        tag: in BIO.
        probabilities: of every tag, before the tags are made consistent.
    """

    start: int
    end: int
    tag: str
    probabilities: dict[str, float]


@dataclass(frozen=True)
class NerPrediction:
    """The named entities of a text, and the tags they come from."""

    spans: tuple[Span, ...]
    tokens: tuple[LabelledToken, ...]


class Ner(Task):
    """Token labelling in BIO; labels stand on the trunk's tokens only."""

    name = "ner"
    title = "Named entities"
    auto_class: ClassVar[type] = AutoModelForTokenClassification

    def flatten(
        self, tree: SentenceTree, tokenizer: Tokenizer, *, max_length: int | None
    ) -> list[FlatTree]:
        """Windows over a long text, so that every token gets a label."""
        return flatten_windows(tree, tokenizer, max_length=max_length)

    def decode(
        self, rows: Sequence[FlatTree], logits: Sequence[Tensor], labels: Mapping[int, str]
    ) -> NerPrediction:
        """The best consistent sequence of tags, and its spans."""
        names = [labels[i] for i in range(len(labels))]
        scores = joined_windows(rows, logits)
        tags = best_tags(scores, names)
        text, tokens = rows[0].tree.sentences[0], rows[0].trunk_tokens[0]
        probabilities = scores.exp()
        labelled = tuple(
            LabelledToken(
                tokens.starts[i],
                tokens.ends[i],
                names[tag],
                dict(zip(names, probabilities[i].tolist(), strict=True)),
            )
            for i, tag in enumerate(tags)
        )
        chosen = scores[range(len(tags)), tags] if tags else scores.new_zeros(0)
        spans = []
        for first, last, label in bio_spans([names[tag] for tag in tags]):
            start, end = tokens.starts[first], tokens.ends[last - 1]
            sure = chosen[first:last].mean().exp().item()
            spans.append(Span(start, end, label, text[start:end], sure))
        return NerPrediction(tuple(spans), labelled)


def joined_windows(rows: Sequence[FlatTree], logits: Sequence[Tensor]) -> Tensor:
    """Give each token of a sentence the scores from where it has most context.

    Args:
        rows: one or several windows over one sentence.
        logits: per window (N, K).

    Returns:
        (T, K) log-probabilities for the sentence's T tokens.
    """
    total = len(rows[0].trunk_tokens[0])
    scores = torch.zeros(total, logits[0].shape[-1])
    context = [-1] * total
    for row, row_logits in zip(rows, logits, strict=True):
        log_probabilities = row_logits.float().log_softmax(-1).cpu()
        begin = min((p.first for p in row.trunk_parts), default=0)
        stop = max((p.first + p.end - p.start for p in row.trunk_parts), default=0)
        for part in row.trunk_parts:
            for shift in range(part.end - part.start):
                at = part.first + shift
                left = at - begin if begin else total
                right = stop - 1 - at if stop < total else total
                if min(left, right) > context[at]:
                    context[at] = min(left, right)
                    scores[at] = log_probabilities[part.start + shift]
    return scores


def best_tags(scores: Tensor, names: Sequence[str]) -> list[int]:
    """Find the likeliest tags among the consistent ones (Viterbi).

    An I- tag may only follow a B- or I- tag of its own type.

    Args:
        scores: (T, K) log-probabilities.
        names: the K tags.

    Returns:
        T indices into ``names``.
    """
    rows = scores.double().cpu().numpy()  # numpy: T steps of K x K are too small for torch
    if not len(rows):
        return []
    step = np.array([[_cost(after, before) for after in names] for before in names])
    best = rows[0] + np.array([_cost(tag, OUTSIDE) for tag in names])
    came_from = np.zeros((len(rows), len(names)), dtype=int)
    for at, row in enumerate(rows[1:], start=1):
        reached = best[:, None] + step
        came_from[at] = reached.argmax(0)
        best = reached.max(0) + row
    tags = [int(best.argmax())]
    for at in range(len(rows) - 1, 0, -1):
        tags.append(int(came_from[at, tags[-1]]))
    return tags[::-1]


def _cost(tag: str, before: str) -> float:
    """0 where a tag may follow another, minus infinity where not."""
    consistent = not tag.startswith("I-") or before in (f"B-{tag[2:]}", tag)
    return 0.0 if consistent else float("-inf")
