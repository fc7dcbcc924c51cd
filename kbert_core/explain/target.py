"""Target: the one number of a prediction that an explanation follows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kbert_core.errors import TextError
from kbert_core.kbert.flat_tree import FlatTree
from kbert_core.labels import OUTSIDE, Labels
from kbert_core.reader import Reading
from kbert_core.tasks import ClassPrediction, MaskPrediction, NerPrediction, Span

NO_SPAN = -1


class NothingPredicted(TextError):
    """There is nothing to explain unless it is said what."""


@dataclass(frozen=True, slots=True)
class Target:
    """What of a prediction is explained.

    Of a class its log-odds, of a token at a [MASK] its log-odds, of a span
    the mean log-probability of the tags that give it its label; in nats. A
    span may be one that isn't predicted, and its label O.

    Attributes:
        label: a class, an entity type or O, or a token.
        start, end: in characters of the text, end exclusive: the span, or
            the [MASK]; -1 for a class.
    """

    label: str
    start: int = NO_SPAN
    end: int = NO_SPAN

    def __str__(self) -> str:
        return self.label if self.start == NO_SPAN else f"{self.label} [{self.start}, {self.end})"

    def score(self, reading: Reading, logits: Tensor, labels: Labels) -> float:
        """Reduce the logits of one text to the target's number.

        Args:
            reading: the text, as it was read.
            logits: (T, K), a row for each of its tokens, or (K,) for a class.
            labels: names of the K logits.

        Returns:
            Log-odds or mean log-probability, in nats.

        Raises:
            TextError: no such label, or no token of the text there.
        """
        return self.score_in(self.log_probabilities(reading, logits, labels), labels)

    def score_in(self, here: Tensor, labels: Labels) -> float:
        """The same of log-probabilities (T, K); see :meth:`log_probabilities`."""
        if not self._is_span(labels):
            return _log_odds(here[0], self._index(labels, self.label))
        if self.label == OUTSIDE:
            tags = [OUTSIDE] * len(here)
        else:
            tags = [f"B-{self.label}"] + [f"I-{self.label}"] * (len(here) - 1)
        chosen = [self._index(labels, tag) for tag in tags]
        return float(here[range(len(here)), chosen].mean())

    def probability_in(self, here: Tensor, labels: Labels) -> float:
        """The target's probability: of a span the geometric mean over its tags."""
        score = torch.tensor(self.score_in(here, labels))
        return float(score.exp() if self._is_span(labels) else score.sigmoid())

    def log_probabilities(self, reading: Reading, logits: Tensor, labels: Labels) -> Tensor:
        """What the model holds likely where the target stands; arguments as for :meth:`score`.

        Returns:
            (T, K): a row for a class or a [MASK], one a token for a span.

        Raises:
            TextError: a class of a model that tags tokens, or a span of one
                that labels whole texts; no token of the text there.
        """
        if (self.start == NO_SPAN) != (logits.dim() == 1):
            kind = "whole texts" if logits.dim() == 1 else "tokens"
            raise TextError(f"The model labels {kind}, and '{self}' is none of its answers.")
        if self.start == NO_SPAN:
            here = logits[None]
        elif self._is_span(labels):
            first, last = reading.tokens[0].over(self.start, self.end)
            if last <= first:
                raise TextError(f"No token of the text stands at [{self.start}, {self.end}).")
            return logits[first:last].float().log_softmax(-1).double().cpu()
        else:
            here = logits[self._mask(reading, labels)][None]
        return here.double().log_softmax(-1).cpu()

    def _is_span(self, labels: Labels) -> bool:
        """Whether it is a span of tagged tokens: where the labels are a vocabulary, a [MASK]."""
        return self.start != NO_SPAN and labels.mask_id is None

    def tokens(self, row: FlatTree) -> list[int]:
        """Find the tokens that it is read from: a span's, the [MASK], or of a class [CLS].

        Args:
            row: one of the text's flat trees; of windows one may have none of
                a span's tokens.

        Returns:
            Indices along N.
        """
        if self.start == NO_SPAN:
            return [row.specials[0][0]] if row.specials else [0]
        first, last = row.trunk_tokens[0].over(self.start, self.end)
        places = enumerate(row.trunk_places)
        return [index for index, (_, at) in places if first <= at < last]

    def answer(self, prediction: Any) -> str:
        """Say what a prediction has at the target's place; where two differ, it has flipped.

        Of a class its label, of a [MASK] the likeliest token. Of a span its
        label; where other spans touch it, these with their borders, as
        "治疗 [3, 5)"; O where none does.
        """
        if isinstance(prediction, ClassPrediction):
            return prediction.label
        if isinstance(prediction, MaskPrediction):
            filling = next(f for f in prediction.fillings if f.start == self.start)
            return filling.candidates[0][0]
        spans: Sequence[Span] = prediction.spans
        touching = [s for s in spans if s.start < self.end and self.start < s.end]
        if [(s.start, s.end) for s in touching] == [(self.start, self.end)]:
            return touching[0].label
        return ", ".join(f"{s.label} [{s.start}, {s.end})" for s in touching) or OUTSIDE

    def _index(self, labels: Labels, name: str) -> int:
        if name not in labels.numbers:
            known = ", ".join(labels.names[:8]) + (", …" if len(labels) > 8 else "")
            raise TextError(f"The model has no label '{name}'; it has {known}.")
        return labels.numbers[name]

    def _mask(self, reading: Reading, labels: Labels) -> int:
        tokens = reading.tokens[0]
        for at, token in enumerate(tokens.ids):
            if token == labels.mask_id and tokens.starts[at] == self.start:
                return at
        raise TextError(f"No [MASK] of the text stands at [{self.start}, {self.end}).")


