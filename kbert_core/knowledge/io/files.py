"""Files of triples into memory."""

import logging
from dataclasses import dataclass
from pathlib import Path

from kbert_core.knowledge.io.opening import Reading, open_rows, rows_of
from kbert_core.knowledge.io.rows import ReadOptions
from kbert_core.knowledge.triple import Triple

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TripleFile:
    """What one file held.

    Attributes:
        name: the file's name, for messages.
        triples: in file order, each once.
        duplicates: how many lines repeated an earlier triple.
        problems: one message per bad line, in file order; empty unless the
            file was read with ``skip_bad``.
    """

    name: str
    triples: tuple[Triple, ...]
    duplicates: int = 0
    problems: tuple[str, ...] = ()


def read_triples(
    path: str | Path,
    options: ReadOptions = ReadOptions(),
    *,
    skip_bad: bool = False,
) -> TripleFile:
    """Read a file of triples into memory.

    Args:
        path: its ending tells the format, see ``readers``: three fields a
            line and tabs between, a table with quotes (``.csv``), JSON Lines
            (``.jsonl``) or RDF (``.nt``, ``.ttl``); each may be packed as
            ``.xz``, ``.gz``, ``.bz2`` or ``.zst``.
        options: what the ending doesn't tell.
        skip_bad: load the good lines and list the bad ones in ``problems``
            instead of refusing the file.

    Raises:
        GraphFileError: the file is missing, empty, in another encoding,
            damaged, or a line is not a triple; nothing is loaded by half.
    """
    return _gathered(open_rows(path, options, skip_bad=skip_bad))


def parse_triples(
    data: bytes, options: ReadOptions = ReadOptions(), *, name: str, skip_bad: bool = False
) -> TripleFile:
    """Read triples from the bytes of a file; see :func:`read_triples`."""
    return _gathered(rows_of(data, name, options, skip_bad=skip_bad))


def _gathered(reading: Reading) -> TripleFile:
    triples: dict[Triple, None] = {}
    rows = 0
    for _, head, relation, tail in reading:
        triples[Triple(head, relation, tail)] = None
        rows += 1
    duplicates = rows - len(triples)
    if duplicates:
        log.info("%s: %d repeated triples dropped", reading.name, duplicates)
    return TripleFile(reading.name, tuple(triples), duplicates, tuple(reading.problems))
