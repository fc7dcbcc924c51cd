"""A suite file: the grid of runs of one experiment, checked when read.

Written in YAML; its keys are the fields of :class:`Suite` and of what it holds.
Paths may hold environment variables (``$KBERT_DATA``) and are looked for in the
current folder, then beside the suite file; ``package:NAME`` is the model in an
installed Python package.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    StrictBool,
    StrictInt,
    ValidationError,
    model_validator,
)

from kbert_core.checkpoints.encoders import PACKAGE, located
from kbert_core.errors import KBertError, OptionError
from kbert_core.kbert.visible import ABLATIONS, FULL, Ablation
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.surface_forms import NameRules
from kbert_core.options import option_fields, value_named
from kbert_lab.data.files import DataFiles
from kbert_lab.suites.keys import Keys, Number, Share, Text, Texts, error_text, keys_of, shown
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


def _seeds(seeds: tuple[int, ...]) -> tuple[int, ...]:
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise OptionError(
            f"seeds is {list(seeds)}, expected different whole numbers from 0, as in [1, 2, 3]."
        )
    return seeds


def _ablation(name: Any) -> Ablation:
    return value_named("ablation", name, ABLATIONS)


def _injection(**given: Any) -> InjectionOptions | None:
    if not given:
        return None
    return InjectionOptions(**given | {"names": NameRules.of(given.get("names", ["basic"]))})


def _pairs(pairs: Any) -> Any:
    for pair in pairs if isinstance(pairs, list) else ():
        if not isinstance(pair, list) or [type(name) for name in pair] != [str, str]:
            raise OptionError(f"also_compare has {shown(pair)}, expected pairs of names, [A, B].")
    return pairs


Seeds = Annotated[tuple[StrictInt, ...], AfterValidator(_seeds)]
Injection = Annotated[InjectionOptions | None, keys_of(InjectionOptions, _injection)]
Train = Annotated[Mapping[str, Any], keys_of(TrainOptions, dict, SET_ELSEWHERE)]


class Data(Keys):
    """The labelled data, and how they are split.

    A split is "official" as published; "deduplicated" without texts that stand
    in two splits; "entity-disjoint" or by "substitution", drawn anew by each seed.
    """

    folder: str  # of train, dev and test, or "hf:NAME"
    # see above
    split: Literal["official", "deduplicated", "entity-disjoint", "substitution"] = "official"
    among: str = AT_RANDOM  # names held out: drawn from all, or from those that this graph knows
    unseen: Share = None  # by substitution: share of the mentions of dev and test with new names
    test_share: Share = None  # share of the names held out for test; default: 0.22
    dev_share: Share = None  # the same for dev (0.1); in other splits: of train
    files: Mapping[Literal["train", "dev", "test"], str] = {}  # where their names are other ones
    columns: Mapping[str, str] = {}  # our names → the data's, where they can't be guessed
    also_train: Texts = ()  # more files or folders to train on; no dev is drawn from them

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
        unused: dict[str, Any] = {"test_share": None, "among": AT_RANDOM}
        if self.split == "substitution":
            unused = {"test_share": None, "also_train": ()}
        for name, usual in unused.items():
            if getattr(self, name) != usual:
                raise OptionError(f"data: {name} isn't used for split: {self.split}. Leave it out.")
        if self.files and ("dev" in self.files) == (self.dev_share is not None):
            raise OptionError(
                "data: files has a dev and there is a dev_share too. Leave one of them out."
                if "dev" in self.files
                else "data: files has no dev. Add it, or a dev_share to draw it from train."
            )
        return self


class Condition(Keys):
    """What an experiment varies: how new the names are, and what the graph knows of them."""

    unseen: Share = None  # of the mentions of dev and test, with names that train doesn't label
    known: Annotated[Number | None, Field(ge=0, le=1)] = None  # of these, to the graph
    right: Annotated[Number | None, Field(gt=0, le=1)] = None  # of the graph's matches

    @property
    def in_words(self) -> str:
        """As in "25 % new, 60 % known"."""
        told = {"unseen": "new", "known": "known", "right": "right"}
        values = ((getattr(self, name), word) for name, word in told.items())
        return ", ".join(f"{100 * value:g} % {word}" for value, word in values if value is not None)

    def is_under(self, other: "Condition") -> bool:
        """Whether another says the same of all that this one says."""
        return all(getattr(self, k) in (None, getattr(other, k)) for k in Condition.model_fields)


class Row(Condition):
    """One row of the table."""

    name: str  # in the table, and in the names of its files
    kg: Texts = ()  # files of triples, or postgresql://…
    seeds: Seeds  # one run per seed; default: the suite's
    compare_with: str | None = None  # the run without knowledge to compare with
    note: Text = ""  # shown below the table

    @property
    def called(self) -> str:
        """Its name without the condition that it runs under."""
        return self.name.removesuffix(f": {self.in_words}")


class Run(Row):
    """A way to train."""

    # of the graph, or of a control made of it; default: graph if there is a kg
    knowledge: Literal["none", "graph", "shuffled", "permuted", "constant", "reliable"] = "none"
    hiding_kg: Texts = ()  # without knowledge: hide the mentions that the recipe hides with it
    # how trees are read: full, hard-positions, everything-visible, or both of these
    ablation: Annotated[Ablation, BeforeValidator(_ablation)] = FULL
    recipe: Annotated[Recipe, keys_of(Recipe, Recipe)] = Recipe()  # what training changes in data
    injection: Injection = None  # which triples are used
    encoder: str = SCRATCH  # to start from
    train: Train = Field(default_factory=dict)  # options of training
    retrained: StrictBool = False  # by the same data and graph, but training draws by another seed
    test_curve: StrictBool = False  # score every epoch on test too, for curves; it chooses nothing

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
        if self.knowledge == "none" and (self.known, self.right) != (None, None):
            raise OptionError(
                f"run '{self.name}': known and right are a graph's, and knowledge is none. Leave "
                "them out."
            )
        return self


class Baseline(Row):
    """A way without training: the graph's names looked up in the text.

    Alone, or written over the predictions of a run; where it guides one, the
    run's tags are decoded anew with a boost for the dictionary's spans, as
    great as does best on dev. Where its spans are judged, only those are written
    that a gate fitted on dev lets through, or that are right (the oracle, a ceiling).
    """

    over: str | None = None  # name of the run over whose predictions it is written
    guided: StrictBool = False  # guide that run's decoding instead of writing over it
    # write only what a gate fitted on dev lets through, or only what is right, the ceiling
    judge: Literal["gate", "oracle"] | None = None
    senses: Literal["first", "prior", "centroid"] | None = None  # of the task "link"

    @model_validator(mode="after")
    def _check(self) -> Self:
        where = f"baseline '{self.name}'"
        if self.guided and self.over is None:
            raise OptionError(f"{where} is guided but has no run to guide. Name the run with over.")
        if self.judge is not None and (self.over is None or self.guided):
            raise OptionError(
                f"{where} is guided and has a judge. Leave one of them out."
                if self.guided
                else f"{where} has the judge '{self.judge}' but no run to write over. Name the "
                "run with over."
            )
        if not self.kg:
            raise OptionError(f"{where} has no kg. Name one for it, or one for the suite.")
        return self


class SideBySide(Keys):
    """Suites of one task whose rows of the same names are shown in one table."""

    title: Text = "Side by side"
    about: Text = ""  # Markdown, above the tables
    suites: Mapping[str, str]  # name → what it is called here, in the order shown

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self.suites) < 2:
            raise OptionError("side_by_side: suites has fewer than two. Add one, or leave it out.")
        columns = [called.strip() for called in self.suites.values()]
        if not all(columns) or len(set(columns)) < len(columns):
            raise OptionError(
                f"side_by_side: suites calls them {shown(columns)}, expected a different name "
                "for each suite."
            )
        return self


class Suite(Keys):
    """One experiment."""

    name: str  # the folder of its results; default: the file's name
    task: Literal["ner", "classify", "pair", "rank", "link", "mask", "qa"]  # of `kbert train`
    title: str  # heading of its part of the report; default: the name
    about: Text = ""  # one paragraph of Markdown
    data: Data  # see below
    kg: Texts = ()  # files of triples, or postgresql://…
    injection: Injection = None  # which triples are used; left out: as the encoder's card says
    encoder: str = SCRATCH  # folder, name on the hub, or package:NAME
    train: Train = Field(default_factory=dict)  # options of training
    seeds: Seeds  # each row is run once per seed
    compare_with: str | None = None  # name of the run without knowledge
    conditions: tuple[Condition, ...] = ()  # every row is run under each that agrees with it
    covered_by: Texts = ()  # graph that tells covered from uncovered mentions; default: kg
    runs: tuple[Run, ...]  # the rows, in the order shown
    baselines: tuple[Baseline, ...] = ()  # rows without training
    # more pairs of names to compare, [A, B]
    also_compare: Annotated[tuple[tuple[str, str], ...], BeforeValidator(_pairs)] = ()
    discussion: Text = ""  # Markdown for the report; {{ gain("row", "other") }} is filled in
    side_by_side: SideBySide | None = None  # a table over several suites
    _path: Path = PrivateAttr(Path())

    @property
    def path(self) -> Path:
        """The file it was read from."""
        return self._path

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

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.name != slug(self.name):
            raise OptionError(f"name is '{self.name}', expected letters, digits and hyphens.")
        if not self.runs:
            raise OptionError("runs is empty. Add at least one run.")
        if self.task != "ner" and self.data.split == "entity-disjoint":
            raise OptionError(
                f"data: split is 'entity-disjoint' for the task '{self.task}', which has no "
                "entities. Choose official or deduplicated."
            )
        for row in self.rows:
            if self.task != "ner" and (row.known, row.right) != (None, None):
                raise OptionError(
                    f"'{row.name}': known and right are of mentions, and the task is "
                    f"'{self.task}'. Leave them out."
                )
            told = row.unseen is not None or self.data.unseen is not None
            if told != (self.data.split == "substitution"):
                raise OptionError(
                    f"'{row.name}': unseen and split: substitution need each other. Give both, "
                    "or neither."
                )
        if self.task in ("link", "mask", "qa") and self.data != Data(folder=self.data.folder):
            raise OptionError(
                f"data: for the task '{self.task}', a folder's files are read as they are. Give "
                "only the folder."
            )
        odd = [row.name for row in self.baselines if (row.senses is None) == (self.task == "link")]
        if odd:
            raise OptionError(
                f"baseline '{odd[0]}': every baseline of the task 'link' needs senses, and no "
                "other baseline may have it. Add it for 'link'; leave it out for other tasks."
            )
        if self.task not in ("ner", "link") and self.baselines:
            raise OptionError(
                f"baselines are for named entities, and the task is '{self.task}'. Leave them out."
            )
        self._check_names()
        for run in self.runs:
            try:
                train_options(self, run)
            except (KBertError, TypeError) as error:
                raise OptionError(f"run '{run.name}': {error}") from error
        return self

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


def _handed_on(data: Any) -> Any:
    """Give every row what the suite says for all."""
    if not isinstance(data, dict):
        return data
    rows = {
        key: [_inheriting(row, data, kind) for row in data[key]]
        for key, kind in (("runs", Run), ("baselines", Baseline))
        if isinstance(data.get(key), list)
    }
    rows |= _under_each(rows, data)
    covered_by = data.get("kg") if data.get("covered_by") is None else data["covered_by"]
    return {**data, **rows, "covered_by": covered_by}


def _inheriting(row: Any, suite: Mapping[str, Any], kind: type[Keys]) -> Any:
    """A row's keys with those that the suite gives for all rows."""
    if not isinstance(row, dict):
        return row
    inherited = {k: suite[k] for k in INHERITED if suite.get(k) and k in kind.model_fields}
    given = {key: value for key, value in row.items() if value or key not in ("kg", "injection")}
    if kind is Run:
        given["knowledge"] = given.get("knowledge") or ("graph" if suite.get("kg") else "none")
        if given["knowledge"] == "none":
            inherited.pop("kg", None)
        for_all, train = inherited.get("train"), given.get("train") or {}
        if isinstance(for_all, dict) and isinstance(train, dict):
            encoders = suite.get("encoder") or SCRATCH, given.get("encoder") or SCRATCH
            if encoders[0] == SCRATCH != encoders[1]:  # the size is of the other runs
                for_all = {name: value for name, value in for_all.items() if name not in SIZE}
            given["train"] = {**for_all, **train}
    return {**inherited, **{key: value for key, value in given.items() if value is not None}}


