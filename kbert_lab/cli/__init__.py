"""The `kbert` command: a module for every kind of command, each with its options.

What a user can cause is said on standard error with exit code 2; results go
to standard output, progress to standard error. What needs PyTorch is imported
by the function that does, so that the others and ``--help`` start at once.
"""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from importlib.metadata import version
from typing import Any

from kbert_core.errors import KBertError
from kbert_core.knowledge.io.encodings import VARIABLE, check_encoding
from kbert_lab.cli.commands import COMMANDS
from kbert_lab.cli.output import show

GROUPS = {  # the first word of commands of two
    "data": "make data sets from published ones",
    "explain": "measure what the triples do to a prediction",
    "kg": "make, look at, edit, compare and check graphs",
}
MODULES = "lab read link explain train experiment data graphs"
for _module in MODULES.split():  # in the order of `kbert --help`
    import_module(f"kbert_lab.cli.{_module}")


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
        args, unknown = parser(*words[:1]).parse_known_args(words)
        if unknown:  # said with the usage of the command
            args.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        with ExitStack() as args.until_its_end:
            if args.encoding:
                check_encoding(args.encoding)
                args.until_its_end.enter_context(_set_for_a_while(VARIABLE, args.encoding))
            result = args.command.run(args)
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


@contextmanager
def _set_for_a_while(variable: str, value: str) -> Iterator[None]:
    """Set a variable of the environment, also for processes that are started meanwhile."""
    before = os.environ.get(variable)
    os.environ[variable] = value
    try:
        yield
    finally:
        del os.environ[variable]
        if before is not None:
            os.environ[variable] = before


def _once() -> Callable[[logging.LogRecord], bool]:
    """Let each warning through once: an experiment reads its data for every run."""
    told: set[str] = set()

    def new(record: logging.LogRecord) -> bool:
        text = record.getMessage()
        known = record.levelno >= logging.WARNING and text in told
        told.add(text)
        return not known

    return new


def parser(only: str | None = None) -> argparse.ArgumentParser:
    """The command line of `kbert`; of all commands, or of those that begin with a word."""
    top = argparse.ArgumentParser(
        prog="kbert", description="See, edit and measure what injected knowledge does to a BERT."
    )
    top.add_argument("--version", action="version", version=f"%(prog)s {version('kbert-lab')}")
    about: dict[str, Any] = {"title": "commands", "required": True, "metavar": "COMMAND"}
    groups = {"": top.add_subparsers(**about)}
    some = {name: each for name, each in COMMANDS.items() if name.split()[0] == only}
    for name, command in (some or COMMANDS).items():
        group, _, last = name.rpartition(" ")
        if group not in groups:
            groups[group] = groups[""].add_parser(group, help=GROUPS[group]).add_subparsers(**about)
        first = " ".join(command.help.partition("\n\n")[0].split()).rstrip(".")
        sub = groups[group].add_parser(last, help=first, description=command.help)
        sub.add_argument("--json", action="store_true", help="print JSON")
        encoding = "of files that aren't UTF-8, such as gb18030"
        sub.add_argument("--encoding", help=encoding, metavar="NAME")
        for add in command.arguments:
            add(sub)
        sub.set_defaults(command=command, parser=sub)
    return top
