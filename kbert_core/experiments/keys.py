"""What a suite file may hold, checked by pydantic, with errors that name key, value and remedy."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    StrictBool,
    StrictInt,
    StrictStr,
    create_model,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError, core_schema

from kbert_core.errors import OptionError
from kbert_core.kbert.visible import FULL, Ablation
from kbert_core.knowledge.selection import InjectionOptions, Strategy
from kbert_core.knowledge.surface_forms import NameRules
from kbert_core.options import option_fields
from kbert_core.training.options import SCRATCH, Recipe, TrainOptions

ABLATIONS = {
    "full": FULL,
    "hard-positions": Ablation(positions="hard"),
    "everything-visible": Ablation(visible="all"),
    "both": Ablation(positions="hard", visible="all"),
}
AT_RANDOM = "random"
SET_ELSEWHERE = {  # fields of TrainOptions that the suite gives by other keys, or the command line
    *("task", "data", "output", "encoder", "kg", "hiding_kg", "injection", "ablation", "recipe"),
    *("seed", "device", "float32", "command", "train", "dev", "test", "dev_share", "columns"),
    "also_train",
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
                known = ", ".join(cls.model_fields)
                raise PydanticCustomError(
                    "unknown", "key '{key}'. Known: {known}.", {"key": str(key), "known": known}
                )
        return {key: value for key, value in data.items() if value is not None}


class KeysOf:
    """Annotates a field whose keys are the fields of a dataclass.

    Args:
        kind: the dataclass.
        make: what is made of the values given; empty lists are left out.
        but: its fields that are no keys.
    """

    def __init__(
        self, kind: type, make: Callable[..., Any], but: Collection[str] = frozenset()
    ) -> None:
        keys: dict[str, Any] = {}
        for name, option in option_fields(kind).items():
            hint: Any = option.type
            of = get_args(hint)[0] if isinstance(hint, UnionType) else hint  # of `int | None` int
            if name not in but:
                keys[name] = (KINDS.get(of, of) | None, None)
        self._model, self._make = create_model(kind.__name__, __base__=Keys, **keys), make

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Check the keys, then make what they are for."""
        return core_schema.no_info_after_validator_function(
            lambda keys: self._make(**{k: v for k, v in keys if v is not None and v != ()}),
            handler.generate_schema(self._model),
        )


def _number(value: Any) -> Any:
    """Let 8e-4 be a number, which YAML without a point takes for a text; true is none."""
    if isinstance(value, bool):
        raise PydanticCustomError("float_type", "no number")
    return value


