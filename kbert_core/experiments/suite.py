"""A suite file: the grid of runs of one experiment, checked when read.

Written in YAML; every key is a field of :class:`Suite`, :class:`Run` or
:class:`Baseline`. Paths may hold environment variables (``$KBERT_DATA``) and
are looked for in the current folder, then beside the suite file;
``package:NAME`` is the model in an installed Python package.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

import yaml

from kbert_core.checkpoints.adapters import PACKAGE, located
from kbert_core.data.labelled import SPLITS
from kbert_core.errors import KBertError, OptionError
from kbert_core.experiments.keys import Keys, shown
from kbert_core.kbert.ablation import FULL, Ablation
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.surface_forms import NameRules
from kbert_core.options import option_fields
from kbert_core.tasks import TASKS
from kbert_core.training.options import SCRATCH, SIZE, Recipe, TrainOptions

Split = Literal["official", "deduplicated", "entity-disjoint"]
Knowledge = Literal["none", "graph", "shuffled"]
SPLIT_KINDS: tuple[Split, ...] = ("official", "deduplicated", "entity-disjoint")
KNOWLEDGE: tuple[Knowledge, ...] = ("none", "graph", "shuffled")
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
INJECTION_KEYS: dict[str, type] = {
    "max_triples": int,
    "tail_only": bool,
    "strategy": str,
    "threshold": float,
    "one_sense": bool,
    "scorer": str,
}  # and relations and names, as lists
TRAIN_KEYS = {
    name: field for name, field in option_fields(TrainOptions).items() if name not in SET_ELSEWHERE
}


@dataclass(frozen=True)
class Data:
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
    split: Split = "official"
    among: str = AT_RANDOM
    test_share: float | None = None
    dev_share: float | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    also_train: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """One row of the table: a way to train, once a seed.

    Attributes:
        name: shown, and in the name of its files.
        knowledge: "none", "graph", or "shuffled": the graph with its tails
            exchanged, in training and test.
        kg: files of triples.
        hiding_kg: for a run without knowledge: hide the mentions that the
            recipe would hide with these graphs.
        ablation: how trees are read.
        recipe: what happens to knowledge in training.
        injection: None: as the encoder's card says.
        encoder: to start from.
        train: further fields of ``TrainOptions``.
        seeds: one run each.
        compare_with: the run without knowledge that it is held against.
        note: shown below the table.
    """

    name: str
    knowledge: Knowledge
    kg: tuple[str, ...]
    hiding_kg: tuple[str, ...]
    ablation: Ablation
    recipe: Recipe
    injection: InjectionOptions | None
    encoder: str
    train: Mapping[str, Any]
    seeds: tuple[int, ...]
    compare_with: str | None
    note: str = ""


@dataclass(frozen=True)
class Baseline:
    """A row without training: the graph's names looked up in the text.

    Attributes:
        kg: the dictionary.
        over: the run whose predictions it is written over; None: alone.
        guided: not written over: the run's tags are decoded anew with a bonus
            for the dictionary's spans, as great as does best on dev.
        other attributes: as of :class:`Run`.
    """

    name: str
    kg: tuple[str, ...]
    over: str | None
    seeds: tuple[int, ...]
    compare_with: str | None
    note: str = ""
    guided: bool = False


@dataclass(frozen=True)
class SideBySide:
    """Suites of one task whose rows of the same names are shown in one table.

    Attributes:
        title: of the section.
        about: Markdown, pasted in below the tables.
        suites: name of a suite → what it is called here, in the order shown.
    """

    title: str
    about: str
    suites: Mapping[str, str]


@dataclass(frozen=True)
class Suite:
    """One experiment.

    Attributes:
        path: of the file it was read from.
        name: of the file, and the folder of its results.
        title, about: shown; ``about`` is one paragraph of Markdown.
        task: a key of ``TASKS``.
        data: what is trained and tested on.
        covered_by: graph that tells covered from uncovered mentions; the
            same for every row.
        rows: runs and baselines in the order shown.
        also_compare: pairs of names for further paired differences.
        discussion: Markdown, pasted into the report as it is.
        side_by_side: which suites it is shown in one table with, where they
            are reported together.
    """

    path: Path
    name: str
    title: str
    about: str
    task: str
    data: Data
    covered_by: tuple[str, ...]
    rows: tuple[Run | Baseline, ...]
    also_compare: tuple[tuple[str, str], ...] = ()
    discussion: str = ""
    side_by_side: SideBySide | None = None

    def row(self, name: str) -> Run | Baseline:
        """The run or baseline of a name."""
        return next(row for row in self.rows if row.name == name)

    @property
    def runs(self) -> tuple[Run, ...]:
        """The rows that are trained."""
        return tuple(row for row in self.rows if isinstance(row, Run))

    def resolved(self, path: str) -> str:
        """A path of the suite file as a path of this machine; see the module."""
        return resolved(path, beside=self.path.parent)

    def resolved_all(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Several paths, see :meth:`resolved`."""
        return tuple(map(self.resolved, paths))


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
    try:
        return _suite(path, Keys(data, "the suite"))
    except KBertError as error:
        raise OptionError(f"{path}: {error}") from error


