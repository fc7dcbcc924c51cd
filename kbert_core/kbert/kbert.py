"""K-BERT as a system: texts → sentence trees → flat trees → mask-transformer (Eq. 1-6)."""

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import ModelOutput

from kbert_core.kbert.flat_tree import Batch, FlatTree, collate, rows_of_trees
from kbert_core.kbert.mask_transformer import MaskTransformer
from kbert_core.kbert.sentence_tree import SentenceTree, grow_trees
from kbert_core.kbert.visible import Ablation, ReadConfig
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.selection import InjectionOptions, LeftOut, TripleScorer
from kbert_core.knowledge.triple import Triple
from kbert_core.reader import Fact, Named, Reader, Reading, Trace
from kbert_core.text import WordPieces
from kbert_core.tokens import Tokens, tokens_read

if TYPE_CHECKING:
    from kbert_core.kbert.interventions import Intervened, Intervention
    from kbert_core.scoring import Similarity

FASTER = "kbert_lab.fast:logits_of"  # found by name, as systems are
ROWS_AT_ONCE = 16  # windows of one long text


@dataclass(frozen=True)
class KBertReading(Reading):
    """A text, its sentence tree, and the tree in reading order: one row, or one for each window."""

    rows: tuple[FlatTree, ...]
    config: ReadConfig

    @property
    def tree(self) -> SentenceTree:
        """Mentions, triples used and left out, branches."""
        return self.rows[0].tree

    @property
    def sentences(self) -> tuple[str, ...]:
        """The text: one sentence or two."""
        return self.tree.sentences

    @cached_property
    def tokens(self) -> tuple[Tokens, ...]:
        """The tokens of each sentence that are read."""
        return tokens_read(self.rows[0].trunk_tokens, (row.trunk_parts for row in self.rows))

    @property
    def mentions(self) -> tuple[Mention, ...]:
        """The entities that the text names, in reading order."""
        return tuple(node.mention for node in self.tree.nodes)

    @property
    def by_mention(self) -> tuple[Named, ...]:
        """Each mention with the triples that hang on it in the tree, in a row or not."""
        return self.tree.by_mention

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """The branches that stand in a row, in reading order, each once."""
        every = ((number, t) for number, node in enumerate(self.tree.nodes) for t in node.used)
        return tuple(Fact(t, number) for number, t in every if (number, t) in self._placed)

    @property
    def left_out(self) -> tuple[tuple[int, LeftOut], ...]:
        """Every triple that stands in no row, with the number of its mention."""
        left = dict.fromkeys(item for row in self.rows for item in row.left_out)
        return tuple(item for item in left if (item[0], item[1].triple) not in self._placed)

    @cached_property
    def _placed(self) -> set[tuple[int, Triple]]:
        return {(node, branch.triple) for row in self.rows for node, branch, *_ in row.branches}


@dataclass(frozen=True)
class IntervenedBatch(Batch):
    """A batch with the visible matrices of the layers, which interventions have changed."""

    intervened: "Intervened"


@dataclass(frozen=True, repr=False)
class KBertTrace(Trace):
    """A trace with the visible matrix.

    Attributes:
        batch: the rows as tensors (B, N).
        visible: (B, N, N) bool, the same in all layers; if interventions made layers differ,
            the last layer's.
        visible_layers: L tensors (B, N, N) bool, one tensor L times if layers are equal;
            None without interventions.
    """

    reading: KBertReading
    batch: Batch = field(kw_only=True)
    visible: Tensor = field(kw_only=True)
    visible_layers: tuple[Tensor, ...] | None = None

    @property
    def tree(self) -> SentenceTree:
        """Mentions, triples used and left out, branches."""
        return self.reading.tree

    @property
    def left_out(self) -> tuple[tuple[int, LeftOut], ...]:
        """Every triple that stands in no row, with the number of its mention."""
        return self.reading.left_out

    @property
    def ablation(self) -> Ablation:
        """How the rows were read."""
        return self.reading.config.ablation

    @property
    def interventions(self) -> "tuple[Intervention, ...]":
        """Made to the visible matrix, in order."""
        return self.reading.config.interventions


