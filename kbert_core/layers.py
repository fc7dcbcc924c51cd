"""An encoder's layers: its masks, a different mask for each layer, a module after a layer.

An encoder hands one mask to all its layers. A twin that shares its parameters
gets a hook on each layer for one run, which puts in the layer's own mask.

A module that is inserted belongs to its layer: it trains, moves and is saved with the encoder.
"""

import copy
import inspect
import logging
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import ModelOutput
from transformers.utils import output_capturing

from kbert_core.errors import CheckpointError, EncoderError

# A model with something inserted has weights that transformers doesn't know, and reports at length.
logging.getLogger("transformers.modeling_utils").addFilter(
    lambda record: "LOAD REPORT" not in record.getMessage()
)
MASK = "attention_mask"  # what every encoder calls it
INSERTED = "inserted"  # the name, in its layer, of a module put after it
ANOTHER = (
    "Use another encoder; BERT, RoBERTa, ELECTRA, ALBERT, DistilBERT and ModernBERT are known to "
    "work."
)


def check_architecture(config: Any) -> None:
    """Refuse a kind of model that is no encoder of tokens, whatever its weights are.

    Raises:
        EncoderError: see above.
    """
    kind = type(config).__name__.removesuffix("Config")
    positions, reason = getattr(config, "position_embedding_type", None), ""
    if getattr(config, "is_encoder_decoder", False):
        reason = "it has a decoder, and an encoder alone is needed"
    elif type(getattr(config, "vocab_size", None)) is not int:
        reason = "it has no vocabulary of numbered tokens"
    elif "relative" in str(positions):  # transformers reads it without them, in silence
        reason = f"its positions are relative ('{positions}' in its config), not soft"
    if reason:
        raise EncoderError(f"{kind} can't be used: {reason}. {ANOTHER}")


def check_flex_attention(model: PreTrainedModel) -> None:
    """Refuse FlexAttention off CUDA: PyTorch's code for it writes over other memory there."""
    if model.config._attn_implementation == "flex_attention" and model.device.type != "cuda":
        raise EncoderError(
            f"FlexAttention needs CUDA, and the model is on '{model.device}'. "
            'Say model.set_attn_implementation("sdpa").'
        )