def _suite(path: Path, keys: Keys) -> Suite:
    name = keys.take("name", str, path.stem)
    if name != slug(name):
        raise OptionError(f"name is '{name}', expected letters, digits and hyphens.")
    task = keys.choice("task", tuple(TASKS))
    data = _data(keys.keys("data"), task)
    kg = keys.texts("kg", [])
    common = Run(
        name="",
        knowledge="graph",
        kg=kg,
        hiding_kg=(),
        ablation=FULL,
        recipe=Recipe(),
        injection=_injection(keys.keys("injection")),
        encoder=keys.take("encoder", str, "scratch"),
        train=_train(keys.keys("train")),
        seeds=keys.seeds(),
        compare_with=keys.take("compare_with", str, None),
    )
    runs = [_run(Keys(r, f"run {i}"), common) for i, r in _numbered(keys.take("runs", list))]
    if not runs:
        raise OptionError("runs is empty. Add at least one run.")
    baselines = [
        _baseline(Keys(b, f"baseline {i}"), common)
        for i, b in _numbered(keys.take("baselines", list, []))
    ]
    pairs = keys.take("also_compare", list, [])
    suite = Suite(
        path=path,
        name=name,
        title=keys.take("title", str, name),
        about=keys.take("about", str, "").strip(),
        task=task,
        data=data,
        covered_by=keys.texts("covered_by", list(kg)),
        rows=(*runs, *baselines),
        also_compare=tuple(_pair(pair) for pair in pairs),
        discussion=keys.take("discussion", str, "").strip(),
        side_by_side=_side_by_side(keys.take("side_by_side", dict, None)),
    )
    keys.done()
    _check(suite, common)
    return suite


def _numbered(items: Sequence[Any]) -> list[tuple[int, Any]]:
    return list(enumerate(items, start=1))


def _data(keys: Keys, task: str) -> Data:
    data = Data(
        folder=keys.take("folder", str),
        split=keys.choice("split", SPLIT_KINDS, "official"),
        among=keys.take("among", str, AT_RANDOM),
        test_share=keys.take("test_share", float, None),
        dev_share=keys.take("dev_share", float, None),
        files=_files(keys.keys("files")),
        columns=_columns(keys.take("columns", dict, {})),
        also_train=keys.texts("also_train", []),
    )
    keys.done()
    for name in ("test_share", "dev_share"):
        share = getattr(data, name)
        if share is not None and not 0 < share < 1:
            raise OptionError(f"data: {name} is {share}, expected a share between 0 and 1.")
    if data.split == "entity-disjoint":
        if task != "ner":
            raise OptionError(
                f"data: split is 'entity-disjoint' for the task '{task}', which has no entities. "
                "Choose official or deduplicated."
            )
        if data.also_train:
            raise OptionError(
                "data: also_train would bring held-out names into training, and split is "
                "'entity-disjoint'. Leave it out."
            )
        return data
    unused = {"test_share": data.test_share is not None, "among": data.among != AT_RANDOM}
    for name in unused:
        if unused[name]:
            raise OptionError(f"data: {name} isn't used for split: {data.split}. Leave it out.")
    if data.files and ("dev" in data.files) == (data.dev_share is not None):
        raise OptionError(
            "data: files has a dev and there is a dev_share too. Leave one of them out."
            if "dev" in data.files
            else "data: files has no dev. Add it, or a dev_share to draw it from train."
        )
    return data


