"""How a suite's keys and values are checked: by pydantic, in errors that name value and remedy."""

import re
from collections.abc import Callable, Collection, Sequence
from types import UnionType
from typing import Annotated, Any, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetPydanticSchema,
    StrictBool,
    StrictInt,
    StrictStr,
    create_model,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError, core_schema

from kbert_core.knowledge.selection import Strategy
from kbert_core.knowledge.surface_forms import NameRules
from kbert_core.options import option_fields


class Keys(BaseModel):
    """Keys and values; a key given as nothing has its default."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        for key in data:
            if key not in cls.model_fields:
                known = ", ".join(cls.model_fields)
                raise PydanticCustomError(
                    "unknown", "key '{key}'. Known: {known}.", {"key": str(key), "known": known}
                )
        return {key: value for key, value in data.items() if value is not None}


def keys_of(
    kind: type, make: Callable[..., Any], but: Collection[str] = frozenset()
) -> GetPydanticSchema:
    """Annotates a field whose keys are the fields of a dataclass.

    Args:
        kind: the dataclass.
        make: what is made of the values given; empty lists are left out.
        but: its fields that are no keys.
    """
    keys: dict[str, Any] = {}
    for name, option in option_fields(kind).items():
        hint: Any = option.type
        of = get_args(hint)[0] if isinstance(hint, UnionType) else hint  # of `int | None` int
        if name not in but:
            keys[name] = (KINDS.get(of, of) | None, None)
    model = create_model(kind.__name__, __base__=Keys, **keys)

    def made(keys: Keys) -> Any:
        return make(**{k: v for k, v in keys if v is not None and v != ()})

    return GetPydanticSchema(
        lambda _, handler: core_schema.no_info_after_validator_function(made, handler(model))
    )


def _number(value: Any) -> Any:
    """Let 8e-4 be a number, which YAML without a point takes for a text; true is none."""
    if isinstance(value, bool):
        raise PydanticCustomError("float_type", "no number")
    return value


def _texts(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Text = Annotated[str, AfterValidator(str.strip)]
Number = Annotated[float, BeforeValidator(_number)]
Texts = Annotated[tuple[StrictStr, ...], BeforeValidator(_texts)]  # one text or a list of them
KINDS: dict[Any, Any] = {  # a field's type → how it is given
    **{int: StrictInt, bool: StrictBool, float: Number, Strategy: StrictStr},
    **{tuple[str, ...]: Texts, NameRules: Texts},
}
Share = Annotated[Number | None, Field(gt=0, lt=1)]


def error_text(error: ErrorDetails, data: Any) -> str:
    """Say an error of pydantic so that it names key, value and what is expected.

    Args:
        data: the suite that was checked.
    """
    place, value = list(error["loc"]), shown(error["input"])
    expected = re.sub(r"a valid (dictionary|mapping).*", "keys and values", error["msg"])
    for theirs, ours in (
        ("Input should be", "expected"),
        ("tuple", "list"),
        ("a valid integer", "a whole number"),
        ("valid ", ""),
    ):
        expected = expected.partition(", unable")[0].replace(theirs, ours)
    if error["type"] == "unknown":
        return f"{_where(place, data)} has the unknown {error['msg']}"
    if not place or (error["type"] == "model_type" and isinstance(place[-1], int)):
        return f"{_where(place, data)} is {value}, {expected}."
    key = place.pop()
    if error["type"] == "missing":
        return f"{_where(place, data)} has no '{key}'. Add it."
    if isinstance(key, int):  # one of several
        return f"{_where(place[:-1], data)}: {place[-1]} has {value}, {expected}."
    return f"{_where(place, data)}: {key} is {value}, {expected}."


def _where(place: Sequence[int | str], data: Any) -> str:
    """What part of a suite an error is in, such as "train of run 'BERT'"."""
    if not place:
        return "the suite"
    *outer, key = place
    if not isinstance(key, int):
        return f"{key} of {_where(outer, data)}"
    kind, row = str(outer[-1]).removesuffix("s"), data[outer[-1]][key]
    name = row.get("name") if isinstance(row, dict) else None
    return f"{kind} '{name}'" if isinstance(name, str) else f"{kind} {key + 1}"


def shown(value: Any) -> str:
    """A value for a message, not too long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
