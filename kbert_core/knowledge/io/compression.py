"""Files packed with xz, gzip, bzip2 or zstandard, recognised by the end of their names."""

import bz2
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from kbert_core.errors import GraphFileError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PROBLEMS = (EOFError, OSError, lzma.LZMAError, zlib.error, zstd.ZstdError)  # of a broken file
_OPEN: dict[str, Callable[..., Any]] = {
    ".xz": lzma.open,
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".zst": zstd.open,
}
ENDINGS = tuple(_OPEN)


def open_unpacked(path: str | Path) -> IO[bytes]:
    """Open a file for its bytes, unpacked as its name says; may raise ``PROBLEMS``."""
    return cast(IO[bytes], _OPEN.get(Path(path).suffix, open)(path, "rb"))


def unpacking(stream: IO[bytes], name: str) -> IO[bytes]:
    """Unpack a stream as the end of its name says; reading it may raise ``PROBLEMS``."""
    opened = _OPEN.get(Path(name).suffix)
    return stream if opened is None else cast(IO[bytes], opened(stream, "rb"))


class Bounded(io.RawIOBase):
    """A stream with a limit of bytes (None: no limit); closing it closes the stream below.

    Attributes:
        count: bytes read so far.
        start: the first bytes.
    """

    def __init__(self, stream: IO[bytes], name: str, most: int | None) -> None:
        self._stream, self._name, self._most = stream, name, most
        self.count, self.start = 0, b""

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; may raise ``PROBLEMS``, or that the file is too large."""
        data = self._stream.read(len(buffer))
        self.start = self.start or data[:4]
        self.count += len(data)
        if self._most is not None and self.count > self._most:
            raise GraphFileError(
                f"{self._name}: larger than {self._most >> 20} MB when unpacked, and larger "
                "files can't be opened here. Use a smaller file."
            )
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the stream too."""
        self._stream.close()
        super().close()


def packing_error(name: str, error: Exception) -> GraphFileError:
    """Say that a file can't be unpacked."""
    how = "is cut off" if isinstance(error, EOFError) else "is damaged, or packed in another format"
    return GraphFileError(
        f"{name}: can't be unpacked, it {how} ({error}). Get or pack the file again, or unpack "
        "it and give the text file."
    )


@contextmanager
def packing(file: IO[bytes], name: str) -> Iterator[IO[bytes]]:
    """Pack what is written to a file as its name's ending says."""
    ending = Path(name).suffix
    if ending not in _OPEN:
        yield file
    elif ending == ".gz":  # without the time: the same data, the same file
        with gzip.GzipFile("", "wb", 9, file, mtime=0) as stream:
            yield cast(IO[bytes], stream)
    else:
        with _OPEN[ending](file, "wb") as stream:
            yield stream


def plain_ending(path: str | Path) -> str:
    """Return the ending of a file's name that says its format: ".csv" for "a.2024.CSV.gz"."""
    name = Path(path)
    return (Path(name.stem) if name.suffix in ENDINGS else name).suffix.lower()


def plain_stem(path: str | Path) -> str:
    """Return a file's name without its endings: "words" for "kg/words.spo.xz"."""
    name = Path(path)
    return Path(name.stem).stem if name.suffix in ENDINGS else name.stem
