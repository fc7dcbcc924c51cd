"""KnowBert as a reader: the entities that a text may mean enter between two layers, as vectors."""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self, cast

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.modeling_outputs import ModelOutput

from kbert_core.errors import OptionError
from kbert_core.knowbert.candidates import Span, Vectors, batch_of, graph_spans
from kbert_core.knowbert.entity_vectors import vectors_by
from kbert_core.knowbert.kar import Kar, KarTrace, layer_after
from kbert_core.knowbert.kar import reading as reading_with
from kbert_core.knowbert.linker import Candidates, KarOptions
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention
from kbert_core.layers import INSERTED, insert_after, layers_of
from kbert_core.reader import Piece, Reader, Reading, Trace
from kbert_core.systems import SystemConfig
from kbert_core.text import WordPieces
from kbert_core.tokens import Tokens, TrunkPart, text_rows

RATE = 5.0  # of the KAR's learning rate, by the encoder's: 1e-4 and 2e-5 in the paper


@dataclass(frozen=True)
class KnowBertConfig(SystemConfig):
    """How KnowBert reads a text: names by ``options``, which also choose an entity's triples.

    Attributes:
        kar: sizes of the KAR, and where paper and code differ.
        vectors: the encoder that makes entity vectors of triples, and never changes: a folder,
            ``package:NAME`` or a hub name.
        layer: after which layer the KAR stands, from 1; None: the paper's place.
    """

    system: ClassVar[str] = "knowbert"
    kar: KarOptions = KarOptions()
    vectors: str = ""
    layer: int | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what :meth:`as_dict` wrote; see :meth:`SystemConfig.from_dict`."""
        return super().from_dict({**data, "kar": KarOptions(**data.get("kar", {}))})

    def as_dict(self) -> dict[str, Any]:
        """The configuration as plain data, for JSON."""
        return {**super().as_dict(), "kar": asdict(self.kar)}

    def trained_from(self, encoder: str | None) -> Self:
        """Make entity vectors with the encoder that training starts from, if none is named."""
        if encoder is None and not self.vectors:
            raise OptionError(
                "KnowBert makes entity vectors with an encoder that knows the language, and this "
                "one starts from scratch. Start from an encoder."
            )
        return replace(super().trained_from(encoder), vectors=self.vectors or str(encoder))


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
class KnowBertRow:
    """One row of a batch.

    Attributes:
        input_ids, token_type_ids: N of each.
        trunk_parts: where the text's own tokens are.
        spans: that stand wholly in the row.
    """

    input_ids: Sequence[int]
    token_type_ids: Sequence[int]
    trunk_parts: Sequence[TrunkPart]
    spans: tuple[PlacedSpan, ...]

    def __len__(self) -> int:
        return len(self.input_ids)


@dataclass(frozen=True)
class KnowBertReading(Reading):
    """A text with the spans that name something.

    Attributes:
        spans: in reading order; what stands past the length limit is in no row.
    """

    sentences: tuple[str, ...] = ()
    tokens: tuple[Tokens, ...] = ()
    spans: tuple[Span, ...] = ()

    @property
    def mentions(self) -> tuple[Mention, ...]:
        """The names in the text, in reading order; they may overlap."""
        return tuple(span.mention for span in self.spans)

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The triples that vectors of candidates are made of."""
        placed = {own.number: own.span for row in self.rows for own in row.spans}
        return tuple(
            Piece(triple, number)
            for number, span in sorted(placed.items(), key=lambda item: item[0])
            for triple in dict.fromkeys(t for own in span.candidates for t in own.triples)
        )


@dataclass(frozen=True)
class KnowBertBatch:
    """B rows as tensors (B, N), and what their spans may mean."""

    input_ids: Tensor
    attention_mask: Tensor
    token_type_ids: Tensor
    candidates: Candidates

    def to(self, device: torch.device | str) -> "KnowBertBatch":
        """Move every tensor to a device."""
        return KnowBertBatch(**{f.name: getattr(self, f.name).to(device) for f in fields(self)})


@dataclass(frozen=True)
class KnowBertTrace(Trace):
    """A trace with what the KAR made of the spans; see :class:`kbert_core.knowbert.kar.KarTrace`.

    Attributes:
        kar: of B rows.
        candidates: the spans as the KAR got them.
    """

    kar: KarTrace = field(kw_only=True)
    candidates: Candidates = field(kw_only=True)


