"""Named entities with one token a line, as CoNLL-2003 has them.

A line holds a token and its tag, and maybe other columns between, separated by
a tab or by spaces; an empty line ends a sentence, ``-DOCSTART-`` begins a
document. Data of this form are told by their first lines, whatever the file is
called.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from kbert_core.data.columns import LABELS
from kbert_core.errors import DataError

TAG = re.compile(r"O|[BIMESLU]-\S+")  # the reader, which takes BIO alone, says how to mend others
DOCUMENT = "-DOCSTART-"
LOOKED_AT = 20  # lines that tell the form


def is_conll(lines: Sequence[str]) -> bool:
    """Whether half of the first lines or more are a token with a tag, and none is a header."""
    rows = map(_columns, filter(str.strip, lines))
    first = list(islice((row for row in rows if row[0] != DOCUMENT), LOOKED_AT))
    if not first or any(name in LABELS for name in first[0]):
        return False
    return 2 * sum(map(_is_token, first)) >= len(first)


def conll_rows(
    lines: Sequence[str], name: str
) -> Iterator[tuple[int, tuple[str, ...], tuple[str, ...]]]:
    """Read sentences: (line where it begins, from 1; tokens; tags).

    Args:
        name: of the file, for messages.

    Raises:
        DataError: with the line, where a token or its tag is missing, or
            numbers stand where the tokens should.
    """
    tokens: list[str] = []
    tags: list[str] = []
    for number, line in enumerate([*lines, ""], start=1):
        columns = _columns(line)
        if not line.strip() or columns[0] == DOCUMENT:
            if len(tokens) > 2 and tokens == [str(n + 1) for n in range(len(tokens))]:
                raise DataError(
                    f"{name}, line {number - 1}: the first column numbers the tokens. Take it out: "
                    "the token stands first, its tag last."
                )
            if tokens:
                yield number - len(tokens), tuple(tokens), tuple(tags)
            tokens, tags = [], []
            continue
        if not _is_token(columns):
            raise DataError(
                f"{name}, line {number}: '{line[:60]}' is no token with a tag behind it, as other "
                "lines are. Delete it, or write 'TOKEN TAG' with a tab or a space between, O for a "
                "token of no entity, and nothing in the line between two sentences."
            )
        tokens.append(columns[0])
        tags.append(columns[-1])


def _columns(line: str) -> list[str]:
    """Of a line that isn't empty; the first may be white space, which is a token too."""
    if "\t" in line:
        first, *others = line.split("\t")
        return [first, *(part.strip() for part in others)]
    return [part for part in line.split(" ") if part]


def _is_token(columns: Sequence[str]) -> bool:
    if len(columns) < 2 or not TAG.fullmatch(columns[-1]):
        return False
    token = columns[0]
    return token != "" and (" " not in token or not token.strip(" "))
