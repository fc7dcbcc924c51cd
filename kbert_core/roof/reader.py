"""Roof-BERT as a reader: one encoder for the text, one for its triples, a roof over both."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPooling, ModelOutput

from kbert_core.checkpoints.checkpoint import card_of, load_model, load_tokenizer
from kbert_core.checkpoints.encoders import located
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import find_mentions
from kbert_core.knowledge.selection import InjectionOptions, LeftOut, Rule
from kbert_core.knowledge.strategies import select_triples
from kbert_core.layers import (
    INSERTED,
    inputs_of,
    insert_after,
    layers_of,
    load_inserted,
    plain_copy,
    positions_of,
    twin_of,
)
from kbert_core.reader import Piece, Reader, Reading
from kbert_core.roof.kb_text import kb_text
from kbert_core.roof.reading import (
    SHARED,
    RoofBatch,
    RoofConfig,
    RoofNode,
    RoofReading,
    RoofRow,
    RoofTrace,
)
from kbert_core.roof.roof import Roof, Running, under_roof
from kbert_core.text import WordPieces, refuse_half_characters
from kbert_core.text_rows import padded, text_rows
from kbert_core.tokens import tokens_read

KEPT_TOKENS = 20_000  # of either side, whose states are kept


class RoofReader(Reader):
    """Roof-BERT over any encoder of BERT's family whose layers can be found.

    Raises:
        EncoderError: the encoder's layers can't be told apart or are too few, or the encoder of
            triples has another width.
    """

    config_class: ClassVar[type] = RoofConfig
    inserts: ClassVar[bool] = True
    config: RoofConfig

    def __init__(
        self, model: PreTrainedModel, tokenizer: WordPieces, config: RoofConfig | None = None
    ) -> None:
        super().__init__(model, tokenizer, config)
        config, body = self.config, cast(PreTrainedModel, model.base_model)
        self.kb_tokenizer = tokenizer
        if config.another:
            self.kb_tokenizer = WordPieces(load_tokenizer(config.another))
        layers = layers_of(body)
        if not hasattr(layers[-1], INSERTED):
            count = config.layers or max(1, round(len(layers) / 3))
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)  # a random roof is the same every time
                roof = Roof(body, self._new_knowledge(body), count, config.start)
            insert_after(model, len(layers), roof)
        self.roof: Roof = getattr(layers[-1], INSERTED)
        encoder = self.roof.knowledge or body
        limits = positions_of(encoder), self.kb_tokenizer.model_max_length(), config.kb_length
        self.kb_length = min(limit for limit in limits if limit is not None)
        self._kept = (_Kept(), _Kept())  # states of texts, and of triples
        model.eval()

    def _new_knowledge(self, body: PreTrainedModel) -> PreTrainedModel | None:
        """Return the encoder of triples before training; None: the text's encoder reads them."""
        if self.config.kb_encoder == SHARED:
            return None
        another = self.config.another
        new: Any = load_model(another, device="cpu") if another else plain_copy(body)
        if getattr(new, "pooler", None) is not None:
            new.pooler = None  # nothing reads it
        return cast(PreTrainedModel, new)

    def begin_training(self, task: str, start: str | None) -> None:
        """If training starts from a Roof-BERT, take over its roof and its encoder of triples."""
        del task
        if start is not None and card_of(start).system == self.system:
            load_inserted(self.model, located(start))

    def query(
        self,
        texts: Sequence[Sequence[str]],
        graph: KnowledgeGraph,
        config: Any = None,
        *,
        windows: bool = False,
    ) -> list[RoofReading]:
        """Find the entities of texts and their triples; a name never contains a [MASK] to fill."""
        config = config or self.config
        readings = []
        for sentences in map(tuple, texts):
            refuse_half_characters(sentences)
            tokens = tuple(self.tokenizer.tokenize(sentences))
            layout = self.tokenizer.layout(len(sentences))
            rows = text_rows(tokens, layout, config.max_length, windows=windows)
            cut = tokens_read(tokens, (row.trunk_parts for row in rows))
            searched = range(len(sentences)) if config.searched == "all" else [len(sentences) - 1]
            nodes = [
                node
                for number in searched
                for node in self._nodes(
                    sentences, number, tokens[number].starts[len(cut[number]) :], graph, config
                )
            ]
            if config.segments == 2:
                rows = [replace(row, token_type_ids=[1] * len(row)) for row in rows]
            readings.append(
                RoofReading(
                    tuple(RoofRow(**vars(row)) for row in rows),
                    config,
                    sentences=sentences,
                    tokens=cut,
                    nodes=tuple(nodes),
                )
            )
        return readings

    def _nodes(
        self,
        sentences: tuple[str, ...],
        number: int,
        unread: Sequence[int],
        graph: KnowledgeGraph,
        config: RoofConfig,
    ) -> list[RoofNode]:
        """Return the entities of a sentence and their triples, less those in its cut part.

        Args:
            unread: where its tokens begin that were cut.
        """
        text = sentences[number]
        masks = [self.tokenizer.mask_spans(text)]
        (found,) = find_mentions([text], graph, rules=config.options.names, masks=masks)
        scorer = self.scorer(config.options)
        selected = select_triples([(text,)] * len(found), found, graph, config.options, scorer)
        last = unread[0] if len(unread) else len(text)
        nodes = []
        for mention, own in zip(found, selected, strict=True):
            node = RoofNode(replace(mention, sentence=number), own.used, own.left_out)
            if mention.end > last:
                cut = [LeftOut(triple, Rule.TRUNK_CUT) for triple in node.used]
                node = replace(node, used=(), left_out=(*cut, *node.left_out))
            nodes.append(node)
        return nodes

    def scorer(self, options: InjectionOptions) -> Any:
        """Return the scorer for the strategy "context", opened once; None if none is needed."""
        if not options.needs_model:
            return None
        from kbert_core.scoring import scorer_of

        return scorer_of(options, device=str(self.device))

    def flatten(
        self, queried: Sequence[RoofReading], config: Any = None, *, windows: bool
    ) -> list[RoofReading]:
        """Write the triples of texts as strings for the knowledge encoder."""
        del config, windows
        laid = []
        for reading in queried:
            triples = (triple for node in reading.nodes for triple in node.used)
            kb = kb_text(
                triples,
                self.kb_tokenizer,
                expand=reading.config.expand,
                max_length=min(self.kb_length, reading.config.kb_length),
            )
            rows = tuple(replace(row, kb_ids=kb.ids) for row in reading.rows)
            laid.append(replace(reading, rows=rows, kb=kb, prediction=None))
        return laid

    def read(
        self,
        texts: Sequence[Sequence[str]],
        graph: KnowledgeGraph,
        config: RoofConfig | None = None,
        *,
        windows: bool = False,
    ) -> list[RoofReading]:
        """Read texts with a graph; see :meth:`Reader.read`."""
        return self.flatten(self.query(texts, graph, config, windows=windows), windows=windows)

    def without(self, reading: Reading, pieces: Collection[Piece]) -> RoofReading:
        """Leave triples out; later ones move up. A triple stands once for all its mentions."""
        assert isinstance(reading, RoofReading)
        changes = {piece.triple: None for piece in pieces}
        kept = [node.edited(changes) for node in reading.nodes]
        return self.flatten([reading.with_nodes(kept)], windows=False)[0]

    def collate(self, rows: Sequence[RoofRow], config: RoofConfig) -> RoofBatch:
        """Pad both sides to the longest."""
        texts = super().collate(rows, config)
        kb_ids = padded([row.kb_ids for row in rows], self.kb_tokenizer.pad_id)
        kb_mask = padded([[1] * len(row.kb_ids) for row in rows], 0)
        return RoofBatch(**vars(texts), kb_ids=kb_ids, kb_mask=kb_mask)

    def forward(
        self,
        batch: RoofBatch,
        config: RoofConfig,
        *,
        model: Callable[..., Any] | None = None,
        **kept: bool,
    ) -> ModelOutput:
        """Run texts and triples through their encoders and the roof.

        Without gradients the states of both sides are kept: a text isn't encoded again when it is
        read with other triples, and triples aren't when they stand beside another text.
        """
        del config
        batch = batch.to(self.device)
        if model is None and torch.is_inference_mode_enabled() and not any(kept.values()):
            return self._from_kept(batch)
        return self._run(batch, model, **kept)[0]

    def trace(self, reading: Reading, **kept: bool) -> RoofTrace:
        """Run one reading, and keep every stage."""
        assert isinstance(reading, RoofReading)
        batch = self.collate(reading.rows, reading.config).to(self.device)
        with torch.inference_mode():
            output, running = self._run(batch, None, **kept)
        assert running.text is not None and running.states is not None
        return RoofTrace(
            reading,
            logits=output.get("logits"),
            attentions=output.get("attentions"),
            hidden_states=output.get("hidden_states"),
            text_states=running.text,
            kb_states=running.states,
            roof_attentions=tuple(running.kept) if kept.get("attentions") else None,
        )

    def _run(
        self,
        batch: RoofBatch,
        model: Callable[..., Any] | None,
        attentions: bool = False,
        hidden_states: bool = False,
    ) -> tuple[Any, Running]:
        """Run both encoders and the roof; return the output, and what the roof kept."""
        running = self._running(batch, attentions)
        with under_roof(running):
            output = (model or self.model)(
                **inputs_of(
                    self.model, batch.input_ids, batch.attention_mask, batch.token_type_ids
                ),
                output_hidden_states=hidden_states,
            )
        if hidden_states:  # the roof's own layers are recorded too, if they are of the same class
            length = batch.input_ids.shape[1]
            of_text = (own for own in output["hidden_states"] if own.shape[1] == length)
            output["hidden_states"] = tuple(of_text)
        return output, running

    def _running(self, batch: RoofBatch, attentions: bool = False) -> Running:
        """Prepare what the roof reads beside the text: the triples' side of a batch."""
        encoder = self.roof.knowledge or self.model
        inputs = inputs_of(encoder, batch.kb_ids, batch.kb_mask, torch.zeros_like(batch.kb_ids))
        if batch.kb_embeds is not None:
            inputs["inputs_embeds"] = batch.kb_embeds
            del inputs["input_ids"]
        return Running(inputs, batch.attention_mask.bool(), batch.kb_mask.bool(), attentions)

    def _from_kept(self, batch: RoofBatch) -> ModelOutput:
        """Return the output of :meth:`_run`, using states that earlier batches kept."""
        body = cast(PreTrainedModel, self.model.base_model)
        running = self._running(batch)
        version = sum(own._version for own in self.model.parameters())
        sides = []
        for kept, encoder, ids, mask, segments in (
            (self._kept[0], body, batch.input_ids, batch.attention_mask, batch.token_type_ids),
            (
                *(self._kept[1], self.roof.knowledge or body, batch.kb_ids, batch.kb_mask),
                torch.zeros_like(batch.kb_ids),
            ),
        ):
            with under_roof(None):
                sides.append(kept.states(version, encoder, ids, mask, segments))
        running.states = sides[1]
        with under_roof(running):
            states = self.roof(sides[0])
        if not self.has_head:
            return BaseModelOutputWithPooling(last_hidden_state=states)
        output: ModelOutput = self._head(inputs_embeds=states, attention_mask=batch.attention_mask)
        return output

    @cached_property
    def _head(self) -> Any:
        """Return the head alone: it takes the states of its encoder as ``inputs_embeds``."""
        head = twin_of(self.model)
        setattr(
            head, head.base_model_prefix, _Given(getattr(self.model.base_model, "pooler", None))
        )
        return head.eval()

    def cache_key(self, reading: Reading) -> Hashable:
        """Return what both encoders get of a reading; see :meth:`Reader.cache_key`."""
        return tuple(
            (tuple(row.input_ids), tuple(row.token_type_ids), row.kb_ids) for row in reading.rows
        )

    def embeds(self) -> dict[str, tuple[nn.Module, WordPieces]]:
        """Return the embeddings and tokenizers of the text and of the triples."""
        encoder = self.roof.knowledge or self.model
        return super().embeds() | {"kb_ids": (encoder.get_input_embeddings(), self.kb_tokenizer)}

    def rate_of(self, parameter: str) -> float:
        """Return a higher rate for the layers of the roof than for both encoders."""
        return self.config.rate if f".{INSERTED}.layers." in parameter else 1.0


