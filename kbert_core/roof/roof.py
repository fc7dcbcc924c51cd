"""The roof of Roof-BERT: Transformer layers over the states of a text and of its triples.

Shapes: B texts, M tokens of a text, N' tokens of its triples, H width.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from kbert_core.errors import EncoderError
from kbert_core.layers import additive_mask, layers_of, plain_copy

RANDOM = "random"


@dataclass
class Running:
    """What the roof reads beside the states of a text, and its output.

    Attributes:
        inputs: of the knowledge encoder: input_ids (B, N') and the like.
        text_mask, mask: (B, M) and (B, N') bool, False for padding.
        attentions: whether to keep the roof's attention.
        states: (B, N', H) of the triples.
        text: (B, M, H) of the text, before the roof.
        kept: per layer of the roof (B, A, M + N', M + N').
    """

    inputs: dict[str, Tensor]
    text_mask: Tensor
    mask: Tensor
    attentions: bool = False
    states: Tensor | None = None
    text: Tensor | None = None
    kept: list[Tensor] = field(default_factory=list)


_running: ContextVar[Running | None] = ContextVar("the triples that are read", default=None)


@contextmanager
def under_roof(running: Running | None) -> Iterator[None]:
    """Give triples to the roof of an encoder that is run inside this context; None: no roof."""
    token = _running.set(running)
    try:
        yield
    finally:
        _running.reset(token)


class Roof(nn.Module):
    """Fuses a text with its triples; stands after the last layer of the text's encoder.

    Args:
        encoder: of the text, a bare one.
        knowledge: the encoder of triples, of the same width; None: the text's own.
        count: k, how many layers.
        start: "last": copies of the text encoder's last k layers, as in the paper's best run;
            "random": new ones.

    Raises:
        EncoderError: the widths differ; the encoder has fewer layers than k.
    """

    def __init__(
        self, encoder: PreTrainedModel, knowledge: PreTrainedModel | None, count: int, start: str
    ) -> None:
        super().__init__()
        layers = layers_of(encoder)
        if not 1 <= count <= len(layers):
            raise EncoderError(
                f"You asked for a roof of {count} layers, but {type(encoder).__name__} has "
                f"{len(layers)} layers to copy. Give 1 to {len(layers)}."
            )
        width, other = encoder.config.hidden_size, (knowledge or encoder).config.hidden_size
        if width != other:
            raise EncoderError(
                f"The encoder of triples is {other} wide, and the text's {width}; a roof needs one "
                "width. Name another encoder for the triples."
            )
        self.knowledge = knowledge
        self.shared = (encoder,)  # in a tuple: its parameters are the text's, not the roof's
        self.layers = plain_copy(layers[-count:])
        if start == RANDOM:
            self.layers.apply(encoder._init_weights)

    def forward(self, states: Tensor) -> Tensor:
        """Let a text and its triples attend to each other: (B, M, H) → (B, M, H).

        What comes out are the text's own positions, so that any task reads them. Outside of
        :func:`under_roof` the states stay as they are.
        """
        running = _running.get()
        if running is None:
            return states
        with under_roof(None):
            encoder = self.knowledge or self.shared[0]
            running.states = encoder(**running.inputs).last_hidden_state
        running.text = states
        whole = torch.cat([states, running.states], 1)
        visible = torch.cat([running.text_mask, running.mask], 1)[:, None]
        mask = additive_mask(visible, whole.dtype)  # (B, 1, 1, M + N')
        for layer in self.layers:
            if running.attentions:
                running.kept.append(_attention(layer, whole, mask))
            output = layer(whole, attention_mask=mask)
            whole = output[0] if isinstance(output, tuple) else output
        return whole[:, : states.shape[1]]


def _attention(layer: nn.Module, states: Tensor, mask: Tensor) -> Tensor:
    """The attention of a layer, (B, A, N, N), from its own query and key.

    Raises:
        EncoderError: it has none that can be found.
    """
    found: dict[str, Any] = {}
    for name, module in layer.named_modules():
        for kind in ("query", "key"):
            if isinstance(module, nn.Linear) and name.rpartition(".")[2] in (
                kind,
                f"{kind[0]}_lin",
            ):
                found[kind] = module
    if len(found) < 2:
        raise EncoderError(
            f"The attention of a {type(layer).__name__} in the roof can't be shown. Leave "
            "attentions out, or use an encoder such as BERT."
        )
    heads = next(
        int(getattr(own, name))
        for own in layer.modules()
        for name in ("num_attention_heads", "n_heads")
        if hasattr(own, name)
    )
    query, key = (
        found[kind](states).unflatten(-1, (heads, -1)).transpose(1, 2) for kind in ("query", "key")
    )
    scores: Tensor = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5 + mask
    return scores.softmax(-1)
