"""Files: what comes with the program, and what is written whole or not at all.

The models, demo graphs and app lie beside ``kbert_core`` in a clone of the repository; an installed
package has them in ``kbert_lab``. Both name them as the repository does: ``models/zh-mini``.
"""

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from platformdirs import user_cache_dir

from kbert_core.errors import KBertError

FOLDERS = ("app", "demo_kgs", "models")
ROOT = Path(__file__).resolve().parents[1]


def shipped(path: str | Path) -> Path:
    """Find what comes with the program; a path that is here, or another one, stays as it is."""
    place = Path(path)
    if os.path.exists(place):  # a name too long is none
        return place
    if place.parts[:1] and place.parts[0] in FOLDERS and ".." not in place.parts:
        for root in (ROOT / "kbert_lab", ROOT):
            if (root / place).exists():
                return root / place
    return place


@contextmanager
def replaced(path: Path) -> Iterator[IO[bytes]]:
    """A new file to write, which takes the place of ``path`` when all went well.

    Raises:
        OSError: by the file system; what was there before stays.
    """
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("wb") as file:
            yield file
        os.replace(temporary, path)
    finally:
        with suppress(OSError):
            temporary.unlink()


def cache_folder() -> Path:
    """Where what can be made or fetched again is kept: in KBERT_CACHE, or the user's cache."""
    return Path(os.environ.get("KBERT_CACHE") or user_cache_dir("kbert-lab"))


def json_object(file: Path, error: type[KBertError], remedy: str) -> dict[str, Any]:
    """Read a JSON file that holds an object.

    Args:
        error: what is raised.
        remedy: what to do then, as a sentence.

    Raises:
        KBertError: it can't be read, or holds something else.
    """
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as problem:
        raise error(f"{file}: can't be read as JSON ({problem}). {remedy}") from problem
    if not isinstance(data, dict):
        raise error(f"{file}: found a {type(data).__name__}, expected a JSON object. {remedy}")
    return data


def are_texts(values: Any) -> bool:
    """Whether a value of JSON is a list of texts."""
    return isinstance(values, list) and all(isinstance(value, str) for value in values)
