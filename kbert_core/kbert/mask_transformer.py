"""The mask-transformer: any Hugging Face encoder run with soft positions and a
visible matrix (K-BERT, Eq. 4-6).

No parameter is added, so every checkpoint loads as it is. Which encoders can
be run so is not a list but a test, made on the loaded encoder: :func:`probe`.
"""

import inspect
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Literal, cast, get_args

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.modeling_outputs import ModelOutput

from kbert_core.errors import ShapeError
from kbert_core.kbert.ablation import FULL, Ablation
from kbert_core.kbert.batch import Batch
from kbert_core.kbert.probe import checked_twin, probe
from kbert_core.kbert.visible import attention_mask, layer_masks, mask_mod
from kbert_core.layers import LayeredTwin, twin_of

Attention = Literal["sdpa", "eager", "flex_attention"]


class MaskTransformer:
    """An encoder, with or without a task head, that reads flat trees.

    The model is never changed after loading: attention maps come from a
    second module that shares the parameters and computes attention eagerly,
    and layers with matrices of their own are run in a third, see
    :class:`LayeredTwin`.

    Args:
        model: any Hugging Face encoder or task model built on one.

    Raises:
        EncoderError: it can't be run with soft positions and a visible
            matrix; the message says which test it failed.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = model.eval()
        self.probe = probe(model)
        self._takes = set(inspect.signature(model.forward).parameters)

    @property
    def config(self) -> Any:
        """The encoder's Hugging Face config."""
        return self.model.config

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self.model.device

    @property
    def attention(self) -> Attention:
        """The attention implementation used where no maps are asked for.

        The encoder's own: ``model.set_attn_implementation("flex_attention")`` before this is
        made, or after, runs it by blocks that see each other, for long and packed rows on CUDA.
        """
        name = self.model.config._attn_implementation
        return cast(Attention, name) if name in get_args(Attention) else "sdpa"

    @property
    def max_length(self) -> int | None:
        """The most tokens the encoder has positions for; None: no limit."""
        count = getattr(self.config, "max_position_embeddings", None)
        if not isinstance(count, int) or count <= 0:
            return None
        return count - self.probe.position_offset

    @property
    def layer_count(self) -> int:
        """L, the number of layers."""
        return int(self.config.num_hidden_layers)

    def inputs(
        self, batch: Batch, *, ablation: Ablation = FULL, visible: Tensor | None = None
    ) -> dict[str, Any]:
        """Turn a batch into the encoder's own arguments.

        Args:
            batch: B flat trees of N tokens.
            ablation: soft or hard positions, tree or everything visible.
            visible: (B, N, N) bool, used instead of the ablation's.

        Returns:
            ``input_ids`` (B, N), ``attention_mask`` (see
            :func:`attention_mask`; of FlexAttention a block mask), ``position_ids`` (B, N), and
            ``token_type_ids`` (B, N) where the encoder has segments.
        """
        batch = batch.to(self.device)
        positions = ablation.position_ids(batch) + self.probe.position_offset
        mask: Any
        if self.attention == "flex_attention" and visible is None:
            from torch.nn.attention.flex_attention import create_block_mask  # slow to import

            rows, length = positions.shape
            sees = mask_mod(*ablation.seen_by(batch))
            mask = create_block_mask(sees, rows, None, length, length, device=self.device)
        else:
            visible = ablation.visible_in(batch) if visible is None else visible
            mask = attention_mask(self.config, visible.to(self.device), positions, self.model.dtype)
        arguments = {
            "input_ids": batch.input_ids,
            "attention_mask": mask,
            "position_ids": positions,
        }
        if "token_type_ids" in self._takes and _segments(self.config) > 1:
            arguments["token_type_ids"] = batch.token_type_ids
        return arguments

    def __call__(self, batch: Batch, **arguments: Any) -> ModelOutput:
        """Run the encoder without gradients; arguments as for :meth:`forward`."""
        with torch.inference_mode():
            return self.forward(batch, **arguments)

    def forward(
        self,
        batch: Batch,
        *,
        ablation: Ablation = FULL,
        visible: Tensor | Sequence[Tensor] | None = None,
        attentions: bool = False,
        hidden_states: bool = False,
        model: Callable[..., ModelOutput] | None = None,
    ) -> ModelOutput:
        """Run the encoder; gradients flow where the caller lets them.

        Args:
            batch: B flat trees of N tokens.
            ablation: soft or hard positions, tree or everything visible.
            visible: (B, N, N) bool, used instead of the ablation's; or L of
                them, one a layer.
            attentions, hidden_states: whether to return them.
            model: run in place of the encoder, such as a wrapper of it that trains.

        Returns:
            What the Hugging Face model returns; ``attentions`` is L tensors
            (B, A, N, N), ``hidden_states`` L + 1 tensors (B, N, H).

        Raises:
            EncoderError: layers that can't be told apart were given
                different matrices.
            ShapeError: there are not as many matrices as layers.
        """
        if attentions and visible is None:  # maps are computed eagerly, which takes no block mask
            visible = ablation.visible_in(batch)
        one = self._one_matrix(visible)
        arguments = self.inputs(batch, ablation=ablation, visible=one)
        arguments |= {
            "output_attentions": attentions,
            "output_hidden_states": hidden_states,
            "return_dict": True,
        }
        if visible is None or one is not None:
            return (model or (self._eager if attentions else self.model))(**arguments)
        masks = layer_masks(
            self.config,
            [own.to(self.device) for own in visible],
            arguments["position_ids"],
            self.model.dtype,
        )
        return (self._layered_eager if attentions else self._layered)(masks, **arguments)

    def _one_matrix(self, visible: Tensor | Sequence[Tensor] | None) -> Tensor | None:
        """The matrix of all layers alike; None where none is given, or they differ."""
        if visible is None or isinstance(visible, Tensor):
            return visible
        if len(visible) != self.layer_count:
            raise ShapeError(
                f"Got {len(visible)} visible matrices, and the encoder has {self.layer_count} "
                "layers. Give one for each, or one for all."
            )
        first = visible[0]
        return first if all(other is first or other.equal(first) for other in visible) else None

    @cached_property
    def _eager(self) -> PreTrainedModel:
        if self.attention == "eager":
            return self.model
        twin = twin_of(self.model)
        twin.set_attn_implementation("eager")
        return twin

    @cached_property
    def _layered(self) -> LayeredTwin:
        return checked_twin(LayeredTwin(self.model), self.probe.position_offset)

    @cached_property
    def _layered_eager(self) -> LayeredTwin:
        return checked_twin(LayeredTwin(self._eager), self.probe.position_offset)


def _segments(config: Any) -> int:
    return int(getattr(config, "type_vocab_size", 0) or 0)