def _texts(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Number = Annotated[float, BeforeValidator(_number)]
Texts = Annotated[tuple[StrictStr, ...], BeforeValidator(_texts)]  # one text or a list of them
KINDS: dict[Any, Any] = {  # a field's type → how it is given
    **{int: StrictInt, bool: StrictBool, float: Number, Strategy: StrictStr},
    **{tuple[str, ...]: Texts, NameRules: Texts},
}


def _seeds(seeds: tuple[int, ...]) -> tuple[int, ...]:
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise OptionError(
            f"seeds is {list(seeds)}, expected different whole numbers from 0, as in [1, 2, 3]."
        )
    return seeds


def _ablation(name: Any) -> Ablation:
    if name not in ABLATIONS:
        raise OptionError(f"ablation is {shown(name)}, expected one of {', '.join(ABLATIONS)}.")
    return ABLATIONS[name]


def _injection(**given: Any) -> InjectionOptions | None:
    if "names" in given:
        given["names"] = NameRules.of(given["names"])
    return InjectionOptions(**given) if given else None


Text = Annotated[str, AfterValidator(str.strip)]
Seeds = Annotated[tuple[StrictInt, ...], AfterValidator(_seeds)]
Injection = Annotated[InjectionOptions | None, KeysOf(InjectionOptions, _injection)]
Train = Annotated[Mapping[str, Any], KeysOf(TrainOptions, dict, SET_ELSEWHERE)]
Share = Annotated[Number | None, Field(gt=0, lt=1)]


class Data(Keys):
    """The labelled data, and how they are split.

    Attributes:
        folder: of train, dev and test, or "hf:NAME".
        split: "official" as published; "deduplicated" without texts that
            stand in two splits; "entity-disjoint", drawn anew by each seed.
        among: which names are held out: "random", or a file of triples:
            names it knows.
        test_share, dev_share: of the names, held out; None: as
            ``EntityDisjoint`` has it. For other splits ``dev_share`` of train
            becomes dev, drawn by each seed, where there is none.
        files: names of the files in the folder by split, where they are
            other ones.
        columns: our column names → the data's, where they can't be guessed.
        also_train: more files or folders to train on, which no dev is drawn
            from.
    """

    folder: str
    split: Literal["official", "deduplicated", "entity-disjoint"] = "official"
    among: str = AT_RANDOM
    test_share: Share = None
    dev_share: Share = None
    files: Mapping[Literal["train", "dev", "test"], str] = {}
    columns: Mapping[str, str] = {}
    also_train: Texts = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.files and "train" not in self.files:
            raise OptionError("data: files has no train. Add it.")
        if self.split == "entity-disjoint":
            if self.also_train:
                raise OptionError(
                    "data: also_train would bring held-out names into training, and split is "
                    "'entity-disjoint'. Leave it out."
                )
            return self
        unused = {"test_share": self.test_share is not None, "among": self.among != AT_RANDOM}
        for name, given in unused.items():
            if given:
                raise OptionError(f"data: {name} isn't used for split: {self.split}. Leave it out.")
        if self.files and ("dev" in self.files) == (self.dev_share is not None):
            raise OptionError(
                "data: files has a dev and there is a dev_share too. Leave one of them out."
                if "dev" in self.files
                else "data: files has no dev. Add it, or a dev_share to draw it from train."
            )
        return self


class Row(Keys):
    """One row of the table.

    Attributes:
        name: shown, and in the name of its files.
        kg: files of triples.
        seeds: one run each.
        compare_with: the run without knowledge that it is held against.
        note: shown below the table.
    """

    name: str
    kg: Texts = ()
    seeds: Seeds
    compare_with: str | None = None
    note: Text = ""


class Run(Row):
    """A way to train.

    Attributes:
        knowledge: "none", "graph", or "shuffled": the graph with its tails
            exchanged, in training and test.
        hiding_kg: for a run without knowledge: hide the mentions that the
            recipe would hide with these graphs.
        ablation: how trees are read.
        recipe: what happens to knowledge in training.
        injection: None: as the encoder's card says.
        encoder: to start from.
        train: further fields of ``TrainOptions``.
    """

    knowledge: Literal["none", "graph", "shuffled"] = "none"
    hiding_kg: Texts = ()
    ablation: Annotated[Ablation, BeforeValidator(_ablation)] = FULL
    recipe: Annotated[Recipe, KeysOf(Recipe, Recipe)] = Recipe()
    injection: Injection = None
    encoder: str = SCRATCH
    train: Train = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.knowledge == "none" and self.kg:
            raise OptionError(
                f"run '{self.name}' has a kg and knowledge: none. Leave the kg out, or "
                "use hiding_kg."
            )
        if self.knowledge != "none" and not self.kg:
            raise OptionError(
                f"run '{self.name}': knowledge is '{self.knowledge}' and there is no kg. Name one."
            )
        return self


class Baseline(Row):
    """A way without training: the graph's names looked up in the text.

    Attributes:
        over: the run whose predictions it is written over; None: alone.
        guided: not written over: the run's tags are decoded anew with a boost
            for the dictionary's spans, as great as does best on dev.
    """

    over: str | None = None
    guided: StrictBool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        where = f"baseline '{self.name}'"
        if self.guided and self.over is None:
            raise OptionError(f"{where} is guided and has no run to guide. Name it with over.")
        if not self.kg:
            raise OptionError(f"{where} has no kg. Name one for it, or one for the suite.")
        return self


class SideBySide(Keys):
    """Suites of one task whose rows of the same names are shown in one table.

    Attributes:
        title: of the section.
        about: Markdown, pasted in below the tables.
        suites: name of a suite → what it is called here, in the order shown.
    """

    title: Text = "Side by side"
    about: Text = ""
    suites: Mapping[str, str]

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self.suites) < 2:
            raise OptionError("side_by_side: suites has fewer than two. Add one, or leave it out.")
        columns = [called.strip() for called in self.suites.values()]
        if not all(columns) or len(set(columns)) < len(columns):
            raise OptionError(
                f"side_by_side: suites calls them {shown(columns)}, expected a name each, no two "
                "alike."
            )
        return self


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
