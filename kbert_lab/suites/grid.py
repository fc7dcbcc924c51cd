"""The grid of a suite: its cells, what each depends on, and whether it is done.

A cell is one row at one seed. It is done when its result is there and was made
from what the suite, the data, the graphs and the encoder are now.
"""

import hashlib
import logging
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from kbert_core.errors import CheckpointError, DataError, ExperimentError, KBertError, SplitError
from kbert_core.knowledge import load_graph
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.io.sources import SERVER
from kbert_core.knowledge.io.write import write_triples
from kbert_core.knowledge.selection import InjectionOptions
from kbert_lab.data.hub import is_hub_name
from kbert_lab.data.labelled import SPLITS, Example
from kbert_lab.data.sources import (
    ENDINGS,
    OF_FORM,
    DataFiles,
    find_split,
    read_present,
    read_splits,
)
from kbert_lab.data.splits import (
    EntityDisjoint,
    deduplicated,
    entity_disjoint,
    substituted,
    write_split,
)
from kbert_lab.graphs.controls import shuffled, with_constant_tail
from kbert_lab.graphs.store.anywhere import open_store
from kbert_lab.study.dictionary import BOOSTS
from kbert_lab.study.gate import RECIPE
from kbert_lab.study.statistics import RESAMPLES
from kbert_lab.suites.results import (
    GROUPS,
    Cell,
    Records,
    State,
    Status,
    Tables,
    canonical,
    config_hash,
    differences,
    hash_of,
    without_defaults,
)
from kbert_lab.suites.suite import (
    AT_RANDOM,
    SET_ELSEWHERE,
    Baseline,
    Data,
    Run,
    Suite,
    slug,
    train_options,
)
from kbert_lab.training.options import SCRATCH

TOKENIZERS = ("tokenizer.json", "vocab.txt")
WEIGHTS = ("*.safetensors", "*.bin")
OTHER_INPUTS = SET_ELSEWHERE - GROUPS.keys()  # options that inputs have by another name, or not
Missing = dict[str, str]  # what can't be read here → why
log = logging.getLogger(__name__)


def tool(name: str) -> Any:
    """What one study of this repository needs, from ``results/tools``.

    Raises:
        ExperimentError: it isn't here: an installed package leaves it out.
    """
    try:
        return import_module(f"results.tools.{name}")
    except ModuleNotFoundError as error:
        raise ExperimentError(
            f"The suite needs results/tools/{name}.py, which stands in the repository of K-BERT "
            "Lab alone. Run it there, or leave known, right, reliable and senses out."
        ) from error