class _Given(nn.Module):
    """Takes an encoder's place below a head, and returns the states that it is given."""

    def __init__(self, pooler: nn.Module | None) -> None:
        super().__init__()
        self.pooler = pooler

    def forward(self, input_ids: Any = None, *, inputs_embeds: Tensor, **_: Any) -> Any:
        del input_ids
        pooled = self.pooler(inputs_embeds) if self.pooler is not None else None
        return BaseModelOutputWithPooling(last_hidden_state=inputs_embeds, pooler_output=pooled)


class _Kept:
    """The states of sequences that an encoder has read, kept until its weights change."""

    def __init__(self) -> None:
        self._states: OrderedDict[tuple[Any, ...], Tensor] = OrderedDict()
        self._version, self._tokens = -1, 0
        self._lock = Lock()

    def states(
        self, version: int, encoder: PreTrainedModel, ids: Tensor, mask: Tensor, segments: Tensor
    ) -> Tensor:
        """Return the states of the last layer, (B, N, H); run only what isn't kept.

        Args:
            version: a number that changes with the weights.
        """
        sizes = mask.sum(1).tolist()
        keys = [
            (*own[:size], *types[:size])
            for own, types, size in zip(ids.tolist(), segments.tolist(), sizes, strict=True)
        ]
        with self._lock:
            if version != self._version:
                self._states.clear()
                self._version, self._tokens = version, 0
            found = {key: self._states[key] for key in keys if key in self._states}
        rows = [row for row, key in enumerate(keys) if key not in found]
        if rows:
            longest = max(sizes[row] for row in rows)
            inputs = (own[rows, :longest] for own in (ids, mask, segments))
            made = encoder(**inputs_of(encoder, *inputs)).last_hidden_state
            found |= {keys[row]: own[: sizes[row]] for row, own in zip(rows, made, strict=True)}
        with self._lock:
            for key in dict.fromkeys(keys):
                if key not in self._states:
                    self._tokens += len(key) // 2
                    self._states[key] = found[key].clone()
                self._states.move_to_end(key)
            while self._tokens > KEPT_TOKENS and len(self._states) > 1:
                self._tokens -= len(self._states.popitem(last=False)[0]) // 2
        return nn.utils.rnn.pad_sequence([found[key] for key in keys], True)
