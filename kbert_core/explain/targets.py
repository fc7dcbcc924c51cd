"""Target: what of a prediction is explained, and how it scores: in nats."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from kbert_core.errors import TextError
from kbert_core.labels import OUTSIDE, Labels
from kbert_core.reader import Reading
from kbert_core.tasks import (
    NULL,
    AnswerPrediction,
    ClassPrediction,
    LabelsPrediction,
    LinkPrediction,
    MaskPrediction,
    NerPrediction,
    Span,
)
from kbert_core.tasks.qa import paragraph_log_probabilities

NO_SPAN = -1
NOT = "not "  # before a label that a text hasn't
LEAST = 1e-6  # weight of a candidate, so that its log-odds are finite


class NothingPredicted(TextError):
    """There is nothing to explain unless it is said what."""


@dataclass(frozen=True, slots=True)
class Target:
    """What of a prediction is explained, scored in nats.

    A class and a token at a [MASK] score their log-odds, a span the mean
    log-probability of the tags that give it its label. A span may be one that
    isn't predicted, and its label O. One of several labels is a :class:`LabelTarget`,
    a link a :class:`LinkTarget`, an answer an :class:`AnswerTarget`.
    """

    label: str  # a class, an entity type or O, or a token
    start: int = NO_SPAN  # the span or the [MASK], in characters of the text, end exclusive
    end: int = NO_SPAN

    sentence: ClassVar[int] = 0  # in which the span stands

    def __str__(self) -> str:
        return self.label if self.start == NO_SPAN else f"{self.label} [{self.start}, {self.end})"

    def towards(self, label: str, prediction: Any, reading: Reading) -> "Target":
        """The same with another label."""
        return replace(self, label=label)

    def score(self, reading: Reading, logits: Tensor, labels: Labels) -> float:
        """Score the logits of one text; arguments and errors as for :meth:`log_probabilities`."""
        return float(self.scored(self.log_probabilities(reading, logits, labels), labels))

    def scored(self, here: Tensor, labels: Labels) -> Tensor:
        """Score log-probabilities (T, K), as a tensor () through which gradients flow."""
        if not self._is_span(labels):
            at = self._index(labels, self.label)
            others = torch.cat([here[0, :at], here[0, at + 1 :]])
            return here[0, at] - others.logsumexp(0)
        tags = [OUTSIDE] * len(here)
        if self.label != OUTSIDE:
            tags = labels.tags_of(self.label, len(here))
        return here[range(len(here)), [self._index(labels, tag) for tag in tags]].mean()

    def probability(self, score: float, labels: Labels) -> float:
        """Return the probability of a score: of a span the geometric mean over its tags."""
        return float(self.probabilities(torch.tensor(score, dtype=torch.double), labels))

    def probabilities(self, scores: Tensor, labels: Labels) -> Tensor:
        """The same of many scores, through which gradients flow."""
        return scores.exp() if self._is_span(labels) else scores.sigmoid()

    def log_probabilities(self, reading: Reading, logits: Tensor, labels: Labels) -> Tensor:
        """Say how likely the model holds each label where the target stands.

        Args:
            reading: the text, as it was read.
            logits: (T, K), a row for each of its tokens, or (K,) for a class.
            labels: names of the K logits.

        Returns:
            (T, K): a row for a class or a [MASK], one per token for a span.

        Raises:
            TextError: the model's answers are of another kind; no token there.
        """
        if (self.start == NO_SPAN) != (logits.dim() == 1):
            kind = "whole texts" if logits.dim() == 1 else "tokens"
            raise TextError(f"The model labels {kind}, and '{self}' isn't one of its answers.")
        if self._is_span(labels):
            first, last = reading.tokens[0].over(self.start, self.end)
            if last <= first:
                raise TextError(f"No token of the text stands at [{self.start}, {self.end}).")
            return logits[first:last].float().log_softmax(-1).double().cpu()
        here = logits if self.start == NO_SPAN else logits[self._mask(reading, labels)]
        return here[None].double().log_softmax(-1).cpu()

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

    def _is_span(self, labels: Labels) -> bool:
        """Whether it is a span of tagged tokens: where the labels are a vocabulary, a [MASK]."""
        return self.start != NO_SPAN and labels.mask_id is None

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


@dataclass(frozen=True, slots=True)
class LabelTarget(Target):
    """One of the labels that a text may have several of, given or not; scores its log-odds."""

    def towards(self, label: str, prediction: Any, reading: Reading) -> Target:
        """Another label, that the text hasn't."""
        if label in prediction.labels:
            raise TextError(
                f"The text has the label '{label}' already. Name one that it hasn't, or none to "
                "allow any change."
            )
        return LabelTarget(label)

    def log_probabilities(self, reading: Reading, logits: Tensor, labels: Labels) -> Tensor:
        """(1, 2): that the text has the label, and that it hasn't."""
        own = logits[self._index(labels, self.label)].double().cpu()
        return torch.stack([own, -own])[None].sigmoid().log()

    def scored(self, here: Tensor, labels: Labels) -> Tensor:
        """The log-odds."""
        return here[0, 0] - here[0, 1]

    def answer(self, prediction: Any) -> str:
        """The label if the text has it, else ``NOT`` and the label."""
        return self.label if self.label in prediction.labels else f"{NOT}{self.label}"


