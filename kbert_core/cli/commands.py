"""Commands and their options, each declared once, on top of argparse.

A command is a function with the arguments that it takes; its docstring is its help::

    @command("kg undo", GRAPH_KG, argument("--by", "your name, for the log", "", metavar="NAME"))
    def undo(args): ...  # with the docstring "Take back the last edit of a graph file."

Where a frozen dataclass has the options anyway, its fields are the declaration (see
:mod:`kbert_core.options`), and ``build`` makes the dataclass of what was typed. An option that
was not given is not there at all, so the dataclass's default, or what a model's card says, stays.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin

from kbert_core.options import Options, option_fields

T = TypeVar("T")
Argument = Callable[[Any], object]  # adds itself to a parser, or to a group of one
NUMBERS: dict[Any, dict[str, Any]] = {
    int: {"type": int, "metavar": "N"},
    float: {"type": float, "metavar": "X"},
}


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
    text: Callable[[Any], str]
    epilog: str = ""


COMMANDS: dict[str, Command] = {}  # by name, in the order of `kbert --help`


def command(
    name: str, *arguments: Argument, text: Callable[[Any], str] = str, epilog: str = ""
) -> Callable[[T], T]:
    """Make a function a command, whose help is the first paragraph of the docstring."""

    def add(run: Any) -> Any:
        help = " ".join(run.__doc__.partition("\n\n")[0].split()).rstrip(".")
        if help[1].islower() or help[1] == " ":  # no abbreviation
            help = help[0].lower() + help[1:]
        COMMANDS[name] = Command(name, help, arguments, run, text, epilog)
        return run

    return add


def argument(name: str, help: str = "", default: Any = None, **how: Any) -> Argument:
    """An argument, as of ``ArgumentParser.add_argument``; its default says of which kind.

    False makes a switch, a number takes a number, an empty list may be given again and again,
    a tuple takes several words, and anything else takes one. The help says the default.
    """
    if default is False:
        how["action"] = "store_true"
    elif name.startswith("-"):
        kind = default[0] if isinstance(default, tuple) else default
        how = {**NUMBERS.get(type(kind), {}), "default": default, **how}
        how |= {"nargs": "+"} if isinstance(default, tuple) else {}
        how |= {"action": "append"} if isinstance(default, list) else {}
    return lambda parser: parser.add_argument(name, help=_with_default(help, default), **how)


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
        for field in _options(kind):
            if field.name not in without and (not only or field.name in only):
                flag = field.metadata["flag"] or f"--{field.name.replace('_', '-')}"
                how = _how(field)
                parser.add_argument(flag, dest=field.name, default=argparse.SUPPRESS, **how)

    return add


def given(args: argparse.Namespace, kind: type) -> dict[str, Any]:
    """What was typed for the options of a dataclass and its groups; nothing for the others."""
    values: dict[str, Any] = {}
    for field in _options(kind):
        if hasattr(args, field.name):
            value = getattr(args, field.name)
            value = tuple(value) if isinstance(value, list) else value
            parse = field.metadata["parse"]
            values[field.name] = parse(value) if parse else value
    return values


def build(kind: type[T], args: argparse.Namespace, **others: Any) -> T:
    """Make a dataclass of what was typed, and of values of its other fields."""
    make: Any = kind.of if issubclass(kind, Options) else kind  # of all its groups
    return make(**{**given(args, kind), **others})


def _options(kind: type) -> list[Field[Any]]:
    """The fields that have a flag."""
    every = option_fields(kind).values()
    return [f for f in every if f.metadata.get("help") and f.metadata["flag"] is not None]


def _how(field: Field[Any]) -> dict[str, Any]:
    """What argparse has to know of a field."""
    about, kind = field.metadata, field.type
    if isinstance(kind, UnionType):  # "X or None"
        kind = next(each for each in get_args(kind) if each is not NoneType)
    how: dict[str, Any] = {"required": field.default is field.default_factory is MISSING}
    if kind is bool:
        return {**how, "help": about["help"], "action": argparse.BooleanOptionalAction}
    how["help"] = _with_default(about["help"], field.default)
    if get_origin(kind) is tuple and not about["parse"]:
        how["nargs"], kind = "+", get_args(kind)[0]
    if get_origin(kind) is Literal:
        how["choices"] = get_args(kind)
    elif isinstance(kind, type) and issubclass(kind, Enum):
        how["choices"] = [each.value for each in kind]
    named = {name: about[name] for name in ("metavar", "nargs", "choices") if about[name]}
    return {**how, **NUMBERS.get(kind, {}), **named}


def _with_default(help: str, default: Any) -> str:
    if isinstance(default, tuple):
        default = " ".join(map(str, default))
    if "default" in help or default is False or not isinstance(default, int | float | str):
        return help
    return "; ".join(filter(None, [help, f"default: {default}" if default != "" else ""]))