NOTHING = Target("")  # for what follows states, not a prediction


def target_of(prediction: Any, reading: Reading | None = None) -> Target:
    """Choose what to explain where nobody did: what was predicted.

    Of named entities the first with knowledge on it, else the first; of
    several masks the first.

    Args:
        prediction: of a task.
        reading: what it was made from.

    Raises:
        NothingPredicted: no entity, or no prediction at all.
    """
    if isinstance(prediction, ClassPrediction):
        return Target(prediction.label)
    if isinstance(prediction, MaskPrediction):
        filling = prediction.fillings[0]
        return Target(filling.candidates[0][0], filling.start, filling.end)
    if isinstance(prediction, NerPrediction):
        if not prediction.spans:
            raise NothingPredicted(
                "No entity is predicted, so say which span and label to explain."
            )
        known = [span for span in prediction.spans if _has_knowledge(span, reading)]
        span = (known or prediction.spans)[0]
        return Target(span.label, span.start, span.end)
    raise NothingPredicted("The model makes no prediction, so there is nothing to explain.")


def target_named(
    prediction: Any,
    reading: Reading | None = None,
    *,
    label: str | None = None,
    span: tuple[int, int] | None = None,
) -> Target:
    """Choose what to explain by its name, its place or both; see :func:`target_of` for neither.

    Args:
        prediction: of a task.
        reading: what it was made from.
        label: a class, an entity type or O, or a token; None: what is
            predicted at the place.
        span: in characters, end exclusive; None: the first span predicted to
            have the label, or the first [MASK].

    Raises:
        TextError: nothing fits, or a class has no place.
    """
    if label is None and span is None:
        return target_of(prediction, reading)
    if isinstance(prediction, ClassPrediction):
        if span is not None:
            raise TextError("The model labels whole texts, so there is no span. Leave it out.")
        return Target(label or prediction.label)
    if isinstance(prediction, MaskPrediction):
        places = [(filling.start, filling.end) for filling in prediction.fillings]
        start, end = span or places[0]
        if (start, end) not in places:
            raise TextError(f"No [MASK] of the text stands at [{start}, {end}).")
        at = Target("", start, end)
        return Target(label or at.answer(prediction), start, end)
    if not isinstance(prediction, NerPrediction):
        return target_of(prediction, reading)
    if span is not None:
        found = [s.label for s in prediction.spans if (s.start, s.end) == span]
        return Target(label or (found[0] if found else OUTSIDE), *span)
    first = next((s for s in prediction.spans if s.label == label), None)
    if first is None:
        found = [f"{s.text} {s.label} [{s.start}, {s.end})" for s in prediction.spans]
        raise TextError(
            f"No {label} is predicted, only {', '.join(found) or 'nothing'}. Say which span to "
            "explain, in characters."
        )
    return Target(first.label, first.start, first.end)


def _has_knowledge(span: Span, reading: Reading | None) -> bool:
    nodes = {piece.node for piece in reading.pieces} if reading else set()
    mentions = [reading.mentions[node] for node in nodes if node is not None] if reading else []
    return any(m.start < span.end and span.start < m.end for m in mentions)


def _log_odds(logits: Tensor, index: int) -> float:
    """log p/(1 - p) of one of K logits (K,); a difference of logits where K = 2."""
    others = torch.cat([logits[:index], logits[index + 1 :]]).double()
    return float(logits[index].double() - others.logsumexp(0))
