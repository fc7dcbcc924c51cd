"""The mask-transformer: any Hugging Face encoder run with soft positions and a
visible matrix (K-BERT, Eq. 4-6).

No parameter is added, so every checkpoint loads as it is. Which encoders can
be run so is not a list but a test, made on the loaded encoder: :func:`probe`.
"""

import inspect
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

import torch
from safetensors import SafetensorError
from torch import Tensor
from transformers import AutoModel, PreTrainedModel
from transformers.modeling_outputs import ModelOutput

from kbert_core.checkpoints import adapters
from kbert_core.errors import CheckpointError, EncoderError, OptionError, ShapeError
from kbert_core.kbert.ablation import FULL, Ablation
from kbert_core.kbert.flat_tree import Batch
from kbert_core.kbert.visible import additive_mask
from kbert_core.layers import LayeredTwin, cant_tell_apart, twin_of

Attention = Literal["sdpa", "eager"]
PROBE_LENGTH = 8
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Probe:
    """What the probe found out about an encoder.

    Attributes:
        position_offset: added to soft positions; 0 for BERT, padding index
            + 1 for RoBERTa and its children.
    """

    position_offset: int


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
        """The attention implementation used where no maps are asked for."""
        return "eager" if self.model.config._attn_implementation == "eager" else "sdpa"

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
            :func:`attention_mask`), ``position_ids`` (B, N), and
            ``token_type_ids`` (B, N) where the encoder has segments.
        """
        batch = batch.to(self.device)
        if visible is None:
            visible = ablation.visible_in(batch)
        positions = ablation.position_ids(batch) + self.probe.position_offset
        arguments = {
            "input_ids": batch.input_ids,
            "attention_mask": attention_mask(
                self.config, visible.to(self.device), positions, self.model.dtype
            ),
            "position_ids": positions,
        }
        if "token_type_ids" in self._takes and _segments(self.config) > 1:
            arguments["token_type_ids"] = batch.token_type_ids
        return arguments

    def __call__(
        self,
        batch: Batch,
        *,
        ablation: Ablation = FULL,
        visible: Tensor | Sequence[Tensor] | None = None,
        attentions: bool = False,
        hidden_states: bool = False,
    ) -> ModelOutput:
        """Run the encoder without gradients.

        Args:
            batch: B flat trees of N tokens.
            ablation: soft or hard positions, tree or everything visible.
            visible: (B, N, N) bool, used instead of the ablation's; or L of
                them, one a layer.
            attentions, hidden_states: whether to return them.

        Returns:
            What the Hugging Face model returns; ``attentions`` is L tensors
            (B, A, N, N), ``hidden_states`` L + 1 tensors (B, N, H).

        Raises:
            EncoderError: layers that can't be told apart were given
                different matrices.
            ShapeError: there are not as many matrices as layers.
        """
        one = self._one_matrix(visible)
        arguments = self.inputs(batch, ablation=ablation, visible=one)
        arguments |= {
            "output_attentions": attentions,
            "output_hidden_states": hidden_states,
            "return_dict": True,
        }
        if visible is None or one is not None:
            with torch.inference_mode():
                return (self._eager if attentions else self.model)(**arguments)
        masks = layer_masks(
            self.config,
            [own.to(self.device) for own in visible],
            arguments["position_ids"],
            self.model.dtype,
        )
        twin = self._layered_eager if attentions else self._layered
        with torch.inference_mode():
            return twin(masks, **arguments)

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
        return _checked(LayeredTwin(self.model), self.probe.position_offset)

    @cached_property
    def _layered_eager(self) -> LayeredTwin:
        return _checked(LayeredTwin(self._eager), self.probe.position_offset)


def attention_mask(
    config: Any, visible: Tensor, positions: Tensor, dtype: torch.dtype
) -> Tensor | dict[str, Tensor]:
    """Turn the visible matrix into the mask an encoder takes.

    Where some layers attend only within a window (ModernBERT), these get a
    mask of their own; a token is as far as its position says, so that a
    branch is near its mention however many branches stand between.

    Args:
        config: the encoder's.
        visible: (B, N, N) bool.
        positions: (B, N) as the encoder gets them.
        dtype: the encoder's.

    Returns:
        (B, 1, N, N) additive, or two of them by kind of layer.
    """
    everywhere = additive_mask(visible, dtype)
    window = _local_window(config)
    if window is None:
        return everywhere
    near = (positions[:, :, None] - positions[:, None, :]).abs() <= window
    return {
        "full_attention": everywhere,
        "sliding_attention": additive_mask(visible & near, dtype),
    }


def layer_masks(
    config: Any, visible: Sequence[Tensor], positions: Tensor, dtype: torch.dtype
) -> list[Tensor]:
    """Turn a visible matrix a layer into an additive mask a layer.

    Args:
        visible: L of (B, N, N) bool.
        other arguments: as for :func:`attention_mask`.

    Returns:
        L of (B, 1, N, N), local windows cut out where a layer has one.
    """
    made: dict[int, Tensor | dict[str, Tensor]] = {}  # by the matrix: most layers share one
    masks = []
    for number, own in enumerate(visible):
        if id(own) not in made:
            made[id(own)] = attention_mask(config, own, positions, dtype)
        mask = made[id(own)]
        masks.append(mask[config.layer_types[number]] if isinstance(mask, dict) else mask)
    return masks


def load_model(
    path: str | Path,
    auto_class: type = AutoModel,
    *,
    device: str = "auto",
    dtype: torch.dtype = torch.float32,
    **kwargs: Any,
) -> PreTrainedModel:
    """Load a checkpoint from a folder or the hub; safetensors only.

    Args:
        path: a local folder, of a whole model or an adapter, ``package:NAME``,
            or a name on the Hugging Face hub.
        auto_class: one of the ``AutoModelFor...`` classes.
        device: "auto", "cpu", "cuda" or "cuda:N".
        dtype: of the parameters.

    Raises:
        CheckpointError: missing, broken, or not safetensors.
    """
    model, _ = load_model_and_missing(path, auto_class, device=device, dtype=dtype, **kwargs)
    return model


def load_model_and_missing(
    path: str | Path,
    auto_class: type = AutoModel,
    *,
    device: str = "auto",
    dtype: torch.dtype = torch.float32,
    **kwargs: Any,
) -> tuple[PreTrainedModel, list[str]]:
    """Load a checkpoint as :func:`load_model` does, and say what it lacks.

    Returns:
        The model, and the names of the task head's parameters that the
        checkpoint doesn't hold; they are random.
    """
    target = device_named(device)
    path = adapters.located(path)
    arguments = {"use_safetensors": True, "dtype": dtype, "output_loading_info": True, **kwargs}
    try:
        if adapters.is_adapter(path):
            model, missing = adapters.load_merged(
                path, auto_class, load_model_and_missing, dtype=dtype, **kwargs
            )
            return moved(model, target).eval(), missing
        model, info = _from_pretrained(path, auto_class, arguments)
    except (OSError, ValueError, RuntimeError, KeyError, TypeError, SafetensorError) as error:
        raise CheckpointError(_why_not_loaded(path, error)) from error
    body = "" if model.base_model is model else f"{model.base_model_prefix}."
    missing = sorted(name for name in info["missing_keys"] if "pooler" not in name)
    lost = [name for name in missing if name.startswith(body)]
    if lost:
        raise CheckpointError(
            f"{path}: holds the weights of another model than its config.json says "
            f"({len(lost)} are missing, the first is {lost[0]}). Copy or download both again."
        )
    return moved(model, target).eval(), sorted(info["missing_keys"])


def _from_pretrained(
    path: str | Path, auto_class: Any, arguments: dict[str, Any]
) -> tuple[PreTrainedModel, dict[str, Any]]:
    try:
        return auto_class.from_pretrained(str(path), attn_implementation="sdpa", **arguments)
    except (ValueError, RuntimeError) as error:
        if "sdpa" not in str(error).lower() and "scaled_dot" not in str(error).lower():
            raise
        return auto_class.from_pretrained(str(path), attn_implementation="eager", **arguments)


def device_named(name: str) -> torch.device:
    """Turn "auto", "cpu", "cuda" or "cuda:N" into a device.

    Raises:
        OptionError: no such device here.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise OptionError(f"There is no device '{name}'. Use auto, cpu or cuda.") from error
    if device.type not in ("cpu", "cuda"):
        raise OptionError(f"The device '{name}' is neither cpu nor cuda. Use auto, cpu or cuda.")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise OptionError(f"The device '{name}' was asked for and no CUDA device is here. Use cpu.")
    if device.index is not None and device.index >= max(1, torch.cuda.device_count()):
        last = max(0, torch.cuda.device_count() - 1)
        raise OptionError(f"There is no device '{name}'; the last is {device.type}:{last}.")
    return device


