"""A suite file: the grid of runs of one experiment, checked when read.

Written in YAML; its keys are the options of :class:`Suite` and of what it holds.
Paths may hold environment variables (``$KBERT_DATA``) and are looked for in the
current folder, then beside the suite file; ``package:NAME`` is the model in an
installed Python package.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Any, get_args

import yaml

from kbert_core.checkpoints.encoders import PACKAGE, located
from kbert_core.errors import KBertError, OptionError
from kbert_core.kbert.visible import ABLATIONS, FULL, Ablation
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.surface_forms import BASIC
from kbert_core.options import Options, option, option_fields, value_named
from kbert_lab.data.files import DataFiles
from kbert_lab.training.options import SCRATCH, SIZE, Recipe, TrainOptions

AT_RANDOM = "random"
# What PyYAML raises: also for a date that isn't one, a tag that doesn't fit, or deep brackets.
YAML_PROBLEMS = (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError)
REFERRING = ("compare_with", "over")  # keys of a row that name another
INHERITED = ("kg", "injection", "encoder", "train", "seeds", "compare_with")  # by the suite's rows
SET_ELSEWHERE = {  # fields of TrainOptions that the suite gives by other keys, or the command line
    *("task", "output", "encoder", "kg", "hiding_kg", "injection", "ablation", "recipe"),
    *("seed", "device", "float32", "command", "again", *option_fields(DataFiles)),
}


class _Loader(yaml.SafeLoader):
    """Reads 8e-4 as a number, which YAML without a point takes for a text."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+[eE][-+]?\d+"), list("-+0123456789")
)


# Keys and values of a file → options


def _keys(
    kind: type, data: Any, name: str = "", *, without: Collection[str] = ()
) -> dict[str, Any]:
    """The options of a class that a file gives, each as the class takes it.

    Args:
        kind: the class.
        data: keys and values; a key given as nothing has its default.
        name: of what the keys are of, for errors; "" for the suite.
        without: options that are no keys.

    Raises:
        OptionError: naming key, value and what is expected.
    """
    if not isinstance(data, dict):
        raise OptionError(f"{name or 'the suite'} is {data!r:.60}, expected keys and values.")
    known = {key: f for key, f in option_fields(kind).items() if key not in without}
    for key in data:
        if key not in known:
            raise OptionError(
                f"{name or 'the suite'} has the unknown key '{key}'. Known: {', '.join(known)}."
            )
    with _within(name):
        return {key: _value(known[key], value) for key, value in data.items() if value is not None}


def _value(f: Field[Any], value: Any) -> Any:
    """A value as an option takes it: a list where it is one text, a class where it has keys."""
    kinds = get_args(f.type) if isinstance(f.type, UnionType) else (f.type,)
    if isinstance(value, str):
        value = value.strip()
        if tuple[str, ...] in kinds or f.metadata.get("nargs") == "+":
            value = (value,)
    if parse := f.metadata.get("parse"):
        return parse(value)
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, Options):
            return _built(kind, value, f.name)
    return value


def _built(kind: type, data: Any, name: str, **usual: Any) -> Any:
    """A class of options from what a file gives for it; see :func:`_keys`."""
    given = {**usual, **_keys(kind, data, name)}
    with _within(name):
        _refuse_missing(kind, given)
        return kind(**given)


def _refuse_missing(kind: type, given: Mapping[str, Any]) -> None:
    for f in fields(kind):
        if f.default is f.default_factory is MISSING and f.name not in given:
            raise OptionError(f"{f.name} is missing. Add it.")


@contextmanager
def _within(name: str) -> Iterator[None]:
    """Say in errors what they are of."""
    try:
        yield
    except KBertError as error:
        raise OptionError(f"{name}: {error}" if name else str(error)) from error


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise OptionError(f"{name} is {value!r:.60}, expected a list.")
    return value


def _injection(data: Any) -> InjectionOptions | None:
    if data == {}:
        return None
    made: InjectionOptions = _built(InjectionOptions, data, "injection", names=BASIC)
    return made


def _conditions(data: Any) -> tuple["Condition", ...]:
    numbered = enumerate(_list("conditions", data), 1)
    return tuple(_built(Condition, one, f"conditions: number {n}") for n, one in numbered)


def _pairs(data: Any) -> tuple[tuple[str, str], ...]:
    for pair in _list("also_compare", data):
        if not isinstance(pair, list) or [type(name) for name in pair] != [str, str]:
            raise OptionError(f"also_compare has {pair!r:.60}, expected pairs of names, [A, B].")
    return tuple(map(tuple, data))