class KBertReader(Reader):
    """K-BERT: triples hang on their mentions as branches, read by a mask-transformer.

    Raises:
        EncoderError: the encoder can't be run with soft positions and a visible matrix.
    """

    config_class: ClassVar[type] = ReadConfig
    trace_class: ClassVar[type] = KBertTrace
    config: ReadConfig

    def __init__(
        self, model: PreTrainedModel, tokenizer: WordPieces, config: ReadConfig | None = None
    ) -> None:
        self.encoder = MaskTransformer(model)
        super().__init__(model, tokenizer, config)

    def query(
        self,
        texts: Sequence[Sequence[str]],
        graph: KnowledgeGraph,
        config: ReadConfig,
        *,
        windows: bool = False,
    ) -> list[SentenceTree]:
        """Grow the trees of texts (Eq. 1, 2); a mention never contains a [MASK] to fill."""
        del windows
        masks = None
        if self.tokenizer.reads_masks:
            masks = [[self.tokenizer.mask_spans(text) for text in sentences] for sentences in texts]
        scorer = self.scorer(config.options)
        return grow_trees(texts, graph, config.options, masks=masks, scorer=scorer)

    def flatten(
        self, trees: Sequence[SentenceTree], config: Any, *, windows: bool
    ) -> list[KBertReading]:
        """Put trees into reading order within the length limit."""
        length = config.max_length
        rows = rows_of_trees(trees, self.tokenizer, max_length=length, windows=windows)
        return [KBertReading(own, config) for own in rows]

    def logits(self, readings: Sequence[Reading], *, batch_size: int = 32) -> list[Tensor]:
        """Run readings; see :meth:`Reader.logits`. The lab, where it is, runs several faster."""
        try:
            faster = resolve_name(FASTER) if len(readings) > 1 else None
        except ModuleNotFoundError:  # the lab isn't installed
            faster = None
        values = faster(self, readings, batch_size) if faster else None
        return super().logits(readings, batch_size=batch_size) if values is None else values

    def collate(self, rows: Sequence[FlatTree], config: ReadConfig) -> Batch:
        """Pad flat trees to the longest, and apply the interventions to their visible matrices."""
        batch = collate(rows, pad_id=self.tokenizer.pad_id)
        if not config.interventions:
            return batch
        from kbert_core.kbert.interventions import intervene

        visible, layers = config.ablation.visible_in(batch), self.encoder.layer_count
        made = intervene(visible, rows, config.interventions, layers)
        return IntervenedBatch(**vars(batch), intervened=made)

    def forward(
        self,
        batch: Batch,
        config: ReadConfig,
        *,
        model: Callable[..., Any] | None = None,
        **kept: bool,
    ) -> ModelOutput:
        """Run flat trees through the mask-transformer in one batch (Eq. 3-6)."""
        visible = batch.intervened.layers if isinstance(batch, IntervenedBatch) else None
        return self.encoder.forward(
            batch, ablation=config.ablation, visible=visible, model=model, **kept
        )

    def trace(self, reading: Reading, **kept: bool) -> KBertTrace:
        """Run one reading, and keep every stage."""
        rows, config = reading.rows, reading.config
        batch = self.collate(rows, config)
        made = batch.intervened if isinstance(batch, IntervenedBatch) else None
        visible = made.layers[-1] if made else config.ablation.visible_in(batch)
        output: Any = {}
        if len(rows) <= ROWS_AT_ONCE or any(kept.values()):
            layers = made.layers if made else visible
            output = self.encoder(batch, ablation=config.ablation, visible=layers, **kept)
        elif self.has_head:
            output = {"logits": self._in_parts(rows, config)}
        stages = {"batch": batch, "visible": visible, "visible_layers": made and made.layers}
        trace: KBertTrace = self.traced(reading, {**output, **stages})
        return trace

    def _in_parts(self, rows: Sequence[FlatTree], config: ReadConfig) -> Tensor:
        """Run many windows a few at a time, so that memory doesn't grow with the text."""
        width = max(map(len, rows))
        parts = []
        for start in range(0, len(rows), ROWS_AT_ONCE):
            logits = self.encode(rows[start : start + ROWS_AT_ONCE], config)["logits"]
            parts.append(nn.functional.pad(logits, (0, 0, 0, width - logits.shape[1])))
        return torch.cat(parts)

    def without(self, reading: Reading, facts: Collection[Fact]) -> KBertReading:
        """Take branches out; see ``FlatTree.keeping``."""
        assert isinstance(reading, KBertReading)
        rows = self.rows_with(
            reading.rows, lambda *place: not any(fact.covers(*place) for fact in facts)
        )
        return replace(reading, rows=rows, prediction=None)

    def rows_with(
        self, rows: Sequence[FlatTree], keep: Callable[[int, Triple], bool]
    ) -> tuple[FlatTree, ...]:
        """Keep some branches of rows and take out all others; see ``FlatTree.keeping``."""
        return tuple(row.keeping(keep) for row in rows)

    def batch_key(self, config: ReadConfig) -> Hashable:
        """Return ablation and interventions; see :meth:`Reader.batch_key`."""
        return config.ablation, config.interventions

    def cache_key(self, reading: Reading) -> Hashable:
        """What the encoder gets of a reading."""
        names = map(_named, reading.rows) if reading.config.interventions else ()
        return self.batch_key(reading.config), *map(_input, reading.rows), *names

    def scorer(self, options: InjectionOptions) -> TripleScorer | None:
        """Return the scorer of triples that the options ask for, opened once; None: they ask none.

        Raises:
            CheckpointError: it can't be read.
        """
        if not options.needs_model:
            return None
        from kbert_core.scoring import scorer_of

        return scorer_of(options, self.similarity, device=str(self.device))

    @cached_property
    def similarity(self) -> "Similarity":
        """The similarity of texts and triples under the model's own encoder, without knowledge."""
        from kbert_core.scoring import Similarity

        return Similarity(self.model, self.tokenizer)


def _input(row: FlatTree) -> Hashable:
    """Return what the encoder gets of a row; mentions without a branch are not told apart."""
    hanging = sorted({placed.node for placed in row.branches})
    number = {node + 1: n for n, node in enumerate(hanging, start=1)}
    anchors = [number.get(anchor, 0) for anchor in row.anchor_ids]
    codes = (row.input_ids, row.soft_positions, row.branch_ids, anchors, row.token_type_ids)
    return tuple(map(tuple, codes))


def _named(row: FlatTree) -> Hashable:
    """Return the mentions and branches of a row, which interventions may name."""
    mentions = tuple(node.mention for node in row.tree.nodes)
    return mentions, tuple((node, branch.triple) for node, branch, *_ in row.branches)
