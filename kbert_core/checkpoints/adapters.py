"""Models whose encoder is elsewhere: low-rank adapters, and what is inserted between layers.

A low-rank adapter (LoRA, Hu et al. 2021) is a small difference to an encoder. Its folder
holds what ``peft`` saves, the low-rank matrices and the whole task head, and a config with
our card; the encoder and its tokenizer stay where they are, named in
``adapter_config.json`` and known by a hash of their weights. Loading merges the two, so
that an adapted model costs no more than any other.

A folder of what is inserted between the layers of an encoder that stayed as it was holds these
weights alone; its encoder is named in ``config.json``, and known in the same way.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import transformers
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from transformers import PreTrainedModel

from kbert_core.checkpoints.encoders import CONFIG_FILE, encoder_at, is_adapter
from kbert_core.errors import CheckpointError
from kbert_core.files import are_texts, json_object
from kbert_core.layers import INSERTED

WEIGHTS_FILE = "adapter_model.safetensors"
HASH_KEY, ENCODER_KEY = "kbert_encoder_sha256", "kbert_frozen_encoder"  # in config.json
LOADED_WITHOUT = ("pooler",)  # an encoder's parts that no checkpoint needs to hold
RANKS = range(1, 10_000)
COPY_AGAIN = "Copy the folder again, or train the adapter again."


@dataclass(frozen=True)
class Adapter:
    """An adapter's folder, read but not loaded."""

    folder: Path
    encoder: str  # a folder, ``package:NAME``, or a name on the hub
    encoder_hash: str  # see :func:`weights_hash`
    model_class: Any  # of ``transformers``, with the task head
    labels: Mapping[str, str]  # the head's, by their numbers as JSON has them
    rank: int
    alpha: float  # the low-rank products are scaled by alpha / rank
    head: tuple[str, ...]  # names of the modules that are saved whole


def head_modules(model: PreTrainedModel) -> list[str]:
    """Names of the modules trained whole: the task head, and the encoder's pooler.

    Modules whose parameters are the encoder's own (a fill-mask head's
    decoder, tied to the embeddings) aren't among them.
    """
    encoder = {id(parameter) for parameter in model.base_model.parameters()}
    head: list[str] = []
    for name, module in model.named_modules():  # a module comes before those within it
        own = {id(parameter) for parameter in module.parameters()}
        if own and not own & encoder and not under(name, head):
            head.append(name)
    parts = dict(model.base_model.named_children())
    return head + [f"{model.base_model_prefix}.{p}" for p in LOADED_WITHOUT if parts.get(p)]


def weights_hash(model: PreTrainedModel, head: Sequence[str]) -> str:
    """Hash every parameter that isn't of the head's modules, whatever names and order they have."""
    digests = []
    for name, parameter in model.named_parameters():
        if not under(name, head):
            digest = sha256(repr(tuple(parameter.shape)).encode())
            values: Any = parameter.detach().cpu().contiguous().numpy()
            digest.update(values)
            digests.append(digest.digest())
    return sha256(b"".join(sorted(digests))).hexdigest()


def hash_without_inserted(model: PreTrainedModel) -> str:
    """Hash the encoder's own weights, without the task head and what is inserted."""
    inserted = [name for name, _ in model.named_modules() if name.endswith(f".{INSERTED}")]
    return weights_hash(model, [*head_modules(model), *inserted])


def read_adapter(path: str | Path) -> Adapter:
    """Read an adapter's folder and find its encoder.

    Raises:
        CheckpointError: a file is missing or broken, or the encoder isn't there.
    """
    folder = Path(path)
    files = folder / CONFIG_FILE, folder / "config.json"
    settings, config = (json_object(file, CheckpointError, COPY_AGAIN) for file in files)
    name, rank, alpha = (settings.get(k) for k in ("base_model_name_or_path", "r", "lora_alpha"))
    head, digest = settings.get("modules_to_save") or [], config.get(HASH_KEY)
    classes, labels = config.get("architectures"), config.get("id2label") or {}
    kind = getattr(transformers, str(classes[0]), None) if are_texts(classes) and classes else None
    if not (
        settings.get("peft_type") == "LORA"
        and not settings.get("megatron_config")  # for it peft imports a module named here
        and (isinstance(name, str) and name and isinstance(digest, str))
        and (type(rank) is int and rank in RANKS and type(alpha) in (int, float))
        and (are_texts(head) and isinstance(labels, dict) and are_texts([*labels.values()]))
        and (isinstance(kind, type) and issubclass(kind, PreTrainedModel))
    ):
        raise CheckpointError(
            f"{folder}: this isn't an adapter made by `kbert train --adapter` (its config.json "
            f"lacks {HASH_KEY} or architectures, or {CONFIG_FILE} is of another kind). Merge it "
            "into its encoder with peft and load the whole model."
        )
    encoder = encoder_at(folder, name)
    if is_adapter(encoder):
        raise CheckpointError(f"{folder}: its encoder {encoder} is also an adapter. {COPY_AGAIN}")
    return Adapter(
        folder, encoder, str(digest), kind, labels, rank, float(cast(float, alpha)), tuple(head)
    )