def _injected() -> Any:
    return option(None, parse=_injection)


def _train() -> Any:
    keys = partial(_keys, TrainOptions, name="train", without=SET_ELSEWHERE)
    return option(factory=dict, parse=keys)


@dataclass(frozen=True, kw_only=True)
class Data(Options):
    """The labelled data, and how they are split.

    A split is "official" as published; "deduplicated" without texts that stand
    in two splits; "entity-disjoint" or by "substitution", drawn anew by each seed.
    """

    folder: str  # of train, dev and test, or "hf:NAME"
    # see above
    split: str = option(
        "official", choices=("official", "deduplicated", "entity-disjoint", "substitution")
    )
    among: str = AT_RANDOM  # names held out: drawn from all, or from those that this graph knows
    # by substitution: share of the mentions of dev and test with new names
    unseen: float | None = option(None, share=True, above=0)
    # share of the names held out for test; default: 0.22
    test_share: float | None = option(None, share=True, above=0)
    # the same for dev (0.1); in other splits: of train
    dev_share: float | None = option(None, share=True, above=0)
    files: Mapping[str, str] = field(default_factory=dict)  # where their names are other ones
    # our names → the data's, where they can't be guessed
    columns: Mapping[str, str] = field(default_factory=dict)
    # more files or folders to train on; no dev is drawn from them
    also_train: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.files and "train" not in self.files:
            raise OptionError("files has no train. Add it.")
        if self.split == "entity-disjoint":
            if self.also_train:
                raise OptionError(
                    "also_train would bring held-out names into training, and split is "
                    "'entity-disjoint'. Leave it out."
                )
            return
        unused: dict[str, Any] = {"test_share": None, "among": AT_RANDOM}
        if self.split == "substitution":
            unused = {"test_share": None, "also_train": ()}
        for name, usual in unused.items():
            if getattr(self, name) != usual:
                raise OptionError(f"{name} isn't used for split: {self.split}. Leave it out.")


@dataclass(frozen=True, kw_only=True)
class Condition(Options):
    """What an experiment varies: how new the names are, and what the graph knows of them."""

    # of the mentions of dev and test, with names that train doesn't label
    unseen: float | None = option(None, share=True, above=0)
    known: float | None = option(None, share=True)  # of these, to the graph
    right: float | None = option(None, share=True, above=0)  # of the graph's matches

    @property
    def in_words(self) -> str:
        """As in "25 % new, 60 % known"."""
        words = {"new": self.unseen, "known": self.known, "right": self.right}
        return ", ".join(f"{100 * v:g} % {word}" for word, v in words.items() if v is not None)

    @property
    def given(self) -> dict[str, float]:
        """What it says."""
        values = {f.name: getattr(self, f.name) for f in fields(Condition)}
        return {name: value for name, value in values.items() if value is not None}

    def is_under(self, other: "Condition") -> bool:
        """Whether another says the same of all that this one says."""
        return self.given.items() <= other.given.items()


@dataclass(frozen=True, kw_only=True)
class Row(Condition):
    """One row of the table."""

    name: str  # in the table, and in the names of its files
    kg: tuple[str, ...] = ()  # files of triples, or postgresql://…
    seeds: tuple[int, ...]  # one run per seed; default: the suite's
    compare_with: str | None = None  # the run without knowledge to compare with
    note: str = ""  # shown below the table

    @property
    def called(self) -> str:
        """Its name without the condition that it runs under."""
        return self.name.removesuffix(f": {self.in_words}")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or min(self.seeds) < 0:
            raise OptionError(
                f"seeds is {list(self.seeds)}, expected different whole numbers from 0, as in "
                "[1, 2, 3]."
            )


