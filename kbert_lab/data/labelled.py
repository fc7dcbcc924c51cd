"""Labelled examples of data in the released K-BERT's formats, read exactly as published.

For named entities a text is tokens separated by single spaces with as many BIO tags. Fields are
taken as they stand: a quotation mark is a character like any other. See ``tables`` for the files.
"""

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from kbert_core.errors import DataError
from kbert_core.knowledge.names import is_word_character
from kbert_core.labels import OUTSIDE, RIGHT, WRONG, bio_spans
from kbert_lab.data.several import labels_of_cells, look_like_several
from kbert_lab.data.tables import NUMBERED, SPANS, Source, Table, TextTable
from kbert_lab.data.tagging import BIO, IOB1, TAG, as_bio, is_stray, scheme_of, tag_remedy

SPLITS = ("train", "dev", "test")
SHOWN = 5  # warnings of one kind
SENTENCE = re.compile(r"\w{9}|\w[，。！？；]")  # within a token: nine letters, or a mark after one
NUMBER = re.compile(r"[+-]?\d{1,15}(\.\d{1,15})?")
MOST_NUMBERS = 20  # classes that are numbers
LEAST_BEGUN = 0.1  # entities that are read, to one that is lost
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
    return examples_of(TextTable(Path(path), task, columns), task, columns)


def examples_of(table: Table, task: str, columns: Mapping[str, str] | None) -> list[Example]:
    """Make examples of a table's rows; arguments and errors as of :func:`read_examples`."""
    rows, source = table.rows(task, table.columns_of(task, columns)), table.source
    if task == "ner":
        tagged = ((n, _tokens(row["text_a"]), _tokens(row["label"])) for n, row in rows)
        examples = tagged_examples(tagged, source, whole=table.whole)
        if any(map(NUMBERED.search, table.columns)) and all(len(e.words) == 1 for e in examples):
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
        _check_tags(tokens, tags, source.place(number))
    spaced = _spaced([token for _, tokens, _ in split for token in tokens])
    if not spaced:
        _refuse_sentences(split, source)
    scheme = scheme_of(tags for _, _, tags in split)
    if scheme == IOB1 and not whole:
        scheme = BIO
    if scheme != BIO:
        log.warning(f"{source.name}: the tags are {scheme}; they are read as BIO (IOB2).")
    examples = []
    stray: list[int] = []  # lines of entities without a beginning
    for number, tokens, tags in split:
        stray += [number for pair in pairwise([OUTSIDE, *tags]) if is_stray(*pair)]
        text, words = _joined(tokens, spaced)
        bio = tuple(as_bio(tags, scheme))
        examples.append(Example((text,), None, words, bio, source=source, line=number))
    if stray and scheme != IOB1:
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


def _check_tags(tokens: Sequence[str], tags: Sequence[str], where: str) -> None:
    if len(tokens) != len(tags):
        raise DataError(
            f"{where}: {len(tokens)} tokens and {len(tags)} labels. "
            "Expected one label for each token, both separated by single spaces."
        )
    if "" in tokens:
        raise DataError(
            f"{where}: token {list(tokens).index('') + 1} is empty. Write a token there, or "
            "delete its label and the extra space."
        )
    for number, (token, wrong) in enumerate(zip(tokens, tags, strict=True), start=1):
        if not TAG.fullmatch(wrong):
            raise DataError(
                f"{where}: the label '{wrong}' isn't a BIO tag (token {number}, '{token}'). "
                f"Expected O, B-TYPE or I-TYPE.{tag_remedy(wrong)}"
            )


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


def _spaced(tokens: Sequence[str]) -> bool:
    """Say whether tokens are mostly words of a script with spaces between words."""
    if all(len(token) <= 1 for token in tokens):
        return False
    borders = [token[0] for token in tokens if token[:1].isalpha()]
    return 2 * sum(map(is_word_character, borders)) >= len(borders)


def _joined(tokens: Sequence[str], spaced: bool) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Join tokens to a text; also their spans in characters."""
    text, before, words = "", "", []
    for token in tokens:
        if before and (spaced or _two_words(before, token)):
            text += " "
        words.append((len(text), len(text) + len(token)))
        text, before = text + token, token
    return text, tuple(words)


def _two_words(before: str, after: str) -> bool:
    """Say whether two tokens of a text without spaces still need a space between them."""
    borders = (before[-1:], after[:1])
    return (len(before) > 1 or len(after) > 1) and all(
        border.isalpha() and is_word_character(border) for border in borders
    )
