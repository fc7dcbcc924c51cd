"""Low-rank adapters: a small difference to an encoder, kept beside it (LoRA, Hu et al. 2021).

An adapter's folder holds what ``peft`` saves, the low-rank matrices and the
whole task head, and a config with our card; the encoder and its tokenizer
stay where they are, named in ``adapter_config.json`` and known by a hash of
their weights. Loading merges the two, so that an adapted model costs no more than any other.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import transformers
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PreTrainedModel

from kbert_core.checkpoints.encoders import (
    CONFIG_FILE,
    FROZEN_FILE,
    PACKAGE,
    encoder_at,
    encoder_name,
    is_adapter,
)
from kbert_core.errors import CheckpointError, EncoderError, OptionError
from kbert_core.files import are_texts, json_object
from kbert_core.layers import inserted_in

WEIGHTS_FILE = "adapter_model.safetensors"
WHOLE_FILES = ("model.safetensors", "tokenizer.json", "tokenizer_config.json")
HASH_KEY = "kbert_encoder_sha256"  # in config.json
LOADED_WITHOUT = ("pooler",)  # an encoder's parts that no checkpoint needs to hold
RANKS = range(1, 10_000)
COPY_AGAIN = "Copy the folder again, or train the adapter again."
_HASHES: dict[tuple[Any, ...], str] = {}  # of encoders loaded before, by their files and times


@dataclass(frozen=True)
class Adapter:
    """An adapter's folder, read but not loaded."""

    folder: Path
    encoder: str | Path  # a folder, or a name on the hub
    encoder_hash: str  # see :func:`weights_hash`
    model_class: Any  # of ``transformers``, with the task head
    labels: Mapping[str, str]  # the head's, by their numbers as JSON has them
    rank: int
    alpha: float  # the low-rank products are scaled by alpha / rank
    head: tuple[str, ...]  # names of the modules that are saved whole


# Making one


def check_options(rank: int, alpha: float | None, *, encoder: str, output: str | Path) -> None:
    """Refuse an adapter that can't be trained on this encoder or into this folder.

    Raises:
        OptionError: see above.
    """
    if is_adapter(encoder):
        first = read_adapter(encoder)
        if rank != first.rank or alpha not in (None, first.alpha):
            raise OptionError(
                f"{encoder} is an adapter of rank {first.rank} and alpha {first.alpha:g}, and "
                f"keeps them when it is trained further. Give --adapter {first.rank} without "
                "--adapter-alpha; or leave --adapter out, to train the whole merged model."
            )
        encoder = str(first.encoder)
    if Path(encoder).is_dir() and Path(encoder).resolve() == Path(output).resolve():
        raise OptionError(
            f"{output} is the encoder's own folder, which the adapter needs. Name another --output."
        )


def attach(
    model: PreTrainedModel,
    *,
    rank: int,
    alpha: float | None = None,
    missing: Iterable[str] = (),
    further: Adapter | None = None,
) -> Any:
    """Put a low-rank adapter on every linear layer of an encoder, in place.

    What was there is frozen but for the task head, which is trained whole.
    An adapter that hasn't been trained changes nothing.

    Args:
        model: with its task head; its config gets the hash of the encoder's weights.
        rank: of the low-rank products.
        alpha: they are scaled by alpha / rank; None: twice the rank.
        missing: parameters that the encoder's checkpoint didn't hold.
        further: an adapter to start from, of this rank and alpha.

    Returns:
        The ``PeftModel`` around the model.

    Raises:
        EncoderError: it has no linear layers.
        CheckpointError: a missing parameter is neither adapted nor of the head; or the
            adapter to start from is broken, or was trained on another encoder.
        OptionError: that adapter is for another task or other labels.
    """
    from peft import LoraConfig

    head, body = head_modules(model), [model.base_model_prefix]
    lost = [name for name in missing if not _under(name, head)]
    if lost:
        raise CheckpointError(
            f"The encoder lacks {lost[0]}. An adapter can't store it, because it is not part of "
            "the task head. Train the whole model without --adapter."
        )
    layers = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    linear = [name for name in layers if _under(name, body) and not _under(name, head)]
    if not linear:
        raise EncoderError(
            f"{type(model).__name__} has no linear layers to adapt. Train it without --adapter."
        )
    encoder_hash, scale = weights_hash(model, head), 2 * rank if alpha is None else alpha
    setattr(model.config, HASH_KEY, encoder_hash)
    options: dict[str, Any] = {"r": rank, "lora_alpha": scale, "target_modules": linear}
    if further:
        _check_encoder(further, encoder_hash)
        _check_head(further, model)
    peft = _peft_model(model, LoraConfig(**options, modules_to_save=head))
    if further:
        _fill(peft, further)
    return peft


