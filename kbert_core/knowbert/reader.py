"""KnowBert as a reader: the entities that a text may mean enter between two layers, as vectors."""

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, cast

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.modeling_outputs import ModelOutput

from kbert_core.checkpoints.adapters import weights_hash
from kbert_core.checkpoints.checkpoint import card_of
from kbert_core.checkpoints.encoders import located
from kbert_core.errors import OptionError
from kbert_core.knowbert.candidates import MASKED, Span, batch_of, graph_spans
from kbert_core.knowbert.entity_vectors import EntityVectors, kept_arrays, vectors_by
from kbert_core.knowbert.kar import Kar, KarTrace, layer_after
from kbert_core.knowbert.kar import reading as reading_with
from kbert_core.knowbert.reading import (
    KnowBertBatch,
    KnowBertConfig,
    KnowBertReading,
    KnowBertRow,
    KnowBertTrace,
    placed,
)
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.layers import (
    INSERTED,
    inputs_of,
    insert_after,
    layers_of,
    load_inserted,
    twin_of,
)
from kbert_core.reader import Piece, Reader, Reading
from kbert_core.text import WordPieces, refuse_half_characters
from kbert_core.text_rows import TextBatch, text_rows

RATE = 5.0  # of the KAR's learning rate, by the encoder's: 1e-4 and 2e-5 in the paper


class KnowBertReader(Reader):
    """KnowBert: KARs between the layers of any encoder whose layers can be found.

    Raises:
        EncoderError: the encoder's layers can't be told apart, or there is no such layer.
        OptionError: two knowledge bases stand after the same layer, or not from bottom to top.
    """

    config_class: ClassVar[type] = KnowBertConfig
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

    def read(
        self,
        texts: Sequence[Sequence[str]],
        graph: KnowledgeGraph,
        config: KnowBertConfig | None = None,
        *,
        windows: bool = False,
    ) -> list[KnowBertReading]:
        """Read texts with a graph: find names, and the entities that each may mean."""
        config = config or self.config
        readings = []
        for sentences in texts:
            refuse_half_characters(sentences)
            masks = [self.tokenizer.mask_spans(text) for text in sentences]
            spans = tuple(
                span
                for number, base in enumerate(config.bases)
                for span in graph_spans(
                    sentences, graph, config.options, base, number=number, masks=masks
                )
            )
            tokens = tuple(self.tokenizer.tokenize(sentences))
            layout = self.tokenizer.layout(len(sentences))
            rows = tuple(
                KnowBertRow(**vars(row), spans=placed(spans, tokens, row.trunk_parts))
                for row in text_rows(tokens, layout, config.max_length, windows=windows)
            )
            readings.append(
                KnowBertReading(
                    rows,
                    config,
                    sentences=tuple(sentences),
                    trunk_tokens=tokens,
                    spans=spans,
                    links=not self.has_head,
                )
            )
        return readings

    query = read  # a recipe changes its spans

    def flatten(
        self, queried: Sequence[KnowBertReading], config: Any = None, *, windows: bool
    ) -> Sequence[KnowBertReading]:
        """Return the readings themselves: :meth:`query` has made them already."""
        del config, windows
        return queried

    def with_spans(self, reading: KnowBertReading, spans: Sequence[Span]) -> KnowBertReading:
        """Put spans into a reading; they replace spans of their base at the same characters."""
        by_place = {own.place: own for own in (*reading.spans, *spans)}
        return reading.with_nodes(list(by_place.values()))

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

    def without(self, reading: Reading, pieces: Collection[Piece]) -> KnowBertReading:
        """Leave triples out of entity vectors; an entity without triples is no candidate."""
        assert isinstance(reading, KnowBertReading)
        return reading.with_nodes(
            [
                span.edited({p.triple: None for p in pieces if p.node in (None, number)})
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
        self,
        batch: KnowBertBatch,
        config: KnowBertConfig,
        *,
        model: Callable[..., Any] | None = None,
        **kept: bool,
    ) -> ModelOutput:
        """Run a batch through the encoder with its KARs.

        A model without a head returns its topmost linker's scores ψ as logits: (B, C, M).
        """
        del config
        if batch.states is not None:
            moved = batch.to(self.device)
            assert moved.states is not None
            _, linked = self.kars[-1].link(moved.states, moved.candidates[-1])
            return ModelOutput(logits=linked.scores)
        output, _ = self._run(batch, model, **kept)
        return output

    def logits(self, readings: Sequence[Reading], *, batch_size: int = 32) -> list[Tensor]:
        """See :meth:`Reader.logits`; a model without a head gives its topmost linker's (S, M)."""
        if self.has_head:
            return super().logits(readings, batch_size=batch_size)
        scores: list[list[Any]] = [[None] * len(reading.rows) for reading in readings]
        for config, rows, places in self.batches(readings, batch_size):
            output = self.encode(rows, config)
            for (text, row), own in zip(places, output["logits"], strict=True):
                scores[text][row] = own
        return [
            cast(KnowBertReading, reading).by_span(own)
            for reading, own in zip(readings, scores, strict=True)
        ]

    def trace(self, reading: Reading, **kept: bool) -> KnowBertTrace:
        """Run one reading, and keep every stage."""
        assert isinstance(reading, KnowBertReading)
        batch = replace(self.collate(reading.rows, reading.config), states=None)
        with torch.inference_mode():
            output, traced = self._run(batch, None, **kept)
        return KnowBertTrace(
            reading,
            logits=output.get("logits"),
            attentions=output.get("attentions"),
            hidden_states=output.get("hidden_states"),
            kars=tuple(traced),
            candidates=batch.candidates,
        )

    def _run(
        self,
        batch: KnowBertBatch,
        model: Callable[..., Any] | None,
        attentions: bool = False,
        hidden_states: bool = False,
    ) -> tuple[Any, list[KarTrace]]:
        """Run the encoder with its KARs; return the output, and a trace for each KAR."""
        batch = batch.to(self.device)
        inputs = inputs_of(self.model, batch.input_ids, batch.attention_mask, batch.token_type_ids)
        with reading_with(batch.candidates) as traces:
            output = (model or self.model)(
                **inputs, output_attentions=attentions, output_hidden_states=hidden_states
            )
        output["links"] = traces[-1][0].linked.scores
        if not self.has_head:
            output["logits"] = output["links"]
        return output, [trace for (trace,) in traces]

    def cache_key(self, reading: Reading) -> Hashable:
        """Return what the encoder gets of a reading; see :meth:`Reader.cache_key`."""
        return tuple((tuple(row.input_ids), row.spans) for row in reading.rows)

    def rate_of(self, parameter: str) -> float:
        """Return a higher rate for KARs: they are new, and the encoder is pretrained."""
        return RATE if f".{INSERTED}." in parameter else 1.0
