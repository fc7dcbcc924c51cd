"""Public graphs that this project doesn't hold: fetched from their home, and checked."""

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kbert_core.errors import FetchError
from kbert_core.files import replaced

Progress = Callable[[int, int | None], None]
TIMEOUT = 30.0  # seconds without a byte
BLOCK = 1 << 16
_HOME = "https://raw.githubusercontent.com/autoliuweijie/K-BERT/master/brain/kgs"


@dataclass(frozen=True)
class PublicGraph:
    """A graph file on the web.

    Attributes:
        title: for people.
        file: its name there, and by default here.
        url: where it is downloaded from.
        sha256: of its bytes.
        size: in bytes.
        triples: how many it holds.
    """

    title: str
    file: str
    url: str
    sha256: str
    size: int
    triples: int


PUBLIC = {
    "medical": PublicGraph(
        "MedicalKG",
        "Medical.spo",
        f"{_HOME}/Medical.spo",
        "114953e42caf018840afb778898e50e296d31bf84e7b58786253b47eff201ba5",
        472_260,
        13_864,
    ),
    "hownet": PublicGraph(
        "HowNet",
        "HowNet.spo",
        f"{_HOME}/HowNet.spo",
        "a860ed1296addd40b3da8c642ea0c0683a5bf68d96985c47411bc3a9bf28db7f",
        1_373_757,
        52_576,
    ),
}


def fetch(
    name: str,
    target: str | Path | None = None,
    *,
    progress: Progress | None = None,
    timeout: float = TIMEOUT,
) -> Path:
    """Download a public graph, unless it is there already.

    Args:
        name: a key of ``PUBLIC``.
        target: the file to make, or a folder to make it in; None: in
            :func:`cache_folder`.
        progress: called with bytes so far and bytes in all.
        timeout: in seconds, without any byte coming.

    Returns:
        The file; it has the expected checksum.

    Raises:
        FetchError: no such graph, no network, another file than expected, or
            nowhere to put it; nothing is left behind.
    """
    if name not in PUBLIC:
        raise FetchError(f"No public graph '{name}'; there are {', '.join(PUBLIC)}.")
    graph = PUBLIC[name]
    path = Path(target) if target is not None else cache_folder()
    if target is None or path.is_dir():
        path = path / graph.file
    if _is(graph, path):
        return path
    data = _downloaded(graph, path, progress, timeout)
    if hashlib.sha256(data).hexdigest() != graph.sha256:
        raise FetchError(
            f"{graph.url} gave {len(data):,} bytes that are not {graph.title} as published "
            f"(SHA-256 {graph.sha256[:12]}… expected). {_by_hand(graph, path)}"
        )
    _write(data, path)
    return path


def cache_folder() -> Path:
    """Where fetched graphs go if no other place is named."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "kbert-lab"


def _downloaded(graph: PublicGraph, path: Path, progress: Progress | None, timeout: float) -> bytes:
    data = bytearray()
    try:
        with urllib.request.urlopen(graph.url, timeout=timeout) as response:
            length = int(response.headers.get("Content-Length") or 0) or None
            # One byte more than expected is enough to know that it is another file.
            while len(data) <= graph.size and (block := response.read(BLOCK)):
                data += block
                if progress:
                    progress(len(data), length)
    except urllib.error.HTTPError as error:
        raise FetchError(
            f"{graph.title} can't be fetched: the server answered {error.code} {error.reason}. "
            f"{_by_hand(graph, path)}"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "reason", None) or error
        raise FetchError(
            f"{graph.title} can't be fetched, there seems to be no network ({why}). "
            f"{_by_hand(graph, path)}"
        ) from error
    return bytes(data)


def _by_hand(graph: PublicGraph, path: Path) -> str:
    return (
        f"Download {graph.url} where there is a network, copy the file to {path}, "
        f"and open it by its path (on the command line: --kg {path})."
    )


def _is(graph: PublicGraph, path: Path) -> bool:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == graph.sha256
    except OSError:
        return False


def _write(data: bytes, path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced(path) as file:
            file.write(data)
    except OSError as error:
        raise FetchError(
            f"{path}: can't be written ({error.strerror}). Name another place for it."
        ) from error
