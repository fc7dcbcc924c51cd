"""The grid of a suite: its cells, what each depends on, and whether it is done.

A cell is one row at one seed. It is done when its JSON is there and was made
from what the suite, the data, the graphs and the encoder are now. What a
result depends on is kept in it as ``inputs``, so that a stale one can say
what has changed.
"""

import hashlib
import logging
import os
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

from kbert_core.data.hub import is_hub_name
from kbert_core.data.labelled import SPLITS, Example, read_examples
from kbert_core.data.sources import DataFiles, find_split, read_split, read_splits
from kbert_core.data.splits import EntityDisjoint, deduplicated, entity_disjoint, write_split
from kbert_core.errors import CheckpointError, DataError, KBertError, SplitError
from kbert_core.experiments.dictionary import BOOSTS
from kbert_core.experiments.keys import AT_RANDOM, SET_ELSEWHERE, Baseline, Data, Run
from kbert_core.experiments.results import (
    GROUPS,
    Cell,
    Places,
    canonical,
    config_hash,
    default_of,
    differences,
    hash_of,
    plain_inputs,
    read_json,
    result_file,
    without_defaults,
)
from kbert_core.experiments.suite import Suite, slug, train_options
from kbert_core.kbert.visible import FULL
from kbert_core.knowledge import load_graph
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.io.write import write_triples
from kbert_core.knowledge.tools.controls import shuffled
from kbert_core.options import option_fields
from kbert_core.scoring.learned import CARD_FILE, WEIGHTS_FILE
from kbert_core.training.options import SCRATCH, TrainOptions

State = Literal["done", "stale", "left", "failed"]
TOKENIZERS = ("tokenizer.json", "vocab.txt")
WEIGHTS = ("*.safetensors", "*.bin")
Missing = dict[str, str]  # what can't be read here → why
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Status:
    """How a cell stands.

    Attributes:
        state: "done", "stale", "left" or "failed".
        reason: what has changed, or the error.
        seconds: that it took, if it was ever done.
        unchecked: what it depends on that can't be read here, and why.
    """

    cell: Cell
    state: State
    reason: str = ""
    seconds: float | None = None
    unchecked: Mapping[str, str] = field(default_factory=dict)


