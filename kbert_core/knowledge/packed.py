"""Files packed with xz, gzip or bzip2, told by the end of their names."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import IO, Any, cast

from kbert_core.errors import GraphFileError

PROBLEMS = (EOFError, OSError, lzma.LZMAError, zlib.error)  # of reading a broken packed file
_OPEN: dict[str, Callable[..., Any]] = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}
_PACK: dict[str, Callable[[bytes], bytes]] = {
    ".xz": lzma.compress,
    ".gz": lambda data: gzip.compress(data, mtime=0),  # the same data, the same file
    ".bz2": bz2.compress,
}
ENDINGS = tuple(_OPEN)


def open_unpacked(path: str | Path) -> IO[bytes]:
    """Open a file for its bytes, unpacked as its name says; may raise ``PROBLEMS``."""
    return cast(IO[bytes], _OPEN.get(Path(path).suffix, open)(path, "rb"))


def unpacked(data: bytes, name: str, *, most: int | None = None) -> bytes:
    """Unpack the bytes of a file.

    Args:
        name: of the file, whose end says how it is packed; any other end: not.
        most: refuse what is larger than so many bytes when unpacked.

    Raises:
        GraphFileError: it is cut off, damaged, packed otherwise, or too large.
    """
    opened = _OPEN.get(Path(name).suffix)
    if opened is None:
        return data
    try:
        with opened(BytesIO(data), "rb") as file:
            found = cast(bytes, file.read(-1 if most is None else most + 1))
    except PROBLEMS as error:
        how = "is cut off" if isinstance(error, EOFError) else "is damaged, or packed otherwise"
        raise GraphFileError(
            f"{name}: can't be unpacked, it {how} ({error}). Get or pack the file again, or unpack "
            "it and give the text file."
        ) from error
    if most is not None and len(found) > most:
        raise GraphFileError(
            f"{name}: over {most >> 20} MB when unpacked, more than is opened here. Take a smaller "
            "file."
        )
    return found


def packed(data: bytes, name: str) -> bytes:
    """Pack bytes as the end of a file's name says."""
    pack = _PACK.get(Path(name).suffix)
    return data if pack is None else pack(data)


def plain_stem(path: str | Path) -> str:
    """A file's name without its endings: "words" of "kg/words.spo.xz"."""
    name = Path(path)
    return Path(name.stem).stem if name.suffix in ENDINGS else name.stem
