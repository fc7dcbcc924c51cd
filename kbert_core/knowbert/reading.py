"""What KnowBert makes of a text before and after its encoder: configuration, reading, trace."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from kbert_core.checkpoints.encoders import PACKAGE, encoder_at, encoder_name
from kbert_core.errors import OptionError
from kbert_core.knowbert.candidates import Base, Candidate, Span
from kbert_core.knowbert.kar import KarTrace
from kbert_core.knowbert.linker import IMPOSSIBLE, NULL, Candidates
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.triple import Triple
from kbert_core.options import check_fields
from kbert_core.reader import Piece, Reading, Trace
from kbert_core.systems import SystemConfig
from kbert_core.text_rows import TextBatch, TextRow
from kbert_core.tokens import Tokens, TrunkPart, tokens_read

LINK_TABLE = "kbert_lab.explain.link_table:linked_html"  # of the lab, found by name


@dataclass(frozen=True)
class KnowBertConfig(SystemConfig):
    """How KnowBert reads a text: names by ``options``, which also choose an entity's triples.

    Attributes:
        bases: the knowledge bases, from bottom to top.
        threshold: δ to use instead of that of the training (``KarOptions``); None: that of
            the training.
    """

    system: ClassVar[str] = "knowbert"
    bases: tuple[Base, ...] = (Base(),)
    threshold: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self)
        if not self.bases:
            raise OptionError("KnowBert has no knowledge base. Name one, such as graph or wordnet.")

    def threshold_of(self, number: int) -> float | None:
        """Return δ of a knowledge base."""
        return self.bases[number].kar.threshold if self.threshold is None else self.threshold

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what :meth:`as_dict` wrote; see :meth:`SystemConfig.from_dict`."""
        bases = tuple(map(Base.of, data.get("bases", ("graph",))))
        return super().from_dict({**data, "bases": bases})

    def as_dict(self) -> dict[str, Any]:
        """The configuration as plain data, for JSON."""
        plain = {**super().as_dict(), "bases": [base.as_dict() for base in self.bases]}
        if plain["threshold"] is None:  # as ever
            del plain["threshold"]
        return plain

    def saved_in(self, folder: str | Path) -> Self:
        """See :meth:`SystemConfig.saved_in`; for the encoders of entity vectors."""
        return self._with_vectors(lambda name: encoder_name(name, folder))

    def loaded_from(self, folder: Path) -> Self:
        """See :meth:`SystemConfig.loaded_from`; for the encoders of entity vectors.

        Raises:
            CheckpointError: one isn't there.
        """
        return self._with_vectors(
            lambda name: name if name.startswith(PACKAGE) else str(encoder_at(folder, name))
        )

    def _with_vectors(self, named: Callable[[str], str]) -> Self:
        bases = tuple(
            replace(base, vectors=named(base.vectors) if base.vectors else "")
            for base in self.bases
        )
        return replace(self, bases=bases)

    def trained_from(self, encoder: str | None) -> Self:
        """If no encoder of entity vectors is named, name the one that training starts from."""
        if encoder is None and not all(base.vectors for base in self.bases):
            raise OptionError(
                "KnowBert needs a pretrained encoder to make entity vectors, but this training "
                "starts from scratch. Start from a pretrained encoder."
            )
        bases = tuple(replace(base, vectors=base.vectors or str(encoder)) for base in self.bases)
        return replace(super().trained_from(encoder), bases=bases)


@dataclass(frozen=True)
class PlacedSpan:
    """A span in a row.

    Attributes:
        number: of the span in its text.
        first, last: its tokens, as indices along N, inclusive.
        span: what it may mean.
    """

    number: int
    first: int
    last: int
    span: Span


@dataclass(frozen=True)
class KnowBertRow(TextRow):
    """One row of a batch.

    Attributes:
        spans: the spans that stand completely in the row.
    """

    spans: tuple[PlacedSpan, ...]

    def of_base(self, number: int) -> list[PlacedSpan]:
        """The spans of one knowledge base, in reading order."""
        return [own for own in self.spans if own.span.base == number]


