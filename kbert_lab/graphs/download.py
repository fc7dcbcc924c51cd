"""Public graphs that this project doesn't hold: fetched from their home, and checked."""

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import requests

from kbert_core.errors import FetchError
from kbert_core.files import cache_folder, replaced
from kbert_lab.files import or_refused

TIMEOUT = 30.0  # seconds without a byte
_HOME = "https://raw.githubusercontent.com/autoliuweijie/K-BERT/master/brain/kgs"


@dataclass(frozen=True)
class PublicGraph:
    """A graph file on the web."""

    title: str
    file: str  # its name there, and by default here
    url: str
    sha256: str
    triples: int


PUBLIC = {
    "medical": PublicGraph(
        "MedicalKG",
        "Medical.spo",
        f"{_HOME}/Medical.spo",
        "114953e42caf018840afb778898e50e296d31bf84e7b58786253b47eff201ba5",
        13_864,
    ),
    "hownet": PublicGraph(
        "HowNet",
        "HowNet.spo",
        f"{_HOME}/HowNet.spo",
        "a860ed1296addd40b3da8c642ea0c0683a5bf68d96985c47411bc3a9bf28db7f",
        52_576,
    ),
}


def fetch(name: str, target: str | Path | None = None) -> Path:
    """Download a public graph, unless it is there already.

    Args:
        name: a key of ``PUBLIC``.
        target: the file to make, or a folder to make it in; None: the cache folder.

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
    with suppress(OSError):
        if _is_published(graph, path.read_bytes()):
            return path
    try:
        response = requests.get(graph.url, timeout=TIMEOUT)
        data, problem = response.content, ""
        if response.status_code != 200:
            problem = f"the server answered {response.status_code} {response.reason}"
        elif not _is_published(graph, data):
            problem = (
                f"{graph.url} gave {len(data):,} bytes that are not {graph.title} as published "
                f"(SHA-256 {graph.sha256[:12]}… expected)"
            )
    except requests.RequestException as error:
        problem = f"there seems to be no network ({error})"
    if problem:
        raise FetchError(
            f"{graph.title} can't be fetched: {problem}. Download {graph.url} where there is a "
            f"network, copy the file to {path}, and open it by its path (on the command line: "
            f"--kg {path})."
        )
    with or_refused(path, FetchError, "Name another place for it."):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced(path) as file:
            file.write(data)
    return path


def _is_published(graph: PublicGraph, data: bytes) -> bool:
    return hashlib.sha256(data).hexdigest() == graph.sha256
