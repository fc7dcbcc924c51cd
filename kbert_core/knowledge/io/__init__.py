"""Files of triples, one reader per format; each yields rows as it goes, however large the file.

lines.py       bytes → lines: unpacking, encodings, lines without end
tables.py      .spo .tsv .txt .csv: three columns, or three chosen of more
json_lines.py  .jsonl .ndjson: an object or a list of three a line
rdf.py         .nt .ttl: IRIs by their labels, or shortened
"""

from kbert_core.knowledge.io.opening import ENDINGS, Reading, open_rows
from kbert_core.knowledge.io.rows import Bad, ReadOptions, Row

__all__ = ["ENDINGS", "Bad", "ReadOptions", "Reading", "Row", "open_rows"]
