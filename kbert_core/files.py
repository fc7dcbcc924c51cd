"""Files and folders that are written whole or not at all."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def replaced(path: Path) -> Iterator[IO[bytes]]:
    """A new file to write, which takes the place of ``path`` when all went well.

    Raises:
        OSError: by the file system; what was there before stays.
    """
    temporary = _beside(path)
    try:
        with temporary.open("wb") as file:
            yield file
        os.replace(temporary, path)
    finally:
        with suppress(OSError):
            temporary.unlink()


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A new folder to fill, which gets the name ``path`` when all went well.

    Raises:
        OSError: by the file system; or ``path`` is there and isn't an empty
            folder, which stays as it is.
    """
    temporary = _beside(path)
    temporary.mkdir(parents=True)
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.{secrets.token_hex(4)}")
