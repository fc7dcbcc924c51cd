"""Roof-BERT as a system: one encoder for the text, one for its triples, a roof over both."""

import json
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, cast, get_args

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import ModelOutput

from kbert_core.checkpoints.checkpoint import card_of, load_model, load_tokenizer
from kbert_core.checkpoints.encoders import located
from kbert_core.errors import OptionError
from kbert_core.kbert.sentence_tree import Node, SentenceTree, k_query
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.selection import InjectionOptions, LeftOut, Rule
from kbert_core.knowledge.triple import Triple
from kbert_core.layers import (
    INSERTED,
    inputs_of,
    insert_after,
    layers_of,
    load_inserted,
    plain_copy,
    positions_of,
)
from kbert_core.options import option
from kbert_core.reader import Fact, Reader, Reading, Trace
from kbert_core.roof.kb_text import EXPANDS, KbText, kb_text
from kbert_core.roof.roof import Roof, Running, under_roof
from kbert_core.scoring import scorer_of
from kbert_core.systems import SystemConfig
from kbert_core.text import WordPieces
from kbert_core.text_rows import TextBatch, TextRow, padded, text_rows
from kbert_core.tokens import Tokens, tokens_read

OWN, SHARED = "own", "shared"
MOST = 1000  # triples of a mention: as good as all
Start = Literal["last", "random"]
Searched = Literal["last", "all"]