def merged(model: PreTrainedModel, adapter: Adapter) -> PreTrainedModel:
    """Merge an adapter into its encoder, in place.

    Raises:
        CheckpointError: it was trained on another encoder, or its weights
            are broken. Others, by peft: its config can't be used.
    """
    from peft import LoraConfig

    now = weights_hash(model, adapter.head)
    check_encoder(adapter.folder, adapter.encoder, now, adapter.encoder_hash)
    peft = peft_model(model, LoraConfig.from_pretrained(str(adapter.folder)))
    fill(peft, adapter)
    return cast(PreTrainedModel, peft.merge_and_unload())


def misfit(
    tensors: Mapping[str, Tensor], wanted: Mapping[str, Tensor], names: Mapping[str, str]
) -> str | None:
    """Say which tensor is missing, not wanted or of another shape; ``names``: how it is called."""
    for name in sorted({*tensors, *wanted}):
        shape, right = (tuple(of[name].shape) if name in of else None for of in (tensors, wanted))
        if shape != right:
            was = "is missing" if shape is None else f"has the shape {shape}"
            return f"{names.get(name, name)} {was}, expected {right or 'none of that name'}"
    return None


def encoder_of(path: str | Path) -> str:
    """Find the encoder of an adapter, or of a folder of what is inserted.

    Raises:
        CheckpointError: it isn't there, or isn't named.
    """
    if is_adapter(path):
        return read_adapter(path).encoder
    file = Path(path) / "config.json"
    name = json_object(file, CheckpointError, COPY_AGAIN).get(ENCODER_KEY)
    if not isinstance(name, str) or not name:
        raise CheckpointError(f"{file}: names no encoder ({ENCODER_KEY}). {COPY_AGAIN}")
    return encoder_at(Path(path), name)


def check_encoder(
    folder: str | Path, encoder: str, now: str, before: Any, *, what: str = "adapter"
) -> None:
    """Refuse an encoder with other weights than those that a model was trained on.

    Args:
        now, before: its hash, see :func:`weights_hash`, and that of the training.
        what: the model is.

    Raises:
        CheckpointError: see above.
    """
    if now != before:
        raise CheckpointError(
            f"{folder}: this {what} was trained on other weights than {encoder} has now, so the "
            "two don't fit together. Restore the encoder's old weights, or train the "
            f"{what} again: its card has the command."
        )


def peft_model(model: PreTrainedModel, config: Any) -> Any:
    """The model with its linear layers adapted, without a warning that no user can heed."""
    from peft import PeftModel

    asked_by_peft = "`is_gradient_checkpointing` is deprecated"
    warnings.filterwarnings("ignore", message=asked_by_peft, category=FutureWarning)
    return PeftModel(model, config)


def fill(peft: Any, adapter: Adapter) -> None:
    """Put an adapter's tensors into a model, if they are those that such an adapter has."""
    from peft import get_peft_model_state_dict, set_peft_model_state_dict

    file = adapter.folder / WEIGHTS_FILE
    try:
        tensors = {name: tensor.float() for name, tensor in load_file(file).items()}
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{file}: can't be read ({error}). {COPY_AGAIN}") from error
    wanted = get_peft_model_state_dict(peft, save_embedding_layers=False)
    if wrong := misfit(tensors, wanted, {}):
        raise CheckpointError(
            f"{file}: {wrong} with rank {adapter.rank} as in {CONFIG_FILE}. {COPY_AGAIN}"
        )
    set_peft_model_state_dict(peft, tensors)


def under(name: str, modules: Sequence[str]) -> bool:
    """Say whether a module or parameter is one of some modules, or within one."""
    return any(name == module or name.startswith(f"{module}.") for module in modules)