def _under_each(rows: Mapping[str, Any], suite: Mapping[str, Any]) -> dict[str, Any]:
    """Rows, and what a suite compares besides, under each of its conditions.

    A row without a graph is there once for conditions that differ in the graph alone. A row that
    itself gives a part of a condition, as a value or a list, is there under those that agree.
    """
    try:
        conditions = [Condition.model_validate(given) for given in suite.get("conditions") or ()]
    except (ValidationError, TypeError):  # which the suite's own check tells
        return {}
    every = [row for of in rows.values() for row in of]
    compared = _pairs(suite.get("also_compare") or [])
    names_are_texts = all(
        isinstance(row, dict)
        and isinstance(row.get("name"), str)
        and all(isinstance(row.get(key), str | None) for key in REFERRING)
        for row in every
    )
    if not conditions or not names_are_texts or not isinstance(compared, list):
        return {}
    bare = {row.get("name") for row in rows.get("runs", ()) if row["knowledge"] == "none"}

    def agrees(condition: Condition, row: Mapping[str, Any]) -> bool:
        asked = {key: row[key] for key, _ in condition if row.get(key) is not None}
        return all(
            getattr(condition, k) in (v if isinstance(v, list) else [v]) for k, v in asked.items()
        )

    def under(condition: Condition, name: Any) -> tuple[Condition, str]:
        own = Condition(unseen=condition.unseen) if name in bare else condition
        return own, f"{name}: {own.in_words}" if own.in_words else name

    for row in every:
        if not any(agrees(condition, row) for condition in conditions):
            raise OptionError(
                f"'{row.get('name')}' has an unseen, known or right that no condition has. "
                "Correct it, or add a condition."
            )
    made: dict[str, dict[str, Any]] = {key: {} for key in rows}
    pairs: dict[tuple[str, ...], None] = {}
    for condition in conditions:
        here = {key: [row for row in of if agrees(condition, row)] for key, of in rows.items()}
        for key, of in here.items():
            for row in of:
                own, name = under(condition, row.get("name"))
                referred = {k: under(condition, row[k])[1] for k in REFERRING if row.get(k)}
                row = {**row, **own.model_dump(exclude_none=True), **referred, "name": name}
                made[key].setdefault(name, row)
        absent = {r.get("name") for r in every} - {
            r.get("name") for of in here.values() for r in of
        }
        for pair in compared:
            if absent.isdisjoint(pair):
                pairs[tuple(under(condition, name)[1] for name in pair)] = None
    return {**{k: [*of.values()] for k, of in made.items()}, "also_compare": [*map(list, pairs)]}