class Experiment:
    """A suite with its data, and the cells that are to be run.

    Args:
        suite: what is run.
        places: where results and work are kept.
    """

    def __init__(self, suite: Suite, places: Places = Places()) -> None:
        self.suite, self.places = suite, places
        self._splits: dict[int, tuple[Path, str]] = {}
        self._hashes: dict[str, str] = {}
        self._missing: Missing = {}  # for all cells of the suite, so that none is looked for twice

    @property
    def work(self) -> Path:
        """The suite's own work folder."""
        return self.places.work / self.suite.name

    def cells(self, *, only: Sequence[str] = (), seeds: Sequence[int] = ()) -> tuple[Cell, ...]:
        """Every cell, seed by seed; a baseline after the run that it is written over.

        Args:
            only: names or file names of rows; none: all.
            seeds: none: all.

        Raises:
            DataError: there is no such row, or none of them has such a seed.
        """
        wanted = {slug(name) for name in only}
        unknown = wanted - {slug(row.name) for row in self.suite.rows}
        if unknown:
            names = ", ".join(f"'{row.name}'" for row in self.suite.rows)
            raise DataError(f"{self.suite.path}: no run '{min(unknown)}'. There are: {names}.")
        rows = [row for row in self.suite.rows if not wanted or slug(row.name) in wanted]
        every = sorted({seed for row in rows for seed in row.seeds})
        unknown_seeds = set(seeds).difference(every)
        if unknown_seeds:
            raise DataError(
                f"{self.suite.path}: no run with the seed {min(unknown_seeds)}. "
                f"There are: {', '.join(map(str, every))}."
            )
        return tuple(
            Cell(row, seed)
            for seed in every
            for row in rows
            if seed in row.seeds and (not seeds or seed in seeds)
        )

    def file(self, cell: Cell) -> Path:
        """The cell's JSON."""
        return result_file(self.places, self.suite, cell)

    def status(self, cell: Cell, *, with_what_is_there: bool = False) -> Status:
        """Whether a cell is done, and if not, why.

        Args:
            with_what_is_there: compare what can be read here, and say what
                can't be, instead of failing.

        Raises:
            KBertError: the data, a graph or the encoder can't be read.
        """
        found = read_json(self.file(cell))
        if found is None:
            error = self.error_file(cell)
            if error.is_file():
                return Status(cell, "failed", error.read_text("utf-8").splitlines()[0])
            return Status(cell, "left")
        missing: Missing | None = {} if with_what_is_there else None
        changed = differences(without_defaults(found["inputs"]), self.inputs(cell, missing))
        state: State = "stale" if changed else "done"
        return Status(cell, state, "; ".join(changed), found["seconds"], missing or {})

    def inputs(self, cell: Cell, missing: Missing | None = None) -> dict[str, Any]:
        """All that determines a cell's result, with hashes instead of contents.

        Options that have their default value are left out, so that one which
        is new doesn't make old results stale.

        Args:
            missing: takes what can't be read here, whose hash is then None;
                without it that is an error.

        Raises:
            KBertError: the data, a graph or the encoder can't be read.
        """
        suite, row = self.suite, cell.row
        data = {k: v for k, v in suite.data.model_dump().items() if v}
        of_data = self._or_missing("the data", lambda: self.split(cell.seed)[1], missing)
        covered_by = self._files(suite.covered_by, missing)
        common: dict[str, Any] = {"task": suite.task, "covered_by": covered_by, "seed": cell.seed}
        common["data"] = {**data, "sha256": of_data}
        if isinstance(row, Baseline):
            made = {**common, "kind": "dictionary", "kg": self._files(row.kg, missing)}
            if row.over is not None:
                over = suite.row(row.over)
                assert isinstance(over, Run)
                made["over"] = self.inputs(Cell(over, cell.seed), missing)
            if row.guided:
                made["guided"] = list(BOOSTS)
            return plain_inputs(made)
        options = train_options(suite, row, seed=0, data="-", kg=(), output="-", check_only=True)
        own = SET_ELSEWHERE - GROUPS.keys()
        usual = {name: default_of(of) for name, of in option_fields(TrainOptions).items()}
        usual["ablation"] = FULL  # of a suite's runs
        changed = {
            name: value
            for name, value in options.flat().items()
            if name not in own and value != usual[name]
        }
        changed = {
            k: asdict(v) if hasattr(v, "__dataclass_fields__") else v for k, v in changed.items()
        }
        encoder = self._or_missing(
            f"the encoder {row.encoder}",
            lambda: self._encoder(row.encoder, must_be_there=missing is not None),
            missing,
        )
        made = {
            **common,
            "kind": "run",
            "knowledge": row.knowledge,
            "kg": self._files(row.kg, missing),
            "hiding_kg": self._files(row.hiding_kg, missing),
            "encoder": {"name": row.encoder, "sha256": encoder},
            "options": changed,
        }
        injection = options.knowledge.injection
        scorer = injection.scorer if injection is not None else None
        if scorer is not None:
            content = self._or_missing(
                f"the scorer {scorer}", partial(self._scorer, scorer), missing
            )
            made["scorer"] = {"name": scorer, "sha256": content}
        return without_defaults(plain_inputs(made))

    def _or_missing(
        self, what: str, read: Callable[[], str], missing: Missing | None
    ) -> str | None:
        """What is read; where it can't be, None if ``missing`` takes the reason."""
        if missing is None:
            return read()
        if what not in self._missing:
            try:
                return read()
            except KBertError as error:
                self._missing[what] = str(error)
        missing[what] = self._missing[what]
        return None

    # Making what a cell needs

    def split(self, seed: int) -> tuple[Path, str]:
        """The folder of a seed's split, drawn if need be, and the hash of its files.

        Raises:
            SplitError: there is no test set.
            DataError: the data can't be read.
        """
        if seed not in self._splits:
            if self._as_it_is:
                folder = Path(self._data)
                files = _split_files(folder)
                self._need_test([split_of(file) for file in files])
                self._splits[seed] = folder, hash_of(files)
            else:
                drawn = self._drawn(seed)
                self._need_test(drawn)
                self._splits[seed] = self._written(drawn, f"split-seed{seed}")
        return self._splits[seed]

    def _need_test(self, splits: Collection[str]) -> None:
        if "test" not in splits:
            raise SplitError(
                f"{self._data}: no test set, and a suite scores every run on one. Name a folder "
                "with a test.tsv, or the files in it, as in data: files: "
                "{train: NAME, dev: NAME, test: NAME}."
            )

    @property
    def _data(self) -> str:
        """The data's folder on this machine, or hub name."""
        folder = self.suite.data.folder
        return folder if is_hub_name(folder) else self.suite.resolved(folder)

    @property
    def _as_it_is(self) -> bool:
        """Whether the data can be trained on where they are."""
        folder = self.suite.data.folder
        return self.suite.data == Data(folder=folder) and Path(self._data).is_dir()

    def _drawn(self, seed: int) -> dict[str, list[Example]]:
        data = self.suite.data
        if data.split == "entity-disjoint":
            shares = {"test_share": data.test_share, "dev_share": data.dev_share}
            options = EntityDisjoint(seed, **{n: s for n, s in shares.items() if s is not None})
            graph = None
            if data.among != AT_RANDOM:
                graph = load_graph(self.suite.resolved(data.among))
            return entity_disjoint(self._all_examples, options, graph=graph)
        files_of = {str(split): name for split, name in data.files.items()}
        of_split = {split: str(Path(self._data) / name) for split, name in files_of.items()}
        files = DataFiles(
            "" if data.files else self._data,
            of_split.get("train"),
            of_split.get("dev"),
            of_split.get("test"),
            dev_share=data.dev_share or 0.0,
            columns=data.columns,
            also_train=self.suite.resolved_all(data.also_train),
        )
        splits = read_splits(files, self.suite.task, seed=seed)
        return deduplicated(splits) if data.split == "deduplicated" else splits

    @cached_property
    def _all_examples(self) -> list[Example]:
        """Those of all splits that there are."""
        data, found = self.suite.data, []
        files = {str(split): name for split, name in data.files.items()}
        for split in SPLITS:
            name = str(Path(self._data) / files[split]) if split in files else self._data
            if split not in files and files:
                continue
            try:
                found += read_split(name, split, self.suite.task, data.columns)
            except SplitError as error:
                if split == "train":
                    raise
                log.warning("%s", error)
        return found

    def _written(self, splits: Mapping[str, Sequence[Example]], name: str) -> tuple[Path, str]:
        """Write a split into a folder named by its content."""
        temporary = self.work / f"{name}.{os.getpid()}"
        shutil.rmtree(temporary, ignore_errors=True)
        write_split(temporary, splits)
        digest = hash_of(_split_files(temporary))
        folder = self.work / f"{name}-{digest[:8]}"
        if folder.is_dir():
            shutil.rmtree(temporary)
        else:
            temporary.rename(folder)
        return folder, digest

    def graph_files(self, run: Run, seed: int) -> tuple[tuple[str, ...], float | None]:
        """The files of a run's graph; of a shuffled one the file it is written to.

        Returns:
            The files, and for a shuffled graph the share of triples unchanged.
        """
        files = self.suite.resolved_all(run.kg)
        if run.knowledge != "shuffled":
            return files, None
        made = shuffled(load_graph(*files), seed=seed)
        path = self.work / f"shuffled-{self._hash(files)[:8]}-seed{seed}.spo"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_triples(made.graph, path)
        return (str(path),), made.unchanged

    @cached_property
    def covering(self) -> KnowledgeGraph:
        """The graph that tells covered from uncovered mentions."""
        return load_graph(*self.suite.resolved_all(self.suite.covered_by))

    def _files(self, paths: Sequence[str], missing: Missing | None) -> list[dict[str, str | None]]:
        def hash_of(path: str) -> str:
            return self._hash((self.suite.resolved(path),))

        return [
            {"file": p, "sha256": self._or_missing(f"the graph {p}", partial(hash_of, p), missing)}
            for p in paths
        ]

    def _hash(self, paths: Sequence[str]) -> str:
        key = "\n".join(paths)
        if key not in self._hashes:
            self._hashes[key] = hash_of([Path(path) for path in paths])
        return self._hashes[key]

    def _encoder(self, name: str, *, must_be_there: bool = False) -> str:
        """Hash of an encoder's weights, size and vocabulary; of a hub's the name alone."""
        folder = Path(self.suite.resolved(name)) if name != SCRATCH else Path(SCRATCH)
        if not folder.is_dir():
            of_a_folder = folder.is_absolute() or (
                folder.parent != Path() and folder.parent.is_dir()
            )
            if must_be_there and of_a_folder:
                raise CheckpointError(f"{folder}: no such folder. Name that of an encoder.")
            return ""
        weights = sorted(file for pattern in WEIGHTS for file in folder.glob(pattern))
        files = [folder / file for file in TOKENIZERS if (folder / file).is_file()]
        return self._hash([str(file) for file in (*weights, *files)]) + config_hash(folder)

    def _scorer(self, name: str) -> str:
        """Hash of what scores triples: a trained scorer, or an encoder."""
        folder = Path(self.suite.resolved(name))
        if not (folder / CARD_FILE).is_file():
            return self._encoder(name)
        return self._hash([str(folder / file) for file in (CARD_FILE, WEIGHTS_FILE)])

    def cell_folder(self, cell: Cell) -> Path:
        """Where a cell works; another one when what it depends on changes."""
        digest = hashlib.sha256(canonical(self.inputs(cell)).encode()).hexdigest()
        return self.work / f"{slug(cell.row.name)}-seed{cell.seed}-{digest[:8]}"

    def error_file(self, cell: Cell) -> Path:
        """Where a cell's last error stands."""
        return self.work / f"{slug(cell.row.name)}-seed{cell.seed}.error.txt"


def read_folder(folder: Path, task: str) -> dict[str, list[Example]]:
    """Train, dev and, where there is one, test of a folder."""
    return {split_of(file): read_examples(file, task) for file in _split_files(folder)}


def split_of(file: Path) -> str:
    """The split that a file's name says it is."""
    return file.name.partition(".")[0]


def _split_files(folder: Path) -> list[Path]:
    """Train, dev and, where there is one, test."""
    files = [find_split(folder, "train"), find_split(folder, "dev")]
    with suppress(SplitError):
        files.append(find_split(folder, "test"))
    return files