def moved(model: PreTrainedModel, device: torch.device) -> PreTrainedModel:
    """Move a model to a device; what ``.to`` does, with a type that checkers follow."""
    torch.nn.Module.to(model, device)
    return model


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
        window = _local_window(encoder.config) or 0
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


def _checked(twin: LayeredTwin, offset: int) -> LayeredTwin:
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


def _local_window(config: Any) -> int | None:
    """How far a local layer sees to either side; None: every layer sees everything."""
    if "sliding_attention" not in (getattr(config, "layer_types", None) or ()):
        return None
    return int(config.sliding_window)


def _segments(config: Any) -> int:
    return int(getattr(config, "type_vocab_size", 0) or 0)


def _why_not_loaded(path: str | Path, error: Exception) -> str:
    folder = Path(path)
    reason = str(error).strip().split("\n")[0][:300]
    if not folder.exists():
        return (
            f"No model at '{path}', neither a folder here nor to be had from the hub ({reason}). "
            "Check the name, or download the model to a folder first."
        )
    if not (folder / "config.json").is_file():
        return f"{folder}: no config.json, so no Hugging Face model. Name the folder that has it."
    if not list(folder.glob("*.safetensors")):
        other = ", ".join(sorted(p.name for p in folder.glob("*.bin"))) or "no weights"
        return (
            f"{folder}: found {other}, expected model.safetensors. Bring a checkpoint of the "
            "released K-BERT or of PyTorch in with `kbert convert`."
        )
    if "ignore_mismatched_sizes" in reason:
        reason = "its weights have other sizes than its config.json states"
    return f"{folder}: the checkpoint can't be read ({reason}). Copy or download it again."