def additive_mask(visible: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn a visible matrix into the mask that is added to attention scores (M in Eq. 3).

    Returns:
        (B, 1, N, N), or (B, A, N, N) of a matrix a head, of the encoder's dtype: 0 where True, else
        the smallest number, in place of minus infinity: after softmax the weight is exactly 0.
    """
    of_heads = visible if visible.dim() == 4 else visible[:, None]
    return torch.zeros_like(of_heads, dtype=dtype).masked_fill(~of_heads, torch.finfo(dtype).min)


def attention_mask(
    config: Any, visible: Tensor, positions: Tensor, dtype: torch.dtype
) -> Tensor | dict[str, Tensor]:
    """Turn a visible matrix into the mask that an encoder takes.

    Some encoders (ModernBERT) have layers that see only a window around a token; these get a
    mask of their own. Distance is measured in positions, so a branch is near its mention, no
    matter how many other branches stand between.

    Args:
        config, dtype: the encoder's.
        visible: (B, N, N) bool, or (B, A, N, N).
        positions: (B, N) as the encoder gets them.

    Returns:
        (B, 1, N, N), to be added to scores; or two such masks, one for each kind of layer.
    """
    full = additive_mask(visible, dtype)
    window = local_window(config)
    if window is None:
        return full
    near = (positions[:, :, None] - positions[:, None, :]).abs() <= window
    local = torch.minimum(full, additive_mask(near, dtype))
    return {"full_attention": full, "sliding_attention": local}


def layer_masks(
    config: Any, visible: Sequence[Tensor], positions: Tensor, dtype: torch.dtype
) -> list[Tensor]:
    """Turn L matrices into the L masks of the layers; see :func:`attention_mask`."""
    different = {id(matrix): matrix for matrix in visible}  # most layers share one
    masks = {i: attention_mask(config, m, positions, dtype) for i, m in different.items()}
    by_layer = enumerate(masks[id(matrix)] for matrix in visible)
    return [m[config.layer_types[layer]] if isinstance(m, dict) else m for layer, m in by_layer]


def local_window(config: Any) -> int | None:
    """Return how many tokens a local layer sees on each side; None: no layer is local."""
    if "sliding_attention" not in (getattr(config, "layer_types", None) or ()):
        return None
    return int(config.sliding_window)


class LayeredTwin:
    """A twin of an encoder or task model that takes a mask for each layer.

    Raises:
        EncoderError: its layers can't be told apart.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = twin_of(model)
        self.layers = layers_of(cast(PreTrainedModel, self.model.base_model))
        self._running = Lock()  # threads may share the twin

    def __call__(self, masks: Sequence[Tensor], **arguments: Any) -> ModelOutput:
        """Run the model with L additive masks (B, 1, N, N).

        Args:
            arguments: the model's own; it needs a mask, too, though no layer uses that one.

        Raises:
            EncoderError: a layer was not run, or run twice, or in another order.
        """
        taken: list[nn.Module] = []
        with self._running, ExitStack() as hooks:
            for layer, mask in zip(self.layers, masks, strict=True):
                own = partial(_with_own_mask, mask, taken)
                hooks.callback(layer.register_forward_pre_hook(own, with_kwargs=True).remove)
            output: ModelOutput = self.model(**arguments)
        if taken != list(self.layers):
            raise cant_tell_apart(self.model.base_model)
        return output


def _with_own_mask(
    mask: Tensor,
    taken: list[nn.Module],
    layer: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Give a layer its own mask instead of the one that the model gives to all layers."""
    taken.append(layer)
    place = list(inspect.signature(layer.forward).parameters).index(MASK)
    if place < len(args):
        return (*args[:place], mask, *args[place + 1 :]), kwargs
    return args, {**kwargs, MASK: mask}


def layers_of(encoder: PreTrainedModel) -> nn.ModuleList:
    """Find an encoder's layers.

    Raises:
        EncoderError: it has no list of L different layers that take a mask.
    """
    for found in encoder.modules():
        if (
            isinstance(found, nn.ModuleList)
            and len(found) == encoder.config.num_hidden_layers
            and len({id(layer) for layer in found}) == len(found)
            and all(MASK in inspect.signature(layer.forward).parameters for layer in found)
        ):
            return found
    raise cant_tell_apart(encoder)


def insert_after(encoder: PreTrainedModel, number: int, module: nn.Module) -> None:
    """Run a module on the hidden states of a layer, before the next layer gets them.

    Args:
        encoder: changed; a bare encoder, or a task model built on one.
        number: of the layer, from 1 to L.
        module: (B, N, H) → (B, N, H).

    Raises:
        EncoderError: the encoder has no such layer, its layers can't be told
            apart, or something has been inserted there already.
    """
    layers = layers_of(cast(PreTrainedModel, encoder.base_model))
    name = type(encoder.base_model).__name__
    if number not in range(1, len(layers) + 1):
        raise EncoderError(
            f"Nothing can be inserted after layer {number!r}: {name} has {len(layers)} layers. "
            f"Name one from 1 to {len(layers)}."
        )
    layer = layers[number - 1]
    if hasattr(layer, INSERTED):
        raise EncoderError(
            f"A module is already inserted after layer {number} of {name}. Name another layer."
        )
    layer.add_module(INSERTED, module.to(encoder.device))
    layer.register_forward_hook(_run_inserted)


def inputs_of(
    encoder: PreTrainedModel, ids: Tensor, mask: Tensor, segments: Tensor
) -> dict[str, Tensor]:
    """Give (B, N) tensors the encoder's names; token types only if it takes more than one."""
    inputs = {"input_ids": ids, MASK: mask}
    takes = "token_type_ids" in inspect.signature(encoder.forward).parameters
    if takes and (getattr(encoder.config, "type_vocab_size", 0) or 0) > 1:
        inputs["token_type_ids"] = segments
    return inputs


def positions_of(model: PreTrainedModel) -> int | None:
    """Return the most tokens that an encoder has positions for; None: no limit."""
    count = getattr(model.config, "max_position_embeddings", None)
    if not isinstance(count, int) or count <= 0:
        return None
    embeddings = getattr(model.base_model, "embeddings", None)
    padding = getattr(getattr(embeddings, "position_embeddings", None), "padding_idx", None)
    return count if padding is None else count - padding - 1  # a RoBERTa counts from after it


def plain_copy(module: Any) -> Any:
    """Copy a part of an encoder for full training, without an adapter's low-rank matrices."""
    new = copy.deepcopy(module)
    for parent in list(new.modules()):
        for name, child in list(parent.named_children()):
            if hasattr(child, "base_layer"):  # as peft wraps a linear layer
                setattr(parent, name, child.base_layer)
    return new.requires_grad_(True)


def load_inserted(encoder: PreTrainedModel, folder: str | Path) -> None:
    """Give inserted modules the weights that were saved with the encoder.

    Args:
        encoder: with the same modules inserted as when it was saved.
        folder: of the saved model.

    Raises:
        CheckpointError: the weights aren't those of the inserted modules, or differ in shape.
    """
    from safetensors import SafetensorError, safe_open

    body, prefix = cast(PreTrainedModel, encoder.base_model), f"{encoder.base_model_prefix}."
    wanted = {n: tensor.shape for n, tensor in body.state_dict().items() if f".{INSERTED}." in n}
    weights: dict[str, Tensor] = {}
    try:
        for file in sorted(Path(folder).glob("*.safetensors")):
            with safe_open(file, framework="pt") as tensors:
                own = [name for name in tensors.keys() if f".{INSERTED}." in name]  # noqa: SIM118
                weights |= {name.removeprefix(prefix): tensors.get_tensor(name) for name in own}
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"{folder}: can't be read ({error}). Copy the model again."
        ) from error
    found = {name: tensor.shape for name, tensor in weights.items()}
    if odd := sorted({name for name, _ in wanted.items() ^ found.items()}):
        raise CheckpointError(
            f"{folder}: the weights of what is inserted between layers don't fit the model's card "
            f"({len(odd)} differ, the first is {odd[0]}). Copy the model again."
        )
    body.load_state_dict(weights, strict=False)


def _run_inserted(layer: nn.Module, _: tuple[Any, ...], output: Any) -> Any:
    """Run the inserted module on the hidden states of its layer."""
    module = getattr(layer, INSERTED)
    if isinstance(output, tuple):
        return (module(output[0]), *output[1:])
    return module(output)


def cant_tell_apart(encoder: nn.Module) -> EncoderError:
    """Return the error for an encoder whose single layers can't be changed."""
    return EncoderError(
        f"{type(encoder).__name__} can't have different visible matrices in its layers, nor a "
        "module after one layer: its layers share their parameters or can't be told apart. Use "
        "the same intervention in all layers, or use another encoder, such as BERT, RoBERTa, "
        "ELECTRA, DistilBERT or ModernBERT."
    )


def twin_of(model: PreTrainedModel) -> PreTrainedModel:
    """Copy a model's modules and config, and share its parameters."""
    shared = [*model.parameters(), *model.buffers()]
    return copy.deepcopy(model, {id(tensor): tensor for tensor in shared}).eval()


def without_recorders(model: PreTrainedModel) -> PreTrainedModel:
    """Return a twin without transformers' recorders of states, which can't be pickled."""
    twin = twin_of(model)
    for part in twin.modules():
        vars(part).pop("_output_capturing_hooks_installed", None)
        for number, hook in [*part._forward_hooks.items()]:
            if getattr(hook, "__module__", "") == output_capturing.__name__:
                del part._forward_hooks[number]
    return twin
