"""`kbert tree`, `predict` and `rank`: texts read with a graph."""

import io
import logging
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kbert_core.cli.commands import (
    FORM,
    GRAPH,
    MODEL,
    READING,
    SYSTEM,
    argument,
    command,
    config_of,
    graph_of,
    loaded,
    several,
    system_of,
)
from kbert_core.cli.output import Progress, show
from kbert_core.errors import KBertError, OptionError, TextError
from kbert_core.knowledge.names import is_word_character
from kbert_core.text import Characters, Tokenizer, Words

if TYPE_CHECKING:  # not imported to run: it needs PyTorch
    from kbert_core.cli.trees import Rows

log = logging.getLogger(__name__)
TEXTS_AT_ONCE = 1000  # of a file that are predicted together
PROGRESS_EVERY = 1000  # texts
Texts = Sequence[Sequence[str]]

TEXT = several(
    argument("text", "a sentence, or two for a pair", nargs="*"),
    argument(
        "--file",
        "one text a line, answered in JSON lines; - for standard input, one line at a time",
        metavar="F",
    ),
    argument("--pair", "lines of --file hold two sentences, a tab between", False),
)
COMPARE = argument("--compare", "also without any knowledge", False)


@command(
    "tree",
    *(TEXT, GRAPH, FORM, SYSTEM),
    several(
        argument("--words", "the text is split by spaces: one token a word", False),
        argument("--chars", "every character a token", False),
        argument("--model", "the rows that this model reads", metavar="DIR"),
        one=True,
    ),
    argument("--special", "add [CLS] and [SEP]", False),
)
def tree(args: Namespace) -> None:
    """Show the sentence tree of a text.

    Without --words, --chars or --model, a text mostly of Latin letters is split into words and any
    other into characters. A model's tokenizer always adds its special tokens, and its length limit
    counts.
    """
    rows_of = _rows_of_model(args) if args.model else _rows_without_model(args)
    _each(args, lambda texts: map(rows_of, texts), lambda rows: rows.text())


def _rows_of_model(args: Namespace) -> "Callable[[Sequence[str]], Rows]":
    """The rows that a model reads, made by itself."""
    from kbert_core.cli.trees import Rows
    from kbert_core.kbert.sentence_tree import passed_over

    pipeline, graph, config = loaded(args, device="cpu")

    def rows_of(sentences: Sequence[str]) -> Rows:
        reading: Any
        (reading,) = pipeline.readings([sentences], graph=graph, config=config)
        over = passed_over(reading.tree, graph, config.options.names)
        return Rows(reading.rows, config.ablation, over)

    return rows_of


def _rows_without_model(args: Namespace) -> "Callable[[Sequence[str]], Rows]":
    """Rows of words or characters."""
    from kbert_core.cli.trees import Rows
    from kbert_core.kbert.flattening import flatten
    from kbert_core.kbert.interventions import ReadConfig
    from kbert_core.kbert.sentence_tree import grow_trees, passed_over
    from kbert_core.scoring import scorer_of

    if (system := system_of(args)) not in (None, ReadConfig.system):
        raise OptionError(f"--system {system} reads word pieces. Name a model with --model.")
    graph, config = graph_of(args), config_of(args, ReadConfig())
    options = config.options
    scorer = scorer_of(options, None) if options.needs_model else None

    def rows_of(sentences: Sequence[str]) -> Rows:
        tokenizer = _tokenizer(args, sentences)
        words = None
        if isinstance(tokenizer, Words):
            tokens = tokenizer.tokenize(sentences)
            words = [[tuple(zip(t.starts, t.ends, strict=True)) for t in tokens]]
        trees = grow_trees([sentences], graph, options, words=words, scorer=scorer)
        rows = flatten(trees, tokenizer, max_length=config.max_length)
        return Rows(rows, config.ablation, passed_over(trees[0], graph, options.names))

    return rows_of


def _tokenizer(args: Namespace, sentences: Sequence[str]) -> Tokenizer:
    """Words for scripts with spaces between them, characters for the others."""
    letters = [c for text in sentences for c in text if c.isalpha()]
    spaced = 2 * sum(map(is_word_character, letters)) >= len(letters)
    words = args.words or (spaced and not args.chars)
    return (Words if words else Characters)(special=args.special)


