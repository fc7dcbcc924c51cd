"""The mask-transformer: any Hugging Face encoder, run with soft positions and a visible matrix.

Each of its layers computes mask-self-attention (K-BERT, Eq. 4-6)::

    Q, K, V = h Wq, h Wk, h Wv              (Eq. 4)
    S = softmax((Q Kᵀ + M) / √D)            (Eq. 5)
    h = S V                                 (Eq. 6)

M is 0 where the visible matrix has True and minus infinity where not (``layers.additive_mask``).
Encoders add it after dividing by √D, which for such an M is the same.

No parameter is added, so every checkpoint loads as it is. There is no list of
encoders that can be run so, but a test of the loaded encoder: :func:`probe`.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Literal, cast, get_args

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.modeling_outputs import ModelOutput

from kbert_core.errors import EncoderError, ShapeError
from kbert_core.kbert.flat_tree import Batch
from kbert_core.kbert.visible import FULL, Ablation, mask_mod
from kbert_core.layers import (
    ANOTHER,
    LayeredTwin,
    attention_mask,
    cant_tell_apart,
    check_architecture,
    layer_masks,
    local_window,
    positions_of,
    twin_of,
)

Attention = Literal["sdpa", "eager", "flex_attention"]
PROBE_LENGTH = 8
_UNFIT = (  # what an encoder raises that can't take what it is given
    *(TypeError, ValueError, RuntimeError, IndexError, NotImplementedError),
    *(AssertionError, AttributeError),
)


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
        self._takes = set(inspect.signature(model.forward).parameters)

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
            ablation: soft or hard positions, tree or everything visible.
            visible: (B, N, N) bool, used instead of the ablation's; or L of them, one a layer.
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
        _check_flex_attention(self.model)
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
        ids = batch.input_ids
        arguments = {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
        segments = getattr(self.config, "type_vocab_size", 0) or 0
        if "token_type_ids" in self._takes and segments > 1:
            arguments["token_type_ids"] = batch.token_type_ids
        return arguments

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
        return _checked(LayeredTwin(self.model), self.position_offset)

    @cached_property
    def _layered_eager(self) -> LayeredTwin:
        return _checked(LayeredTwin(_eager_twin(self.model)), self.position_offset)


def _eager_twin(model: PreTrainedModel) -> PreTrainedModel:
    twin = twin_of(model)
    twin.set_attn_implementation("eager")
    return twin


def _check_flex_attention(model: PreTrainedModel) -> None:
    """Refuse FlexAttention off CUDA: PyTorch's code for it writes over other memory there."""
    if model.config._attn_implementation == "flex_attention" and model.device.type != "cuda":
        raise EncoderError(
            f"FlexAttention needs CUDA, and the model is on '{model.device}'. "
            'Say model.set_attn_implementation("sdpa").'
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
    _check_flex_attention(model)
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


def _checked(twin: LayeredTwin, offset: int) -> LayeredTwin:
    """Refuse an encoder whose layers ignore their own masks and use the one given to all."""
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
