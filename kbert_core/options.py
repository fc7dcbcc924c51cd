"""Options, declared once: a field says its default and its limits, the docstring what it is.

A small frozen dataclass holds the options of one concern, a larger one groups
them. The command line makes its flags of the fields, suites their keys, and
what is of another type or outside a limit is refused when it is built::

    @dataclass(frozen=True)
    class Rate(Options):
        '''How fast to learn.

        Attributes:
            learning_rate: after warm-up
            warmup (P): share of the steps in which the rate rises
        '''

        learning_rate: float = option(1e-3, above=0)
        warmup: float = option(0.1, share=True)

    @dataclass(frozen=True)
    class Training(Options):
        rate: Rate = group(Rate)

    Training.of(warmup=0.2).rate.warmup  # 0.2
"""

from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import MISSING, Field, field, fields
from math import isnan
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Self, TypeVar, get_args, get_origin

from kbert_core.errors import OptionError

T = TypeVar("T")


def option(
    default: Any = MISSING,
    *,
    flag: str | None = "",
    choices: Collection[Any] = (),
    parse: Callable[[Any], Any] | None = None,
    nargs: str | None = None,
    factory: Any = MISSING,
    least: float | None = None,
    above: float | None = None,
    share: bool = False,
) -> Any:
    """Declare an option.

    Args:
        default, factory: as of ``dataclasses.field``.
        flag: on the command line; "" for ``--its-name``, None for no flag.
        choices: the values there are.
        parse: makes a value of what is typed, the text or a tuple of words.
        nargs: how many words are typed, as argparse has it, where the type doesn't tell.
        least, above: a number is at least this, or more than this.
        share: a number is from 0 to 1.
    """
    typed: dict[str, Any] = {"flag": flag, "choices": choices, "parse": parse, "nargs": nargs}
    limits = {"least": least, "above": above, "share": share}
    return field(default=default, default_factory=factory, metadata={**typed, **limits})


def group(kind: type["Options"]) -> Any:
    """Declare the options of one concern as a part; it may be left out if all have defaults."""
    options = option_fields(kind).values()
    needed = any(f.default is f.default_factory is MISSING for f in options)
    factory: Any = MISSING if needed else kind
    return field(default_factory=factory, metadata={"group": True})


class Options:
    """What classes of options share."""

    def __post_init__(self) -> None:
        """Refuse a value of another type, outside its limits, or not among its choices.

        A list or a set becomes a tuple.

        Raises:
            OptionError: naming the option.
        """
        check_fields(self)

    def _named(self, option: str, known: Mapping[str, Any]) -> None:
        """Put a value in the place of its name, if a name is given."""
        if isinstance(name := getattr(self, option), str):
            object.__setattr__(self, option, value_named(option, name, known))

    @classmethod
    def of(cls, **values: Any) -> Self:
        """Build them from the options of all groups.

        Raises:
            TypeError: there is no such option, or one without a default is missing.
        """
        known = option_fields(cls)
        unknown = [name for name in values if name not in known]
        if unknown:
            raise TypeError(f"{cls.__name__} has no option '{unknown[0]}': {', '.join(known)}")
        given: dict[str, Any] = {}
        for f in fields(cls):  # type: ignore[arg-type]
            if f.metadata.get("group"):
                kind = _kind_of(f)
                names = option_fields(kind).keys() & values.keys()
                given[f.name] = kind.of(**{name: values[name] for name in names})
            elif f.name in values:
                given[f.name] = values[f.name]
        return cls(**given)

    def flat(self) -> dict[str, Any]:
        """The options of all groups: name → value."""
        values: dict[str, Any] = {}
        for f in fields(self):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            values |= value.flat() if f.metadata.get("group") else {f.name: value}
        return values

    def changed(self, **values: Any) -> Self:
        """The same but for some options, of any group."""
        return type(self).of(**{**self.flat(), **values})


def check_fields(made: Any) -> None:
    """Refuse a dataclass with a value of another type than its field; see :class:`Options`."""
    for f in fields(made):
        value = getattr(made, f.name)
        if isinstance(value, list | Set) and not _fits(value, f.type):
            value = tuple(value) if isinstance(value, list) else tuple(sorted(value))
            object.__setattr__(made, f.name, value)
        _check(f, value)


def value_named(option: str, name: Any, known: Mapping[str, T]) -> T:
    """Find a value by its name; OptionError naming the option and all names."""
    if name not in known:
        raise OptionError(f"{option} is {name!r:.60}, expected one of {', '.join(known)}.")
    return known[name]


def check_count(name: str, value: Any) -> None:
    """Refuse what isn't a whole number of at least 1.

    Raises:
        OptionError: see above.
    """
    if not _fits(value, int) or value < 1:
        raise OptionError(f"{name} is {value!r}, expected a whole number of at least 1.")


def option_fields(kind: type) -> dict[str, Field[Any]]:
    """Every field of a dataclass, those of a group where the group stands: name → field."""
    options: dict[str, Field[Any]] = {}
    for f in fields(kind):
        options |= option_fields(_kind_of(f)) if f.metadata.get("group") else {f.name: f}
    return options


def _kind_of(f: Field[Any]) -> type[Options]:
    assert isinstance(f.type, type)
    return f.type


_WORDS = {
    **{int: "a whole number", float: "a number", str: "a text", bool: "True or False"},
    **{NoneType: "None", Any: "of any kind"},
}


def _fits(value: Any, kind: Any) -> bool:
    """Say whether a value is of an option's type; what isn't understood of a type isn't checked."""
    of = get_args(kind)
    if isinstance(kind, UnionType):
        return any(_fits(value, one) for one in of)
    if get_origin(kind) is tuple:
        return isinstance(value, tuple) and (
            of[-1] is not Ellipsis or all(_fits(one, of[0]) for one in value)
        )
    if kind is Any or isinstance(value, bool):
        return kind in (bool, Any)
    kind = {int: Integral, float: Real}.get(kind, get_origin(kind) or kind)
    not_a_number = isinstance(value, float) and isnan(value)
    return not isinstance(kind, type) or (isinstance(value, kind) and not not_a_number)


def _said(kind: Any) -> str:
    if isinstance(kind, UnionType):
        return " or ".join(map(_said, get_args(kind)))
    if get_origin(kind) is tuple:
        return f"a list, each {_said(get_args(kind)[0])}"
    name = getattr(kind, "__name__", str(kind))
    return _WORDS.get(kind) or f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _check(f: Field[Any], value: Any) -> None:
    limits = f.metadata
    if not _fits(value, f.type):
        single = isinstance(value, str) and "a list" in _said(f.type)
        remedy = " Put a single one into a list: [...]." if single else ""
        raise OptionError(f"{f.name} is {value!r}, expected {_said(f.type)}.{remedy}")
    if value is None:
        return
    choices = limits.get("choices")
    if choices and value not in choices:
        raise OptionError(f"{f.name} is {value!r}, expected one of {', '.join(map(str, choices))}.")
    if limits.get("share") and not 0 <= value <= 1:
        raise OptionError(f"{f.name} is {value}, expected a share from 0 to 1.")
    least, above = limits.get("least"), limits.get("above")
    if least is not None and value < least:
        raise OptionError(f"{f.name} is {value}, expected at least {least}.")
    if above is not None and value <= above:
        raise OptionError(f"{f.name} is {value}, expected more than {above}.")
