"""The `kbert` command: a module for every kind of command, each with its options.

What a user can cause is said on standard error with exit code 2; results go
to standard output, progress to standard error. The module of a command is imported when the
command is run, and what needs PyTorch by the function that does, so that ``--help`` starts at once.
"""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from importlib import import_module
from typing import Any

from kbert_core.errors import KBertError

WORDS = {  # the first word of a command → its module and what it does, as `kbert --help` says
    "lab": ("lab", "Open the app in the browser, with the models and graphs that come with it"),
    "tree": ("read", "Show the sentence tree of a text"),
    "predict": ("read", "Predict with a model and a graph"),
    "rank": ("read", "Put candidate answers to a question in order"),
    "link": ("link", "Show the names in a text, and what the model makes of each"),
    "explain": ("explain", "measure what the triples do to a prediction"),
    "pretrain": ("train", "Pretrain an encoder without knowledge"),
    "train": ("train", "Fine-tune a model with knowledge or without"),
    "evaluate": ("train", "Score a model on labelled data"),
    "gate": ("train", "Fit a gate: which of a graph's names to write over a model's output"),
    "convert": ("train", "Bring in a checkpoint of the released K-BERT, or a package's encoder"),
    "export": ("export", "Write a model's files for a web page without a server"),
    "page": ("export", "Write a page of one text as a file, its triples to be switched"),
    "experiment": ("experiment", "Run a grid of trainings and compare them"),
    "audit": ("data", "Count what data and a graph can show together"),
    "split": ("data", "Split a data set so that knowledge can show"),
    "data": ("data", "make data sets from published ones"),
    "kg": ("graphs", "make, look at, edit, compare and check graphs"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; returns its exit code."""
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    told = logging.StreamHandler()
    told.addFilter(_once())
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[told])
    for package in ("kbert_core", "kbert_lab"):
        logging.getLogger(package).setLevel(logging.INFO)
    try:
        words = sys.argv[1:] if arguments is None else arguments
        args, unknown = parser(words[:1]).parse_known_args(words)
        if unknown:  # said with the usage of the command
            args.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        from kbert_lab.cli.commands import call
        from kbert_lab.cli.output import show

        with ExitStack() as args.until_its_end:
            if args.encoding:
                from kbert_core.knowledge.io.text_lines import VARIABLE, check_encoding

                check_encoding(args.encoding)
                before = {VARIABLE: os.environ.pop(VARIABLE)} if VARIABLE in os.environ else {}
                os.environ[VARIABLE] = args.encoding  # for processes that are started, too
                args.until_its_end.callback(os.environ.update, before)
                args.until_its_end.callback(os.environ.pop, VARIABLE)  # first
            result = call(args.command.run, args)
        if result is not None:
            show(result, args.command.text, args)
        sys.stdout.flush()
    except KBertError as error:
        print(f"kbert: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader has left (`kbert … | head`); keep Python from writing on at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print("kbert: stopped", file=sys.stderr)
        return 130
    return 0


def _once() -> Callable[[logging.LogRecord], bool]:
    """Let each warning through once: an experiment reads its data for every run."""
    told: set[str] = set()

    def new(record: logging.LogRecord) -> bool:
        text = record.getMessage()
        known = record.levelno >= logging.WARNING and text in told
        told.add(text)
        return not known

    return new


class _Version(argparse.Action):
    """Print the version, which takes long to find."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        print(f"{parser.prog} {version('kbert-lab')}")
        parser.exit()


def parser(words: Collection[str] = tuple(WORDS)) -> argparse.ArgumentParser:
    """The command line of `kbert`, with the arguments of commands that begin with some words."""
    top = argparse.ArgumentParser(
        prog="kbert", description="See, edit and measure what injected knowledge does to a BERT."
    )
    top.add_argument("--version", action=_Version, nargs=0, help="print the version")
    about: dict[str, Any] = {"title": "commands", "required": True, "metavar": "COMMAND"}
    first_words = top.add_subparsers(**about)
    for word, (module, help) in WORDS.items():
        sub = first_words.add_parser(word, help=help)
        if word not in words:
            continue
        from kbert_lab.cli import commands  # with the module

        import_module(f"kbert_lab.cli.{module}")
        if word in commands.COMMANDS:
            commands.COMMANDS[word].add_to(sub)
            continue
        group = sub.add_subparsers(**about)
        for name, command in commands.COMMANDS.items():
            if name.startswith(f"{word} "):
                first = " ".join(command.help.partition("\n\n")[0].split()).rstrip(".")
                command.add_to(group.add_parser(name.partition(" ")[2], help=first))
    return top
