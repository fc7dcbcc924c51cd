"""The texts that a command reads: given, or one a line of a file; each answered as it comes."""

import io
import logging
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kbert_core.errors import KBertError, OptionError, TextError
from kbert_core.knowledge.io.compression import plain_ending
from kbert_core.knowledge.io.text_lines import VARIABLE
from kbert_lab.cli.commands import arguments_of, call
from kbert_lab.cli.output import Progress, show

log = logging.getLogger(__name__)

PROGRESS_EVERY = 1000  # texts
Texts = Sequence[Sequence[str]]


def texts_given(
    text: tuple[str, ...] = (),
    *,
    question: str | None = None,
    file: str | None = None,
    pair: bool = False,
) -> Iterator[Sequence[str]]:
    """The texts to read: from the command line, or one a line from a file.

    Args:
        text: a sentence, or two for a pair
        question (TEXT): a question about the text, which is a paragraph
        file (F): texts, one per line, or a .json file in SQuAD's form; - for standard input. Prints
            one JSON object per line
        pair: each line of --file has two sentences with a tab between
    """
    if file is not None and text:
        raise OptionError("Both a text and --file are given. Give one of them.")
    asked = () if question is None else (question,)
    if file is not None and file.endswith(".json"):
        from kbert_lab.data.squad import comprehension_pairs

        yield from comprehension_pairs(file)
    elif file is not None:
        if plain_ending(file) in (".csv", ".tsv") and not pair:
            log.warning(
                "%s: every whole line is read as one text, headings too. If it is a table, give "
                "a file of its texts alone.",
                file,
            )
        for line in lines_of(file):
            yield (*asked, *(line.split("\t", 1) if pair else (line,)))
    elif text:
        yield (*asked, *text)
    else:
        raise TextError(
            "No text given. Write one in quotes, before options such as --relations that take "
            "every word after them, or name a file with --file."
        )


TEXT = arguments_of(texts_given)


def each_text(
    args: Namespace,
    work: Callable[[Texts], Iterator[Any]],
    text: Callable[[Any], str],
    *,
    at_once: int = 1,
) -> None:
    """Do the work for so many texts at once and print each; of a file, errors name the line."""
    number = 0
    with Progress("texts", logged=PROGRESS_EVERY) as progress:
        for texts in _batched(call(texts_given, args), at_once):
            results = work(texts)
            for _ in texts:
                number += 1
                try:
                    show(next(results), text, args)
                except KBertError as error:
                    if args.file is None:
                        raise
                    raise type(error)(f"{args.file}, line {number}: {error}") from error
                if args.file is not None:
                    progress(number)


def _batched(texts: Iterator[Sequence[str]], size: int) -> Iterator[Texts]:
    """Cut a stream into lists of so many; where it breaks off, after what came before."""
    batch: list[Sequence[str]] = []
    try:
        for text in texts:
            batch.append(text)
            if len(batch) == size:
                full, batch = batch, []
                yield full
    finally:
        if batch:
            yield batch


def lines_of(name: str) -> Iterator[str]:
    """The lines of a file of plain text, packed or not, or of standard input, one at a time."""
    from kbert_lab.data.tables import each_line, plain_lines

    if name != "-":
        return plain_lines(each_line(name), name)
    if isinstance(sys.stdin, io.TextIOWrapper):  # else a test's, or a notebook's
        sys.stdin.reconfigure(encoding=os.environ.get(VARIABLE, "utf-8-sig"), errors="strict")
    return plain_lines(_typed(), "standard input")


def _typed() -> Iterator[str]:
    try:
        yield from (line.rstrip("\r\n") for line in sys.stdin)
    except UnicodeDecodeError as error:
        raise TextError(f"-: not UTF-8 ({error}). Save it as UTF-8.") from error
