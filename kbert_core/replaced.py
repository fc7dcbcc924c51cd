"""A file that is written whole or not at all."""

import os
import secrets
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
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("wb") as file:
            yield file
        os.replace(temporary, path)
    finally:
        with suppress(OSError):
            temporary.unlink()
