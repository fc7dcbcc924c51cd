"""The mask-transformer: any Hugging Face encoder, run with soft positions and a visible matrix.

Each of its layers computes mask-self-attention (K-BERT, Eq. 4-6)::

    Q, K, V = h Wq, h Wk, h Wv              (Eq. 4)
    S = softmax((Q Kᵀ + M) / √D)            (Eq. 5)
    h = S V                                 (Eq. 6)

M is 0 where the visible matrix has True and minus infinity where not (``layers.additive_mask``).
Encoders add it after dividing by √D, which for such an M is the same.

No parameter is added, so every checkpoint loads as it is. Which encoders can be run so is found
out by a trial of the loaded one, ``kbert_core.probing``.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Literal, cast, get_args

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.modeling_outputs import ModelOutput

from kbert_core.errors import ShapeError
from kbert_core.kbert.flat_tree import Batch
from kbert_core.kbert.visible import FULL, Ablation, mask_mod
from kbert_core.layers import (
    LayeredTwin,
    attention_mask,
    check_flex_attention,
    inputs_of,
    layer_masks,
    positions_of,
    twin_of,
)
from kbert_core.probing import layered, probe

Attention = Literal["sdpa", "eager", "flex_attention"]


class MaskTransformer:
    """An encoder, with or without a task head, that reads flat trees.

    The model never changes. States and attention maps come from twins that share its parameters:
    transformers puts hooks on a model that is asked for them. Maps are computed eagerly. Another
    twin runs layers that have different matrices, see :class:`LayeredTwin`.

    Args:
        model: any Hugging Face encoder or task model built on one.

    Raises:
        EncoderError: the encoder is unfit; the message says which test it failed.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = model.eval()
        self.config: Any = model.config
        self.position_offset = probe(model)

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self.model.device

    @property
    def attention(self) -> Attention:
        """The attention implementation used where no maps are asked for.

        ``model.set_attn_implementation("flex_attention")`` runs it by blocks that see each other,
        for long rows on CUDA.
        """
        name = self.config._attn_implementation
        return cast(Attention, name) if name in get_args(Attention) else "sdpa"

    @property
    def max_length(self) -> int | None:
        """The most tokens the encoder has positions for; None: no limit."""
        return positions_of(self.model)

    @property
    def layer_count(self) -> int:
        """L, the number of layers."""
        return int(self.config.num_hidden_layers)

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
        """Run the encoder (Eq. 4-6 in each layer); gradients flow where the caller lets them.

        Args:
            batch: B flat trees of N tokens.
            ablation: soft or hard positions, tree or everything visible, segments or none.
            visible: (B, N, N) or (B, A, N, N) bool in place of the ablation's; or L, one a layer.
            attentions, hidden_states: whether to return them.
            model: run in place of the encoder, such as a wrapper of it that trains.

        Returns:
            What the Hugging Face model returns; ``attentions`` is L tensors (B, A, N, N),
            ``hidden_states`` L + 1 tensors (B, N, H).

        Raises:
            EncoderError: layers that can't be told apart were given different matrices.
            ShapeError: there are not as many matrices as layers.
        """
        if attentions and visible is None:  # maps are computed eagerly, which takes no block mask
            visible = ablation.visible_in(batch)
        same = self._one_matrix(visible)
        arguments = self.inputs(batch, ablation=ablation, visible=same) | {"return_dict": True}
        arguments |= {"output_attentions": attentions, "output_hidden_states": hidden_states}
        if visible is None or same is not None:
            twin = self._eager if attentions else self._recorded if hidden_states else self.model
            return (model or twin)(**arguments)
        matrices, positions = [m.to(self.device) for m in visible], arguments["position_ids"]
        masks = layer_masks(self.config, matrices, positions, self.model.dtype)
        return (self._layered_eager if attentions else self._layered)(masks, **arguments)

    def inputs(
        self, batch: Batch, *, ablation: Ablation = FULL, visible: Tensor | None = None
    ) -> dict[str, Any]:
        """Turn a batch into the encoder's own arguments; see :meth:`forward`.

        Returns:
            ``input_ids`` (B, N), ``attention_mask`` (M; see :func:`attention_mask`; of
            FlexAttention a block mask), ``position_ids`` (B, N), and ``token_type_ids`` (B, N)
            where the encoder has segments.

        Raises:
            EncoderError: FlexAttention is asked for off CUDA.
        """
        check_flex_attention(self.model)
        batch = batch.to(self.device)
        positions = ablation.position_ids(batch) + self.position_offset
        mask: Any
        if self.attention == "flex_attention" and visible is None:
            from torch.nn.attention.flex_attention import create_block_mask  # slow to import

            rows, length = positions.shape
            sees = mask_mod(*ablation.seen_by(batch))
            mask = create_block_mask(sees, rows, None, length, length, device=self.device)
        else:
            visible = ablation.visible_in(batch) if visible is None else visible
            mask = attention_mask(self.config, visible.to(self.device), positions, self.model.dtype)
        inputs = inputs_of(self.model, batch.input_ids, mask, ablation.segment_ids(batch))
        return {**inputs, "position_ids": positions}

    def _one_matrix(self, visible: Tensor | Sequence[Tensor] | None) -> Tensor | None:
        """Return the matrix that all layers share; None if none is given, or layers differ."""
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
    def _recorded(self) -> PreTrainedModel:
        return twin_of(self.model)

    @cached_property
    def _eager(self) -> PreTrainedModel:
        return _eager_twin(self.model)

    @cached_property
    def _layered(self) -> LayeredTwin:
        return layered(LayeredTwin(self.model), self.position_offset)

    @cached_property
    def _layered_eager(self) -> LayeredTwin:
        return layered(LayeredTwin(_eager_twin(self.model)), self.position_offset)


def _eager_twin(model: PreTrainedModel) -> PreTrainedModel:
    twin = twin_of(model)
    twin.set_attn_implementation("eager")
    return twin
