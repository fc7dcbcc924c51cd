"""How a suite's keys and values are checked: by pydantic, in errors that name value and remedy."""

import re
from collections.abc import Callable, Collection
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

WORDS = {  # of pydantic's errors, as patterns: how they are said here
    **{", unable.*": "", "Input should be": "expected", "a valid integer": "a whole number"},
    **{"a valid (dictionary|mapping).*": "keys and values", "valid ": "", "tuple": "list"},
}


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
                names = {"key": str(key), "known": ", ".join(cls.model_fields)}
                text = "has the unknown key '{key}'. Known: {known}."
                raise PydanticCustomError("unknown", text, names)
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


Text = Annotated[str, AfterValidator(str.strip)]
Number = Annotated[float, BeforeValidator(_number)]
Texts = Annotated[  # one text or a list of them
    tuple[StrictStr, ...], BeforeValidator(lambda v: (v,) if isinstance(v, str) else v)
]
KINDS: dict[Any, Any] = {  # a field's type → how it is given
    **{int: StrictInt, bool: StrictBool, float: Number, Strategy: StrictStr},
    **{tuple[str, ...]: Texts, NameRules: Texts},
}
Share = Annotated[Number | None, Field(gt=0, lt=1)]


def error_text(error: ErrorDetails, data: Any) -> str:
    """Say an error of pydantic so that it names key, value and what is expected."""
    loc, text = error["loc"], error["msg"]
    place = [f"number {key + 1}" if isinstance(key, int) else key for key in loc]
    if len(loc) > 1 and loc[0] in ("runs", "baselines"):
        kind, row = str(loc[0]).removesuffix("s"), data[loc[0]][loc[1]]
        name = row.get("name") if isinstance(row, dict) else None
        place[:2] = [f"{kind} '{name}'" if isinstance(name, str) else f"{kind} {int(loc[1]) + 1}"]
    where = ": ".join(place) or "the suite"
    if error["type"] == "unknown":
        return f"{where} {text}"
    if error["type"] == "missing":
        return f"{where} is missing. Add it."
    for theirs, ours in WORDS.items():
        text = re.sub(theirs, ours, text)
    return f"{where} is {shown(error['input'])}, {text}."


def shown(value: Any) -> str:
    """A value for a message, not too long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
