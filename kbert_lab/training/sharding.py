"""Less memory for training: a model cut among the processes, and layers that are computed again.

FSDP2 keeps of every parameter, its gradient and its optimiser's numbers one part per process.
What trains is a copy that is cut; the model itself stays whole, so that it is scored, saved and
resumed as without. Checkpoints are the same files either way: a run may go on with other processes.
"""

import copy
import functools
import os
from types import MethodType
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.utils._pytree import tree_map
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from kbert_core.layers import layers_of

TRAINED, FROZEN = 16, 4  # bytes per parameter: itself, and of one that trains gradient and Adam's
SHARE = 0.5  # of a device's memory, that parameters may take uncut; the rest is for activations


def too_large(model: nn.Module, device: torch.device) -> bool:
    """Whether a model with its optimiser takes more than its share of a device's memory."""
    if device.type == "cuda":
        memory = torch.cuda.get_device_properties(device).total_memory
    else:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        memory //= int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    needed = sum(p.numel() * (TRAINED if p.requires_grad else FROZEN) for p in model.parameters())
    return needed > SHARE * memory


def sharded(model: PreTrainedModel) -> PreTrainedModel:
    """Copy a model and cut the copy among all processes, layer by layer.

    Raises:
        EncoderError: its layers can't be told apart.
    """
    made = copy.deepcopy(model)
    mesh = init_device_mesh(made.device.type, (torch.distributed.get_world_size(),))
    for layer in layers_of(cast(PreTrainedModel, made.base_model)):
        fully_shard(layer, mesh=mesh)
    fully_shard(made, mesh=mesh)
    return made


@torch.no_grad()
def gather(model: nn.Module, cut: nn.Module) -> None:
    """Give a whole model the parameters of its cut copy; every process has to call this."""
    for own, part in zip(model.parameters(), cut.parameters(), strict=True):
        if own.requires_grad:
            own.copy_(cast(DTensor, part).full_tensor())


def whole(state: dict[str, Any]) -> dict[str, Any]:
    """Make an optimiser's state whole, on the CPU; every process has to call this."""

    def of(value: Any) -> Any:
        return value.full_tensor().cpu() if isinstance(value, DTensor) else value

    return cast(dict[str, Any], tree_map(of, state))


def cut_state(optimizer: torch.optim.Optimizer) -> None:
    """Cut an optimiser's whole state as its parameters are."""
    for parameter, state in optimizer.state.items():
        if isinstance(parameter, DTensor):
            for name, value in state.items():
                if isinstance(value, Tensor) and value.shape == parameter.shape:
                    how = parameter.device_mesh, parameter.placements
                    state[name] = distribute_tensor(value, *how)


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
