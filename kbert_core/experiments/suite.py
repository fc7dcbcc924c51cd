"""A suite file: the grid of runs of one experiment, checked when read.

Written in YAML; every key is a field of :class:`Suite` or of the models in
:mod:`kbert_core.experiments.keys`. Paths may hold environment variables
(``$KBERT_DATA``) and are looked for in the current folder, then beside the
suite file; ``package:NAME`` is the model in an installed Python package.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BeforeValidator, Field, PrivateAttr, ValidationError, model_validator

from kbert_core.checkpoints.encoders import PACKAGE, located
from kbert_core.errors import KBertError, OptionError
from kbert_core.experiments.keys import (
    Baseline,
    Data,
    Injection,
    Keys,
    Run,
    Seeds,
    SideBySide,
    Text,
    Texts,
    Train,
    error_text,
    shown,
)
from kbert_core.training.options import SCRATCH, SIZE, TrainOptions

INHERITED = ("kg", "injection", "encoder", "train", "seeds", "compare_with")  # by the suite's rows


def _pairs(pairs: Any) -> Any:
    for pair in pairs if isinstance(pairs, list) else ():
        if not isinstance(pair, list) or [type(name) for name in pair] != [str, str]:
            raise OptionError(f"also_compare has {shown(pair)}, expected pairs of names, [A, B].")
    return pairs


class Suite(Keys):
    """One experiment.

    Attributes:
        name: of the file, and the folder of its results.
        title, about: shown; ``about`` is one paragraph of Markdown.
        task: a key of ``TASKS``.
        data: what is trained and tested on.
        kg, injection, encoder, train, seeds, compare_with: of every run that
            says nothing else.
        covered_by: graph that tells covered from uncovered mentions; the
            same for every row.
        runs, baselines: the rows, in the order shown.
        also_compare: pairs of names for further paired differences.
        discussion: Markdown, pasted into the report as it is.
        side_by_side: which suites it is shown in one table with, where they
            are reported together.
    """

    name: str
    task: Literal["ner", "classify", "pair", "rank"]  # of a mask predictions aren't scored
    title: str
    about: Text = ""
    data: Data
    kg: Texts = ()
    injection: Injection = None
    encoder: str = SCRATCH
    train: Train = Field(default_factory=dict)
    seeds: Seeds
    compare_with: str | None = None
    covered_by: Texts = ()
    runs: tuple[Run, ...]
    baselines: tuple[Baseline, ...] = ()
    also_compare: Annotated[tuple[tuple[str, str], ...], BeforeValidator(_pairs)] = ()
    discussion: Text = ""
    side_by_side: SideBySide | None = None
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
        """A path of the suite file as a path of this machine; see the module."""
        return resolved(path, beside=self.path.parent)

    def resolved_all(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Several paths, see :meth:`resolved`."""
        return tuple(map(self.resolved, paths))

    @model_validator(mode="before")
    @classmethod
    def _handed_on(cls, data: Any) -> Any:
        """Give every row what the suite says for all."""
        if not isinstance(data, dict):
            return data
        made = dict(data)
        for key, kind in (("runs", Run), ("baselines", Baseline)):
            if isinstance(data.get(key), list):
                made[key] = [_inheriting(row, data, kind) for row in data[key]]
        if made.get("covered_by") is None:
            made["covered_by"] = data.get("kg")
        return made

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
        if self.task != "ner" and self.baselines:
            raise OptionError(
                f"baselines are for named entities, and the task is '{self.task}'. Leave them out."
            )
        self._check_names()
        for run in self.runs:
            try:
                seed = run.seeds[0]
                train_options(self, run, seed=seed, data="-", kg=(), output="-", check_only=True)
            except (KBertError, TypeError) as error:
                raise OptionError(f"run '{run.name}': {error}") from error
        return self

    def _check_names(self) -> None:
        names = [row.name for row in self.rows]
        slugs = [slug(name) for name in names]
        for name, short in zip(names, slugs, strict=True):
            if not short or slugs.count(short) > 1:
                raise OptionError(
                    f"the name '{name}' {'has no letter' if not short else 'is there twice'} "
                    "(names are told apart by their letters and digits). Change it."
                )
        runs = [run.name for run in self.runs]
        wanted: list[tuple[str, str | None, list[str]]] = []
        wanted += [(f"compare_with of '{row.name}'", row.compare_with, names) for row in self.rows]
        wanted += [(f"over of '{row.name}'", row.over, runs) for row in self.baselines]
        wanted += [("also_compare", name, names) for pair in self.also_compare for name in pair]
        for where, other, known in wanted:
            if other is not None and other not in known:
                raise OptionError(
                    f"{where} names '{other}', and there is no such run. "
                    f"There are: {', '.join(known)}."
                )


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


def _inheriting(row: Any, suite: Mapping[str, Any], kind: type[Keys]) -> Any:
    """A row's keys with those that the suite gives for all rows."""
    if not isinstance(row, dict):
        return row
    inherited = {
        key: suite[key] for key in INHERITED if suite.get(key) and key in kind.model_fields
    }
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


def read_suite(path: str | Path) -> Suite:
    """Read and check a suite file.

    Raises:
        OptionError: with the file, key and value, where it doesn't fit.
    """
    path = Path(path)
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OptionError(f"{path}: can't be read ({error}). Check the name.") from error
    except UnicodeDecodeError as error:
        raise OptionError(f"{path}: not UTF-8 ({error}). Save the file as UTF-8.") from error
    except yaml.YAMLError as error:
        raise OptionError(f"{path}: no valid YAML ({error}). Correct it there.") from error
    if isinstance(data, dict):
        data["name"] = data.get("name") or path.stem
        data["title"] = data.get("title") or data["name"]
    try:
        suite = Suite.model_validate(data)
    except ValidationError as error:
        raise OptionError(f"{path}: {error_text(error.errors()[0], data)}") from error
    except KBertError as error:
        raise OptionError(f"{path}: {error}") from error
    suite._path = path
    return suite


def resolved(path: str, *, beside: Path) -> str:
    """Expand variables and packages, and find a relative path.

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
    if Path(expanded).exists() or Path(expanded).is_absolute():
        return expanded
    return str(beside / expanded) if (beside / expanded).exists() else expanded


def slug(name: str) -> str:
    """A row's name as part of a file name."""
    return re.sub(r"[^\w]+", "-", name.casefold()).strip("-")


def train_options(
    suite: Suite,
    run: Run,
    *,
    seed: int,
    data: str,
    kg: tuple[str, ...],
    output: str,
    device: str = "auto",
    check_only: bool = False,
) -> TrainOptions:
    """What one run trains with.

    Args:
        data: folder of its split.
        kg: files of its graph, shuffled where it is.
        output: folder to work in.
        check_only: paths don't need to be there.
    """
    injection = run.injection
    if injection is not None and injection.scorer is not None and not check_only:
        injection = replace(injection, scorer=suite.resolved(injection.scorer))
    return TrainOptions.of(
        task=suite.task,
        data=data,
        output=output,
        encoder=run.encoder if check_only else suite.resolved(run.encoder),
        kg=run.kg if check_only else kg,
        hiding_kg=run.hiding_kg if check_only else suite.resolved_all(run.hiding_kg),
        injection=injection,
        ablation=run.ablation,
        recipe=run.recipe,
        seed=seed,
        device=device,
        float32=True,
        **run.train,
    )
