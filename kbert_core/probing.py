"""Whether an encoder can be run with soft positions and a visible matrix: found out by a trial.

There is no list of encoders that can. Each loaded one is tested on a tiny input, see :func:`probe`.
"""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor
from transformers import PreTrainedModel

from kbert_core.errors import EncoderError
from kbert_core.layers import (
    ANOTHER,
    LayeredTwin,
    attention_mask,
    cant_tell_apart,
    check_architecture,
    check_flex_attention,
    layer_masks,
    local_window,
    twin_of,
)

PROBE_LENGTH = 8
_UNFIT = (  # what an encoder raises that can't take what it is given
    *(TypeError, ValueError, RuntimeError, IndexError, NotImplementedError),
    *(AssertionError, AttributeError),
)


def probe(model: PreTrainedModel) -> int:
    """Find out whether an encoder obeys a visible matrix and uses positions.

    On a tiny input whose matrix falls into two disconnected parts, changing
    one part must leave the other's last layer exactly equal; positions must
    have an influence; and an all-visible matrix with hard positions
    must equal the plain call. A twin is tested, so the model stays as it was.

    Returns:
        What is added to soft positions: 0 for BERT, padding index + 1 for RoBERTa and its children.

    Raises:
        EncoderError: with the test that failed.
    """
    check_architecture(model.config)
    check_flex_attention(model)
    with torch.no_grad():
        return _tested(twin_of(cast(PreTrainedModel, model.base_model)))


class _Trial:
    """A tiny input with two matrices: all visible, and two parts that don't see each other."""

    def __init__(self, encoder: PreTrainedModel) -> None:
        self.encoder, device = encoder, encoder.device
        words = torch.arange(encoder.config.vocab_size)
        if (padding := getattr(encoder.config, "pad_token_id", None)) is not None:
            words = words[words != padding]
        length = max(PROBE_LENGTH, (local_window(encoder.config) or 0) + 4)  # a local one shows
        first = torch.arange(length, device=device) < length // 2
        self.ids = words[torch.linspace(0, len(words) - 1, length).long()].to(device)[None]
        self.positions = torch.arange(length, device=device)[None]
        self.two_parts = (first[:, None] == first)[None]
        self.everything = torch.ones_like(self.two_parts)

    def given(self, visible: Tensor, positions: Tensor) -> dict[str, Any]:
        """Return mask and positions as the encoder takes them."""
        mask = attention_mask(self.encoder.config, visible, positions, self.encoder.dtype)
        return {"attention_mask": mask, "position_ids": positions}

    def state(self, ids: Tensor, positions: Tensor, visible: Tensor) -> Tensor:
        """Return the states of the last layer, (1, N, H)."""
        return self.plain(ids, **self.given(visible, positions))

    def plain(self, ids: Tensor, **given: Any) -> Tensor:
        """Return the same without a matrix."""
        state: Tensor = self.encoder(ids, return_dict=True, **given).last_hidden_state
        return state


def _tested(encoder: PreTrainedModel) -> int:
    """Make the tests of :func:`probe`; return what is added to soft positions."""
    trial = _Trial(encoder)
    first, last = trial.ids.clone(), trial.ids.clone()
    first[:, 0], last[:, -1] = trial.ids[:, -1], trial.ids[:, 0]
    with _refusing(encoder, f"it can't read {trial.ids.shape[1]} tokens by their numbers alone"):
        plain, by_first, by_last = map(trial.plain, (trial.ids, first, last))
    if plain.shape[:2] != trial.ids.shape:
        raise _refused(encoder, "it doesn't give one state per token")
    if plain[:, :-1].equal(by_last[:, :-1]) and not plain[:, 1:].equal(by_first[:, 1:]):
        raise _refused(encoder, "it looks only to the left: a token doesn't see what follows it")
    if getattr(encoder.config, "relative_attention", False):
        raise _refused(encoder, "its positions are relative, so it takes no soft positions")
    if "position_ids" not in inspect.signature(encoder.forward).parameters:
        raise _refused(
            encoder, "it takes no position_ids: its positions are relative or counted inside"
        )
    with _refusing(encoder, "it takes a mask for whole tokens, and none for pairs of tokens"):
        return _offset(trial, plain)


def _offset(trial: _Trial, plain: Tensor) -> int:
    """Compare runs with matrices to the plain one; return what is added to soft positions."""
    encoder = trial.encoder
    tolerance = 1e-4 if encoder.dtype == torch.float32 else 5e-2
    for offset in (0, (getattr(encoder.config, "pad_token_id", None) or 0) + 1):
        positions = trial.positions + offset
        straight = trial.state(trial.ids, positions, trial.everything)
        if torch.allclose(straight, plain, atol=tolerance, rtol=tolerance):
            break
    else:
        raise _refused(encoder, "an all-visible matrix doesn't give the same as the plain call")

    apart = trial.state(trial.ids, positions, trial.two_parts)
    half = trial.ids.shape[1] // 2
    first, second = slice(0, half), slice(half, None)
    for kept, changed in ((first, second), (second, first)):
        ids = trial.ids.clone()
        ids[:, changed] = ids[:, changed].flip(1)
        if not torch.equal(apart[:, kept], trial.state(ids, positions, trial.two_parts)[:, kept]):
            raise _refused(
                encoder, "a token that is hidden by the visible matrix still has an influence"
            )

    moved = trial.state(trial.ids, positions.flip(1), trial.everything)
    if torch.allclose(moved, straight, atol=1e-6):
        raise _refused(encoder, "position_ids have no influence on it")
    return offset


def layered(twin: LayeredTwin, offset: int) -> LayeredTwin:
    """Return a twin whose layers take their own masks; refuse one that ignores these.

    Raises:
        EncoderError: its layers use the mask that is given to all.
    """
    encoder = cast(PreTrainedModel, twin.model.base_model)
    with torch.inference_mode():
        trial = _Trial(encoder)
        positions, parts = trial.positions + offset, [trial.two_parts] * len(twin.layers)
        masks = layer_masks(encoder.config, parts, positions, encoder.dtype)
        asked = {"input_ids": trial.ids, "output_hidden_states": True}
        by_one = twin.model(**trial.given(trial.two_parts, positions), **asked)
        by_layer = twin(masks, **trial.given(trial.everything, positions), **asked)
    if not all(map(torch.equal, by_one["hidden_states"], by_layer["hidden_states"])):
        raise cant_tell_apart(encoder)
    return twin


@contextmanager
def _refusing(encoder: PreTrainedModel, reason: str) -> Iterator[None]:
    try:
        yield
    except _UNFIT as error:
        raise _refused(encoder, reason) from error


def _refused(encoder: PreTrainedModel, reason: str) -> EncoderError:
    return EncoderError(
        f"{type(encoder).__name__} can't be a mask-transformer: {reason}. {ANOTHER}"
    )
