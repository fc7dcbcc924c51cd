"""One JSON a run: written whole or not at all, read back checked; and what it was made from.

What a result depends on is kept in it as ``inputs``, contents as hashes, so
that a stale one can say what has changed.
"""

import hashlib
import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any

import torch

from kbert_core.checkpoints.checkpoint import CARD_KEY
from kbert_core.errors import CheckpointError, DataError
from kbert_core.files import replaced
from kbert_core.kbert.visible import FULL, Ablation
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.options import option_fields
from kbert_core.training.options import Recipe, TrainOptions

FORMAT = 1
GROUPS = {"injection": InjectionOptions, "ablation": Ablation, "recipe": Recipe}  # of options


@contextmanager
def whole(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that is there whole or not at all.

    Raises:
        DataError: it can't be written; what was there is kept.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced(path) as file:
            yield file
    except OSError as error:
        raise DataError(
            f"{path}: can't be written ({error.strerror}). Free some space and run the same "
            "command again: it goes on where it was."
        ) from error


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write a result; see ``whole`` for errors."""
    text = json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False)
    with whole(path) as file:
        file.write(f"{text}\n".encode())


def read_json(path: Path) -> dict[str, Any] | None:
    """Read a result; None if there is none.

    Raises:
        DataError: it is broken, or of another version.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path}: can't be read ({error}). Delete it to have it made again."
        ) from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise DataError(
            f"{path}: no result of this version (format {FORMAT}). Delete it to have it made again."
        )
    return data


# What a result was made from


def hash_of(files: Sequence[Path]) -> str:
    """Hash the contents of files, in order.

    Raises:
        DataError: one can't be read.
    """
    digest = hashlib.sha256()
    for file in files:
        try:
            content = hashlib.sha256(file.read_bytes())
        except OSError as error:
            raise DataError(f"{file}: can't be read ({error.strerror}). Check the name.") from error
        digest.update(content.digest())
    return digest.hexdigest()


def config_hash(folder: Path) -> str:
    """Of an encoder's config, without what its card only notes."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        config.get(CARD_KEY, {}).pop("notes", None)
    except (OSError, ValueError, AttributeError) as error:
        raise CheckpointError(
            f"{folder}: no readable config.json ({error}). Name the folder of an encoder."
        ) from error
    return hashlib.sha256(canonical(config).encode()).hexdigest()[:8]


def canonical(data: Any) -> str:
    """As JSON that is the same for the same data."""
    return json.dumps(data, sort_keys=True, ensure_ascii=False, default=asdict)


def without_defaults(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """A cell's inputs as read from JSON, without options that have their default value.

    So an option that is new doesn't make old results stale.
    """
    plain: dict[str, Any] = json.loads(canonical(inputs))
    if "over" in plain:
        plain["over"] = without_defaults(plain["over"])
    if "options" in plain:
        options = _changed(TrainOptions, plain["options"], ablation=FULL)
        plain["options"] = {
            name: _changed(GROUPS[name], value) if name in GROUPS and value else value
            for name, value in options.items()
        }
    return plain


def _changed(kind: type, values: Mapping[str, Any], **usual: Any) -> dict[str, Any]:
    """Options of a dataclass whose values aren't the usual or default ones."""
    for name, option in option_fields(kind).items():
        made = option.default if option.default_factory is MISSING else option.default_factory()
        usual.setdefault(name, made)
    return {
        name: value
        for name, value in values.items()
        if name not in usual or value != json.loads(canonical(usual[name]))
    }


def differences(was: Any, is_: Any, where: str = "") -> list[str]:
    """What has changed between two inputs, in words."""
    if isinstance(was, dict) and isinstance(is_, dict):
        return [
            text
            for key in sorted({*was, *is_})
            for text in differences(was.get(key), is_.get(key), f"{where}.{key}".strip("."))
        ]
    if was == is_:
        return []
    if where.endswith("sha256"):
        if is_ is None:  # can't be read here
            return []
        return [f"{where.removesuffix('.sha256')} has another content"]
    if isinstance(was, list) and isinstance(is_, list) and len(was) == len(is_):
        return [t for a, b in zip(was, is_, strict=True) for t in differences(a, b, where)]
    return [f"{where} was {_short(was)} and is {_short(is_)}"]


def _short(value: Any) -> str:
    text = "unset" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."


# What a result was made with


def versions() -> dict[str, Any]:
    """Versions of what a result is made with, and the machine."""
    packages = {}
    for package in ("kbert-lab", "torch", "transformers"):
        try:
            packages[package] = version(package)
        except PackageNotFoundError:
            packages[package] = "not installed"
    return {
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        **packages,
        "cpu": processor(),
        "cuda": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }


def processor() -> str:
    """The model of this machine's processor, as Linux knows it; elsewhere its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
