"""Labelled examples of data in the released K-BERT's formats, read exactly as published.

For named entities a text is tokens separated by single spaces with as many BIO tags. Fields are
taken as they stand: a quotation mark is a character like any other. See ``tables`` for the files.
"""

import ast
import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from kbert_core.errors import DataError
from kbert_core.knowledge.names import normalise_name
from kbert_core.labels import OUTSIDE, RIGHT, WRONG, bio_spans
from kbert_lab.data import tables, tagging
from kbert_lab.data.tables import SPANS, Source, Table

SPLITS = ("train", "dev", "test")
SHOWN = 5  # warnings of one kind
SENTENCE = re.compile(r"\w{9}|\w[，。！？；]")  # within a token: nine letters, or a mark after one
NUMBER = re.compile(r"[+-]?\d{1,15}(\.\d{1,15})?")
MOST_NUMBERS = 20  # classes that are numbers
LEAST_BEGUN = 0.1  # entities that are read, to one that is lost
LINKS = (".jsonl", ".jsonl.xz")
BAR = re.compile(r"\|")
SIGNS = re.compile(r"[|,;，；、](?![^(]*\))")  # but not in Cause-Effect(e2,e1)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GoldLink:
    """A span of a text, and the entities that it means.

    Attributes:
        start, end: in characters, end exclusive.
        entities: the right ones; any of them counts.
        word: the word under which they are looked up; empty: the text of the span.
        candidates: what the span may mean, the most common first; empty: not given.
    """

    start: int
    end: int
    entities: tuple[str, ...]
    word: str = ""
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Example:
    """One labelled input: one text or two, and where it was read."""

    sentences: tuple[str, ...]
    label: str | None = None  # for classification; for fill-mask what stands at the masks
    words: tuple[tuple[int, int], ...] = ()  # gold tokens: (start, end) in characters
    tags: tuple[str, ...] = ()  # and their BIO tags
    classes: tuple[str, ...] = ()  # where a text may have several labels
    group: str = ""  # which question it belongs to
    links: tuple[GoldLink, ...] = ()  # for entity linking
    answers: tuple[tuple[int, str], ...] = ()  # where in the second text (-1: nowhere), and what
    source: Source | None = field(default=None, compare=False, repr=False)
    line: int = field(default=0, compare=False, repr=False)

    @property
    def spans(self) -> tuple[tuple[int, int, str], ...]:
        """Gold entities: (start, end, label) in characters."""
        return tuple(
            (self.words[first][0], self.words[last - 1][1], label)
            for first, last, label in bio_spans(self.tags)
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """The tags, or the single label, or several or none."""
        return self.tags or (self.classes if self.label is None else (self.label,))

    @property
    def place(self) -> str:
        """The place where it was read, for a message: "dev.tsv, line 3"."""
        if self.source is None:
            return f"the example '{' ‖ '.join(self.sentences)[:40]}'"
        return self.source.place(self.line)


def read_examples(
    path: str | Path, task: str, columns: Mapping[str, str] | None = None
) -> list[Example]:
    """Read a labelled file; DataError, with file and line, where a row doesn't fit.

    It is a ``.tsv``; for fill-mask also plain ``.txt``; for named entities also one token a line,
    whatever the ending; each may be packed with xz. ``columns`` are our names (text_a, text_b,
    label, qid) → the file's. For fill-mask a column "filling" says what stands at the [MASK]s of
    the text; without it tokens are hidden at random.
    """
    return examples_of(tables.text_table(Path(path), task, columns), task, columns)


def examples_of(table: Table, task: str, columns: Mapping[str, str] | None) -> list[Example]:
    """Make examples of a table's rows; arguments and errors as of :func:`read_examples`."""
    rows, source = table.rows(task, table.columns_of(task, columns)), table.source
    if task == "ner":
        tagged = ((n, _tokens(row["text_a"]), _tokens(row["label"])) for n, row in rows)
        examples = tagged_examples(tagged, source, whole=table.whole)
        if any(map(tables.NUMBERED.search, table.columns)) and all(
            len(e.words) == 1 for e in examples
        ):
            raise DataError(f"{source.name}: each row is one token, expected a sentence.{SPANS}")
    elif task == "multilabel":
        cells = [(number, row["label"], {"text_a": row["text_a"]}) for number, row in rows]
        several = labels_of_cells([(source.place(number), cell) for number, cell, _ in cells])
        examples = [
            replace(_example(task, text, source, number), classes=labels)
            for (number, _, text), labels in zip(cells, several, strict=True)
        ]
    else:
        examples = [_example(task, row, source, number) for number, row in rows]
    if task == "classify" and (some := look_like_several(e.label or "" for e in examples)):
        log.warning(
            f"{source.name}: the label '{some[0][:40]}' looks like several of one text, and is "
            "read as one. To learn each by itself, train with --task multilabel."
        )
    if task in ("classify", "pair") and table.whole:
        _refuse_scores(examples, source)
    if not examples:
        raise DataError(
            f"{source.name}: no labelled {source.unit}, so nothing to learn or to score. Add at "
            "least one."
        )
    return examples


def _example(task: str, row: Mapping[str, str], source: Source, number: int) -> Example:
    where, label = source.place(number), row.get("label")
    for column, value in row.items():
        if not value.strip():
            raise DataError(f"{where}: {column} is blank. Write it, or delete the {source.unit}.")
    if task == "rank" and label not in (RIGHT, WRONG):
        raise DataError(
            f"{where}: the label is '{label}', expected 1 for an answer to the question and 0 for "
            "any other sentence."
        )
    texts = tuple(row[column] for column in ("text_a", "text_b") if column in row)
    group = row.get("qid", texts[0]) if task == "rank" else ""
    return Example(texts, label, group=group, source=source, line=number)


def tagged_examples(
    rows: Iterable[tuple[int, Sequence[str], Sequence[str]]], source: Source, *, whole: bool = True
) -> list[Example]:
    """Make examples of rows of tokens with tags: (line, tokens, tags).

    Tokens are joined by spaces if the script puts spaces between words, and without any if it
    doesn't, as Chinese; there a space stays between two words of Latin letters. Tags of another
    scheme become BIO. DataError, with the place, for unequal numbers, an empty token, what isn't
    a tag, and where more entities have no beginning than have one.

    Args:
        whole: all rows of a set; a few alone don't tell IOB1 from a B- that is missing.
    """
    split = list(rows)
    for number, tokens, tags in split:
        tagging.check_tags(tokens, tags, source.place(number))
    with_spaces = tagging.spaced([token for _, tokens, _ in split for token in tokens])
    if not with_spaces:
        _refuse_sentences(split, source)
    scheme = tagging.scheme_of(tags for _, _, tags in split)
    if scheme == tagging.IOB1 and not whole:
        scheme = tagging.BIO
    if scheme != tagging.BIO:
        log.warning(f"{source.name}: the tags are {scheme}; they are read as BIO (IOB2).")
    examples = []
    stray: list[int] = []  # lines of entities without a beginning
    for number, tokens, tags in split:
        stray += [number for pair in pairwise([OUTSIDE, *tags]) if tagging.is_stray(*pair)]
        text, words = tagging.joined(tokens, with_spaces)
        bio = tuple(tagging.as_bio(tags, scheme))
        examples.append(Example((text,), None, words, bio, source=source, line=number))
    if stray and scheme != tagging.IOB1:
        begun = sum(len(example.spans) for example in examples)
        if whole and begun < LEAST_BEGUN * len(stray):
            raise DataError(
                f"{source.name}: {begun} entities have a tag that begins them, and {len(stray)} "
                f"have none, the first in {source.unit} {stray[0]}. Write B-TYPE for the first "
                "token of each entity."
            )
        begin, are = ("entity begins", "is") if len(stray) == 1 else ("entities begin", "are")
        log.warning(
            f"{source.name}: {len(stray)} {begin} with I- instead of B- and {are} read as O, the "
            f"first in {source.unit} {stray[0]}. Write B- where an entity begins."
        )
    return examples


def surface_forms(examples: Iterable[Example]) -> set[str]:
    """Every entity name labelled in a data set, as it stands in the texts."""
    return {e.sentences[0][start:end] for e in examples for start, end, _ in e.spans}


def labels_of(examples: Sequence[Example]) -> list[str]:
    """Every label, sorted; for named entities O first, then B-, I- by type."""
    if examples and examples[0].tags:
        types = sorted({tag[2:] for e in examples for tag in e.tags if tag != OUTSIDE})
        return [OUTSIDE, *(f"{border}-{type_}" for type_ in types for border in "BI")]
    return sorted({label for example in examples for label in example.labels})


def refuse_unlabelled(examples: Iterable[Any]) -> None:
    """Refuse texts where labelled examples are expected."""
    for example in examples:
        if not isinstance(example, Example):
            raise DataError(
                f"Got {example!r:.60}, expected a labelled example. Read a data set with "
                "read_examples, or make each text an Example."
            )


def check_labels(examples: Sequence[Example], known: Sequence[str], whose: str) -> None:
    """Refuse unknown labels; ``whose`` says who doesn't know them, such as "the model"."""
    allowed = set(known)
    for example in examples:
        wrong = next((label for label in example.labels if label not in allowed), None)
        if wrong is not None:
            raise DataError(
                f"{example.place}: the label '{wrong}' is not among those of {whose} "
                f"({', '.join(known)}). Correct it, or take data and training set with the same "
                "labels."
            )


def warn_of_rare_labels(examples: Sequence[Example]) -> None:
    """Log every class, or type of entity, that has a single example in training."""
    found: dict[str, list[Example]] = {}
    for example in examples:
        types = [label for _, _, label in example.spans]
        for label in types if example.tags else example.labels:
            found.setdefault(label, []).append(example)
    rare = sorted(label for label, those in found.items() if len(those) == 1)
    for label in rare[:SHOWN]:
        log.warning(
            "%s: the only training example of '%s'. One is too few to learn it; add more, "
            "or leave this label out.",
            *(found[label][0].place, label[:40]),
        )
    if len(rare) > SHOWN:
        log.warning("%d more labels have a single training example.", len(rare) - SHOWN)


def _tokens(value: Any) -> list[str]:
    """A list of tokens or tags; a text is split at single spaces, as in the release's files."""
    return value if isinstance(value, list) else str(value).split(" ")


def _refuse_sentences(
    rows: Sequence[tuple[int, Sequence[str], Sequence[str]]], source: Source
) -> None:
    """Refuse rows where most tokens are whole sentences, as of a script without spaces."""
    found = [(n, token) for n, tokens, _ in rows for token in tokens if SENTENCE.search(token)]
    if 2 * len(found) > sum(len(tokens) for _, tokens, _ in rows):
        raise DataError(
            f"{source.place(found[0][0])}: the token '{found[0][1][:40]}' looks like a whole "
            f"sentence, as do {len(found)} of the tokens. Write one character or word per token, "
            "each with its tag."
        )


def _refuse_scores(examples: Sequence[Example], source: Source) -> None:
    """Refuse labels that are all numbers, and some of them fractions; warn of many numbers."""
    numbers = {
        example.label: example for example in examples if NUMBER.fullmatch(example.label or "")
    }
    if len(numbers) < len({example.label for example in examples}):
        return
    if fraction := next((label for label in numbers if not float(label or 0).is_integer()), None):
        raise DataError(
            f"{numbers[fraction].place}: the label is {fraction}, a score, expected a class. Write "
            "names of classes, such as low and high, or take another column."
        )
    if len(numbers) > max(MOST_NUMBERS, len(examples) // 2):
        log.warning(
            f"{source.name}: the labels are {len(numbers)} numbers in {len(examples)} rows, and "
            "each is read as a class. If they are scores, write names of classes, such as low and "
            "high."
        )


# Several labels in a cell: sports|politics, or a list of JSON or Python; none in an empty one


def labels_of_cells(cells: Sequence[tuple[str, Any]]) -> list[tuple[str, ...]]:
    """Take cells (place, text or list) apart; DataError for a broken list or a label twice."""
    lists = [(where, _as_list(where, cell)) for where, cell in cells]
    sign = BAR if any(isinstance(cell, str) and "|" in cell for _, cell in lists) else SIGNS
    return [_labels(where, cell, sign) for where, cell in lists]


def look_like_several(cells: Iterable[Any]) -> list[str]:
    """Return the cells that may have several labels: lists, and those that share a part."""
    cells = list(cells)
    if lists := [", ".join(map(str, cell)) for cell in cells if isinstance(cell, list)]:
        return lists
    parts = {cell: {part.strip() for part in SIGNS.split(cell)} for cell in set(map(str, cells))}
    count = Counter(part for own in parts.values() for part in own)
    found = (la for la, own in parts.items() if len(own) > 1 and any(count[p] > 1 for p in own))
    return sorted(found)


def _as_list(where: str, cell: Any) -> Any:
    """Read a list that is written as a text; JSON's lists of texts are Python's, too."""
    if not isinstance(cell, str) or not cell.lstrip().startswith("["):
        return cell
    try:
        return ast.literal_eval(cell.strip())
    except (ValueError, SyntaxError) as error:
        raise DataError(
            f'{where}: the labels \'{cell[:60]}\' are no list. Write them as ["one", "another"], '
            "or as one|another."
        ) from error


def _labels(where: str, cell: Any, sign: re.Pattern[str]) -> tuple[str, ...]:
    parts = sign.split(cell) if isinstance(cell, str) else map(str, cell)
    labels = tuple(part.strip() for part in parts if part.strip())
    if len(set(labels)) < len(labels):
        raise DataError(
            f"{where}: a label stands twice in '{', '.join(labels)[:60]}'. Expected the names of "
            "the labels that the text has, each once, and not a 0 or 1 for every label."
        )
    return labels


# Texts with the entities that their spans mean: data for the task "link"


def read_links(path: str | Path) -> list[Example]:
    """Read labelled texts, an object of JSON a line.

    It has ``text`` and ``labels``, each with ``span`` (start, end in characters) and ``entity_id``,
    as entity-linking benchmarks are published. Three more fields are ours: ``also``, other entities
    that are right too; ``word``, under which the entity is looked up; ``candidates``, what the span
    may mean, the most common first.

    Raises:
        DataError: with file and line, where a line isn't so.
    """
    path, examples = Path(path), []
    source = Source(path.name, "line")
    for number, line in enumerate(tables.read_lines(path), start=1):
        if not line.strip():
            continue
        where = source.place(number)
        try:
            row = from_json(line)
            text, links = row["text"], tuple(map(_link, row["labels"]))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            problem = tables.problem_of(error)
            raise DataError(
                f"{where}: found no labelled text ({problem}), expected 'text' and 'labels', each "
                "with 'span' and 'entity_id'. Mend or delete the line."
            ) from error
        if not isinstance(text, str) or not text.strip():
            raise DataError(f"{where}: the text is blank. Write it, or delete the line.")
        for link in links:
            if not 0 <= link.start < link.end <= len(text):
                raise DataError(
                    f"{where}: the span [{link.start}, {link.end}) isn't in the text of "
                    f"{len(text)} characters. Give start and end, the end exclusive."
                )
        examples.append(Example((text,), links=links, source=source, line=number))
    if not examples:
        raise DataError(f"{path}: no labelled text, so nothing to learn or to score. Add one.")
    return examples


def _link(label: Mapping[str, Any]) -> GoldLink:
    start, end = map(int, label["span"])
    entities, candidates = (
        tuple(normalise_name(str(entity)) for entity in some)  # as a graph knows it
        for some in ((label["entity_id"], *label.get("also", ())), label.get("candidates", ()))
    )
    return GoldLink(start, end, entities, str(label.get("word", "")), candidates)
