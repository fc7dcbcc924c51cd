"""Triples from where they are: SPARQL endpoints, and Neo4j through its driver.

A query gives rows of head, relation and tail, in an order that stays. They are kept as they come,
in pages in the cache folder. After a break the same import goes on with the next row. When all are
there, they are read as a file is, and the pages are deleted after the import.
"""

import hashlib
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from urllib.parse import unquote

from filelock import FileLock, Timeout

from kbert_core.errors import GraphFileError
from kbert_core.files import cache_folder, replaced
from kbert_core.knowledge.io import Reading
from kbert_core.knowledge.io.compression import open_unpacked, packing
from kbert_core.knowledge.io.rows import ReadOptions
from kbert_lab.graphs.endpoints import AGAIN, PAGE, Neo4j, Rows, SparqlEndpoint

SPARQL = ("http://", "https://")
NEO4J = ("neo4j://", "neo4j+s://", "neo4j+ssc://", "bolt://", "bolt+s://", "bolt+ssc://")
_PAGE = re.compile(r"(\d{12})-(\d+)\.zst")  # after how many rows it begins, and how many it has

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Fetched:
    """Everything that came.

    Attributes:
        rows: how many.
        sha256: of their lines, the same however often they were broken off: of a SPARQL endpoint
            the terms as RDF writes them, with tabs between; of Neo4j a JSON list each.
        reading: of their triples.
    """

    rows: int
    sha256: str
    reading: Reading


def is_remote(name: str) -> bool:
    """Whether a name is an address of triples, and not of a file."""
    return name.startswith(SPARQL + NEO4J)


def masked(address: str) -> str:
    """An address without the password that somebody wrote in it."""
    address = re.sub(r"^([^:]+://[^:@/]*):.*@", r"\1:***@", address)

    def hidden(field: re.Match[str]) -> str:
        secret = "password" in unquote(field[1]).lower()  # drivers unquote names, too
        return f"{field[1]}=***" if secret else field[0]

    return re.sub(r"([?&;][^=&]*)=[^&]*", hidden, address)


@contextmanager
def fetched(
    address: str,
    options: ReadOptions = ReadOptions(),
    *,
    query: str = "",
    skip_bad: bool = False,
    progress: Callable[[int], None] = lambda rows: None,
) -> Iterator[Fetched]:
    """Fetch rows of triples; what came is kept until the block ends well.

    Args:
        address: of a SPARQL endpoint, ``https://USER@HOST/PATH``, with the password in
            ``~/.netrc``; or ``neo4j://USER@HOST/DATABASE``, with it in NEO4J_PASSWORD.
        query: SPARQL that selects ``?head ?relation ?tail``, or Cypher that returns ``head``,
            ``relation`` and ``tail``; "": every triple, every relationship.
        progress: called now and then with the number of rows that are there.

    Raises:
        GraphFileError: the server is away or refuses, the answer breaks off, or isn't rows of
            triples; or another process fetches the same.
        MissingPackageError: Neo4j's driver isn't installed.
    """
    if masked(address) != address:
        raise GraphFileError(
            f"{masked(address)}: a password doesn't belong in an address, which logs and lists of "
            "processes show. Keep it in ~/.netrc, for Neo4j in NEO4J_PASSWORD, and leave it away "
            "here."
        )
    key = hashlib.sha256("\n".join((address, query)).encode()).hexdigest()[:32]
    folder = cache_folder() / "graphs" / f"fetched-{key}"
    source: Rows = (SparqlEndpoint if address.startswith(SPARQL) else Neo4j)(address, query)
    lock = FileLock(f"{folder}.lock", timeout=0)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with lock:
            rows = _fetch(source, folder, progress)
            pages, digest = [path for path, _ in _pages(folder)], hashlib.sha256()
            for page in pages:
                with open_unpacked(page) as file:
                    digest.update(file.read())
            passed = source.passed.copy()
            found = source.read(pages, options, passed)
            reading = Reading(address, found, skip_bad, passed=passed, unit="row")
            yield Fetched(rows, digest.hexdigest(), reading)
            shutil.rmtree(folder)
            with suppress(OSError):
                os.unlink(lock.lock_file)
    except Timeout:
        raise GraphFileError(
            f"{address}: another process is fetching the same. Wait until it is done."
        ) from None
    except OSError as error:
        raise GraphFileError(
            f"{folder}: what came can't be kept there ({error.strerror or error}). Make room, or "
            f"set KBERT_CACHE to another folder. {AGAIN}."
        ) from error


def _pages(folder: Path) -> list[tuple[Path, int]]:
    """The pages that are there, each with how many rows it has; what doesn't follow is deleted."""
    pages, rows = [], 0
    for path in sorted(folder.iterdir()):
        name = _PAGE.fullmatch(path.name)
        if name is None or int(name[1]) != rows:  # half written, or a page before it is lost
            path.unlink()
            continue
        pages.append((path, int(name[2])))
        rows += int(name[2])
    return pages


def _fetch(source: Rows, folder: Path, progress: Callable[[int], None]) -> int:
    """Have every row in the folder; return how many there are."""
    pages = _pages(folder)
    there = sum(rows for _, rows in pages)
    with closing(source.after(max(0, there - 1))) as rows:
        if there:
            with open_unpacked(pages[-1][0]) as file:
                last = file.read().splitlines()[-1]
            if next(rows, "").encode() != last:
                log.warning(
                    "%s: row %d is another one than when it came, so the data were changed "
                    "meanwhile. All rows are fetched anew.",
                    *(source.name, there),
                )
                shutil.rmtree(folder)
                folder.mkdir()
                return _fetch(source, folder, progress)
        page: list[str] = [""]
        while page:
            progress(there)
            page = []
            try:
                page.extend(islice(rows, PAGE))
            finally:  # what came of it is kept
                if page:
                    path = folder / f"{there:012d}-{len(page)}.zst"
                    with replaced(path) as file, packing(file, path.name) as stream:
                        stream.write("".join(f"{line}\n" for line in page).encode())
                    there += len(page)
    if not there:
        raise GraphFileError(f"{source.name}: gives no rows, so there is nothing to import.")
    return there
