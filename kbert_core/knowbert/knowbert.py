"""KnowBert as a system: the entities that a text may mean enter between two layers, as vectors."""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pkgutil import resolve_name
from typing import Any, ClassVar, Self, cast

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.modeling_outputs import ModelOutput

from kbert_core.checkpoints.adapters import weights_hash
from kbert_core.checkpoints.checkpoint import card_of
from kbert_core.checkpoints.encoders import located
from kbert_core.errors import OptionError
from kbert_core.knowbert.candidates import MASKED, Base, Candidate, Span, batch_of, graph_spans
from kbert_core.knowbert.entity_vectors import EntityVectors, kept_arrays, vectors_by
from kbert_core.knowbert.kar import (
    IMPOSSIBLE,
    NULL,
    Candidates,
    Kar,
    KarTrace,
    layer_after,
    reading_with,
)
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.triple import Triple
from kbert_core.layers import (
    INSERTED,
    inputs_of,
    insert_after,
    layers_of,
    load_inserted,
    twin_of,
)
from kbert_core.reader import Fact, Reader, Reading, Trace
from kbert_core.systems import SystemConfig
from kbert_core.text import WordPieces, refuse_half_characters
from kbert_core.text_rows import TextBatch, TextRow, text_rows
from kbert_core.tokens import Tokens, TrunkPart, tokens_read