def _columns(given: dict[Any, Any]) -> dict[str, str]:
    for name, column in given.items():
        if not isinstance(name, str) or not isinstance(column, str):
            raise OptionError(f"data: columns has {shown(name)}: {shown(column)}, expected texts.")
    return given


def _files(keys: Keys) -> dict[str, str]:
    found = {split: keys.take(split, str, None) for split in SPLITS}
    keys.done()
    given = {split: name for split, name in found.items() if name is not None}
    if given and "train" not in given:
        raise OptionError("data: files has no train. Add it.")
    return given


def _injection(keys: Keys) -> InjectionOptions | None:
    given: dict[str, Any] = {}
    for key, kind in INJECTION_KEYS.items():
        value = keys.take(key, kind, None)
        if value is not None:
            given[key] = value
    for key in ("relations", "not_relations", "first_relations"):
        relations = keys.texts(key, [])
        if relations:
            given[key] = relations
    names = keys.texts("names", [])
    keys.done()
    if names:
        given["names"] = NameRules.of(names)
    return InjectionOptions(**given) if given else None


def _train(keys: Keys) -> dict[str, Any]:
    given = {}
    for name, of in TRAIN_KEYS.items():
        kind, *_ = get_args(of.type) or (of.type,)  # of `int | None` the first
        value = keys.take(name, kind, None)
        if value is not None:
            given[name] = value
    keys.done()
    return given


def _recipe(keys: Keys) -> Recipe:
    names = [f.name for f in fields(Recipe)]
    recipe = Recipe(**{name: keys.take(name, float, 0.0) for name in names})
    keys.done()
    return recipe


def _run(keys: Keys, common: Run) -> Run:
    name = keys.take("name", str)
    keys.where = f"run '{name}'"
    knowledge = keys.choice("knowledge", KNOWLEDGE, "graph" if common.kg else "none")
    kg = keys.texts("kg", [])
    if knowledge == "none" and kg:
        raise OptionError(
            f"{keys.where} has a kg and knowledge: none. Leave the kg out, or use hiding_kg."
        )
    if knowledge != "none" and not (kg or common.kg):
        raise OptionError(f"{keys.where}: knowledge is '{knowledge}' and there is no kg. Name one.")
    encoder = keys.take("encoder", str, common.encoder)
    inherited = dict(common.train)
    if common.encoder == SCRATCH != encoder:  # the size is of the other runs
        inherited = {name: value for name, value in inherited.items() if name not in SIZE}
    run = replace(
        common,
        name=name,
        knowledge=knowledge,
        kg=() if knowledge == "none" else kg or common.kg,
        hiding_kg=keys.texts("hiding_kg", []),
        ablation=ABLATIONS[keys.choice("ablation", tuple(ABLATIONS), "full")],
        recipe=_recipe(keys.keys("recipe")),
        injection=_injection(keys.keys("injection")) or common.injection,
        encoder=encoder,
        train={**inherited, **_train(keys.keys("train"))},
        seeds=keys.seeds(list(common.seeds)),
        compare_with=keys.take("compare_with", str, common.compare_with),
        note=keys.take("note", str, "").strip(),
    )
    keys.done()
    return run