@dataclass(frozen=True)
class RoofConfig(SystemConfig):
    """How Roof-BERT reads a text. Where the paper says nothing, the defaults are our choice.

    ``options`` say which triples are read: all of an entity that the text names, or, with the
    strategy ``tail_in_text``, those whose tail is in the text, too.

    Attributes:
        kb_encoder: what reads the triples: "own", a copy of the text's encoder that trains apart,
            as in the paper; "shared", the text's encoder itself; or another encoder of the same
            width: a folder, ``package:NAME`` or a hub name.
        layers: k of the roof; None: a third of the encoder's, the paper's 4 of 12.
        start: what the roof's layers begin as: copies of the text encoder's last ones, or random.
        expand: how triples are worded, see :func:`kbert_core.roof.kb_text.kb_text`.
        segments: 1: token types from the tokenizer; 2: 1 for the text and 0 for the triples,
            which was best in the paper.
        kb_length: the length limit of the triples' side, in tokens.
        searched: in which of two sentences to look for entities; the paper leaves the question
            out.
        rate: the learning rate of the roof divided by that of the encoders: 3e-4 and 3e-5 in
            the paper.
    """

    system: ClassVar[str] = "roof-bert"
    options: InjectionOptions = InjectionOptions(max_triples=MOST)
    kb_encoder: str = OWN
    layers: int | None = option(None, least=1)
    start: Start = option("last", choices=get_args(Start))
    expand: int = option(2, choices=EXPANDS)
    segments: int = option(2, choices=(1, 2))
    kb_length: int = option(512, least=8)
    searched: Searched = option("last", choices=get_args(Searched))
    rate: float = option(10.0, above=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.kb_encoder:
            raise OptionError("kb_encoder is empty. Say own, shared, or an encoder.")

    @classmethod
    def changes(cls, given: str) -> dict[str, Any]:
        """Read options given as JSON, such as ``{"expand": 0}``.

        Raises:
            OptionError: the text isn't such JSON, or names an unknown option.
        """
        try:
            data = json.loads(given)
        except ValueError as error:
            raise OptionError(
                f"The roof's options are {given}, which isn't JSON ({error})."
            ) from error
        known = {own.name for own in fields(cls)} - {own.name for own in fields(SystemConfig)}
        if not isinstance(data, dict) or not known.issuperset(data):
            raise OptionError(
                f"The roof's options are {given}, expected some of {', '.join(sorted(known))}, "
                'such as {"expand": 0}.'
            )
        return data

    @property
    def another(self) -> str | None:
        """The name of the encoder of triples, if it isn't the text's or a copy of that."""
        return None if self.kb_encoder in (OWN, SHARED) else self.kb_encoder

    def with_encoders(self, named: Callable[[str], str]) -> Self:
        """See :meth:`SystemConfig.with_encoders`; for the encoder of triples."""
        return replace(self, kb_encoder=named(self.another)) if self.another else self


@dataclass(frozen=True)
class RoofRow(TextRow):
    """One row of a batch: M tokens of the text, and the triples beside it.

    Attributes:
        kb_ids: (N',) of the triples' side; the same for all windows of a text.
    """

    kb_ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class RoofReading(Reading):
    """A text, and the string of its triples that the knowledge encoder reads.

    Attributes:
        nodes: the entities in the text that is read, in reading order.
        kb: the triples' side; None before :meth:`RoofReader.flatten`, when nothing is cut yet.
    """

    sentences: tuple[str, ...] = ()
    tokens: tuple[Tokens, ...] = ()
    nodes: tuple[Node, ...] = ()
    kb: KbText | None = None

    @property
    def mentions(self) -> tuple[Mention, ...]:
        """The entities that the text names, in reading order."""
        return tuple(node.mention for node in self.nodes)

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """The triples that are read, each once, at its entity's first mention."""
        first: dict[Triple, int] = {}
        for number, node in enumerate(self.nodes):
            for triple in node.used:
                first.setdefault(triple, number)
        return tuple(Fact(triple, first[triple]) for triple in self._read)

    @property
    def by_mention(self) -> tuple[tuple[Mention, tuple[Triple, ...]], ...]:
        """Each mention with its entity's triples that are read."""
        read = set(self._read)
        return tuple((n.mention, tuple(t for t in n.used if t in read)) for n in self.nodes)

    @property
    def left_out(self) -> tuple[tuple[int, LeftOut], ...]:
        """Every triple that isn't read, with the number of its mention and its rule."""
        cut = set(self.kb.left_out) if self.kb else set()
        left: dict[tuple[int, LeftOut], None] = {}
        for number, node in enumerate(self.nodes):
            too_long = (LeftOut(t, Rule.LENGTH) for t in node.used if t in cut)
            left.update(dict.fromkeys((number, own) for own in (*node.left_out, *too_long)))
        return tuple(left)

    @property
    def _read(self) -> tuple[Triple, ...]:
        if self.kb:
            return self.kb.triples
        return tuple(dict.fromkeys(triple for node in self.nodes for triple in node.used))

    def with_nodes(self, nodes: Sequence[Node]) -> Self:
        """Return the same text with other nodes; it goes through ``flatten`` again."""
        return replace(self, nodes=tuple(nodes), kb=None, prediction=None)

    node = staticmethod(SentenceTree.node)


@dataclass(frozen=True)
class RoofBatch(TextBatch):
    """B rows as tensors: of the text (B, M), of the triples (B, N').

    Attributes:
        kb_embeds: (B, N', H) read instead of ``kb_ids``.
    """

    kb_ids: Tensor
    kb_mask: Tensor
    kb_embeds: Tensor | None = None


@dataclass(frozen=True, repr=False)
class RoofTrace(Trace):
    """A trace with both sides.

    Attributes:
        text_states: (B, M, H) below the roof; they don't depend on the graph.
        kb_states: (B, N', H) below the roof.
        roof_attentions: per layer of the roof (B, A, M + N', M + N'), if asked for.
    """

    reading: RoofReading
    text_states: Tensor = field(kw_only=True)
    kb_states: Tensor = field(kw_only=True)
    roof_attentions: tuple[Tensor, ...] | None = None


class RoofReader(Reader):
    """Roof-BERT over any encoder of BERT's family whose layers can be found.

    Raises:
        EncoderError: the encoder's layers can't be told apart or are too few, or the encoder of
            triples has another width.
    """

    config_class: ClassVar[type] = RoofConfig
    trace_class: ClassVar[type] = RoofTrace
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
        config: RoofConfig,
        *,
        windows: bool = False,
    ) -> list[RoofReading]:
        """Find the entities of texts and their triples; a name never contains a [MASK] to fill."""
        readings = []
        for sentences in map(tuple, texts):
            whole = tuple(self.tokenizer.tokenize(sentences))
            layout = self.tokenizer.layout(len(sentences))
            rows = text_rows(whole, layout, config.max_length, windows=windows)
            if config.segments == 2:
                rows = [replace(row, token_type_ids=[1] * len(row)) for row in rows]
            tokens = tokens_read(whole, (row.trunk_parts for row in rows))
            nodes: list[Node] = []
            for number, text in enumerate(sentences):
                if config.searched == "all" or number == len(sentences) - 1:
                    read = (*whole[number].starts, len(text))[len(tokens[number])]
                    nodes += self._nodes(text, number, read, graph, config.options)
            made = tuple(RoofRow(**vars(row)) for row in rows)
            readings.append(RoofReading(made, config, None, sentences, tokens, tuple(nodes)))
        return readings

    def _nodes(
        self, text: str, number: int, read: int, graph: KnowledgeGraph, options: InjectionOptions
    ) -> Iterator[Node]:
        """Return the entities of a sentence and their triples.

        Args:
            number: of the sentence.
            read: how many of its characters are read; what is named after them is left out.
        """
        masks, scorer = self.tokenizer.mask_spans(text), scorer_of(options, device=str(self.device))
        (nodes,) = k_query([(text,)], graph, options, masks=[[masks]], scorer=scorer)
        for node in nodes:
            node = replace(node, mention=replace(node.mention, sentence=number))
            if node.mention.end > read:
                cut = (LeftOut(triple, Rule.TRUNK_CUT) for triple in node.used)
                node = replace(node, branches=(), left_out=(*cut, *node.left_out))
            yield node

    def flatten(
        self, queried: Sequence[RoofReading], config: Any, *, windows: bool
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

    def without(self, reading: Reading, facts: Collection[Fact]) -> RoofReading:
        """Leave triples out; later ones move up. A triple stands once for all its mentions."""
        assert isinstance(reading, RoofReading)
        changes = {fact.triple: None for fact in facts}
        kept = [node.edited(changes, reading.config.options) for node in reading.nodes]
        return self.flatten([reading.with_nodes(kept)], reading.config, windows=False)[0]

    def collate(self, rows: Sequence[RoofRow], config: RoofConfig) -> RoofBatch:
        """Pad both sides to the longest."""
        texts = super().collate(rows, config)
        kb_ids = padded([row.kb_ids for row in rows], self.kb_tokenizer.pad_id)
        kb_mask = padded([[1] * len(row.kb_ids) for row in rows], 0)
        return RoofBatch(**vars(texts), kb_ids=kb_ids, kb_mask=kb_mask)

    def forward(
        self, batch: Any, config: Any, *, model: Callable[..., Any] | None = None, **kept: bool
    ) -> ModelOutput:
        """Run texts and triples through their encoders and the roof; see :class:`RoofTrace`."""
        batch = batch.to(self.device)
        encoder, ids = self.roof.knowledge or self.model, batch.kb_ids
        inputs = inputs_of(encoder, ids, batch.kb_mask, torch.zeros_like(ids))
        if batch.kb_embeds is not None:
            inputs["inputs_embeds"] = batch.kb_embeds
            del inputs["input_ids"]
        masks = batch.attention_mask.bool(), batch.kb_mask.bool()
        running = Running(inputs, *masks, kept.pop("attentions", False))
        with under_roof(running):
            output = super().forward(batch, config, model=model, **kept)
        if kept.get("hidden_states"):  # the roof's layers are recorded too, if of the same class
            length = batch.input_ids.shape[1]
            of_text = (own for own in output["hidden_states"] if own.shape[1] == length)
            output["hidden_states"] = tuple(of_text)
        output["text_states"], output["kb_states"] = running.text, running.states
        if running.attentions:
            output["roof_attentions"] = tuple(running.kept)
        return output

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
