"""How values are written in links and session files, and within which limits they are read.

Whoever opens a link was sent it by anybody. A dataclass whose fields have the types of here, and
``__pydantic_config__ = STRICT``, can be written and read by pydantic: what isn't known is refused.
"""

import re
from collections.abc import Callable
from dataclasses import astuple
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetPydanticSchema,
    PlainSerializer,
    TypeAdapter,
)
from pydantic_core import CoreSchema, core_schema

from kbert_core.errors import KBertError
from kbert_core.kbert.interventions import Intervention
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.triple import Triple

STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
MOST_LAYERS = 1000  # that may be named; without a model there are as many
BIG = 1_000_000  # of numbers that only have to be small


def folder_name(path: str) -> str:
    """Return the last part of a path of any system: never where it lies."""
    return re.split(r"[\\/]", path.rstrip("\\/"))[-1]


def many(most: int) -> Any:
    """Limit how many values there are; the first wrong one ends the reading."""
    return Field(max_length=most, fail_fast=True)


def one_of(*known: str) -> AfterValidator:
    """Take known names only."""

    def checked(name: str) -> str:
        if name not in known:
            raise ValueError(f"none of {', '.join(known)}")
        return name

    return AfterValidator(checked)


def _as(form: Any, read: Callable[[Any], Any], write: Callable[[Any], Any]) -> GetPydanticSchema:
    """A value that is written in another form.

    Args:
        form: the type of what is written.
        read, write: make one of the other.
    """

    def checked(written: Any) -> Any:
        try:
            return read(written)
        except (KBertError, TypeError, AttributeError) as error:
            raise ValueError(str(error)) from error

    def schema(_: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            checked,
            handler.generate_schema(form),
            serialization=core_schema.plain_serializer_function_ser_schema(write),
        )

    return GetPydanticSchema(schema)


def _no_path(name: str) -> str:
    if name != folder_name(name) or name in (".", ".."):
        raise ValueError("a path")
    return name


def _edit(written: tuple[Any, ...]) -> Edit:
    action, triple, *rest = written
    last = rest[0] if rest else None
    return Edit(action, triple, last) if action == "replace" else Edit(action, triple, index=last)


def _edit_parts(edit: Edit) -> list[Any]:
    parts = (edit.action, edit.triple, edit.new, edit.index)
    return [_plain(part) for part in parts if part is not None]


def _plain(part: object) -> object:
    return astuple(part) if isinstance(part, Triple) else part


def _options(written: dict[str, Any]) -> InjectionOptions:
    options = InjectionOptions.from_dict(written)
    _no_path(options.scorer or "")
    return options


def _options_parts(options: InjectionOptions) -> dict[str, Any]:
    scorer = {"scorer": folder_name(options.scorer)} if options.scorer else {}
    return options.as_dict() | scorer


def _intervention(written: dict[str, Any]) -> Intervention:
    one = Intervention.from_dict(written)
    if one.as_dict() != written or any(layer > MOST_LAYERS for layer in one.layers):
        raise ValueError("not in its own words")
    for tokens in (one.seer, one.seen):
        _PLACE.validate_python((tokens.sentence, tokens.start))
        if tokens.triple is not None:
            tokens.triple.usable()
        if tokens.identity:
            _IDENTITY.validate_python(tokens.as_dict()["identity"], strict=False)
    return one


Name = Annotated[str, Field(max_length=1000)]
Count = Annotated[int, Field(ge=0, le=BIG)]
Number = Annotated[float, Field(ge=-BIG, le=BIG, allow_inf_nan=False)]
Layer = Annotated[int, Field(ge=0, le=MOST_LAYERS)]  # or attention head; 0 is the mean
# a model's folder: written without where it lies, and never read as a path
Folder = Annotated[Name, AfterValidator(_no_path), PlainSerializer(folder_name)]

OneTriple = Annotated[
    Triple, _as(tuple[str, str, str], lambda three: Triple(*three).usable(), astuple)
]
_EditForm = (
    tuple[Literal["remove", "switch_off", "switch_on", "add"], OneTriple]
    | tuple[Literal["add"], OneTriple, Count]
    | tuple[Literal["replace"], OneTriple, OneTriple]
)
OneEdit = Annotated[Edit, _as(_EditForm, _edit, _edit_parts)]
_Option = (
    bool
    | Annotated[int, Field(ge=-BIG, le=BIG)]
    | Number
    | Name
    | None
    | Annotated[tuple[Name, ...], many(1000)]
)
Options = Annotated[InjectionOptions, _as(dict[str, _Option], _options, _options_parts)]
OneIntervention = Annotated[
    Intervention, _as(dict[str, Any], _intervention, lambda one: one.as_dict())
]
_IdentityForm = (
    tuple[Literal["special"], Count]
    | tuple[Literal["trunk"], Count, Count]
    | tuple[Literal["branch"], Count, Count, OneTriple, Count]
)
# what a token is, wherever it stands; see FlatTree.identities
Identity = Annotated[
    tuple[object, ...], _as(_IdentityForm, tuple, lambda parts: [*map(_plain, parts)])
]
_IDENTITY, _PLACE = TypeAdapter[Any](Identity), TypeAdapter[Any](tuple[Count, Count])
