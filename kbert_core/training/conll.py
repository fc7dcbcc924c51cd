"""Named entities with one token a line, as CoNLL-2003 has them.

A line holds a token and its tag, and maybe other columns between, separated by
a tab or by spaces; an empty line ends a sentence, ``-DOCSTART-`` begins a
document. Data of this form are told by their first line, whatever the file is
called.
"""

import re
from collections.abc import Iterator, Sequence

from kbert_core.errors import DataError

TAG = re.compile(r"O|[BIMESLU]-.+")  # the reader, which takes BIO alone, says how to mend others
DOCUMENT = "-DOCSTART-"


def is_conll(lines: Sequence[str]) -> bool:
    """Whether the first line of a file that isn't empty is a token with a tag."""
    first = next((line for line in lines if line.strip() and not line.startswith(DOCUMENT)), "")
    columns = _columns(first)
    return len(columns) > 1 and " " not in columns[0] and TAG.fullmatch(columns[-1]) is not None


def conll_rows(
    lines: Sequence[str], name: str
) -> Iterator[tuple[int, tuple[str, ...], tuple[str, ...]]]:
    """Read sentences: (line where it begins, from 1; tokens; tags).

    Args:
        name: of the file, for messages.

    Raises:
        DataError: with the line, where a token or its tag is missing.
    """
    tokens: list[str] = []
    tags: list[str] = []
    for number, line in enumerate([*lines, ""], start=1):
        columns = _columns(line)
        if not line.strip() or columns[0] == DOCUMENT:
            if tokens:
                yield number - len(tokens), tuple(tokens), tuple(tags)
            tokens, tags = [], []
            continue
        if len(columns) < 2 or not columns[0] or not TAG.fullmatch(columns[-1]):
            raise DataError(
                f"{name}, line {number}: '{line[:60]}' is no token with a tag behind it, as the "
                "lines before. Write 'TOKEN TAG' with a tab or a space between, O for a token of "
                "no entity, and nothing in the line between two sentences."
            )
        tokens.append(columns[0])
        tags.append(columns[-1])


def _columns(line: str) -> list[str]:
    return line.split("\t") if "\t" in line else [part for part in line.split(" ") if part]
