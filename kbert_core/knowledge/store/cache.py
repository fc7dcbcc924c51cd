"""Large text files of triples, indexed once: a graph file of their content in a cache folder."""

import hashlib
import logging
import os
import re
import time
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_dir

from kbert_core.errors import GraphFileError
from kbert_core.knowledge.aliases import ALIAS_RELATIONS, AliasRelations
from kbert_core.knowledge.io import ReadOptions, open_rows
from kbert_core.knowledge.io.compression import ENDINGS as PACKED
from kbert_core.knowledge.store.importing import Progress, Source, import_triples
from kbert_core.knowledge.store.schema import ENDING, VERSION

LARGE = 8 << 20  # bytes of a text file that is worth an index on disk
LARGE_PACKED = 1 << 20  # the same, packed
SETTLED = 2.0  # seconds since a file's last change after which its times tell of the next one

log = logging.getLogger(__name__)


def is_large(path: str | Path) -> bool:
    """Whether a text file is better indexed on disk than held in memory."""
    path = Path(path)
    with suppress(OSError, ValueError):  # whoever opens it says what is wrong
        return path.stat().st_size > (LARGE_PACKED if path.suffix in PACKED else LARGE)
    return False


def cache_folder() -> Path:
    """Where indexed copies are kept: KBERT_CACHE, else the user's cache folder."""
    return Path(os.environ.get("KBERT_CACHE") or user_cache_dir("kbert-lab")) / "graphs"


def _digest(path: Path, how: str, folder: Path) -> str:
    """Hash a file's content, and how it is read.

    The hash is kept under the file's path and stat, so that a file that stays
    is read for it only once. A file that was changed just before isn't relied
    on: another change could leave the same times.
    """
    stat = os.stat(path)
    identity = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    stamp = hashlib.sha256(repr((path.resolve(), identity, how)).encode()).hexdigest()
    remembered = folder / f"{stamp[:32]}.hash"
    with suppress(OSError, UnicodeDecodeError):
        digest = remembered.read_text("ascii")
        if re.fullmatch("[0-9a-f]{32}", digest):
            return digest
    begun = time.time()
    with path.open("rb") as file:
        content = hashlib.file_digest(file, "sha256")
        changed = os.fstat(file.fileno())
    content.update(how.encode())
    digest = content.hexdigest()[:32]
    if begun - max(changed.st_mtime, changed.st_ctime) > SETTLED:
        with suppress(OSError):
            remembered.write_text(digest, "ascii")
    return digest


def indexed(
    path: str | Path,
    options: ReadOptions = ReadOptions(),
    *,
    skip_bad: bool = False,
    aliases: AliasRelations = ALIAS_RELATIONS,
    progress: Progress = lambda rows: None,
) -> Path:
    """Return the graph file of a text file's content; made where it is not there yet.

    Raises:
        GraphFileError: the file can't be read, or the cache not written.
    """
    path = Path(path)
    reading = open_rows(path, options, skip_bad=skip_bad)
    said = (sorted(aliases.names_of_head), sorted(aliases.names_of_tail))
    how = (VERSION, "".join(path.suffixes[-2:]), *astuple(options), skip_bad, *said)
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / f"{_digest(path, repr(how), folder)}{ENDING}"
    except OSError as error:
        raise GraphFileError(
            f"{path}: large, so it is indexed in {folder}, which can't be written to "
            f"({error.strerror or error}). Set KBERT_CACHE to a folder of your own."
        ) from error
    if target.exists():
        return target
    with FileLock(target.with_suffix(".lock")):
        if not target.exists():
            log.info("%s: large; indexing it once, in %s", path, target.parent)
            source = Source(str(path), reading)
            import_triples(
                target,
                [source],
                name=path.name,
                identity=target.stem,
                aliases=aliases,
                progress=progress,
            )
            for problem in reading.problems:
                log.warning("left out: %s", problem)
    return target