@dataclass(frozen=True, slots=True)
class LinkTarget(Target):
    """What a span of the text means: an entity, or NULL, at a place.

    Scores the log-odds of the entity's weight among the span's candidates. A weight under
    ``LEAST``, and that of an entity that is no candidate, counts as ``LEAST``.
    """

    def log_probabilities(self, reading: Any, logits: Tensor, labels: Labels) -> Tensor:
        """(1, 2): of the entity's weight, and of the others' together."""
        weight = 0.0
        for span, own in zip(reading.linked_spans, logits, strict=True):
            if span.place[2:] == (self.start, self.end) and span.candidates:
                weights = own[: len(span.candidates)].double().softmax(-1).tolist()
                shares = zip(names_of(span), weights, strict=True)
                weight = sum(share for name, share in shares if name == self.label)
        weight = min(max(weight, LEAST), 1 - LEAST)
        return torch.tensor([[weight, 1 - weight]], dtype=torch.double).log()

    def scored(self, here: Tensor, labels: Labels) -> Tensor:
        """The log-odds."""
        return here[0, 0] - here[0, 1]

    def probabilities(self, scores: Tensor, labels: Labels) -> Tensor:
        """The weights of scores."""
        return scores.sigmoid()

    def answer(self, prediction: Any) -> str:
        """The entity that the span is taken to mean, or NULL."""
        places = {(own.start, own.end): own.entity for own in prediction.links}
        return places.get((self.start, self.end)) or NULL


@dataclass(frozen=True, slots=True)
class AnswerTarget(Target):
    """An answer, as its text, at a place of the paragraph, in its characters.

    Scores the log-probability that the answer starts at its first token and ends at its last.

    Attributes:
        first, last: its tokens, among those of the paragraph.
    """

    first: int = 0
    last: int = 0

    sentence: ClassVar[int] = 1

    def towards(self, label: str, prediction: Any, reading: Reading) -> Target:
        """Another answer of the same paragraph."""
        return target_of(prediction, reading, label=label)

    def log_probabilities(self, reading: Reading, logits: Tensor, labels: Labels) -> Tensor:
        """(2, T): that it starts, and that it ends, at each token of the paragraph."""
        return paragraph_log_probabilities(reading, logits).T

    def scored(self, here: Tensor, labels: Labels) -> Tensor:
        """The log-probability."""
        return here[0, self.first] + here[1, self.last]

    def probabilities(self, scores: Tensor, labels: Labels) -> Tensor:
        """The probabilities of scores."""
        return scores.exp()

    def answer(self, prediction: Any) -> str:
        """The best answer's text, with its place where that is another one."""
        best = prediction.answers[0]
        moved = best.text == self.label and best.start != self.start
        return f"{best.text} @ {best.start}" if moved else str(best.text)


NOTHING = Target("")  # for what follows states, not a prediction