RATE = 5.0  # of the KAR's learning rate, by the encoder's: 1e-4 and 2e-5 in the paper
LINK_TABLE = "kbert_lab.explain.drawing:linked_html"  # of the lab, found by name


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

    def with_encoders(self, named: Callable[[str], str]) -> Self:
        """See :meth:`SystemConfig.with_encoders`; for those of entity vectors."""
        vectors = (base.vectors and named(base.vectors) for base in self.bases)
        bases = zip(self.bases, vectors, strict=True)
        return replace(self, bases=tuple(replace(base, vectors=name) for base, name in bases))

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

    def logits_on_text(self, values: Sequence[Tensor]) -> Tensor:
        """Collect a linker's scores from the rows, else see :meth:`Reading.logits_on_text`.

        Args:
            values: one tensor (C, M) for each row, with or without padding.

        Returns:
            (S, M) for ``linked_spans``; ``IMPOSSIBLE`` where there is no candidate.
        """
        if not self.links:
            return super().logits_on_text(values)
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
    def facts(self) -> tuple[Fact, ...]:
        """The triples that make the vectors of candidates."""
        placed = {own.number: own.span for row in self.rows for own in row.spans}
        return tuple(
            Fact(triple, number)
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

    @property
    def links(self) -> tuple["LinkedSpan", ...]:
        """Return every span that is in a row, with its linker's scores of the candidates."""
        linked: dict[int, LinkedSpan] = {}
        for row, own in enumerate(self.reading.rows):
            for base, kar in enumerate(self.kars):
                for place, placed in enumerate(own.of_base(base)):
                    stages = (kar.linked.dot, kar.linked.scores, kar.linked.weights)
                    values = (stage[row, place].tolist() for stage in stages)
                    candidates = map(LinkedCandidate, placed.span.candidates, *values)
                    is_null = bool(kar.linked.is_null[row, place])
                    span = LinkedSpan(placed.span, tuple(candidates), is_null)
                    linked.setdefault(placed.number, span)
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


class KnowBertReader(Reader):
    """KnowBert: KARs between the layers of any encoder whose layers can be found.

    Raises:
        EncoderError: the encoder's layers can't be told apart, or there is no such layer.
        OptionError: two knowledge bases stand after the same layer, or not from bottom to top.
    """

    config_class: ClassVar[type] = KnowBertConfig
    trace_class: ClassVar[type] = KnowBertTrace
    inserts: ClassVar[bool] = True
    config: KnowBertConfig

    def __init__(
        self, model: PreTrainedModel, tokenizer: WordPieces, config: KnowBertConfig | None = None
    ) -> None:
        super().__init__(model, tokenizer, config)
        layers, bases = layers_of(cast(PreTrainedModel, model.base_model)), self.config.bases
        self.after = [
            base.layer or layer_after(len(layers), number, len(bases))
            for number, base in enumerate(bases)
        ]
        if any(above <= below for below, above in pairwise(self.after)):
            raise OptionError(
                f"The knowledge bases stand after the layers {', '.join(map(str, self.after))}. "
                "Name them from bottom to top, each after a layer of its own."
            )
        if not any(hasattr(layer, INSERTED) for layer in layers):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)  # the weights of an untrained KAR are the same every time
                for number, (base, after) in enumerate(zip(bases, self.after, strict=True)):
                    width = self.vectors[number].width
                    new = Kar(model.config.hidden_size, width, number, base.kar)
                    new.invert_projection()
                    insert_after(model, after, new)
        self.kars: list[Kar] = [getattr(layers[after - 1], INSERTED) for after in self.after]
        self.kept_states: Any = None  # set where only the linker trains
        model.eval()

    @cached_property
    def vectors(self) -> list[EntityVectors]:
        """The makers of entity vectors, one for each knowledge base.

        Raises:
            OptionError: a knowledge base names no encoder for its vectors.
        """
        if not all(base.vectors for base in self.config.bases):
            raise OptionError(
                "KnowBert needs an encoder that makes the entity vectors, and none is named. "
                "Name the encoder that training starts from."
            )
        return [
            vectors_by(base.vectors, base.vectors_layer, base.text) for base in self.config.bases
        ]

    def begin_training(self, task: str, start: str | None) -> None:
        """Begin a stage of the paper's Algorithm 1.

        If training starts from a KnowBert with the same knowledge bases, its KARs are taken over.
        For the task "link" only the topmost linker is trained, the encoder is frozen, and the
        states below the KAR are kept on disk. For any other task everything is trained; if a
        linker was trained before, W₂ begins as the pseudo-inverse of W₁.
        """
        before = card_of(start) if start is not None else None
        if before is not None and before.system == self.system:
            load_inserted(self.model, located(str(start)))
            if before.task == "link" and task != "link":
                for kar in self.kars:
                    kar.invert_projection()
        if task != "link":
            return
        self.model.requires_grad_(False)
        for parameter in self.kars[-1].linking:
            parameter.requires_grad_(True)
        alone = not torch.distributed.is_initialized()  # else gradients meet in the whole pass
        if alone and self.device.type == "cpu" and len(self.kars) == 1:
            inserted = [n for n, _ in self._lower.named_modules() if n.endswith(INSERTED)]
            digest = weights_hash(self._lower, inserted)[:16]
            self.kept_states = kept_arrays(f"states/{digest}")

    def query(
        self,
        texts: Sequence[Sequence[str]],
        graph: KnowledgeGraph,
        config: KnowBertConfig,
        *,
        windows: bool = False,
    ) -> list[KnowBertReading]:
        """Read texts with a graph: find names, and the entities that each may mean."""
        readings = []
        for sentences in map(tuple, texts):
            refuse_half_characters(sentences)
            masks = [self.tokenizer.mask_spans(text) for text in sentences]
            spans: list[Span] = []
            for number, base in enumerate(config.bases):
                spans += graph_spans(sentences, graph, config.options, base, number, masks)
            tokens = tuple(self.tokenizer.tokenize(sentences))
            layout = self.tokenizer.layout(len(sentences))
            rows = tuple(
                KnowBertRow(**vars(row), spans=placed(spans, tokens, row.trunk_parts))
                for row in text_rows(tokens, layout, config.max_length, windows=windows)
            )
            links = not self.has_head
            readings.append(
                KnowBertReading(rows, config, None, sentences, tokens, tuple(spans), links)
            )
        return readings

    def hide_knowledge(
        self, row: KnowBertRow, hidden: Any, random: np.random.Generator | None = None
    ) -> KnowBertRow:
        """Change candidates that would give hidden tokens away (paper, section 3.4).

        A span with a hidden token means MASK in 80 % of the draws, another entity of the row in
        10 %, and what it meant before in 10 %. There is one draw for each span; the released code
        draws for each token, so it masks long spans more often.

        Args:
            hidden: (N,) bool; True = the model has to guess this token.
            random: a generator; None: such a span always means MASK, as in a text with a [MASK].
        """
        others = [own.span.candidates for own in row.spans]
        spans = []
        for own in row.spans:
            if hidden[own.first : own.last + 1].any():
                draw = 0.0 if random is None else random.random()
                if draw < 0.8:
                    own = replace(own, span=replace(own.span, candidates=(MASKED,)))
                elif draw < 0.9 and random is not None:
                    other = others[int(random.integers(len(others)))]
                    own = replace(own, span=replace(own.span, candidates=other))
            spans.append(own)
        return replace(row, spans=tuple(spans))

    def without(self, reading: Reading, facts: Collection[Fact]) -> KnowBertReading:
        """Leave triples out of entity vectors; an entity without triples is no candidate."""
        assert isinstance(reading, KnowBertReading)
        return reading.with_nodes(
            [
                span.edited({p.triple: None for p in facts if p.node in (None, number)})
                for number, span in enumerate(reading.spans)
            ]
        )

    def collate(self, rows: Sequence[KnowBertRow], config: KnowBertConfig) -> KnowBertBatch:
        """Pad rows to the longest."""
        texts = super().collate(rows, config)
        candidates = []
        for number, (kar, vectors) in enumerate(zip(self.kars, self.vectors, strict=True)):
            width = kar.linker.special.shape[1]
            if vectors.width != width:
                raise OptionError(
                    f"Entity vectors are {vectors.width} wide, and the model was trained with "
                    f"vectors of {width}. Name the encoder that made those."
                )
            spans = [
                [(own.first, own.last, own.span) for own in row.of_base(number)] for row in rows
            ]
            candidates.append(batch_of(spans, vectors, config.threshold_of(number)))
        states = self._kept(rows, texts) if self.kept_states else None
        return KnowBertBatch(**vars(texts), candidates=tuple(candidates), states=states)

    def _kept(self, rows: Sequence[KnowBertRow], texts: TextBatch) -> Tensor:
        """Return the states (B, N, H) that the topmost KAR gets, from disk if they are kept."""
        assert self.kept_states is not None
        keys = [repr((list(row.input_ids), list(row.token_type_ids))) for row in rows]
        found = self.kept_states.get(keys)
        missing = [i for i, key in enumerate(keys) if key not in found]
        if missing:
            inputs = inputs_of(self.model, *(own[missing] for own in vars(texts).values()))
            with torch.inference_mode():
                made = self._lower(**inputs).last_hidden_state.half().numpy()
            sizes = list(map(len, rows))
            new = {keys[i]: own[: sizes[i]].copy() for i, own in zip(missing, made, strict=True)}
            self.kept_states.put(new)
            found |= {key: own.reshape(-1) for key, own in new.items()}
        states = [torch.from_numpy(found[key].astype(np.float32)) for key in keys]
        width = self.model.config.hidden_size
        return torch.nn.utils.rnn.pad_sequence([own.view(-1, width) for own in states], True)

    @cached_property
    def _lower(self) -> Any:
        """Return the encoder up to the topmost KAR's layer; it shares the parameters."""
        lower: Any = twin_of(cast(PreTrainedModel, self.model.base_model))
        layers = layers_of(lower)
        del layers[self.after[-1] :]
        lower.config.num_hidden_layers = len(layers)
        layers[-1]._forward_hooks.clear()
        return lower.eval()

    def forward(
        self, batch: Any, config: Any, *, model: Callable[..., Any] | None = None, **kept: bool
    ) -> ModelOutput:
        """Run a batch through the encoder with its KARs; see :class:`KnowBertTrace`.

        A model without a head returns its topmost linker's scores ψ as logits: (B, C, M).
        """
        batch = batch.to(self.device)
        if batch.states is not None:
            _, linked = self.kars[-1].link(batch.states, batch.candidates[-1])
            return ModelOutput(logits=linked.scores)
        with reading_with(batch.candidates) as traces:
            output = super().forward(batch, config, model=model, **kept)
        output["kars"], output["candidates"] = tuple(own for (own,) in traces), batch.candidates
        output["links"] = output["kars"][-1].linked.scores
        if not self.has_head:
            output["logits"] = output["links"]
        return output

    def trace(self, reading: Reading, **kept: Any) -> Trace:
        """Run one reading through the whole encoder, and keep every stage."""
        with torch.inference_mode():
            batch = replace(self.collate(reading.rows, reading.config), states=None)
            return self.traced(reading, self.forward(batch, reading.config, **kept))

    def cache_key(self, reading: Reading) -> Hashable:
        """Return what the encoder gets of a reading; see :meth:`Reader.cache_key`."""
        return tuple((tuple(row.input_ids), row.spans) for row in reading.rows)

    def rate_of(self, parameter: str) -> float:
        """Return a higher rate for KARs: they are new, and the encoder is pretrained."""
        return RATE if f".{INSERTED}." in parameter else 1.0
