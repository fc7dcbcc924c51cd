"""Token labelling: named entities as BIO tags on the text's tokens."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import exp
from typing import Any, ClassVar, overload

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from transformers import AutoModelForTokenClassification

from kbert_core.labels import Labels, bio_spans
from kbert_core.reader import Reading
from kbert_core.tasks.base import Task
from kbert_core.tokens import Ints, Tokens

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class Span:
    """A named entity, in characters of the text, end exclusive.

    Attributes:
        label: its type.
        probability: geometric mean of its tags' probabilities.
    """

    start: int
    end: int
    label: str
    text: str
    probability: float


@dataclass(frozen=True, slots=True)
class LabelledToken:
    """One token, in characters of the text, with its tag as the model writes it.

    Attributes:
        probabilities: for every tag, before the tags are made consistent.
    """

    start: int
    end: int
    tag: str
    probabilities: dict[str, float]


@dataclass(frozen=True, eq=False, repr=False)
class LabelledTokens(Sequence[LabelledToken]):
    """The T tokens of a text with their tags, each made when it is asked for.

    Attributes:
        tags: the numbers of the T tags.
        names: the names of the K tags.
        probabilities: (T, K).
    """

    tokens: Tokens
    tags: Ints
    names: Sequence[str]
    probabilities: Floats

    def __len__(self) -> int:
        return len(self.tags)

    @overload
    def __getitem__(self, index: int) -> LabelledToken: ...
    @overload
    def __getitem__(self, index: slice) -> list[LabelledToken]: ...
    def __getitem__(self, index: int | slice) -> LabelledToken | list[LabelledToken]:
        if isinstance(index, slice):
            return [self[number] for number in range(len(self))[index]]
        start, end, tag = self.tokens.starts[index], self.tokens.ends[index], self.tags[index]
        probabilities = zip(self.names, self.probabilities[index].tolist(), strict=True)
        return LabelledToken(start, end, self.names[tag], dict(probabilities))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class NerPrediction:
    """The named entities of a text, and the tagged tokens they come from."""

    spans: tuple[Span, ...]
    tokens: Sequence[LabelledToken] = field(repr=False)

    def _repr_html_(self) -> str:
        from kbert_core.markup import table

        rows = ((own.text, own.label, own.probability) for own in self.spans)
        return table(("entity", "type", "probability"), rows)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        parts: list[Any] = [*self.spans, *self.tokens]
        plain = [{name: getattr(own, name) for name in own.__slots__} for own in parts]
        return {"spans": plain[: len(self.spans)], "tokens": plain[len(self.spans) :]}


class Ner(Task):
    """Token labelling in BIO."""

    name = "ner"
    title = "Named entities"
    auto_class: ClassVar[type] = AutoModelForTokenClassification
    windows = True

    def decode(self, text: Reading, logits: Tensor, labels: Labels) -> NerPrediction:
        """The best consistent sequence of tags, and its spans."""
        sentence, tokens, names = text.sentences[0], text.tokens[0], labels.names
        scores = logits.float().log_softmax(-1).cpu().numpy()
        tags = best_tags(scores, labels.bio)
        chosen = scores[np.arange(len(tags)), tags]
        total = np.append(0, chosen.cumsum(dtype=float)).tolist()  # log-probability up to a token
        spans = []
        for first, last, label in bio_spans([labels.bio[tag] for tag in tags.tolist()]):
            start, end = tokens.starts[first], tokens.ends[last - 1]
            probability = exp((total[last] - total[first]) / (last - first))
            spans.append(Span(start, end, label, sentence[start:end], probability))
        return NerPrediction(tuple(spans), LabelledTokens(tokens, tags, names, np.exp(scores)))


def best_tags(scores: Floats, names: Sequence[str]) -> Ints:
    """Find the likeliest tags among the consistent ones.

    An I- tag may only follow a B- or I- tag of its own type. If each token's likeliest tag is
    consistent with the tag before it, these tags are the answer. A tag that begins something is
    consistent with every tag before it, so only the stretch between two such tags is searched
    (Viterbi). If its best path continues the stretch before it, the whole text is searched.

    Args:
        scores: (T, K) log-probabilities.
        names: the K tags.

    Returns:
        (T,) numbers of tags.
    """
    allowed, inside = _transitions(tuple(names))
    tags = scores.argmax(1)
    if not len(tags):
        return tags
    wrong = np.append(inside[tags[0]], ~allowed[tags[:-1], tags[1:]])
    starts = np.flatnonzero(~inside[tags])
    for at in np.flatnonzero(wrong).tolist():
        number = int(np.searchsorted(starts, at, "right"))
        first = int(starts[number - 1]) if number else 0
        last = int(starts[number]) if number < len(starts) else len(tags)
        tags[first:last] = _viterbi(scores[first:last], allowed, inside if not first else None)
        if first and inside[tags[first]]:
            return _viterbi(scores, allowed, inside)
    return tags


def _viterbi(scores: Floats, allowed: NDArray[np.bool_], barred: NDArray[np.bool_] | None) -> Ints:
    """Find the best path through (T, K) scores by allowed steps; it starts with no barred tag."""
    step = np.where(allowed, 0.0, -np.inf)
    best = scores[0].astype(float)
    if barred is not None:
        best = np.where(barred, -np.inf, best)
    came_from = np.zeros(scores.shape, int)
    for at, row in enumerate(scores[1:], start=1):
        reached = best[:, None] + step
        came_from[at] = reached.argmax(0)
        best = reached.max(0) + row
    tags = np.zeros(len(scores), int)
    tags[-1] = best.argmax()
    for at in range(len(scores) - 1, 0, -1):
        tags[at - 1] = came_from[at, tags[at]]
    return tags


@lru_cache(maxsize=16)
def _transitions(names: tuple[str, ...]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return (K, K) bool, may the column's tag follow the row's; (K,) bool, is it an I- tag."""
    inside = np.array([name.startswith("I-") for name in names])
    same = np.array(
        [[before in (f"B-{after[2:]}", f"I-{after[2:]}") for after in names] for before in names]
    )
    return same | ~inside[None, :], inside
