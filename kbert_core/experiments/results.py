"""One JSON a run: written whole or not at all, read back checked."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from kbert_core.errors import DataError
from kbert_core.experiments.suite import Suite, slug
from kbert_core.files import replaced

FORMAT = 1


def result_file(results: Path, suite: Suite, name: str, seed: int) -> Path:
    """Where a run's JSON stands."""
    return results / suite.name / f"{slug(name)}-seed{seed}.json"


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
