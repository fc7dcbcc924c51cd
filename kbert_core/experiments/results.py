"""One JSON a run: written whole or not at all, read back checked; and what it was made from.

What a result depends on is kept in it as ``inputs``, contents as hashes, so
that a stale one can say what has changed.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO, Any

from kbert_core.checkpoints.checkpoint import CARD_KEY
from kbert_core.errors import CheckpointError, DataError
from kbert_core.experiments.keys import Baseline, Run
from kbert_core.experiments.suite import Suite, slug
from kbert_core.files import replaced
from kbert_core.kbert.visible import Ablation
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.training.options import Recipe

FORMAT = 1
GROUPS = {"injection": InjectionOptions, "ablation": Ablation, "recipe": Recipe}  # of options


@dataclass(frozen=True)
class Places:
    """Where things are kept.

    Attributes:
        results: one folder a suite, one JSON a run; to be kept.
        work: splits, shuffled graphs, checkpoints; may be deleted.
    """

    results: Path = Path("results")
    work: Path = Path("runs/experiments")


@dataclass(frozen=True)
class Cell:
    """One row at one seed."""

    row: Run | Baseline
    seed: int

    def __str__(self) -> str:
        return f"{self.row.name}, seed {self.seed}"


def result_file(places: Places, suite: Suite, cell: Cell) -> Path:
    """Where a cell's JSON stands."""
    return places.results / suite.name / f"{slug(cell.row.name)}-seed{cell.seed}.json"


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
    """Write a result.

    Raises:
        DataError: it can't be written; what was there is kept.
    """
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


def default_of(of: Any) -> Any:
    """The default value of a dataclass's field."""
    made = of.default_factory
    return made() if callable(made) else of.default


def without_defaults(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """A cell's inputs without the options that have their default value in a group of them."""
    made = dict(inputs)
    if "over" in made:
        made["over"] = without_defaults(made["over"])
    if "options" in made:
        made["options"] = {
            name: _changed(GROUPS[name], value) if name in GROUPS and value is not None else value
            for name, value in made["options"].items()
        }
    return made


def _changed(kind: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    defaults = plain_inputs({of.name: default_of(of) for of in fields(kind)})
    return {
        name: value
        for name, value in values.items()
        if name not in defaults or value != defaults[name]
    }


def canonical(data: Mapping[str, Any]) -> str:
    """As JSON that is the same for the same data."""
    return json.dumps(data, sort_keys=True, ensure_ascii=False, default=asdict)


def plain_inputs(data: Mapping[str, Any]) -> dict[str, Any]:
    """As it will be read from JSON, so that the two can be compared."""
    plain: dict[str, Any] = json.loads(canonical(data))
    return plain


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