@dataclass(frozen=True, kw_only=True)
class Run(Row):
    """A way to train."""

    # of the graph, or of a control made of it; default: graph if there is a kg
    knowledge: str = option(
        choices=("none", "graph", "shuffled", "permuted", "constant", "reliable")
    )
    # without knowledge: hide the mentions that the recipe hides with it
    hiding_kg: tuple[str, ...] = ()
    # how trees are read: full, hard-positions, everything-visible, both of these, or no-segments
    ablation: Ablation = option(FULL, parse=partial(value_named, "ablation", known=ABLATIONS))
    recipe: Recipe = Recipe()  # what training changes in data
    injection: InjectionOptions | None = _injected()  # which triples are used
    encoder: str = SCRATCH  # to start from
    train: Mapping[str, Any] = _train()  # options of training
    retrained: bool = False  # by the same data and graph, but training draws by another seed
    test_curve: bool = False  # score every epoch on test too, for curves; it chooses nothing

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.knowledge == "none" and self.kg:
            raise OptionError(
                "there is a kg, and knowledge is none. Leave the kg out, or use hiding_kg."
            )
        if self.knowledge != "none" and not self.kg:
            raise OptionError(f"knowledge is '{self.knowledge}' and there is no kg. Name one.")
        if self.knowledge == "none" and (self.known, self.right) != (None, None):
            raise OptionError(
                "known and right are a graph's, and knowledge is none. Leave them out."
            )


@dataclass(frozen=True, kw_only=True)
class Baseline(Row):
    """A way without training: the graph's names looked up in the text.

    Alone, or written over the predictions of a run; where it guides one, the
    run's tags are decoded anew with a boost for the dictionary's spans, as
    great as does best on dev. Where its spans are judged, only those are written
    that a gate fitted on dev lets through, or that are right (the oracle, a ceiling).
    """

    over: str | None = None  # name of the run over whose predictions it is written
    guided: bool = False  # guide that run's decoding instead of writing over it
    # write only what a gate fitted on dev lets through, or only what is right, the ceiling
    judge: str | None = option(None, choices=("gate", "oracle"))
    senses: str | None = option(None, choices=("first", "prior", "centroid"))  # of the task "link"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.over is None and (self.guided or self.judge):
            does = "is guided" if self.guided else f"has the judge '{self.judge}'"
            raise OptionError(f"it {does} and has no run to work on. Name the run with over.")
        if self.guided and self.judge:
            raise OptionError("it is guided and has a judge. Leave one of them out.")
        if not self.kg:
            raise OptionError("it has no kg. Name one for it, or one for the suite.")


@dataclass(frozen=True, kw_only=True)
class SideBySide(Options):
    """Suites of one task whose rows of the same names are shown in one table."""

    title: str = "Side by side"
    about: str = ""  # Markdown, above the tables
    suites: Mapping[str, str]  # name → what it is called here, in the order shown

    def __post_init__(self) -> None:
        super().__post_init__()
        columns = [*self.suites.values()]
        texts = {called.strip() for called in columns if isinstance(called, str)} - {""}
        if len(columns) < 2 or len(texts) < len(columns):
            raise OptionError(
                f"suites calls them {columns!r:.60}, expected two or more, and a different name "
                "for each."
            )