class Experiment:
    """A suite with its data, and the cells that are to be run.

    Args:
        suite: what is run.
        results: for one file a suite, all its runs in it; to be kept.
        work: splits, control graphs, checkpoints; may be deleted.
    """

    def __init__(
        self, suite: Suite, results: Path = Path("results"), work: Path = Path("runs/experiments")
    ) -> None:
        self.suite, self.work = suite, work / suite.name
        self.records = Records(results / f"{suite.name}.jsonl.xz")
        self._splits: dict[tuple[int, float | None], tuple[Path, str]] = {}
        self._controlled: dict[tuple[Any, ...], tuple[KnowledgeGraph, dict[str, Any]]] = {}
        self._hashes: dict[tuple[str | Path, ...], str] = {}
        self._missing: Missing = {}  # for all cells of the suite, so that none is looked for twice

    def cells(self, *, only: Sequence[str] = (), seeds: Sequence[int] = ()) -> tuple[Cell, ...]:
        """Every cell, seed by seed; a baseline after the run that it is written over.

        Args:
            only: names or file names of rows, with their condition or under all; none: all.
            seeds: none: all.

        Raises:
            DataError: there is no such row, or none of them has such a seed.
        """
        wanted = {slug(name) for name in only}
        called = {row.name: {slug(row.name), slug(row.called)} for row in self.suite.rows}
        if unknown := wanted - set().union(*called.values()):
            names = dict.fromkeys(f"'{row.called}'" for row in self.suite.rows)
            more = " `--list` shows them with their conditions." if self.suite.conditions else ""
            raise DataError(
                f"{self.suite.path}: no run '{min(unknown)}'. There are: {', '.join(names)}.{more}"
            )
        rows = [row for row in self.suite.rows if not wanted or called[row.name] & wanted]
        every = sorted({seed for row in rows for seed in row.seeds})
        if unknown_seeds := set(seeds).difference(every):
            raise DataError(
                f"{self.suite.path}: no run with the seed {min(unknown_seeds)}. "
                f"There are: {', '.join(map(str, every))}."
            )
        kept = [seed for seed in every if not seeds or seed in seeds]
        return tuple(Cell(row, seed) for seed in kept for row in rows if seed in row.seeds)

    def result(self, cell: Cell) -> dict[str, Any] | None:
        """What a cell gave, done or stale; None if it wasn't run."""
        return self.records.all().get(cell.key)

    def error_file(self, cell: Cell) -> Path:
        """Where a cell's last error stands."""
        return self.work / f"{cell.file_name}.error.txt"

    def cell_folder(self, cell: Cell) -> Path:
        """Where a cell works; another one when what it depends on changes."""
        digest = hashlib.sha256(canonical(self.inputs(cell)).encode()).hexdigest()
        return self.work / f"{cell.file_name}-{digest[:8]}"

    def status(self, cell: Cell) -> Status:
        """Whether a cell is done as far as can be read here, and if not, why."""
        result = self.result(cell)
        if result is None:
            error = self.error_file(cell)
            if error.is_file():
                return Status(cell, "failed", error.read_text("utf-8").splitlines()[0])
            return Status(cell, "left")
        missing: Missing = {}
        changed = differences(without_defaults(result["inputs"]), self.inputs(cell, missing))
        was = result.get("over_sha256")
        if was is not None and self.over_hash(cell) not in (was, None):
            changed.append("the run under it has another result")
        state: State = "stale" if changed else "done"
        return Status(cell, state, "; ".join(changed), result["seconds"], missing)

    def over_hash(self, cell: Cell) -> str | None:
        """Hash of what the run under a baseline got in every sentence; None if there is none."""
        row = cell.row
        if not isinstance(row, Baseline) or row.over is None:
            return None
        result = self.result(Cell(self.suite.row(row.over), cell.seed))
        if result is None:
            return None
        return hashlib.sha256(canonical(result["sentences"]).encode()).hexdigest()

    def tables(self, *, resamples: int = RESAMPLES) -> Tables:
        """Read the results, as far as they and what they were made from are there.

        Raises:
            ExperimentError: results of different encoders or data would be mixed.
        """
        results: dict[str, dict[int, Any]] = {}
        outdated: list[Status] = []
        unchecked: Missing = {}
        for cell in self.cells():
            status = self.status(cell)
            unchecked |= status.unchecked
            if status.state == "stale":
                outdated.append(status)
            elif status.state == "done":
                results.setdefault(cell.row.name, {})[cell.seed] = self.result(cell)
        for what, why in unchecked.items():
            log.warning("%s: not checked: %s (%s)", self.suite.name, what, why)
        tables = Tables(self.suite, results, outdated, unchecked, resamples)
        tables.check_same()
        return tables

    def inputs(self, cell: Cell, missing: Missing | None = None) -> dict[str, Any]:
        """All that determines a cell's result, with hashes instead of contents.

        Args:
            missing: takes what can't be read here, whose hash is then None;
                without it that is an error.

        Raises:
            KBertError: the data, a graph or the encoder can't be read.
        """
        suite, row = self.suite, cell.row

        def hashed(what: str, read: Callable[..., str], *arguments: Any) -> str | None:
            if missing is None:
                return read(*arguments)
            if what not in self._missing:
                try:
                    return read(*arguments)
                except KBertError as error:
                    self._missing[what] = str(error)
            missing[what] = self._missing[what]
            return None

        def graphs(paths: Sequence[str]) -> list[dict[str, str | None]]:
            read = self._graph_hash
            return [{"file": p, "sha256": hashed(f"the graph {p}", read, p)} for p in paths]

        def encoder(what: str, name: str) -> dict[str, str | None]:
            return {"name": name, "sha256": hashed(f"the {what} {name}", self._weights, name)}

        data = {k: v for k, v in asdict(suite.data).items() if v}
        if row.unseen is not None:
            data["unseen"] = row.unseen
        data["sha256"] = hashed("the data", lambda: self.split(cell.seed, row.unseen)[1])
        inputs: dict[str, Any] = {
            "task": suite.task,
            "covered_by": graphs(suite.covered_by),
            "seed": cell.seed,
            "data": data,
            "kg": graphs(row.kg),
            **{n: v for n in ("known", "right") if (v := getattr(row, n)) is not None},
        }
        if isinstance(row, Run):
            options = train_options(suite, row)
            inputs |= {
                "kind": "run",
                "knowledge": row.knowledge,
                "hiding_kg": graphs(row.hiding_kg),
                "encoder": encoder("encoder", row.encoder),
                "options": {n: v for n, v in options.flat().items() if n not in OTHER_INPUTS},
                **({"retrained": True} if row.retrained else {}),
            }
            injection = options.knowledge.injection
            if injection is not None and injection.scorer is not None:
                inputs["scorer"] = encoder("scorer", injection.scorer)
            return without_defaults(inputs)
        inputs["kind"] = "dictionary"
        if row.over is not None:
            inputs["over"] = self.inputs(Cell(suite.row(row.over), cell.seed), missing)
        if row.guided:
            inputs["guided"] = BOOSTS
        if row.judge is not None:
            inputs["judge"] = RECIPE if row.judge == "gate" else row.judge
        if row.senses is not None:
            inputs["senses"] = row.senses
        if row.senses == "centroid":
            inputs["encoder"] = encoder("encoder", suite.encoder)
        return without_defaults(inputs)

    def _graph_hash(self, path: str) -> str:
        """Of a graph's file by its content; of one on a server by its identity and revision."""
        path = self.suite.resolved(path)
        if not path.startswith(SERVER):
            return self._hash(Path(path))
        with open_store(path) as store:
            mark = f"{hash_of([])} {store.identity} {store.revision}"
        return hashlib.sha256(mark.encode()).hexdigest()

    def _hash(self, *paths: Path) -> str:
        if paths not in self._hashes:
            self._hashes[paths] = hash_of(paths)
        return self._hashes[paths]

    def _weights(self, name: str) -> str:
        """Hash of an encoder's weights, size and vocabulary; of a hub's the name alone."""
        folder = Path(SCRATCH if name == SCRATCH else self.suite.resolved(name))
        if not folder.is_dir():
            if folder.is_absolute() or (len(folder.parts) > 1 and folder.parent.is_dir()):
                raise CheckpointError(f"{folder}: no such folder. Name that of an encoder.")
            return ""
        weights = sorted(file for pattern in WEIGHTS for file in folder.glob(pattern))
        files = [folder / file for file in TOKENIZERS if (folder / file).is_file()]
        return self._hash(*weights, *files) + config_hash(folder)

    # Graphs

    def graph(self, row: Run | Baseline, seed: int) -> tuple[KnowledgeGraph, dict[str, Any]]:
        """A row's graph, or the control made of it, and what its result says of it."""
        files = self.suite.resolved_all(row.kg)
        kept = files, row.unseen, row.known, row.right, seed
        if kept not in self._controlled:
            graph, about = load_graph(*files), {}
            if (row.known, row.right) != (None, None):
                controlled = tool("graph_controls").controlled
                splits = read_present(str(self.split(seed, row.unseen)[0]), self.suite.task)
                try:
                    made = controlled(graph, splits, known=row.known, right=row.right, seed=seed)
                    graph, about = made.graph, {"control": made.about}
                except DataError as error:
                    where = f"{row.name}: {', '.join(files)} for {self._data}"
                    raise DataError(f"{where}: {error}") from error
            self._controlled = {kept: (graph, about)}  # rows of one condition stand together
        graph, about = self._controlled[kept]
        if not isinstance(row, Run):
            return graph, about
        knowledge, injection = row.knowledge, row.injection or InjectionOptions()
        empty = not len(graph)
        if knowledge == "constant":
            graph = with_constant_tail(graph, injection)
        elif knowledge == "reliable":
            data = read_present(str(self.split(seed, row.unseen)[0]), self.suite.task)
            graph = tool("graph_controls").with_reliability(graph, data["train"])
        elif knowledge in ("shuffled", "permuted"):
            mixed = shuffled(graph, seed=seed, deranged=knowledge == "shuffled")
            graph, about = mixed.graph, {**about, "shuffled_unchanged": mixed.unchanged}
        used = (injection.allows(triple.relation) for triple in graph.active_triples())
        if not empty and not any(used):
            raise ExperimentError(
                f"{row.name}: its graph ({knowledge}) has no relation that injection uses. Leave "
                "relations out of injection, or choose another knowledge."
            )
        return graph, about

    def graph_files(self, run: Run, seed: int) -> tuple[tuple[str, ...], dict[str, Any]]:
        """The files of a run's graph, see :meth:`graph`; a control is written to one."""
        files = self.suite.resolved_all(run.kg)
        if run.knowledge in ("none", "graph") and (run.known, run.right) == (None, None):
            return files, {}
        graph, about = self.graph(run, seed)
        path = self.cell_folder(Cell(run, seed)).with_suffix(".spo")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_triples(graph, path)
        return (str(path),), about

    @cached_property
    def covering(self) -> KnowledgeGraph:
        """The graph that tells covered from uncovered mentions."""
        return load_graph(*self.suite.resolved_all(self.suite.covered_by))

    # Data

    def split(self, seed: int, unseen: float | None = None) -> tuple[Path, str]:
        """The folder of a seed's split, drawn if need be, and the hash of its files.

        Args:
            unseen: a row's own share of new names.

        Raises:
            SplitError: there is no test set.
            DataError: the data can't be read.
        """
        if (seed, unseen) not in self._splits:
            data, place, task = self.suite.data, Path(self._data), self.suite.task
            if data == Data(folder=data.folder) and place.is_dir():  # read where it stands
                endings, _ = OF_FORM.get(task, (ENDINGS, None))
                files = [find_split(place, split, endings) for split in SPLITS]
                self._splits[seed, unseen] = place, hash_of(files)
            else:
                splits = self._drawn(seed, unseen)
                if "test" not in splits:
                    raise SplitError(
                        f"{self._data}: no test set, and a suite scores every run on one. Name a "
                        "folder with a test.tsv, or the files in it, as in data: files: "
                        "{train: NAME, dev: NAME, test: NAME}."
                    )
                self._splits[seed, unseen] = self._written(splits, f"split-seed{seed}")
        return self._splits[seed, unseen]

    @property
    def _data(self) -> str:
        """The data's folder on this machine, or hub name."""
        folder = self.suite.data.folder
        return folder if is_hub_name(folder) else self.suite.resolved(folder)

    @property
    def _files(self) -> dict[str, str]:
        """The files of the splits, where the suite names them."""
        return {
            split: str(Path(self._data) / name) for split, name in self.suite.data.files.items()
        }

    def _drawn(self, seed: int, unseen: float | None) -> dict[str, list[Example]]:
        data, named = self.suite.data, self._files
        known = data.among != AT_RANDOM
        graph = load_graph(self.suite.resolved(data.among)) if known else None
        if data.split == "entity-disjoint":
            shares = {"test_share": data.test_share, "dev_share": data.dev_share}
            options = EntityDisjoint(seed, **{n: s for n, s in shares.items() if s is not None})
            return entity_disjoint(self._all_examples, options, graph=graph)
        files = DataFiles(
            "" if named else self._data,
            **named,
            dev_share=data.dev_share or 0.0,
            columns=data.columns,
            also_train=self.suite.resolved_all(data.also_train),
        )
        splits = read_splits(files, self.suite.task, seed=seed)
        if data.split == "substitution":
            share = data.unseen if unseen is None else unseen
            try:
                return substituted(splits, share or 0.0, seed=seed, graph=graph)
            except DataError as error:
                raise DataError(f"{self._data}, unseen: {share or 0:g}: {error}") from error
        return deduplicated(splits) if data.split == "deduplicated" else splits

    @cached_property
    def _all_examples(self) -> list[Example]:
        """The examples of all splits that there are."""
        data, named = self.suite.data, self._files
        name = named.get("train", self._data)
        splits = read_present(name, self.suite.task, data.columns, others=named)
        return [example for split in SPLITS if split in splits for example in splits[split]]

    def _written(self, splits: Mapping[str, Sequence[Example]], name: str) -> tuple[Path, str]:
        """Write a split into a folder named by its content."""
        temporary = self.work / f"{name}.{os.getpid()}"
        shutil.rmtree(temporary, ignore_errors=True)
        write_split(temporary, splits)
        digest = hash_of([temporary / f"{split}.tsv" for split in SPLITS if split in splits])
        folder = self.work / f"{name}-{digest[:8]}"
        if folder.is_dir():
            shutil.rmtree(temporary)
        else:
            temporary.rename(folder)
        return folder, digest
