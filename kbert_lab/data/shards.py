"""A corpus in shards: files of many texts, each read as a stream, row by row.

A row that can't be read comes as a :class:`BrokenRow` in its place; what is wrong with a whole file
is a DataError.
"""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic_core import from_json

from kbert_core.errors import DataError
from kbert_core.knowledge.io.compression import PROBLEMS, open_unpacked, plain_ending
from kbert_core.knowledge.io.text_lines import encoding_of
from kbert_lab.data.tables import PAIRS, TEXTS, remedy

SHOWN = 200  # characters of a broken row that are kept
PARQUET_PROBLEMS = (pa.ArrowException, OSError)
ENDINGS = (".txt", ".jsonl", ".parquet")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of a corpus.

    Attributes:
        name: its path in the corpus.
        size: in bytes.
    """

    path: Path
    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Row:
    """One text of a shard; its number is that of the line, or of Parquet's row, from 1."""

    number: int
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BrokenRow:
    """A row that can't be read: what is wrong, and the beginning of what was found."""

    number: int
    error: str
    found: str

    @classmethod
    def of(cls, number: int, error: object, found: object) -> "BrokenRow":
        """Keep the beginning."""
        text = found.decode("utf-8", "backslashreplace") if isinstance(found, bytes) else str(found)
        return cls(number, str(error), text[:SHOWN])


def find_shards(corpus: str | Path) -> list[Shard]:
    """List the files of a corpus by name.

    Args:
        corpus: one file, or a folder: of it all files, but for those in hidden folders and such
            as begin with ``_``. Text and JSON Lines may be packed.

    Raises:
        DataError: there is no shard.
    """
    corpus = Path(corpus)
    if corpus.is_file():
        files = [corpus]
        corpus = corpus.parent
    else:
        inside = (path.relative_to(corpus) for path in corpus.rglob("*") if path.is_file())
        plain = [path for path in inside if not any(part[0] in "._" for part in path.parts)]
        files = [corpus / path for path in sorted(plain)]
    shards = [file for file in files if plain_ending(file) in ENDINGS]
    if not shards:
        raise DataError(
            f"{corpus}: holds no file of texts. Expected files that end with "
            f"{', '.join(ENDINGS)}; the first two may be packed (.gz, .xz, .bz2, .zst)."
        )
    if others := [file.name for file in files if file not in set(shards)]:
        log.warning("%s: %d files of other kinds are left out (%s)", corpus, len(others), others[0])
    return [Shard(p, p.relative_to(corpus).as_posix(), p.stat().st_size) for p in shards]


def rows_of(
    shard: Shard, *, sentences: int = 1, columns: Mapping[str, str] | None = None
) -> Iterator[Row | BrokenRow]:
    """Read the rows of a shard, in order.

    Args:
        sentences: of each row: two in a line of text have a tab between.
        columns: our name (text_a, text_b) → that of the column or key, where it can't be guessed.

    Raises:
        DataError: the file can't be read, or ends too early.
    """
    ours = ("text_a", "text_b")[:sentences]
    given = tuple((columns or {}).get(name, name) for name in ours)
    usual = [(name,) for name in TEXTS] if sentences == 1 else list(PAIRS)
    names = (given, *usual) if given == ours else (given,)
    if plain_ending(shard.path) == ".parquet":
        yield from _parquet_rows(shard, names)
    else:
        yield from _lines(shard, names)


def _among(names: Sequence[tuple[str, ...]], there: Collection[str]) -> tuple[str, ...]:
    """The first of the names of a row's texts that are there; ValueError where none are."""
    for those in names:
        if all(name in there for name in those):
            return those
    wanted, found = " and ".join(names[0]), ", ".join(map(repr, list(there)[:12]))
    raise ValueError(
        f"found {found or 'nothing'}, expected {wanted}. Name it: --columns text_a=NAME"
    )


def _texts_of(line: str, names: Sequence[tuple[str, ...]], *, as_json: bool) -> tuple[str, ...]:
    """The texts in a line; ValueError where there are none."""
    if not as_json:
        texts = tuple(line.split("\t", 1)) if len(names[0]) == 2 else (line,)
        if len(texts) != len(names[0]):
            raise ValueError("found one text, expected two with a tab between")
        return texts
    data = from_json(line)
    if not isinstance(data, dict):
        raise ValueError(f"found a {type(data).__name__}, expected an object of JSON")
    return _texts({name: data[name] for name in _among(names, data)})


def _texts(values: Mapping[str, Any]) -> tuple[str, ...]:
    for name, value in values.items():
        if not isinstance(value, str):
            raise ValueError(f"'{name}' is {str(value)[:SHOWN]!r}, expected a text")
    return tuple(values.values())


def _lines(shard: Shard, names: Sequence[tuple[str, ...]]) -> Iterator[Row | BrokenRow]:
    """Rows of lines; of plain text an empty one is a row."""
    as_json = plain_ending(shard.path) == ".jsonl"
    try:
        with open_unpacked(shard.path) as file:
            encoding = encoding_of(file.read(1 << 16)) or "utf-16"
        if encoding.startswith(("utf-16", "utf-32")):  # whose line ends are no single bytes
            name = encoding.upper()
            raise DataError(f"{shard.path}: a corpus can't be in {name}. Save it as UTF-8.")
        with open_unpacked(shard.path) as file:
            for number, line in enumerate(file, start=1):
                line = line.rstrip(b"\r\n")
                if as_json and not line.strip():
                    continue
                try:
                    texts = _texts_of(line.decode(encoding), names, as_json=as_json)
                    yield Row(number, texts)
                except ValueError as error:  # UTF-8 and JSON too
                    yield BrokenRow.of(number, error, line)
    except PROBLEMS as error:
        raise DataError(f"{shard.path}: can't be read ({error}). {remedy(error)}") from error


def _parquet_rows(shard: Shard, wanted: Sequence[tuple[str, ...]]) -> Iterator[Row | BrokenRow]:
    number = 0
    try:
        with pq.ParquetFile(shard.path) as file:
            try:
                names = _among(wanted, file.schema_arrow.names)
            except ValueError as error:
                raise DataError(f"{shard.path}: {error}") from error
            for batch in file.iter_batches(columns=list(names)):
                for values in zip(*(batch.column(name) for name in names), strict=True):
                    number += 1
                    try:
                        found = [value.as_py() for value in values]
                        yield Row(number, _texts(dict(zip(names, found, strict=True))))
                    except ValueError as error:  # UTF-8 too
                        yield BrokenRow.of(number, error, "")
    except PARQUET_PROBLEMS as error:
        raise DataError(
            f"{shard.path}: can't be read as Parquet ({error}). Get or write the file again."
        ) from error
