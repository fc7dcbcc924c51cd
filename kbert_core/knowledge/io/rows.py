"""A row of a file of triples, checked, or what is wrong with it."""

from dataclasses import dataclass

from kbert_core.errors import OptionError
from kbert_core.knowledge.triple import CONTROL, Triple
from kbert_core.options import option

Row = tuple[int, str, str, str]  # line, head, relation, tail
MAX_FIELD = 50_000  # characters; longer is a broken file, not a name


@dataclass(frozen=True, slots=True)
class Bad:
    """A line that is no triple, and why.

    Attributes:
        line: its number, from 1.
        problem: what was found, what was expected, and what to do.
    """

    line: int
    problem: str


@dataclass(frozen=True)
class ReadOptions:
    """How a file of triples is written, where its name doesn't tell.

    Attributes:
        encoding: such as "gb18030"; None: UTF-8, or UTF-16 that says so in
            its first bytes.
        columns: which columns are head, relation and tail, by number from 1
            or by name in the first line; None: the first three, or those
            that the first line calls so.
        language: of the labels in RDF, such as "zh"; None: any.
        most: refuse a file of more bytes than so many, unpacked.
    """

    encoding: str | None = option(None, help="such as gb18030; default: UTF-8", metavar="NAME")
    columns: tuple[str, str, str] | None = option(
        None,
        help="columns of head, relation and tail, by name or number",
        metavar="H,R,T",
        parse=lambda text: tuple(text.split(",")),
    )
    language: str | None = option(
        None, help="of labels in RDF, such as zh; default: any", metavar="CODE"
    )
    most: int | None = None

    def __post_init__(self) -> None:
        if self.encoding is not None:
            try:
                "".encode(self.encoding)
            except (LookupError, UnicodeError):  # the latter of one that is for nothing
                raise OptionError(
                    f"The encoding '{self.encoding}' is unknown. Give one such as utf-8, gb18030, "
                    "big5 or utf-16."
                ) from None
        if self.columns is not None and len(set(self.columns)) != 3:
            raise OptionError(
                f"{','.join(self.columns)} names {len(set(self.columns))} columns. Give three "
                "different ones, those of head, relation and tail, by number or by name."
            )


def checked(line: int, head: str, relation: str, tail: str) -> Row | Bad:
    """Strip the fields of a row and check them."""
    head, relation, tail = head.strip(), relation.strip(), tail.strip()
    if head and relation and tail and len(head) + len(relation) + len(tail) <= MAX_FIELD:
        if head.isprintable() and relation.isprintable() and tail.isprintable():
            return line, head, relation, tail  # the quick way to see that there is no control
        if not CONTROL.search(f"{head}{relation}{tail}"):
            return line, head, relation, tail
    fields = (head, relation, tail)
    problem = Triple(*fields).problem()
    if problem:
        return Bad(
            line, f"'{shown(chr(9).join(fields))}' is no triple: {problem}, or delete the line."
        )
    longest = max(map(len, fields))
    if longest > MAX_FIELD:
        return Bad(
            line,
            f"a field of {longest} characters in '{shown(chr(9).join(fields))}', at most "
            f"{MAX_FIELD} expected. Shorten it or delete the line.",
        )
    return line, head, relation, tail


def shown(text: str) -> str:
    """A line as it can be shown: short, every odd character by its number."""
    text = text if len(text) <= 80 else text[:77] + "..."
    return printable(text.replace("\t", "<TAB>"))


def printable(text: str) -> str:
    """A text with every odd character by its number."""
    return "".join(c if c.isprintable() else f"<U+{ord(c):04X}>" for c in text)
