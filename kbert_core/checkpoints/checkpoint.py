"""A checkpoint: its card, its tokenizer, and its model on a device."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from safetensors import safe_open
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForTokenClassification,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from kbert_core.checkpoints.encoders import (
    encoder_at,
    is_adapter,
    is_frozen,
    located,
)
from kbert_core.errors import CheckpointError, EncoderError, KBertError, OptionError
from kbert_core.files import are_texts, json_object
from kbert_core.knowledge.surface_forms import ALL_RULES, NameRules
from kbert_core.layers import ANOTHER, check_architecture
from kbert_core.options import check_fields
from kbert_core.systems import K_BERT, reader_class
from kbert_core.text import WordPieces

KINDS = ("architectures", "problem_type")  # what a config without a card says of the task
CARD_KEY = "kbert"  # where a checkpoint's config keeps what it was trained with
HEADS = {  # by the end of a class's name: the tasks that its head fits, the likeliest first
    "ForTokenClassification": ("ner",),
    "ForSequenceClassification": ("classify", "pair", "rank"),
    "ForQuestionAnswering": ("qa",),
    "ForMaskedLM": ("mask",),
}
MOST_LAYERS, MOST_SIDE, MOST_POSITIONS = 1_000, 1_000_000, 10_000_000  # in a config.json
SIZES = re.compile(
    r"num_.*|n_.*|(?!window|image|patch).*_(size|layers|heads|dim|labels|positions)|dim|"
    "max_position.*"
)
QUESTIONS = "ForQuestionAnswering"  # two logits a token, under another name than ours
NOT_KNOWN = "\U00013000"  # a hieroglyph: a letter, and in no vocabulary
TOKENIZER_FILES = (  # without one of these transformers makes up an empty tokenizer
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "sentencepiece.bpe.model",
    "spiece.model",
    "tokenizer.model",
)
ONLY_DATA: Any = {"trust_remote_code": False}  # no code of a folder is run, nor asked for
COPY_AGAIN = f"Copy the model again, or take '{CARD_KEY}' out of its config.json."


@dataclass(frozen=True)
class Card:
    """A model card: what a checkpoint was trained for and with, kept in its config.

    Attributes:
        task: a key of ``TASKS``; None for an encoder without a task head.
        reading: how texts were read in training, the frozen configuration of
            the system that read them; None: K-BERT's defaults.
        knowledge: names of the graphs it was trained with; empty: none.
        notes: anything else: data, command, seed, scores.
        others: tasks that the head fits as well, where only the model's class tells the task.
    """

    task: str | None = None
    reading: Any = None
    knowledge: tuple[str, ...] = ()
    notes: Mapping[str, Any] | None = None
    others: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        if self.reading is None:
            object.__setattr__(self, "reading", reader_class(K_BERT).config_class())

    @property
    def names(self) -> NameRules:
        """How it compares names: as in its training; by all rules if no graph was read there."""
        trained: NameRules = self.reading.options.names
        return trained if self.knowledge else ALL_RULES

    @property
    def system(self) -> str:
        """The system whose configuration this is, such as "k-bert"."""
        return str(self.reading.system)

    @classmethod
    def of(cls, config: Any) -> "Card":
        """Read the card from a Hugging Face config.

        A config without a card gives one with the task that fits the model's class, or an empty
        one. A card that names no system is K-BERT's.

        Raises:
            CheckpointError: the card is broken, or of an
                unknown system, or has another system's configuration.
        """
        data = getattr(config, CARD_KEY, None)
        if not data:
            if getattr(config, "problem_type", None) == "multi_label_classification":
                return cls("multilabel")
            kinds = [*map(str, getattr(config, "architectures", None) or ())]
            heads = (HEADS[end] for end in HEADS if any(kind.endswith(end) for kind in kinds))
            fitting = next(heads, None)
            return cls(fitting[0], others=fitting[1:]) if fitting else cls()
        if not isinstance(data, dict):
            raise CheckpointError(
                f"The model's card is {data!r}, expected a JSON object with fields. {COPY_AGAIN}"
            )
        rest = dict(data)
        own = {name: rest.pop(name) for name in ("task", "notes", "knowledge") if name in rest}
        system = rest.pop("system", K_BERT)
        try:
            return cls(reading=reader_class(system).config_class.from_dict(rest), **own)
        except (ValueError, TypeError, AttributeError, OptionError) as error:
            raise CheckpointError(
                f"The model's card doesn't fit the system '{system}' ({error}). {COPY_AGAIN}"
            ) from error

    def write_to(self, config: Any) -> None:
        """Put the card into a config, to be saved with the model."""
        data = {
            "system": self.system,
            "task": self.task,
            **self.reading.as_dict(),
            "knowledge": list(self.knowledge),
            "notes": dict(self.notes or {}),
        }
        setattr(config, CARD_KEY, json.loads(json.dumps(data)))


def card_of(path: str | Path) -> Card:
    """Read the card of a checkpoint, in a folder or on the hub, without its weights.

    Raises:
        CheckpointError: its config.json is broken, or has a card that :meth:`Card.of` refuses; or
            an encoder that it names isn't there.
    """
    path = located(path)
    file = Path(path) / "config.json"
    if file.is_file():
        data = json_object(file, CheckpointError, "Copy the model again.")
        stated = SimpleNamespace(**{k: data.get(k) for k in (CARD_KEY, *KINDS)})
        try:
            card = Card.of(stated)
        except CheckpointError as error:
            raise CheckpointError(f"{file}: {error}") from error
        found = partial(encoder_at, Path(path))
        return replace(card, reading=card.reading.with_encoders(found))
    try:
        config = None if Path(path).exists() else load_config(path)  # on the hub
    except CheckpointError:
        config = None  # loading the model will say what is wrong
    return Card.of(config)


def load_tokenizer(path: str | Path) -> PreTrainedTokenizerBase:
    """Load a checkpoint's tokenizer.

    Raises:
        CheckpointError: there is none.
    """
    path = located(path)
    if is_adapter(path) or is_frozen(path):
        from kbert_core.checkpoints.adapters import encoder_of

        path = located(encoder_of(path))
    folder = Path(path)
    if folder.is_dir() and not any((folder / name).is_file() for name in TOKENIZER_FILES):
        from kbert_core.checkpoints.unreadable import COPY_TOKENIZER

        raise CheckpointError(f"{path}: found no tokenizer. {COPY_TOKENIZER}")
    with _refusing(path, tokenizer=True):
        _ask_hub(path)
        tokenizer = AutoTokenizer.from_pretrained(str(path), **ONLY_DATA)
        length, last = tokenizer.model_max_length, max(tokenizer.get_vocab().values(), default=0)
        tokenizer("a"), tokenizer("a", "a")  # what is wrong with special tokens is told only here,
        if tokenizer.is_fast:  # and that it has none for what it doesn't know
            WordPieces(tokenizer).tokenize([NOT_KNOWN])
        if not isinstance(length, int | float) or last > 2 * len(tokenizer):
            raise ValueError(
                f"its model_max_length is {length!r} and its last token has the number {last}"
            )
    return tokenizer


def load_config(path: str | Path, **changes: Any) -> Any:
    """Load the Hugging Face config of an encoder or an adapter, with changes to what it says.

    Raises:
        CheckpointError: it can't be read.
        EncoderError: it is of no encoder of tokens.
    """
    path = located(path)
    _check_sizes(Path(path))
    with _refusing(path):
        _ask_hub(path)
        config = AutoConfig.from_pretrained(str(path), **ONLY_DATA, **changes)
        check_architecture(config)
    config._attn_implementation = None  # it may name code on the hub, to be fetched and run
    config.return_dict = True  # as every reader expects
    return config


def _check_sizes(folder: Path) -> None:
    """Refuse a config.json with sizes that its weights can't have, before anything is built by it.

    Raises:
        CheckpointError: see above.
    """
    file = folder / "config.json"
    if not file.is_file():
        return
    longest = 0  # side of a tensor
    for weights in folder.glob("model*.safetensors"):
        with _refusing(folder), safe_open(weights, framework="pt") as tensors:
            shapes = (tensors.get_slice(name).get_shape() for name in tensors.keys())  # noqa: SIM118
            longest = max([longest, *(side for shape in shapes for side in shape)])
    for name, size in json_object(file, CheckpointError, "Copy the model again.").items():
        most = MOST_LAYERS if "layer" in name else longest or MOST_SIDE
        most = MOST_POSITIONS if "position" in name else most
        least = -1 if "position" in name else 0  # -1: without a limit
        if SIZES.fullmatch(name) and isinstance(size, int | float) and not least <= size <= most:
            raise CheckpointError(
                f"{file}: {name} is {size}, and with the model's weights it can be {least} to "
                f"{most}. Copy or download the folder again."
            )


def load_model(path: str | Path, auto_class: type = AutoModel, **options: Any) -> PreTrainedModel:
    """Load a checkpoint; arguments and errors as of :func:`load_model_and_missing`."""
    return load_model_and_missing(path, auto_class, **options)[0]


def load_model_and_missing(
    path: str | Path,
    auto_class: type = AutoModel,
    *,
    device: str = "auto",
    dtype: torch.dtype = torch.float32,
    **kwargs: Any,
) -> tuple[PreTrainedModel, list[str]]:
    """Load a checkpoint from a folder or the hub, safetensors only, and say what it lacks.

    Args:
        path: a local folder, of a whole model or an adapter, ``package:NAME``,
            or a name on the Hugging Face hub.
        auto_class: one of the ``AutoModelFor...`` classes.
        device: "auto", "cpu", "cuda" or "cuda:N".
        dtype: of the parameters.

    Returns:
        The model, and the names of the task head's parameters that the
        checkpoint doesn't hold; they are random.

    Raises:
        CheckpointError: missing, broken, or not safetensors.
    """
    target = device_named(device)
    path = located(path)
    load = _load_frozen if is_frozen(path) else _load_whole
    load = _load_adapted if is_adapter(path) else load
    with _refusing(path), no_progress_bars():
        model, missing = load(path, auto_class, dtype, kwargs)
    labels: dict[Any, Any] = dict(model.config.id2label or {})
    if sorted(labels) != list(range(len(labels))) or not are_texts([*labels.values()]):
        raise CheckpointError(
            f"{path}: its labels are {labels}, expected texts with the numbers 0, 1, 2 and so on. "
            "Mend id2label in its config.json, or copy the model again."
        )
    model.to(target)  # type: ignore[arg-type]
    return model.eval(), missing


def _load_whole(
    path: str | Path, auto_class: Any, dtype: torch.dtype, changes: dict[str, Any]
) -> tuple[PreTrainedModel, list[str]]:
    mismatched = changes.pop("ignore_mismatched_sizes", False)
    config = load_config(path, **changes)
    kinds, renamed = [*map(str, config.architectures or ())], {}
    if auto_class is AutoModelForTokenClassification and kinds and kinds[0].endswith(QUESTIONS):
        renamed = {"key_mapping": {r"^qa_outputs\.": "classifier."}}
        config.id2label, config.label2id = {0: "start", 1: "end"}, {"start": 0, "end": 1}
    if type(config) not in getattr(auto_class, "_model_mapping", {type(config)}):
        kind, head = config.model_type, auto_class.__name__.removeprefix("AutoModel")
        raise EncoderError(f"{path}: transformers has no {head or 'encoder'} for {kind}. {ANOTHER}")
    model, info = auto_class.from_pretrained(
        str(path),
        config=config,
        use_safetensors=True,
        dtype=dtype,
        ignore_mismatched_sizes=mismatched,
        output_loading_info=True,
        **renamed,
        **ONLY_DATA,
    )
    body = "" if model.base_model is model else f"{model.base_model_prefix}."
    missing = sorted(name for name in info["missing_keys"] if "pooler" not in name)
    lost = [name for name in missing if name.startswith(body)]
    if lost:
        raise CheckpointError(
            f"{path}: holds the weights of another model than its config.json says "
            f"({len(lost)} are missing, the first is {lost[0]}). Copy or download both again."
        )
    return model, sorted(info["missing_keys"])


def _load_adapted(
    path: str | Path, auto_class: Any, dtype: torch.dtype, changes: dict[str, Any]
) -> tuple[PreTrainedModel, list[str]]:
    """Load an adapter's encoder and merge the two; a head for another task or labels is new."""
    from kbert_core.checkpoints import adapters

    adapter = adapters.read_adapter(path)
    own = load_config(path)
    model, _ = load_model_and_missing(
        adapter.encoder,
        adapter.model_class,
        device="cpu",
        ignore_mismatched_sizes=True,  # the encoder may have a head of its own, for other labels
        id2label=own.id2label,
        label2id=own.label2id,
    )
    state = adapters.merged(model, adapter).state_dict()
    config = load_config(path, **changes)
    if config.id2label != own.id2label:
        body = f"{model.base_model_prefix}."
        state = {name: tensor for name, tensor in state.items() if name.startswith(body)}
    with torch.device("meta"):
        wanted = type(auto_class.from_config(config))
    made, info = wanted.from_pretrained(
        None, config=config, state_dict=state, dtype=dtype, output_loading_info=True
    )
    return made, sorted(info["missing_keys"])


