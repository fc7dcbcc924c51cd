"""Many texts at once: the last layers of a BERT run in part; the same to the last digits.

A task reads the text's own tokens, or the first token alone. So the last layer needs no other
token's query, and the layer before it none of a token that those don't see: of the branches, where
the first token is read. K-BERT's reader finds this by name, as systems are found.
"""

from collections.abc import Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, cast
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import ModelOutput
from transformers.models.bert import modeling_bert

from kbert_core.kbert.flat_tree import Batch, FlatTree
from kbert_core.layers import MASK, layers_of, twin_of
from kbert_core.reader import Reading

LAYERS = 2
KNOWN = (modeling_bert.__name__, "torch.nn.", "transformers.activations")
Step = tuple[Tensor, Tensor]  # (B, Q) places of tokens among a layer's N, and their (B, 1, Q, N)
_running: ContextVar[list[Step]] = ContextVar("of the last layers, the last first")


class NarrowedTwin:
    """A twin of a task model on a BERT, which shares its parameters."""

    def __init__(self, model: PreTrainedModel) -> None:
        self.parameters = [*model.parameters()]
        self.model = twin_of(model)
        self.reads_first = getattr(model.base_model, "pooler", None) is not None
        layers: Any = layers_of(cast(PreTrainedModel, self.model.base_model))
        for layer in layers[-LAYERS:]:
            layer.forward = partial(_forward, layer)

    @staticmethod
    def takes(model: PreTrainedModel) -> bool:
        """Whether a model is a plain BERT with a head, and nothing else stands in it."""
        parts = {type(part).__module__ for part in model.modules()}
        deep = model.config.num_hidden_layers >= LAYERS and not model.config.is_decoder
        return deep and all(part.startswith(KNOWN) for part in parts)

    def __call__(self, wanted: Tensor, visible: Tensor, **arguments: Any) -> ModelOutput:
        """Run the model.

        Args:
            wanted: (B, N) bool, the Q tokens of each row whose last states the head gets, in order.
            visible: (B, N, N) bool, as the mask has it.
            arguments: the model's own.

        Returns:
            With ``logits`` (B, most Q, K) or (B, K).
        """
        seen = (visible & wanted[:, :, None]).any(1) | wanted
        before = _places(seen)
        after = _places(wanted.gather(1, before))
        rows = _taken(arguments[MASK], 2, before)
        steps = [(after, _taken(_taken(rows, 3, before), 2, after)), (before, rows)]
        token = _running.set(steps)
        try:
            return cast(ModelOutput, self.model(**arguments))
        finally:
            _running.reset(token)

    def logits(self, reader: Any, readings: Sequence[Reading], batch_size: int) -> list[Tensor]:
        """Run readings of one row each; see :meth:`Reader.logits`."""
        values: list[Any] = [None] * len(readings)
        for config, rows, places in reader.batches(readings, batch_size):
            batch = reader.collate(rows, config).to(reader.device)
            visible = config.ablation.visible_in(batch)
            arguments = reader.encoder.inputs(batch, ablation=config.ablation, visible=visible)
            wanted = _first(batch) if self.reads_first else _on_text(rows).to(reader.device)
            with torch.inference_mode():
                logits = self(wanted, visible, **arguments)["logits"]
            counts = wanted.sum(1).tolist()
            for (text, _), own, count in zip(places, logits, counts, strict=True):
                values[text] = own[:count] if own.dim() > 1 else own
        return values


_twins: WeakKeyDictionary[Any, NarrowedTwin] = WeakKeyDictionary()


def logits_of(
    reader: Any, readings: Sequence[Reading], batch_size: int = 32
) -> list[Tensor] | None:
    """Run readings as :meth:`Reader.logits`, by a twin of the reader's model.

    Returns:
        None where the model has no twin, or a text has windows or interventions.
    """
    if reader.encoder.attention != "sdpa" or not NarrowedTwin.takes(reader.model):
        return None
    if any(len(own.rows) > 1 or own.config.interventions for own in readings):
        return None
    twin = _twins.get(reader)
    if twin is None or [*map(id, reader.model.parameters())] != [*map(id, twin.parameters)]:
        twin = _twins[reader] = NarrowedTwin(reader.model)
    return twin.logits(reader, readings, batch_size)


def _on_text(rows: Sequence[FlatTree]) -> Tensor:
    """(B, N) bool, which tokens of a batch are the texts' own."""
    own = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.bool)
    for number, row in enumerate(rows):
        for part in row.trunk_parts:
            own[number, part.start : part.end] = True
    return own


def _first(batch: Batch) -> Tensor:
    """(B, N) bool, the first token of each row alone."""
    first = torch.zeros_like(batch.real)
    first[:, 0] = True
    return first


def _places(wanted: Tensor) -> Tensor:
    """(B, Q) the places of wanted tokens in order, then of others, up to the most in a row."""
    count = int(wanted.sum(1).max())
    return (~wanted).byte().argsort(dim=1, stable=True)[:, :count]


def _taken(values: Tensor, along: int, places: Tensor) -> Tensor:
    """Take (B, Q) places along one of the other dimensions of (B, ...)."""
    index = places.view(len(places), *(-1 if n == along else 1 for n in range(1, values.dim())))
    whole = [-1 if n in (0, along) else size for n, size in enumerate(values.shape)]
    return values.gather(along, index.expand(whole))


def _forward(layer: Any, hidden: Tensor, *_: Any, **__: Any) -> Tensor:
    """A layer's states (B, Q, H) of some tokens, from those (B, N, H) of all."""
    places, mask = _running.get().pop()
    attention, own = layer.attention.self, _taken(hidden, 1, places)
    query, key, value = (
        states.unflatten(-1, (attention.num_attention_heads, -1)).transpose(1, 2)
        for states in (attention.query(own), attention.key(hidden), attention.value(hidden))
    )
    heads = nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, scale=attention.scaling
    )
    return cast(
        Tensor,
        layer.feed_forward_chunk(layer.attention.output(heads.transpose(1, 2).flatten(2), own)),
    )
