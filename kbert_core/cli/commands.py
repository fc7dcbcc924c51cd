"""Commands and their options, each declared once, on top of argparse.

A command is a function with the arguments that it takes::

    @command("kg undo", "take back the last edit of a graph file, or any one", GRAPH, ENTRY, WHO)
    def undo(args): ...

Where a frozen dataclass has the options anyway, its fields are the declaration (see
:mod:`kbert_core.options`), and ``build`` makes the dataclass of what was typed. An option that
was not given is not there at all, so the dataclass's default, or what a model's card says, stays.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from kbert_core.options import Options

T = TypeVar("T")
Argument = Callable[[Any], object]  # adds itself to a parser, or to a group of one
Text = Callable[[Any], str]


@dataclass(frozen=True)
class Command:
    """One command.

    Attributes:
        name: as it is typed, such as "kg undo".
        help: in a line.
        arguments: what it takes.
        run: does it; returns what is printed, or None where it prints by itself.
        text: makes text for reading of what is returned.
        epilog: stands below its options.
    """

    name: str
    help: str
    arguments: tuple[Argument, ...]
    run: Callable[[argparse.Namespace], Any]
    text: Text
    epilog: str = ""


COMMANDS: dict[str, Command] = {}  # in the order of `kbert --help`


def command(
    name: str, help: str, *arguments: Argument, text: Text = str, epilog: str = ""
) -> Callable[[T], T]:
    """Make a function a command; the arguments are those of :class:`Command`."""

    def add(run: Any) -> Any:
        COMMANDS[name] = Command(name, help, arguments, run, text, epilog)
        return run

    return add


def argument(*names: str, **how: Any) -> Argument:
    """An argument, as of ``ArgumentParser.add_argument``."""
    return lambda parser: parser.add_argument(*names, **how)


def several(*arguments: Argument) -> Argument:
    """Several arguments that several commands take."""
    return lambda parser: [add(parser) for add in arguments]


def titled(title: str, *arguments: Argument) -> Argument:
    """Arguments that stand under a title in the help."""
    return lambda parser: several(*arguments)(parser.add_argument_group(title))


def one_of(*arguments: Argument) -> Argument:
    """Arguments of which at most one may be given."""
    return lambda parser: several(*arguments)(parser.add_mutually_exclusive_group())


def options_of(kind: type, *, without: Sequence[str] = (), only: Sequence[str] = ()) -> Argument:
    """The options that a dataclass declares, those of its groups too.

    Args:
        kind: the dataclass.
        without: fields whose options the command hasn't, or has declared by itself.
        only: fields whose options it has; none named: all.
    """

    def add(parser: Any) -> None:
        for field, hint in _typed(kind):
            wanted = field.name not in without and (not only or field.name in only)
            if field.metadata.get("group"):
                title = field.metadata["help"]
                part = parser.add_argument_group(title) if title else parser
                options_of(hint, without=without, only=only)(part)
            elif _is_option(field) and wanted:
                flag, how = _flag_of(field, hint)
                parser.add_argument(flag, dest=field.name, default=argparse.SUPPRESS, **how)

    return add


def given(args: argparse.Namespace, kind: type) -> dict[str, Any]:
    """What was typed for the options of a dataclass and its groups; nothing for the others."""
    found: dict[str, Any] = {}
    for field, hint in _typed(kind):
        if field.metadata.get("group"):
            found |= given(args, hint)
        elif _is_option(field) and hasattr(args, field.name):
            value = getattr(args, field.name)
            value = tuple(value) if isinstance(value, list) else value
            parse = field.metadata.get("parse")
            found[field.name] = parse(value) if parse else value
    return found


def build(kind: type[T], args: argparse.Namespace, **others: Any) -> T:
    """Make a dataclass of what was typed.

    Args:
        kind: whose fields declare options, see :func:`options_of`.
        args: the parsed arguments.
        others: values of fields that are not to be taken from there.
    """
    make: Any = kind.of if issubclass(kind, Options) else kind  # of all its groups
    return make(**{**given(args, kind), **others})


def _is_option(field: Field[Any]) -> bool:
    return bool(field.metadata.get("help")) and field.metadata.get("flag", "") is not None


def _typed(kind: type) -> Iterator[tuple[Field[Any], Any]]:
    """Fields and their types; of "X or None" the X."""
    hints = get_type_hints(kind)
    for field in fields(kind):
        hint = hints[field.name]
        if get_origin(hint) in (Union, UnionType):
            hint = next(each for each in get_args(hint) if each is not NoneType)
        yield field, hint


def _flag_of(field: Field[Any], hint: Any) -> tuple[str, dict[str, Any]]:
    """A field's flag, and what argparse has to know of it."""
    about, default = field.metadata, field.default
    needed = default is field.default_factory is MISSING
    how: dict[str, Any] = {"help": about["help"], "required": needed}
    flag = about.get("flag") or f"--{field.name.replace('_', '-')}"
    if hint is bool:
        return flag, {**how, "action": argparse.BooleanOptionalAction}
    if get_origin(hint) is tuple and not about.get("parse"):
        how["nargs"], hint = "+", get_args(hint)[0]
    if get_origin(hint) is Literal:
        how["choices"] = get_args(hint)
    elif isinstance(hint, type) and issubclass(hint, Enum):
        how["choices"] = [each.value for each in hint]
    elif hint in (int, float):
        how |= {"type": hint, "metavar": "N" if hint is int else "X"}
    how |= {name: about[name] for name in ("metavar", "nargs", "choices") if about.get(name)}
    if isinstance(default, int | float | str) and default != "" and "default" not in about["help"]:
        how["help"] += f"; default: {default}"
    return flag, how