@dataclass(frozen=True)
class KnowBertReading(Reading):
    """A text with the spans that name something.

    Attributes:
        trunk_tokens: the tokens of each sentence, also those beyond the length limit.
        spans: the spans of each knowledge base in turn, in reading order; a span beyond the
            length limit is in no row.
        links: whether the output is the scores of the last base's linker, not tokens' logits.
    """

    sentences: tuple[str, ...] = ()
    trunk_tokens: tuple[Tokens, ...] = ()
    spans: tuple[Span, ...] = ()
    links: bool = False

    @cached_property
    def tokens(self) -> tuple[Tokens, ...]:
        """The tokens of each sentence that are read."""
        return tokens_read(self.trunk_tokens, (row.trunk_parts for row in self.rows))

    @property
    def mentions(self) -> tuple[Mention, ...]:
        """The names in the text, one for each span; they may overlap."""
        return tuple(span.mention for span in self.spans)

    @property
    def nodes(self) -> tuple[Span, ...]:
        """The spans, under the name that a training recipe uses."""
        return self.spans

    def with_nodes(self, spans: Sequence[Span]) -> Self:
        """Return the same text with other spans; a span without candidates is in no row."""
        spans = tuple(sorted(spans, key=lambda own: own.place))
        rows = tuple(
            replace(row, spans=placed(spans, self.trunk_tokens, row.trunk_parts))
            for row in self.rows
        )
        return replace(self, rows=rows, spans=spans, prediction=None)

    @staticmethod
    def node(mention: Mention, triple: Triple, options: Any = None) -> Span:
        """Make a span of a triple."""
        del options
        return Span(mention, (Candidate(mention.entity, 1.0, (triple,)),))

    @cached_property
    def linked_spans(self) -> tuple[Span, ...]:
        """The S spans of the last knowledge base; a span in no row has no candidates."""
        last = len(self.config.bases) - 1
        placed = {own.number for row in self.rows for own in row.spans}
        return tuple(
            span if number in placed else replace(span, candidates=())
            for number, span in enumerate(self.spans)
            if span.base == last
        )

    def by_span(self, values: Sequence[Tensor]) -> Tensor:
        """Collect the linker's scores from the rows.

        Args:
            values: one tensor (C, M) for each row, with or without padding.

        Returns:
            (S, M) for ``linked_spans``; ``IMPOSSIBLE`` where there is no candidate.
        """
        count, last = len(self.linked_spans), len(self.config.bases) - 1
        first = len(self.spans) - count
        widest = max([len(span.candidates) for span in self.linked_spans] + [1])
        scores = torch.full((count, widest), IMPOSSIBLE)
        for row, own in zip(reversed(self.rows), reversed(values), strict=True):
            for place, placed in enumerate(row.of_base(last)):
                size = len(placed.span.candidates)
                scores[placed.number - first, :size] = own[place, :size].float().cpu()
        return scores

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The triples that make the vectors of candidates."""
        placed = {own.number: own.span for row in self.rows for own in row.spans}
        return tuple(
            Piece(triple, number)
            for number, span in sorted(placed.items(), key=lambda item: item[0])
            for triple in span.used
        )


@dataclass(frozen=True)
class KnowBertBatch(TextBatch):
    """B rows as tensors (B, N), and what their spans may mean, for each knowledge base.

    Attributes:
        states: (B, N, H) of the layer below the topmost KAR, if they were kept; else None.
    """

    candidates: tuple[Candidates, ...]
    states: Tensor | None = None

    def to(self, device: torch.device | str) -> Self:
        """Move every tensor to a device."""
        candidates = tuple(own.to(device) for own in self.candidates)
        return replace(super().to(device), candidates=candidates)


@dataclass(frozen=True, repr=False)
class KnowBertTrace(Trace):
    """A trace with what each KAR made of the spans; see :class:`kbert_core.knowbert.kar.KarTrace`.

    Attributes:
        kars: for each knowledge base, what its KAR made of the B rows.
        candidates: for each knowledge base, the spans that its KAR got.
    """

    reading: KnowBertReading
    kars: tuple[KarTrace, ...] = field(kw_only=True)
    candidates: tuple[Candidates, ...] = field(kw_only=True)

    def logits_on_text(self) -> Tensor:
        """See :class:`Trace`; a model without a head gives its topmost linker's scores (S, M)."""
        if self.logits is None or not self.reading.links:
            return super().logits_on_text()
        return self.reading.by_span(list(self.logits))

    @property
    def links(self) -> tuple["LinkedSpan", ...]:
        """Return every span that is in a row, with its linker's scores of the candidates."""
        linked: dict[int, LinkedSpan] = {}
        for row, own in enumerate(self.reading.rows):
            for base, kar in enumerate(self.kars):
                made = kar.linked
                for place, placed in enumerate(own.of_base(base)):
                    count = len(placed.span.candidates)
                    values = zip(
                        placed.span.candidates,
                        made.dot[row, place, :count].tolist(),
                        made.scores[row, place, :count].tolist(),
                        made.weights[row, place, :count].tolist(),
                        strict=True,
                    )
                    linked.setdefault(
                        placed.number,
                        LinkedSpan(
                            placed.span,
                            tuple(LinkedCandidate(*value) for value in values),
                            bool(made.is_null[row, place]),
                        ),
                    )
        return tuple(linked[number] for number in sorted(linked))

    def _repr_html_(self) -> str:
        """The spans and their candidates, for notebooks."""
        drawn: str = resolve_name(LINK_TABLE)(self.links, self.reading.sentences)
        return drawn


@dataclass(frozen=True, slots=True)
class LinkedCandidate:
    """The linker's result for a candidate.

    Attributes:
        candidate: the entity, and its prior.
        dot: the dot product of the span's and the entity's vectors.
        score: ψ (Eq. 3).
        weight: ψ̃, its share of the entity vector ẽ; 0 where the span means NULL.
    """

    candidate: Candidate
    dot: float
    score: float
    weight: float


@dataclass(frozen=True, slots=True)
class LinkedSpan:
    """The linker's result for a span.

    Attributes:
        candidates: in the order of the span, the highest prior first.
        is_null: every candidate is below the threshold, so ẽ is NULL.
    """

    span: Span
    candidates: tuple[LinkedCandidate, ...]
    is_null: bool

    @property
    def best(self) -> LinkedCandidate | None:
        """The candidate with the highest score; None: the span means nothing."""
        best = max(self.candidates, key=lambda own: own.score)
        return None if self.is_null or best.candidate.special == NULL else best


def placed(
    spans: Sequence[Span], tokens: Sequence[Tokens], parts: Sequence[TrunkPart]
) -> tuple[PlacedSpan, ...]:
    """Find the tokens of each span in a row; spans not completely in it are left out."""
    found = []
    for number, span in enumerate(spans):
        if not span.candidates:
            continue
        mention = span.mention
        first, stop = tokens[mention.sentence].over(mention.start, mention.end)
        for part in parts:
            last = part.first + part.end - part.start
            if part.sentence == mention.sentence and part.first <= first < stop <= last:
                shift = part.start - part.first
                found.append(PlacedSpan(number, first + shift, stop - 1 + shift, span))
    return tuple(found)