def target_of(
    prediction: Any,
    reading: Reading | None = None,
    *,
    label: str | None = None,
    span: tuple[int, int] | None = None,
) -> Target:
    """Choose what to explain: by its name, its place, both, or what was predicted.

    Args:
        prediction: of a task.
        reading: what it was made from.
        label: a class, an entity type or O, a token, or an answer; None: what is
            predicted at the place.
        span: in characters, end exclusive; None: the first [MASK], or entity of
            the label; without a label the first with knowledge on it, else the first. Of links
            the span whose best candidate has the least weight. Of answers the best.

    Raises:
        NothingPredicted: neither is given, and no entity or nothing is predicted.
        TextError: nothing fits, or a class has no place.
    """
    if isinstance(prediction, ClassPrediction):
        if span is not None:
            raise TextError("The model labels whole texts, so there is no span. Leave it out.")
        kind = LabelTarget if isinstance(prediction, LabelsPrediction) else Target
        return kind(label or prediction.label)
    if isinstance(prediction, MaskPrediction):
        places = [(filling.start, filling.end) for filling in prediction.fillings]
        start, end = span or places[0]
        if (start, end) not in places:
            raise TextError(f"No [MASK] of the text stands at [{start}, {end}).")
        return Target(label or Target("", start, end).answer(prediction), start, end)
    if isinstance(prediction, LinkPrediction):
        if not prediction.links:
            raise NothingPredicted("No name of the graph stands in the text: nothing is linked.")
        return _link(prediction, reading, label, span)
    if isinstance(prediction, AnswerPrediction):
        assert reading is not None
        return _answer(prediction, reading, label, span)
    if not isinstance(prediction, NerPrediction):
        raise NothingPredicted("The model makes no prediction, so there is nothing to explain.")
    if span is not None:
        there = [s.label for s in prediction.spans if (s.start, s.end) == span]
        return Target(label or (there[0] if there else OUTSIDE), *span)
    fitting = [s for s in prediction.spans if label in (None, s.label)]
    if not fitting and label is None:
        raise NothingPredicted("No entity is predicted. Name the span and the label to explain.")
    if not fitting:
        spans = [f"{s.text} {s.label} [{s.start}, {s.end})" for s in prediction.spans]
        raise TextError(
            f"No {label} is predicted, only {', '.join(spans) or 'nothing'}. Say which span to "
            "explain, in characters."
        )
    known = [s for s in fitting if label is None and reading and _has_knowledge(s, reading)]
    chosen = (known or fitting)[0]
    return Target(chosen.label, chosen.start, chosen.end)


def names_of(span: Any) -> list[str]:
    """Say what a span of a linker may mean, the most probable first."""
    return [NULL if own.special is not None else own.entity for own in span.candidates]


def _link(
    prediction: LinkPrediction, reading: Any, entity: str | None, place: tuple[int, int] | None
) -> LinkTarget:
    """Choose a link: by its place, its entity, both, or the span whose best weight is least sure.

    Raises:
        TextError: no name stands there, or it can't mean the entity.
    """
    names = {span.place[2:]: names_of(span) for span in reading.linked_spans}
    if place is None:
        links = sorted(prediction.links, key=lambda own: own.weight)
        places = [(own.start, own.end) for own in links]
        place = next((own for own in places if entity in names[own]), places[0])
    if place not in names:
        known = ", ".join(f"[{start}, {end})" for start, end in names)
        raise TextError(f"There is no name of the graph at [{place[0]}, {place[1]}), only {known}.")
    if entity is not None and entity not in names[place]:
        known = ", ".join(names[place])
        raise TextError(
            f"'{entity}' is no candidate of the name at [{place[0]}, {place[1]}), which may mean "
            f"{known}."
        )
    return LinkTarget(entity or LinkTarget("", *place).answer(prediction), *place)


def _answer(
    prediction: AnswerPrediction,
    reading: Reading,
    label: str | None,
    span: tuple[int, int] | None,
) -> AnswerTarget:
    """Choose an answer: by its place; by its text, one of the best or its first place; the best."""
    paragraph = reading.sentences[1]
    if span is None:
        answers = [own for own in prediction.answers if label in (None, own.text)]
        start = answers[0].start if answers else paragraph.find(str(label))
        span = start, answers[0].end if answers else start + len(str(label))
    text = paragraph[slice(*span)]
    first, last = prediction.tokens.over(*span)
    if last <= first or label not in (None, text):
        what = f"'{label}'" if label else "No token"
        raise TextError(
            f"{what} isn't in the part of the paragraph that the model reads, at {span}."
        )
    return AnswerTarget(text, *span, first, last - 1)


def _has_knowledge(span: Span, reading: Reading) -> bool:
    nodes = {fact.node for fact in reading.facts if fact.node is not None}
    mentions = [reading.mentions[node] for node in nodes]
    return any(m.start < span.end and span.start < m.end for m in mentions)
