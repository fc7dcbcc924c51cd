"""A lexicon adapter: what the graph says of a name is added to the states of the name's tokens.

The peer of injection, after LEBERT (W. Liu et al., ACL 2021): the same names and triples as in
K-BERT, but no branch is read as text, no position is soft, and no matrix is sparse. With h the
states of the first layer and x_ij the triples j of the name at token i, each the mean of the word
embeddings of relation and tail::

    v_ij = W₂ tanh(W₁ x_ij + b₁) + b₂           (Eq. 5 there)
    a_i  = softmax_j(h_i W_attn v_ij)           (Eq. 6)
    h_i  ← LayerNorm(h_i + dropout(Σ a_ij v_ij))    (Eq. 7, 8)

A token outside names keeps its state. So without a graph this is BERT.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import ModelOutput

from kbert_core.checkpoints.checkpoint import card_of
from kbert_core.checkpoints.encoders import located
from kbert_core.kbert.flat_tree import Batch
from kbert_core.kbert.interventions import Intervention
from kbert_core.kbert.kbert import KBertReader, KBertTrace
from kbert_core.kbert.visible import Ablation
from kbert_core.layers import INSERTED, insert_after, layers_of, load_inserted
from kbert_core.reader import Reading
from kbert_core.systems import SystemConfig
from kbert_core.text import WordPieces

LAYER = 1  # the adapter stands after it: LEBERT's best
RATE = 5.0  # of the adapter's learning rate, by the encoder's; as KnowBert's


class Apart(Ablation):
    """The text doesn't see the triples, nor they the text."""

    def seen_by(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return codes in which no branch hangs from a mention."""
        return batch.branch_ids, torch.zeros_like(batch.anchor_ids)


@dataclass(frozen=True)
class LexiconConfig(SystemConfig):
    """How a text is read whose names are looked up."""

    system: ClassVar[str] = "lexicon"
    ablation: ClassVar[Ablation] = Apart()
    interventions: ClassVar[tuple[Intervention, ...]] = ()


@dataclass(frozen=True)
class Words:
    """The triples of a batch, K in a row at most.

    Attributes:
        vectors: x, (B, K, H).
        of: (B, N, K) bool; whether a triple belongs to the name at a token of the text.
    """

    vectors: Tensor
    of: Tensor


_reading: ContextVar[Words | None] = ContextVar("the triples of the batch", default=None)


class LexiconAdapter(nn.Module):
    """Adds to the state of a name's tokens what the graph says of it."""

    def __init__(self, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.first, self.second = (nn.Linear(hidden_size, hidden_size) for _ in range(2))
        self.attention = nn.Linear(hidden_size, hidden_size, bias=False)
        self.dropout, self.norm = nn.Dropout(dropout), nn.LayerNorm(hidden_size)
        for linear in (self.first, self.second, self.attention):
            nn.init.normal_(linear.weight, std=0.02)

    def forward(self, states: Tensor) -> Tensor:
        """Return the states (B, N, H) with the triples of names in them."""
        words = _reading.get()
        if words is None:
            return states
        values = self.second(torch.tanh(self.first(words.vectors)))
        scores = self.attention(states) @ values.mT  # (B, N, K)
        scores = scores.masked_fill(~words.of, torch.finfo(scores.dtype).min)
        added = self.dropout(scores.softmax(-1) @ values)
        named: Tensor = words.of.any(-1, keepdim=True)
        return torch.where(named, self.norm(states + added), states)


class LexiconReader(KBertReader):
    """Names and triples as in K-BERT; the adapter reads the triples, and the text doesn't see them.

    Raises:
        EncoderError: the encoder is unfit for K-BERT, or its layers can't be told apart.
    """

    config_class: ClassVar[type] = LexiconConfig
    inserts: ClassVar[bool] = True

    def __init__(self, model: PreTrainedModel, tokenizer: WordPieces, config: Any = None) -> None:
        # Before Transformers' recorders of hidden states: they shall see what the adapter gives.
        if not hasattr(layers_of(cast(PreTrainedModel, model.base_model))[LAYER - 1], INSERTED):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)  # the weights of an untrained adapter are always the same
                dropout = getattr(model.config, "hidden_dropout_prob", 0.1)
                new = LexiconAdapter(model.config.hidden_size, dropout)
                insert_after(model, LAYER, new)
        super().__init__(model, tokenizer, config)

    def begin_training(self, task: str, start: str | None) -> None:
        """Take over the adapter of the model that training starts from, if it has one."""
        if start is not None and card_of(start).system == self.system:
            load_inserted(self.model, located(start))

    def forward(
        self, batch: Batch, config: Any, *, model: Callable[..., Any] | None = None, **kept: bool
    ) -> ModelOutput:
        """Run the text through the encoder with the adapter."""
        with self._looked_up(batch):
            return super().forward(batch, config, model=model, **kept)

    def trace(self, reading: Reading, **kept: bool) -> KBertTrace:
        """Run one reading, and keep every stage."""
        with self._looked_up(self.collate(reading.rows, reading.config)):
            return super().trace(reading, **kept)

    def rate_of(self, parameter: str) -> float:
        """Return a higher rate for the adapter: it is new, and the encoder is pretrained."""
        return RATE if f".{INSERTED}." in parameter else 1.0

    @contextmanager
    def _looked_up(self, batch: Batch) -> Iterator[None]:
        """Give the adapter the triples of a batch."""
        batch = batch.to(self.device)
        ids, branches, anchors = batch.input_ids, batch.branch_ids, batch.anchor_ids
        rows, most = len(ids), max(1, int(branches.max()))
        sizes = branches.new_zeros(rows, most + 1)
        slots = branches.clamp(min=0)  # the trunk and padding go to slot 0
        sizes.scatter_add_(1, slots, torch.ones_like(slots))
        owners = anchors.new_zeros(rows, most + 1).scatter_(1, slots, anchors)[:, 1:]
        embedded: Tensor = self.model.get_input_embeddings()(ids)
        sums = embedded.new_zeros(rows, most + 1, embedded.shape[-1])
        sums = sums.scatter_add(1, slots[:, :, None].expand_as(embedded), embedded)
        vectors = (sums / sizes.clamp(min=1)[:, :, None])[:, 1:]
        mention = anchors.where(branches == 0, 0)[:, :, None]
        of = (mention > 0) & (mention == owners[:, None, :])
        token = _reading.set(Words(vectors, of))
        try:
            yield
        finally:
            _reading.reset(token)
