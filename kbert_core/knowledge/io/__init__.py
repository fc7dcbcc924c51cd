"""Files of triples, one reader per format; each yields rows as it goes, however large the file."""

from kbert_core.knowledge.io.read import (
    ENDINGS,
    Reading,
    TripleFile,
    open_rows,
    parse_triples,
    read_triples,
    rows_of,
    unit_of,
)
from kbert_core.knowledge.io.rows import Bad, ReadOptions, Row

__all__ = [
    "ENDINGS",
    "Bad",
    "ReadOptions",
    "Reading",
    "Row",
    "TripleFile",
    "open_rows",
    "parse_triples",
    "read_triples",
    "rows_of",
    "unit_of",
]
