"""What can't be read or written, as an error of ours that says what to do."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kbert_core.errors import KBertError


@contextmanager
def or_refused(
    path: str | Path, kind: type[KBertError], remedy: str, *, doing: str = "written"
) -> Iterator[None]:
    """Turn what the file system refuses into an error of ``kind`` that names the path."""
    try:
        yield
    except OSError as error:
        raise kind(f"{path}: can't be {doing} ({error.strerror or error}). {remedy}") from error
