"""Large text files of triples, indexed once: a graph file of their content in a cache folder."""

import hashlib
import logging
import os
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_dir

from kbert_core.knowledge.aliases import ALIAS_RELATIONS, AliasRelations
from kbert_core.knowledge.io import ReadOptions, open_rows
from kbert_core.knowledge.io.compression import ENDINGS as PACKED
from kbert_core.knowledge.store.importing import Progress, Source, import_triples
from kbert_core.knowledge.store.schema import ENDING, VERSION

LARGE = 8 << 20  # bytes of a text file that is worth an index on disk
LARGE_PACKED = 1 << 20  # the same, packed

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
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    said = (sorted(aliases.names_of_head), sorted(aliases.names_of_tail))
    how = (VERSION, "".join(path.suffixes[-2:]), *astuple(options), skip_bad, *said)
    digest.update(repr(how).encode())
    target = cache_folder() / f"{digest.hexdigest()[:32]}{ENDING}"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{target}.lock"):
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
