"""Arrays that are made once and kept on disk: entity vectors, and states of a frozen encoder."""

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

ASKED = 500  # values of one SQL statement
WAITING = 60  # seconds for another process that writes
Halves = np.ndarray[Any, np.dtype[np.float16]]


class KeptArrays:
    """Arrays of 16 bits by a key, in one file that several processes may share.

    Args:
        path: of the file; made when the first array is kept.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def get(self, keys: Sequence[str]) -> dict[str, Halves]:
        """Return the arrays that are there, flat."""
        found: dict[str, Halves] = {}
        if not self.path.is_file():
            return found
        hashed = {_hash(key): key for key in keys}
        asked = list(hashed)
        with self._opened() as file:
            for start in range(0, len(asked), ASKED):
                some = asked[start : start + ASKED]
                marks = ",".join("?" * len(some))
                rows = file.execute(f"SELECT key, value FROM arrays WHERE key IN ({marks})", some)
                found |= {hashed[key]: np.frombuffer(value, np.float16) for key, value in rows}
        return found

    def put(self, arrays: Mapping[str, Halves]) -> None:
        """Keep arrays; one that is there already stays."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        rows = [(_hash(key), array.tobytes()) for key, array in arrays.items()]
        with self._opened() as file, file:
            file.executemany("INSERT OR IGNORE INTO arrays VALUES (?, ?)", rows)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=WAITING)) as file:
            file.execute("CREATE TABLE IF NOT EXISTS arrays (key BLOB PRIMARY KEY, value BLOB)")
            yield file


def _hash(key: str) -> bytes:
    return hashlib.blake2b(key.encode(), digest_size=16).digest()
