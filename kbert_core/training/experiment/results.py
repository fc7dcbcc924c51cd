"""One JSON a run: written whole or not at all, read back checked."""

import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from kbert_core.errors import DataError
from kbert_core.training.experiment.suite import Suite, slug

FORMAT = 1


def result_file(results: Path, suite: Suite, name: str, seed: int) -> Path:
    """Where a run's JSON stands."""
    return results / suite.name / f"{slug(name)}-seed{seed}.json"


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write a file so that it is there whole or not at all.

    Raises:
        DataError: it can't be written; what was there is kept.
    """
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False)
        temporary.write_text(f"{text}\n", encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise DataError(
            f"{path}: can't be written ({error.strerror}). Free some space and run the same "
            "command again: it goes on where it was."
        ) from error


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