def check_side_by_side(suites: Sequence[Suite]) -> None:
    """Refuse suites of different tasks side by side.

    Raises:
        OptionError: naming one.
    """
    for suite in suites:
        for other in suites:
            beside = suite.side_by_side is not None and other.name in suite.side_by_side.suites
            if beside and other.task != suite.task:
                raise OptionError(
                    f"{suite.path}: side_by_side has '{other.name}', whose task is "
                    f"'{other.task}', beside '{suite.task}'. Take it out."
                )


def read_suite(path: str | Path) -> Suite:
    """Read and check a suite file.

    Raises:
        OptionError: with the file, key and value, where it doesn't fit.
    """
    path = Path(path)
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, *YAML_PROBLEMS) as error:
        raise OptionError(
            f"{path}: can't be read as YAML in UTF-8 ({error}). Check its name, or correct it."
        ) from error
    if isinstance(data, dict):
        data["name"] = data.get("name") or path.stem
        data["title"] = data.get("title") or data["name"]
    try:
        data = _handed_on(data)
        suite = Suite.model_validate(data)
    except ValidationError as error:
        raise OptionError(f"{path}: {error_text(error.errors()[0], data)}") from error
    except KBertError as error:
        raise OptionError(f"{path}: {error}") from error
    suite._path = path
    return suite


def slug(name: str) -> str:
    """A row's name as part of a file name."""
    return re.sub(r"[^\w]+", "-", name.casefold()).strip("-")


def train_options(suite: Suite, run: Run, **given: Any) -> TrainOptions:
    """What one run trains with: what is given, else what the suite says."""
    of_run = ("encoder", "kg", "hiding_kg", "injection", "ablation", "recipe")
    said = {"task": suite.task, "data": "-", "output": "-", "seed": run.seeds[0], "float32": True}
    said |= {name: getattr(run, name) for name in of_run}
    return TrainOptions.of(**{**said, **run.train, **given})