def _baseline(keys: Keys, common: Run) -> Baseline:
    name = keys.take("name", str)
    keys.where = f"baseline '{name}'"
    baseline = Baseline(
        name=name,
        kg=keys.texts("kg", list(common.kg)),
        over=keys.take("over", str, None),
        guided=keys.take("guided", bool, False),
        seeds=keys.seeds(list(common.seeds)),
        compare_with=keys.take("compare_with", str, common.compare_with),
        note=keys.take("note", str, "").strip(),
    )
    keys.done()
    if baseline.guided and baseline.over is None:
        raise OptionError(f"{keys.where} is guided and has no run to guide. Name it with over.")
    if not baseline.kg:
        raise OptionError(f"{keys.where} has no kg. Name one for it, or one for the suite.")
    return baseline


def _side_by_side(given: dict[Any, Any] | None) -> SideBySide | None:
    if given is None:
        return None
    keys = Keys(given, "side_by_side")
    suites = keys.take("suites", dict)
    for name, called in suites.items():
        if not isinstance(name, str) or not isinstance(called, str):
            raise OptionError(
                f"side_by_side: suites has {shown(name)}: {shown(called)}, expected the name of a "
                "suite and what to call it, as texts."
            )
    if len(suites) < 2:
        raise OptionError("side_by_side: suites has fewer than two. Add one, or leave it out.")
    columns = [called.strip() for called in suites.values()]
    if not all(columns) or len(set(columns)) < len(columns):
        raise OptionError(
            f"side_by_side: suites calls them {shown(columns)}, expected a name each, no two alike."
        )
    made = SideBySide(
        title=keys.take("title", str, "").strip() or "Side by side",
        about=keys.take("about", str, "").strip(),
        suites=suites,
    )
    keys.done()
    return made


def _pair(pair: Any) -> tuple[str, str]:
    if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(n, str) for n in pair):
        raise OptionError(f"also_compare has {shown(pair)}, expected pairs of names, [A, B].")
    return pair[0], pair[1]


def _check(suite: Suite, common: Run) -> None:
    if suite.task == "mask":
        raise OptionError(
            "task is 'mask', whose predictions a suite can't score. Choose ner, classify, pair or "
            "rank, or train it by itself with kbert train --task mask."
        )
    names = [row.name for row in suite.rows]
    slugs = [slug(name) for name in names]
    for name, short in zip(names, slugs, strict=True):
        if not short or slugs.count(short) > 1:
            raise OptionError(
                f"the name '{name}' {'has no letter' if not short else 'is there twice'} "
                "(names are told apart by their letters and digits). Change it."
            )
    if suite.task != "ner" and any(isinstance(row, Baseline) for row in suite.rows):
        raise OptionError(
            f"baselines are for named entities, and the task is '{suite.task}'. Leave them out."
        )
    wanted = [(f"compare_with of '{row.name}'", row.compare_with) for row in suite.rows]
    wanted += [
        (f"over of '{row.name}'", row.over) for row in suite.rows if isinstance(row, Baseline)
    ]
    wanted += [("also_compare", name) for pair in suite.also_compare for name in pair]
    for where, wanted_name in wanted:
        known = [run.name for run in suite.runs] if where.startswith("over") else names
        if wanted_name is not None and wanted_name not in known:
            raise OptionError(
                f"{where} names '{wanted_name}', and there is no such run. "
                f"There are: {', '.join(known)}."
            )
    for run in suite.runs:
        try:
            train_options(
                suite, run, seed=run.seeds[0], data="-", kg=(), output="-", check_only=True
            )
        except (KBertError, TypeError) as error:
            raise OptionError(f"run '{run.name}': {error}") from error


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
    hiding = run.hiding_kg if check_only else suite.resolved_all(run.hiding_kg)
    injection = run.injection
    if injection is not None and injection.scorer is not None and not check_only:
        injection = replace(injection, scorer=suite.resolved(injection.scorer))
    return TrainOptions.of(
        task=suite.task,
        data=data,
        output=output,
        encoder=run.encoder if check_only else suite.resolved(run.encoder),
        kg=run.kg if check_only else kg,
        hiding_kg=hiding,
        injection=injection,
        ablation=run.ablation,
        recipe=run.recipe,
        seed=seed,
        device=device,
        float32=True,
        **run.train,
    )