@dataclass(frozen=True, kw_only=True)
class Suite(Options):
    """One experiment."""

    name: str  # the folder of its results; default: the file's name
    # of `kbert train`
    task: str = option(choices=("ner", "classify", "pair", "rank", "link", "mask", "qa"))
    title: str  # heading of its part of the report; default: the name
    about: str = ""  # one paragraph of Markdown
    data: Data  # see below
    kg: tuple[str, ...] = ()  # files of triples, or postgresql://…
    # which triples are used; left out: as the encoder's card says
    injection: InjectionOptions | None = _injected()
    encoder: str = SCRATCH  # folder, name on the hub, or package:NAME
    train: Mapping[str, Any] = _train()  # options of training
    seeds: tuple[int, ...]  # each row is run once per seed
    compare_with: str | None = None  # name of the run without knowledge
    # every row is run under each that agrees with it
    conditions: tuple[Condition, ...] = option((), parse=_conditions)
    # graph that tells covered from uncovered mentions; default: kg
    covered_by: tuple[str, ...] = ()
    # the rows, in the order shown
    runs: tuple[Run, ...] = option(parse=partial(_list, "runs"))
    # rows without training
    baselines: tuple[Baseline, ...] = option((), parse=partial(_list, "baselines"))
    # more pairs of names to compare, [A, B]
    also_compare: tuple[tuple[str, str], ...] = option((), parse=_pairs)
    # Markdown for the top of the report's page; {{ gain("row", "other") }} is filled in
    summary: str = ""
    discussion: str = ""  # the same, in detail; folded where there is a summary
    side_by_side: SideBySide | None = None  # a table over several suites
    path: Path = Path()

    @property
    def rows(self) -> tuple[Run | Baseline, ...]:
        """Runs and baselines, in the order shown."""
        return (*self.runs, *self.baselines)

    def row(self, name: str) -> Run | Baseline:
        """The run or baseline of a name."""
        return next(row for row in self.rows if row.name == name)

    def resolved(self, path: str) -> str:
        """A path of the suite file as one of this machine; see the module.

        Raises:
            OptionError: an environment variable isn't set; CheckpointError: a
                package isn't installed.
        """
        if path.startswith(PACKAGE):
            return str(located(path))
        expanded = os.path.expanduser(os.path.expandvars(path))
        missing = re.search(r"\$\{?(\w+)", expanded)
        if missing:
            raise OptionError(
                f"{path}: the environment variable {missing[1]} isn't set. "
                f"Set it to the folder meant, as in `export {missing[1]}=…`."
            )
        beside = self.path.parent / expanded  # an absolute path is itself
        return str(beside) if beside.exists() and not Path(expanded).exists() else expanded

    def resolved_all(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Several paths, see :meth:`resolved`."""
        return tuple(map(self.resolved, paths))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.name != slug(self.name):
            raise OptionError(f"name is '{self.name}', expected letters, digits and hyphens.")
        if not self.runs:
            raise OptionError("runs is empty. Add at least one run.")
        if self.task != "ner" and self.data.split == "entity-disjoint":
            raise OptionError(
                f"data: split is 'entity-disjoint' for the task '{self.task}', which has no "
                "entities. Choose official or deduplicated."
            )
        if self.task in ("link", "mask", "qa") and self.data != Data(folder=self.data.folder):
            raise OptionError(
                f"data: for the task '{self.task}', a folder's files are read as they are. Give "
                "only the folder."
            )
        for row in self.rows:
            with _within(f"'{row.name}'"):
                self._check_row(row)
        self._check_names()

    def _check_row(self, row: Run | Baseline) -> None:
        if self.task != "ner" and (row.known, row.right) != (None, None):
            raise OptionError(
                f"known and right are of mentions, and the task is '{self.task}'. Leave them out."
            )
        names_are_new = row.unseen is not None or self.data.unseen is not None
        if names_are_new != (self.data.split == "substitution"):
            raise OptionError(
                "unseen and split: substitution need each other. Give both, or neither."
            )
        if isinstance(row, Run):
            train_options(self, row)  # refuses what can't be
            return
        if self.task not in ("ner", "link"):
            raise OptionError(
                f"baselines are for named entities, and the task is '{self.task}'. Leave them out."
            )
        if (row.senses is None) == (self.task == "link"):
            raise OptionError(
                "every baseline of the task 'link' needs senses, and no other baseline may have "
                "it. Add it for 'link'; leave it out for other tasks."
            )

    def _check_names(self) -> None:
        names, runs = [row.name for row in self.rows], [run.name for run in self.runs]
        slugs = [*map(slug, names)]
        for name, short in zip(names, slugs, strict=True):
            if not short or slugs.count(short) > 1:
                raise OptionError(
                    f"the name '{name}' {'has no letter' if not short else 'is there twice'} "
                    "(names are told apart by their letters and digits). Change it."
                )
        wanted: list[tuple[str, str | None, list[str]]]
        wanted = [(f"compare_with of '{row.name}'", row.compare_with, names) for row in self.rows]
        wanted += [(f"over of '{row.name}'", row.over, runs) for row in self.baselines]
        wanted += [("also_compare", name, names) for pair in self.also_compare for name in pair]
        for where, other, known in wanted:
            if other is not None and other not in known:
                raise OptionError(
                    f"{where} names '{other}', and there is no such run. "
                    f"There are: {', '.join(known)}."
                )


# Rows

Rows = list[tuple[type[Run] | type[Baseline], dict[str, Any]]]  # each with its keys


def _rows(suite: Mapping[str, Any]) -> Rows:
    """The keys of all rows, with those that the suite gives for all."""
    rows: Rows = []
    for kind, data in ((Run, suite["runs"]), (Baseline, suite.get("baselines", ()))):
        for number, row in enumerate(data, 1):
            name = row.get("name") if isinstance(row, dict) else None
            label = f"{kind.__name__.lower()} {repr(name) if isinstance(name, str) else number}"
            keys = _inheriting(kind, _keys(kind, row, label), suite)
            with _within(label):
                if name is None:
                    raise OptionError("name is missing. Add it.")
                for key in ("name", *REFERRING):
                    if not isinstance(keys.get(key, ""), str):
                        raise OptionError(f"{key} is {keys[key]!r:.60}, expected a text.")
            rows.append((kind, keys))
    return rows


def _inheriting(kind: type, own: dict[str, Any], suite: Mapping[str, Any]) -> dict[str, Any]:
    own = {key: value for key, value in own.items() if value or key not in ("kg", "injection")}
    keys = {key: suite[key] for key in INHERITED if suite.get(key) and key in option_fields(kind)}
    if kind is Run:
        own.setdefault("knowledge", "graph" if "kg" in keys else "none")
        if own["knowledge"] == "none":
            keys.pop("kg", None)
        train = keys.get("train", {})
        if keys.get("encoder", SCRATCH) == SCRATCH != own.get("encoder", SCRATCH):
            train = {key: value for key, value in train.items() if key not in SIZE}  # of the others
        own["train"] = {**train, **own.get("train", {})}
    return {**keys, **own}


def _under_each(rows: Rows, suite: Mapping[str, Any]) -> tuple[Rows, Any]:
    """Rows, and what a suite compares besides, under each of its conditions.

    A row without a graph is there once for conditions that differ in the graph alone. A row that
    itself gives a part of a condition, as a value or a list, is there under those that agree.
    """
    conditions, compared = suite.get("conditions", ()), suite.get("also_compare", ())
    if not conditions:
        return rows, compared
    names = {row["name"] for _, row in rows}
    bare = {row["name"] for _, row in rows if row.get("knowledge") == "none"}

    def agrees(condition: Condition, row: Mapping[str, Any]) -> bool:
        asked = {f.name: row[f.name] for f in fields(Condition) if f.name in row}
        return all(
            getattr(condition, key) in (value if isinstance(value, list) else [value])
            for key, value in asked.items()
        )

    def under(condition: Condition, name: str) -> tuple[Condition, str]:
        own = Condition(unseen=condition.unseen) if name in bare else condition
        return own, f"{name}: {own.in_words}" if own.in_words else name

    made: dict[Any, dict[str, Any]] = {}
    pairs: dict[Any, None] = {}
    there: set[str] = set()
    for condition in conditions:
        here = [(kind, row) for kind, row in rows if agrees(condition, row)]
        for kind, row in here:
            own, name = under(condition, row["name"])
            referred = {key: under(condition, row[key])[1] for key in REFERRING if key in row}
            made.setdefault((kind, name), {**row, **own.given, **referred, "name": name})
        names_here = {row["name"] for _, row in here}
        there |= names_here
        for pair in compared:
            if names_here >= names.intersection(pair):
                pairs[tuple(under(condition, name)[1] for name in pair)] = None
    for name in names - there:
        raise OptionError(
            f"'{name}' has an unseen, known or right that no condition has. Correct it, or add a "
            "condition."
        )
    return [(kind, row) for (kind, _), row in made.items()], tuple(pairs)


def read_suite(path: str | Path) -> Suite:
    """Read and check a suite file.

    Raises:
        OptionError: with the file, key and value, where it doesn't fit.
    """
    path = Path(path)
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except (OSError, *YAML_PROBLEMS) as error:
        raise OptionError(
            f"{path}: can't be read as YAML in UTF-8 ({error}). Check its name, or correct it."
        ) from error
    with _within(str(path)):
        suite = {"name": path.stem, "path": path, **_keys(Suite, data, without=["path"])}
        suite = {"title": suite["name"], "covered_by": suite.get("kg", ()), **suite}
        _refuse_missing(Suite, suite)
        rows, suite["also_compare"] = _under_each(_rows(suite), suite)
        made: dict[type, list[Any]] = {Run: [], Baseline: []}
        for kind, keys in rows:
            with _within(f"{kind.__name__.lower()} '{keys['name']}'"):
                _refuse_missing(kind, keys)
                made[kind].append(kind(**keys))
        return Suite(**{**suite, "runs": tuple(made[Run]), "baselines": tuple(made[Baseline])})


def slug(name: str) -> str:
    """A row's name as part of a file name."""
    return re.sub(r"[^\w]+", "-", name.casefold()).strip("-")


def train_options(suite: Suite, run: Run, **given: Any) -> TrainOptions:
    """What one run trains with: what is given, else what the suite says."""
    of_run = ("encoder", "kg", "hiding_kg", "injection", "ablation", "recipe")
    said = {"task": suite.task, "data": "-", "output": "-", "seed": run.seeds[0], "float32": True}
    said |= {name: getattr(run, name) for name in of_run}
    return TrainOptions.of(**{**said, **run.train, **given})
