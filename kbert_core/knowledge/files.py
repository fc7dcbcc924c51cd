"""Reading and writing files of triples: three tab-separated fields a line.

They may be packed: ``.spo.xz``, ``.gz`` or ``.bz2``.
"""

import logging
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kbert_core.errors import GraphFileError
from kbert_core.knowledge.packed import packed, unpacked
from kbert_core.knowledge.triples import Triple

SHOWN_PROBLEMS = 20
MAX_FIELD = 50_000  # characters; longer is a broken file, not a name

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
    path: str | Path, *, skip_bad: bool = False, most: int | None = None
) -> TripleFile:
    """Read a ``.spo`` or ``.tsv`` file, or one packed as ``.xz``, ``.gz`` or ``.bz2``.

    Args:
        path: three tab-separated fields a line, UTF-8, a byte-order mark
            tolerated, blank lines ignored.
        skip_bad: load the good lines and list the bad ones in ``problems``
            instead of refusing the file.
        most: refuse a packed file of more bytes than so many when unpacked.

    Raises:
        GraphFileError: the file is missing, empty, not UTF-8, packed but
            damaged, or a line is not a triple; nothing is loaded by half.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise GraphFileError(
            f"{path}: can't be read ({reason}). Check the name, and that it is a file."
        ) from error
    return parse_triples(data, name=str(path), skip_bad=skip_bad, most=most)


def parse_triples(
    data: bytes, *, name: str, skip_bad: bool = False, most: int | None = None
) -> TripleFile:
    """Read triples from the bytes of a file; see :func:`read_triples`."""
    text = _decoded(unpacked(data, name, most=most), name)
    triples: dict[Triple, None] = {}
    problems: list[str] = []
    duplicates = 0
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.removesuffix("\r")
        if not line.strip() and line.count("\t") < 2:
            continue
        triple, problem = _triple(line)
        if problem:
            problems.append(f"{name}, line {number}: {problem}")
        elif triple in triples:
            duplicates += 1
        elif triple:
            triples[triple] = None
    if problems and not skip_bad:
        raise GraphFileError(_listed(problems))
    if not triples:
        why = f"none of its {len(problems)} lines is a triple" if problems else "the file is empty"
        raise GraphFileError(
            f"{name}: no triples, {why}. Expected one triple a line: head, relation, tail, "
            "separated by tabs."
        )
    if duplicates:
        log.info("%s: %d repeated triples dropped", name, duplicates)
    return TripleFile(name, tuple(triples), duplicates, tuple(problems))


def write_triples(triples: Iterable[Triple], path: str | Path) -> None:
    """Write triples, one a line; the file is replaced whole or not at all.

    Args:
        path: one that ends with ``.xz``, ``.gz`` or ``.bz2`` is packed so.

    Raises:
        GraphFileError: a triple doesn't fit a line, or the place can't be
            written to.
    """
    path = Path(path)
    lines = []
    for triple in triples:
        problem = triple.problem()
        if problem:
            raise GraphFileError(
                f"{path}: can't be written, the triple {triple} fits no line: {problem}."
            )
        lines.append(f"{triple.head}\t{triple.relation}\t{triple.tail}\n")
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        temporary.write_bytes(packed("".join(lines).encode(), path.name))
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise GraphFileError(f"{path}: can't be written ({error.strerror}).") from error


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise GraphFileError(
            f"{name}, line {line}: byte 0x{data[error.start]:02X} is not UTF-8. "
            "Save the file as UTF-8 and open it again."
        ) from error


def _triple(line: str) -> tuple[Triple | None, str | None]:
    fields = line.split("\t")
    if len(fields) != 3:
        remedy = "Add the missing field" if len(fields) < 3 else "Take the extra fields out"
        return None, (
            f"found {len(fields)} field{'s' * (len(fields) != 1)} in '{_shown(line)}', expected 3 "
            f"(head, relation, tail separated by tabs). {remedy} or delete the line."
        )
    triple = Triple(*map(str.strip, fields))
    problem = triple.problem()
    if problem:
        return None, f"'{_shown(line)}' is no triple: {problem}, or delete the line."
    longest = max(map(len, fields))
    if longest > MAX_FIELD:
        return None, (
            f"a field of {longest} characters in '{_shown(line)}', at most {MAX_FIELD} expected. "
            "Shorten it or delete the line."
        )
    return triple, None


def _shown(line: str) -> str:
    line = line if len(line) <= 80 else line[:77] + "..."
    line = line.replace("\t", "<TAB>")
    return "".join(c if c.isprintable() else f"<U+{ord(c):04X}>" for c in line)


def _listed(problems: list[str]) -> str:
    shown = "\n".join(problems[:SHOWN_PROBLEMS])
    rest = len(problems) - SHOWN_PROBLEMS
    return shown + (f"\n… and {rest} more bad lines." if rest > 0 else "")