def _check_head(adapter: Adapter, model: PreTrainedModel) -> None:
    labels = {str(number): label for number, label in dict(model.config.id2label or {}).items()}
    if type(model) is not adapter.model_class or (adapter.labels and adapter.labels != labels):
        now, before = (
            f"{kind.__name__}: {', '.join(names.values())}"
            for kind, names in ((type(model), labels), (adapter.model_class, adapter.labels))
        )
        raise OptionError(
            f"The adapter {adapter.folder} has the task head ({before}), but this training needs "
            f"({now}). Give its encoder, {adapter.encoder}, or leave --adapter out to train the "
            "whole merged model."
        )


def head_modules(model: PreTrainedModel) -> list[str]:
    """Names of the modules trained whole: the task head, and the encoder's pooler.

    Modules whose parameters are the encoder's own (a fill-mask head's
    decoder, tied to the embeddings) aren't among them.
    """
    encoder = {id(parameter) for parameter in model.base_model.parameters()}
    head: list[str] = []
    for name, module in model.named_modules():  # a module comes before those within it
        own = {id(parameter) for parameter in module.parameters()}
        if own and not own & encoder and not _under(name, head):
            head.append(name)
    parts = dict(model.base_model.named_children())
    return head + [f"{model.base_model_prefix}.{p}" for p in LOADED_WITHOUT if parts.get(p)]


def weights_hash(model: PreTrainedModel, head: Sequence[str]) -> str:
    """Hash every parameter that isn't of the head's modules, whatever names and order they have."""
    digests = []
    for name, parameter in model.named_parameters():
        if not _under(name, head):
            digest = sha256(repr(tuple(parameter.shape)).encode())
            values: Any = parameter.detach().cpu().contiguous().numpy()
            digest.update(values)
            digests.append(digest.digest())
    return sha256(b"".join(sorted(digests))).hexdigest()


def save(peft: Any, folder: str | Path, *, encoder: str) -> None:
    """Save an attached adapter, its head, what is inserted between layers, and the model's config.

    Of the encoder only the name is kept.

    Raises:
        OSError, SafetensorError: a file can't be written.
    """
    from peft import get_peft_model_state_dict

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    weights = get_peft_model_state_dict(peft, save_embedding_layers=False)
    tensors = {name: tensor.contiguous() for name, tensor in weights.items()}
    save_file(tensors, folder / WEIGHTS_FILE, metadata={"format": "pt"})
    settings, model = peft.peft_config["default"], peft.get_base_model()
    settings.base_model_name_or_path, settings.inference_mode = encoder, True
    settings.save_pretrained(folder)
    if inserted := inserted_in(model):
        save_file(inserted, folder / FROZEN_FILE, metadata={"format": "pt"})
    model.config.architectures = [type(model).__name__]
    model.config.dtype = str(model.dtype).removeprefix("torch.")
    model.config.save_pretrained(folder)


def described(peft: Any, encoder: str, output: str | Path) -> dict[str, Any]:
    """What a model's card says of an adapter: encoder, rank and sizes in parameters."""
    name = encoder_name(encoder, output)
    settings, (trained, both) = peft.peft_config["default"], peft.get_nb_trainable_parameters()
    return {
        "encoder": Path(name).name if Path(encoder).is_dir() and PACKAGE not in name else name,
        "adapter": {"rank": settings.r, "alpha": settings.lora_alpha, "trained": trained},
        "parameters": both - trained,  # as many as with the adapter merged: the head is there twice
    }


def forget_others(folder: str | Path, *kept: str) -> None:
    """Remove the files of other kinds of model: a folder holds a whole one, an adapter or a KAR."""
    for name in {*WHOLE_FILES, CONFIG_FILE, WEIGHTS_FILE, FROZEN_FILE} - {*kept}:
        (Path(folder) / name).unlink(missing_ok=True)


# Loading one


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

    files = sorted(Path(adapter.encoder).glob("*.safetensors"))
    stamps = [(file, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    key = (adapter.model_class, adapter.head, *stamps)
    if not files or key not in _HASHES:  # once for each version of an encoder's files
        _HASHES[key] = weights_hash(model, adapter.head)
    _check_encoder(adapter, _HASHES[key])
    peft = _peft_model(model, LoraConfig.from_pretrained(str(adapter.folder)))
    _fill(peft, adapter)
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


def _check_encoder(adapter: Adapter, encoder_hash: str) -> None:
    if encoder_hash != adapter.encoder_hash:
        raise CheckpointError(
            f"{adapter.folder}: this adapter was trained on other weights than {adapter.encoder} "
            "has now, so the two don't fit together. Restore the encoder's old weights, or "
            "train the adapter again: its card has the command."
        )


def _peft_model(model: PreTrainedModel, config: Any) -> Any:
    """The model with its linear layers adapted, without a warning that no user can heed."""
    from peft import PeftModel

    asked_by_peft = "`is_gradient_checkpointing` is deprecated"
    warnings.filterwarnings("ignore", message=asked_by_peft, category=FutureWarning)
    return PeftModel(model, config)


def _fill(peft: Any, adapter: Adapter) -> None:
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


def _under(name: str, modules: Sequence[str]) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in modules)