class KnowBertReader(Reader):
    """KnowBert: a KAR between two layers of any encoder whose layers can be found.

    Raises:
        EncoderError: the encoder's layers can't be told apart, or there is no such layer.
    """

    config_class: ClassVar[type] = KnowBertConfig
    inserts: ClassVar[bool] = True
    config: KnowBertConfig

    def __init__(
        self, model: PreTrainedModel, tokenizer: WordPieces, config: KnowBertConfig | None = None
    ) -> None:
        super().__init__(model, tokenizer, config)
        layers = layers_of(cast(PreTrainedModel, model.base_model))
        after = self.config.layer or layer_after(len(layers))
        if not any(hasattr(layer, INSERTED) for layer in layers):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)  # the weights of an untrained KAR are the same every time
                new = Kar(model.config.hidden_size, self.vectors.width, options=self.config.kar)
            new.invert_projection()
            insert_after(model, after, new)
        self.kar: Kar = getattr(layers[after - 1], INSERTED)
        model.eval()

    @cached_property
    def vectors(self) -> Vectors:
        """What makes entity vectors.

        Raises:
            OptionError: no encoder is named for it.
        """
        if not self.config.vectors:
            raise OptionError(
                "KnowBert makes entity vectors with an encoder that stays as it is, and none is "
                "named. Name the one that training starts from."
            )
        return vectors_by(self.config.vectors)

    def read(
        self,
        texts: Sequence[Sequence[str]],
        graph: KnowledgeGraph,
        config: KnowBertConfig | None = None,
        *,
        windows: bool = False,
    ) -> list[KnowBertReading]:
        """Read texts with a graph: names, and the entities each may mean."""
        config = self.configured(config)
        readings = []
        for sentences in texts:
            masks = [self.tokenizer.mask_spans(text) for text in sentences]
            spans = graph_spans(
                sentences, graph, config.options, masks=masks, null=config.kar.null_candidate
            )
            tokens = tuple(self.tokenizer.tokenize(sentences))
            layout = self.tokenizer.layout(len(sentences))
            rows = tuple(
                KnowBertRow(*row, _placed(spans, tokens, row[2]))
                for row in text_rows(tokens, layout, config.max_length, windows=windows)
            )
            read = [0] * len(tokens)
            for row in rows:
                for part in row.trunk_parts:
                    stop = part.first + part.end - part.start
                    read[part.sentence] = max(read[part.sentence], stop)
            cut = tuple(own.first(count) for own, count in zip(tokens, read, strict=True))
            readings.append(
                KnowBertReading(rows, config, sentences=tuple(sentences), tokens=cut, spans=spans)
            )
        return readings

    def without(self, reading: Reading, pieces: Collection[Piece]) -> KnowBertReading:
        """Make entity vectors without some triples; an entity without any is no candidate."""
        assert isinstance(reading, KnowBertReading)
        rows = []
        for row in reading.rows:
            spans = []
            for own in row.spans:
                dropped = [p.triple for p in pieces if p.node in (None, own.number)]
                if (left := own.span.without(dropped)) is not None:
                    spans.append(replace(own, span=left))
            rows.append(replace(row, spans=tuple(spans)))
        return replace(reading, rows=tuple(rows), prediction=None)

    def collate(self, rows: Sequence[KnowBertRow], config: KnowBertConfig) -> KnowBertBatch:
        """Pad rows to the longest."""
        del config
        ids, segments = (
            torch.nn.utils.rnn.pad_sequence(
                [torch.tensor(getattr(row, name)) for row in rows], True, fill
            )
            for name, fill in (("input_ids", self.tokenizer.pad_id), ("token_type_ids", 0))
        )
        sizes = torch.tensor([len(row) for row in rows])
        real = torch.arange(ids.shape[1]) < sizes[:, None]
        width = self.kar.linker.special.shape[1]
        if self.vectors.width != width:
            raise OptionError(
                f"Entity vectors are {self.vectors.width} wide, and the model was trained with "
                f"vectors of {width}. Name the encoder that made those."
            )
        spans = [[(own.first, own.last, own.span) for own in row.spans] for row in rows]
        candidates = batch_of(spans, self.vectors)
        return KnowBertBatch(ids, real.long(), segments, candidates)

    def forward(
        self,
        batch: KnowBertBatch,
        config: KnowBertConfig,
        *,
        model: Callable[..., Any] | None = None,
        **kept: bool,
    ) -> ModelOutput:
        """Run a batch through the encoder, its KAR within."""
        del config
        output, _ = self._run(batch, model, **kept)
        return output

    def trace(self, reading: Reading, **kept: bool) -> KnowBertTrace:
        """Run one reading, and keep every stage."""
        batch = self.collate(reading.rows, reading.config)
        with torch.inference_mode():
            output, traced = self._run(batch, None, **kept)
        return KnowBertTrace(
            reading,
            logits=output.get("logits"),
            attentions=output.get("attentions"),
            hidden_states=output.get("hidden_states"),
            kar=traced,
            candidates=batch.candidates,
        )

    def _run(
        self,
        batch: KnowBertBatch,
        model: Callable[..., Any] | None,
        attentions: bool = False,
        hidden_states: bool = False,
    ) -> tuple[Any, KarTrace]:
        batch = batch.to(self.device)
        inputs = {name: getattr(batch, name) for name in ("input_ids", "attention_mask")}
        if getattr(self.model.config, "type_vocab_size", 0):
            inputs["token_type_ids"] = batch.token_type_ids
        with reading_with([batch.candidates]) as traces:
            output = (model or self.model)(
                **inputs, output_attentions=attentions, output_hidden_states=hidden_states
            )
        return output, traces[0][0]

    def key(self, reading: Reading) -> Hashable:
        """What the encoder gets of a reading."""
        return tuple((tuple(row.input_ids), row.spans) for row in reading.rows)

    def rate_of(self, parameter: str) -> float:
        """The KAR is trained faster than the encoder, which knows its language already."""
        return RATE if f".{INSERTED}." in parameter else 1.0


def _placed(
    spans: Sequence[Span], tokens: Sequence[Tokens], parts: Sequence[TrunkPart]
) -> tuple[PlacedSpan, ...]:
    """Find the tokens of each span in a row; what is not wholly in it is left out."""
    placed = []
    for number, span in enumerate(spans):
        mention = span.mention
        first, stop = tokens[mention.sentence].over(mention.start, mention.end)
        for part in parts:
            last = part.first + part.end - part.start
            if part.sentence == mention.sentence and part.first <= first < stop <= last:
                shift = part.start - part.first
                placed.append(PlacedSpan(number, first + shift, stop - 1 + shift, span))
    return tuple(placed)