@command("predict", TEXT, MODEL, COMPARE)
def predict(args: Namespace) -> None:
    """Predict with a model and a graph."""
    from kbert_core.cli.trees import dropped, prediction_data, prediction_text
    from kbert_core.pipeline import NO_KNOWLEDGE

    pipeline, graph, config = loaded(
        args,
        why="so it predicts nothing. Train a head with `kbert train`, or look at the tree with "
        "`kbert tree`.",
    )

    def predictions(texts: Texts) -> Iterator[Mapping[str, Any]]:
        readings = pipeline.read(texts, graph=graph, config=config)
        plain = pipeline.predict(texts, graph=NO_KNOWLEDGE, config=config)
        for sentences, read in zip(texts, readings, strict=True):
            data: dict[str, Any] = {
                "text": list(sentences) if len(sentences) > 1 else sentences[0],
                "prediction": prediction_data(read.prediction),
                "triples": [asdict(triple) for triple in read.used],
                "dropped": dropped(read.rows[0], read.left_out),
            }
            if args.compare:
                data["without_knowledge"] = prediction_data(next(plain))
            yield data

    at_once = 1 if args.file in (None, "-") else TEXTS_AT_ONCE
    _each(args, predictions, prediction_text, at_once=at_once)


# Ranking


@command(
    "rank",
    argument("question", "in quotes"),
    argument("answer", "candidate answers, each in quotes", nargs="*"),
    argument("--candidates", "candidate answers, one a line", metavar="FILE"),
    COMPARE,
    argument("--model", "one for the task rank", required=True, metavar="DIR"),
    READING,
)
def rank(args: Namespace) -> dict[str, Any]:
    """Put candidate answers to a question in order."""
    from kbert_core.pipeline import NO_KNOWLEDGE

    answers = _answers(args)
    pipeline, graph, config = loaded(args)
    data: dict[str, Any] = {"question": args.question}
    for key, knowledge in (("answers", graph), ("without_knowledge", NO_KNOWLEDGE)):
        if key == "answers" or args.compare:
            ranked = pipeline.rank(args.question, answers, graph=knowledge, config=config)
            data[key] = [asdict(answer) for answer in ranked]
    texts = [(args.question, answer) for answer in answers]
    readings = pipeline.readings(texts, graph=graph, config=config)
    cut = sum(any(row.trunk_cuts for row in reading.rows) for reading in readings)
    if cut:
        log.warning("%d of %d candidates are over the length limit and cut", cut, len(answers))
    return data


def _answers(args: Namespace) -> list[str]:
    """Candidates from the command line, then those of the file; blank lines are left out."""
    more = _lines(args.candidates) if args.candidates else ()
    answers = [*args.answer, *(line for line in more if line.strip())]
    if not answers:
        raise TextError(
            "No candidate answer given. Write them after the question, or name a file of one a "
            "line with --candidates FILE."
        )
    return answers


# Texts


def _each(
    args: Namespace,
    work: Callable[[Texts], Iterator[Any]],
    text: Callable[[Any], str],
    *,
    at_once: int = 1,
) -> None:
    """Do the work for so many texts at once and print each; of a file, errors name the line."""
    number = 0
    with Progress("texts", logged=PROGRESS_EVERY) as progress:
        for texts in _batched(_inputs(args), at_once):
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


def _inputs(args: Namespace) -> Iterator[Sequence[str]]:
    """The texts to read: from the command line, or one a line from a file."""
    if args.file is None:
        if not args.text:
            taken = "--relations takes every word after it. " if hasattr(args, "relations") else ""
            raise TextError(
                f"No text given. {taken}Write one in quotes first, or name a file with --file."
            )
        yield tuple(args.text)
        return
    if args.text:
        raise OptionError("Both a text and --file are given. Give one of them.")
    for line in _lines(args.file):
        yield tuple(line.split("\t", 1)) if args.pair else (line,)


def _lines(name: str) -> Iterator[str]:
    """The lines of a file, or of standard input, one at a time."""
    if name == "-" and isinstance(sys.stdin, io.TextIOWrapper):  # else a test's, or a notebook's
        sys.stdin.reconfigure(encoding="utf-8-sig", errors="strict")
    try:
        with sys.stdin if name == "-" else open(name, encoding="utf-8-sig") as file:
            for line in file:
                yield line.rstrip("\r\n")
    except OSError as error:
        raise TextError(f"{name}: can't be read ({error.strerror}). Check the name.") from error
    except UnicodeDecodeError as error:
        raise TextError(f"{name}: not UTF-8 ({error}). Save it as UTF-8.") from error
