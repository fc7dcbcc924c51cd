"""Less memory for training: the inside of layers is computed again for the backward pass."""

import functools
from types import MethodType
from typing import Any, cast

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from kbert_core.layers import layers_of


def compute_again(model: PreTrainedModel) -> None:
    """Keep only the inputs of an encoder's layers for the backward pass (gradient checkpointing).

    A layer's hooks run once, with what is inserted after it: they may depend on more than inputs.
    """
    for layer in layers_of(cast(PreTrainedModel, model.base_model)):
        layer.forward = MethodType(_computed_again(type(layer).forward), layer)


def _computed_again(forward: Any) -> Any:
    @functools.wraps(forward)
    def again(layer: nn.Module, *given: Any, **named: Any) -> Any:
        if not (layer.training and torch.is_grad_enabled()):
            return forward(layer, *given, **named)
        return checkpoint(forward, layer, *given, use_reentrant=False, **named)

    return again
