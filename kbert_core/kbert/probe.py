"""Which encoders can be a mask-transformer: not a list, but a test on the loaded encoder."""

import inspect
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from transformers import PreTrainedModel

from kbert_core.errors import EncoderError
from kbert_core.kbert.visible import attention_mask, layer_masks, local_window
from kbert_core.layers import LayeredTwin, cant_tell_apart

PROBE_LENGTH = 8


@dataclass(frozen=True)
class Probe:
    """What the probe found out about an encoder.

    Attributes:
        position_offset: added to soft positions; 0 for BERT, padding index
            + 1 for RoBERTa and its children.
    """

    position_offset: int


def probe(model: PreTrainedModel) -> Probe:
    """Find out whether an encoder keeps to a visible matrix and uses positions.

    On a tiny input whose matrix falls into two disconnected parts, changing
    one part must leave the other's last layer exactly equal; positions must
    have an influence; and an all-visible matrix with positions counted
    straight through must equal the plain call.

    Raises:
        EncoderError: with the test that failed.
    """
    encoder = cast(PreTrainedModel, model.base_model)
    was_training = encoder.training
    encoder.eval()
    try:
        with torch.no_grad():
            return _Prober(encoder).run()
    except (TypeError, ValueError, RuntimeError, IndexError, NotImplementedError) as error:
        raise _refused(encoder, f"it can't take such a mask or positions ({error})") from error
    finally:
        encoder.train(was_training)


class _Prober:
    def __init__(self, encoder: PreTrainedModel) -> None:
        self.encoder = encoder
        words = torch.arange(encoder.config.vocab_size)
        words = words[words != getattr(encoder.config, "pad_token_id", None)]
        window = local_window(encoder.config) or 0
        self.length = max(PROBE_LENGTH, window + 4)  # so that a local window shows
        spread = torch.linspace(0, len(words) - 1, self.length).long()
        self.ids = words[spread].to(encoder.device)[None]
        self.straight = torch.arange(self.length, device=encoder.device)[None]
        self.everything = torch.ones(1, self.length, self.length, dtype=torch.bool)
        part = torch.arange(self.length) < self.length // 2
        self.two_parts = (part[:, None] == part[None, :])[None]

    def run(self) -> Probe:
        parameters = inspect.signature(self.encoder.forward).parameters
        if "position_ids" not in parameters:
            raise _refused(self.encoder, "it takes no position_ids")
        # Transformers puts its recorders on a model at the first call that asks for states: let it
        # be now, and not when threads share the model or copy it.
        plain = self.encoder(self.ids, output_hidden_states=True).last_hidden_state
        if plain.shape[:2] != self.ids.shape:
            raise _refused(self.encoder, "it doesn't give one state per token")
        offset = self._offset(plain)
        self._keeps_parts_apart(offset)
        self._uses_positions(offset)
        return Probe(offset)

    def _state(self, ids: Tensor, positions: Tensor, visible: Tensor) -> Tensor:
        visible = visible.to(ids.device)
        mask = attention_mask(self.encoder.config, visible, positions, self.encoder.dtype)
        state: Tensor = self.encoder(
            ids, attention_mask=mask, position_ids=positions
        ).last_hidden_state
        return state

    def _offset(self, plain: Tensor) -> int:
        padding = getattr(self.encoder.config, "pad_token_id", None) or 0
        tolerance = 1e-4 if self.encoder.dtype == torch.float32 else 5e-2
        for offset in (0, padding + 1):
            state = self._state(self.ids, self.straight + offset, self.everything)
            if torch.allclose(state, plain, atol=tolerance, rtol=tolerance):
                return offset
        raise _refused(
            self.encoder, "an all-visible matrix doesn't give the same as the plain call"
        )

    def _keeps_parts_apart(self, offset: int) -> None:
        half = self.length // 2
        visible = self.two_parts
        before = self._state(self.ids, self.straight + offset, visible)
        for own, other in (
            (slice(0, half), slice(half, None)),
            (slice(half, None), slice(0, half)),
        ):
            changed = self.ids.clone()
            changed[:, other] = changed[:, other].flip(1)
            after = self._state(changed, self.straight + offset, visible)
            if not torch.equal(before[:, own], after[:, own]):
                raise _refused(
                    self.encoder,
                    "a token that is hidden by the visible matrix still has an influence",
                )

    def _uses_positions(self, offset: int) -> None:
        moved = self._state(self.ids, self.straight.flip(1) + offset, self.everything)
        straight = self._state(self.ids, self.straight + offset, self.everything)
        if torch.allclose(moved, straight, atol=1e-6):
            raise _refused(self.encoder, "position_ids have no influence on it")


def checked_twin(twin: LayeredTwin, offset: int) -> LayeredTwin:
    """Make sure that the layers go by the masks given to each, not by the one given to all.

    Raises:
        EncoderError: they don't.
    """
    encoder = cast(PreTrainedModel, twin.model.base_model)
    with torch.inference_mode():
        prober = _Prober(encoder)
        positions = prober.straight + offset
        apart, everything = (
            visible.to(encoder.device) for visible in (prober.two_parts, prober.everything)
        )

        def given(visible: Tensor) -> dict[str, Any]:
            mask = attention_mask(encoder.config, visible, positions, encoder.dtype)
            return {"attention_mask": mask, "position_ids": positions, "output_hidden_states": True}

        masks = layer_masks(encoder.config, [apart] * len(twin.layers), positions, encoder.dtype)
        by_one = twin.model(prober.ids, **given(apart))["hidden_states"]
        by_layer = twin(masks, input_ids=prober.ids, **given(everything))["hidden_states"]
    if not all(map(torch.equal, by_one, by_layer)):
        raise cant_tell_apart(encoder)
    return twin


def _refused(encoder: PreTrainedModel, reason: str) -> EncoderError:
    return EncoderError(
        f"{type(encoder).__name__} can't be a mask-transformer: {reason}. Use another encoder; "
        "BERT, RoBERTa, ELECTRA, ALBERT, DistilBERT and ModernBERT are known to work."
    )
