"""Files of triples, one reader per format; each yields rows as it goes, however large the file.

compression.py  files packed as .xz, .gz, .bz2 or .zst
lines.py        bytes → lines: encodings, lines without end
tables.py       .spo .tsv .txt .csv: three columns, or three chosen of more
json_lines.py   .jsonl .ndjson: an object or a list of three per line
rdf.py          .nt .ttl: IRIs by their labels, or shortened
read.py         the reader of a file, and what it leaves out
write.py        triples into a file of any of these formats
download.py     public graphs, fetched and checked
"""

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