def _load_frozen(
    path: str | Path, auto_class: Any, dtype: torch.dtype, changes: dict[str, Any]
) -> tuple[PreTrainedModel, list[str]]:
    """Load the encoder of a folder without one; what is inserted comes with the system."""
    from kbert_core.checkpoints import adapters

    own = load_config(path)
    encoder = adapters.encoder_of(path)
    model, missing = load_model_and_missing(encoder, auto_class, device="cpu", **changes)
    now, before = adapters.hash_without_inserted(model), getattr(own, adapters.HASH_KEY, None)
    adapters.check_encoder(path, encoder, now, before, what="model")
    setattr(model.config, CARD_KEY, getattr(own, CARD_KEY, None))
    model.to(dtype=dtype)  # type: ignore[call-arg]
    return model, missing


@contextmanager
def no_progress_bars() -> Iterator[None]:
    """Keep the libraries from drawing bars into a user's output."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


@contextmanager
def _refusing(path: str | Path, *, tokenizer: bool = False) -> Iterator[None]:
    """Raise a CheckpointError in place of any exception: libraries raise all kinds for bad JSON."""
    try:
        yield
    except KBertError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise  # but for what Rust code of a tokenizer raises, no ordinary exception either
        reason = (str(error).strip() or type(error).__name__).split("\n")[0][:300]
        from kbert_core.checkpoints.unreadable import why

        raise CheckpointError(why(Path(path), reason, tokenizer=tokenizer)) from error


def device_named(name: str) -> torch.device:
    """Turn "auto", "cpu", "cuda" or "cuda:N" into a device.

    Raises:
        OptionError: no such device here.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu(:0)?|cuda(:[1-9]?\d)?", name := str(name)):
        raise OptionError(f"There is no device '{name}'. Use auto, cpu or cuda.")
    device, count = torch.device(name), torch.cuda.device_count()
    if device.type == "cuda" and (device.index or 0) >= count:
        none = "this machine has no CUDA device. Use cpu"
        here = f"the last is cuda:{count - 1}" if count else none
        raise OptionError(f"There is no device '{name}'; {here}.")
    return device


def _ask_hub(path: str | Path) -> None:
    if not Path(path).exists():
        from kbert_core.checkpoints.unreadable import check_hub

        check_hub(str(path))
