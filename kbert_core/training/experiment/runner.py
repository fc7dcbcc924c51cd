"""Runs the cells of a suite, one (row, seed) at a time, and skips what is done.

A cell is done when its JSON is there and was made from what the suite, the
data, the graphs and the encoder are now; else it is stale, failed or left.
What a result depends on is kept in it as ``inputs``, so that a stale one can
say what has changed.
"""

import hashlib
import json
import logging
import os
import platform
import shlex
import shutil
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import connection, get_context
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Literal

import torch
from filelock import FileLock, Timeout
from transformers.utils import logging as transformers_logging

from kbert_core.errors import DataError, KBertError
from kbert_core.knowledge.files import write_triples
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.shuffled import shuffled
from kbert_core.training.datasets import SPLITS, Example, find_split, read_examples
from kbert_core.training.dictionary import dictionary_spans, learn_tail_labels, written_over
from kbert_core.training.evaluate import surface_forms
from kbert_core.training.experiment.results import FORMAT, read_json, result_file, write_json
from kbert_core.training.experiment.scoring import packed, score_run, score_spans
from kbert_core.training.experiment.suite import (
    AT_RANDOM,
    Baseline,
    Run,
    Suite,
    read_suite,
    slug,
    train_options,
)
from kbert_core.training.finetune import SCRATCH, Fitted, TrainOptions, fit, save
from kbert_core.training.splits import EntityDisjoint, deduplicated, entity_disjoint, write_split

State = Literal["done", "stale", "left", "failed"]
ENCODER_FILES = ("config.json", "tokenizer.json", "vocab.txt")
MAIN_SCORES = ("f1", "mrr", "accuracy")  # the first that a task has
WEIGHTS = ("*.safetensors", "*.bin")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Places:
    """Where things are kept.

    Attributes:
        results: one folder a suite, one JSON a run; to be kept.
        work: splits, shuffled graphs, checkpoints; may be deleted.
    """

    results: Path = Path("results")
    work: Path = Path("runs/experiments")


@dataclass(frozen=True)
class Cell:
    """One row at one seed."""

    row: Run | Baseline
    seed: int

    def __str__(self) -> str:
        return f"{self.row.name}, seed {self.seed}"


@dataclass(frozen=True)
class Status:
    """How a cell stands.

    Attributes:
        state: "done", "stale", "left" or "failed".
        reason: what has changed, or the error.
        seconds: that it took, if it was ever done.
    """

    cell: Cell
    state: State
    reason: str = ""
    seconds: float | None = None


@dataclass(frozen=True)
class How:
    """How cells are run, apart from what they are.

    Attributes:
        device: "auto", "cpu", "cuda" or "cuda:N".
        jobs: processes at a time, each on one thread where there are several.
        keep_models: keep the trained models in the work folder.
    """

    device: str = "auto"
    jobs: int = 1
    keep_models: bool = False


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
            DataError: there is no such row.
        """
        wanted = {slug(name) for name in only}
        unknown = wanted - {slug(row.name) for row in self.suite.rows}
        if unknown:
            names = ", ".join(f"'{row.name}'" for row in self.suite.rows)
            raise DataError(f"{self.suite.path}: no run '{min(unknown)}'. There are: {names}.")
        every = sorted({seed for row in self.suite.rows for seed in row.seeds})
        return tuple(
            Cell(row, seed)
            for seed in every
            for row in self.suite.rows
            if seed in row.seeds
            and (not seeds or seed in seeds)
            and (not wanted or slug(row.name) in wanted)
        )

    def file(self, cell: Cell) -> Path:
        """The cell's JSON."""
        return result_file(self.places.results, self.suite, cell.row.name, cell.seed)

    def status(self, cell: Cell) -> Status:
        """Whether a cell is done, and if not, why.

        Raises:
            KBertError: the data, a graph or the encoder can't be read.
        """
        found = read_json(self.file(cell))
        if found is None:
            error = self._error_file(cell)
            if error.is_file():
                return Status(cell, "failed", error.read_text("utf-8").splitlines()[0])
            return Status(cell, "left")
        changed = _differences(found["inputs"], self.inputs(cell))
        state: State = "stale" if changed else "done"
        return Status(cell, state, "; ".join(changed), found["seconds"])

    def inputs(self, cell: Cell) -> dict[str, Any]:
        """All that determines a cell's result, with hashes instead of contents."""
        suite, row = self.suite, cell.row
        data = {k: v for k, v in asdict(suite.data).items() if v is not None}
        common = {
            "task": suite.task,
            "data": {**data, "sha256": self.split(cell.seed)[1]},
            "covered_by": self._files(suite.covered_by),
            "seed": cell.seed,
        }
        if isinstance(row, Baseline):
            made = {**common, "kind": "dictionary", "kg": self._files(row.kg)}
            if row.over is not None:
                over = suite.row(row.over)
                assert isinstance(over, Run)
                made["over"] = self.inputs(Cell(over, cell.seed))
            return _plain(made)
        options = train_options(suite, row, seed=0, data="", kg=(), output="", check_only=True)
        own = ("task", "data", "output", "encoder", "kg", "hiding_kg", "seed", "device", "half")
        changed = {
            f.name: getattr(options, f.name)
            for f in fields(TrainOptions)
            if f.name not in own and f.name != "command"
            if getattr(options, f.name) != _default(f)
        }
        changed = {
            k: asdict(v) if hasattr(v, "__dataclass_fields__") else v for k, v in changed.items()
        }
        return _plain(
            {
                **common,
                "kind": "run",
                "knowledge": row.knowledge,
                "kg": self._files(row.kg),
                "hiding_kg": self._files(row.hiding_kg),
                "encoder": {"name": row.encoder, "sha256": self._encoder(row.encoder)},
                "options": changed,
            }
        )

    # Making what a cell needs

    def split(self, seed: int) -> tuple[Path, str]:
        """The folder of a seed's split, drawn if need be, and the hash of its files."""
        if seed in self._splits:
            return self._splits[seed]
        data = self.suite.data
        folder = Path(self.suite.resolved(data.folder))
        if data.split == "official":
            self._splits[seed] = folder, _hash_of(_split_files(folder))
            return self._splits[seed]
        if data.split == "deduplicated" and self._splits:
            self._splits[seed] = next(iter(self._splits.values()))
            return self._splits[seed]
        found = {
            file.name.split(".")[0]: read_examples(file, self.suite.task)
            for file in _split_files(folder)
        }
        if data.split == "deduplicated":
            made = deduplicated(found)
        else:
            shares = {n: getattr(data, n) for n in ("test_share", "dev_share")}
            options = EntityDisjoint(seed, **{n: s for n, s in shares.items() if s is not None})
            graph = None
            if data.among != AT_RANDOM:
                graph = KnowledgeGraph.from_files(self.suite.resolved(data.among))
            examples = [e for split in SPLITS for e in found.get(split, ())]
            made = entity_disjoint(examples, options, graph=graph)
        self._splits[seed] = self._written(made, f"split-seed{seed}")
        return self._splits[seed]

    def _written(self, splits: Mapping[str, Sequence[Example]], name: str) -> tuple[Path, str]:
        """Write a split into a folder named by its content."""
        temporary = self.work / f"{name}.{os.getpid()}"
        shutil.rmtree(temporary, ignore_errors=True)
        write_split(temporary, splits)
        digest = _hash_of(_split_files(temporary))
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
        made = shuffled(KnowledgeGraph.from_files(*files), seed=seed)
        path = self.work / f"shuffled-{self._hash(files)[:8]}-seed{seed}.spo"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_triples(made.graph, path)
        return (str(path),), made.unchanged

    @cached_property
    def covering(self) -> KnowledgeGraph:
        """The graph that tells covered from uncovered mentions."""
        return KnowledgeGraph.from_files(*self.suite.resolved_all(self.suite.covered_by))

    def _files(self, paths: Sequence[str]) -> list[dict[str, str]]:
        return [{"file": p, "sha256": self._hash((self.suite.resolved(p),))} for p in paths]

    def _hash(self, paths: Sequence[str]) -> str:
        key = "\n".join(paths)
        if key not in self._hashes:
            self._hashes[key] = _hash_of([Path(path) for path in paths])
        return self._hashes[key]

    def _encoder(self, name: str) -> str:
        """Hash of an encoder's weights, size and vocabulary; of a hub's the name alone."""
        folder = Path(self.suite.resolved(name)) if name != SCRATCH else Path(SCRATCH)
        if not folder.is_dir():
            return ""
        weights = sorted(file for pattern in WEIGHTS for file in folder.glob(pattern))
        files = [folder / file for file in ENCODER_FILES if (folder / file).is_file()]
        return self._hash([str(file) for file in (*weights, *files)])

    # Running a cell

    def cell_folder(self, cell: Cell) -> Path:
        """Where a cell works; another one when what it depends on changes."""
        digest = hashlib.sha256(_canonical(self.inputs(cell)).encode()).hexdigest()
        return self.work / f"{slug(cell.row.name)}-seed{cell.seed}-{digest[:8]}"

    def run(self, cell: Cell, how: How = How()) -> dict[str, Any]:
        """Run one cell, or go on with it, and write its JSON.

        Raises:
            KBertError: it can't be run.
        """
        inputs = self.inputs(cell)
        if isinstance(cell.row, Baseline):
            began = time.monotonic()
            made, seconds = self._dictionary(cell.row, cell.seed), time.monotonic() - began
        else:
            made, seconds = self._trained(cell.row, cell.seed, how)
        sentences = made.pop("sentences", None)
        result = {
            "format": FORMAT,
            "suite": self.suite.name,
            "row": cell.row.name,
            "seed": cell.seed,
            "inputs": inputs,
            "command": self._command(cell),
            "versions": versions(),
            "seconds": round(seconds, 1),
            **made,
        }
        if sentences is not None:
            result["sentences"] = packed(sentences)
        write_json(self.file(cell), result)
        self._error_file(cell).unlink(missing_ok=True)
        if not isinstance(cell.row, Baseline) and not how.keep_models:
            for name in ("checkpoints", "seconds.json"):
                _remove(self.cell_folder(cell) / name)
        return result

    def _trained(self, run: Run, seed: int, how: How) -> tuple[dict[str, Any], float]:
        folder = self.cell_folder(Cell(run, seed))
        clock = _Clock(folder / "seconds.json")
        kg, unchanged = self.graph_files(run, seed)
        data = str(self.split(seed)[0])
        options = train_options(
            self.suite, run, seed=seed, data=data, kg=kg, output=str(folder), device=how.device
        )
        with clock:
            fitted = fit(options)
            scored, predictions = score_run(fitted, self.covering)
        write_json(folder / "predictions.json", {"format": FORMAT, "test": predictions})
        made = {**_about(fitted), **scored}
        if unchanged is not None:
            made["shuffled_unchanged"] = unchanged
        if how.keep_models:
            save(options, fitted, notes=_card_notes(self._command(Cell(run, seed)), options, made))
        return made, clock.seconds

    def _dictionary(self, row: Baseline, seed: int) -> dict[str, Any]:
        folder, _ = self.split(seed)
        splits = {
            file.name.split(".")[0]: read_examples(file, "ner") for file in _split_files(folder)
        }
        graph = KnowledgeGraph.from_files(*self.suite.resolved_all(row.kg))
        labels = learn_tail_labels(splits["train"], graph)
        found: Sequence[Any] = dictionary_spans(splits["test"], graph, labels)
        if row.over is not None:
            run = self.suite.row(row.over)
            assert isinstance(run, Run)
            kept = read_json(self.cell_folder(Cell(run, seed)) / "predictions.json")
            if kept is None:
                raise DataError(
                    f"'{row.name}' is written over the predictions of '{row.over}', seed {seed}, "
                    f"which aren't kept in {self.work} any more. Run that one again: "
                    f"--only {shlex.quote(row.over)} --seeds {seed} --again."
                )
            predicted = [[(a, b, label) for a, b, label in spans] for spans in kept["test"]]
            found = written_over(predicted, found)
        made = score_spans(splits["test"], found, surface_forms(splits["train"]), self.covering)
        return {**_sizes(splits), "tail_labels": len(labels), **made}

    def _command(self, cell: Cell) -> str:
        path = self.suite.path
        shown = path.name if path.is_absolute() else str(path)
        return (
            f"kbert experiment {shlex.quote(shown)} "
            f"--only {shlex.quote(cell.row.name)} --seeds {cell.seed}"
        )

    def _error_file(self, cell: Cell) -> Path:
        return self.work / f"{slug(cell.row.name)}-seed{cell.seed}.error.txt"

    # Running many

    def run_all(self, cells: Sequence[Cell], how: How = How()) -> list[Cell]:
        """Run cells, one after another or several at a time.

        One that fails is recorded, and the rest goes on.

        Returns:
            Those that failed.
        """
        if how.jobs == 1:
            failed = []
            for number, cell in enumerate(cells, start=1):
                log.info("%s: run %d of %d: %s", self.suite.name, number, len(cells), cell)
                if not self.attempt(cell, how):
                    failed.append(cell)
            return failed
        return self._parallel(cells, how)

    def attempt(self, cell: Cell, how: How) -> bool:
        """Run a cell under a lock; whatever goes wrong is kept in a file and logged."""
        self.work.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.work / f"{slug(cell.row.name)}-seed{cell.seed}.lock")
        try:
            with lock.acquire(timeout=0):
                began = time.monotonic()
                result = self.run(cell, how)
        except Timeout:
            log.warning("%s: another process runs it already; left to that", cell)
            return True
        except Exception as error:  # a night's other runs go on; this one's error is kept
            said = str(error) if isinstance(error, KBertError) else traceback.format_exc()
            head = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            self._error_file(cell).write_text(f"{head}\n\n{said}\n", encoding="utf-8")
            log.error("%s: failed: %s", cell, said)
            return False
        took = time.monotonic() - began
        log.info("%s: done in %s: %s", cell, duration(took), headline(result))
        return True

    def _parallel(self, cells: Sequence[Cell], how: How) -> list[Cell]:
        context = get_context("spawn")
        waiting = list(cells)
        running: dict[int, tuple[SpawnProcess, Cell]] = {}
        failed: list[Cell] = []
        with _one_thread_each():
            try:
                while waiting or running:
                    for cell in self._ready(waiting, [c for _, c in running.values()]):
                        if len(running) >= how.jobs:
                            break
                        waiting.remove(cell)
                        done = len(cells) - len(waiting)
                        log.info("%s: run %d of %d: %s", self.suite.name, done, len(cells), cell)
                        process = context.Process(
                            target=_in_process,
                            args=(str(self.suite.path), self.places, cell.row.name, cell.seed, how),
                        )
                        process.start()
                        running[process.sentinel] = (process, cell)
                    for sentinel in connection.wait(list(running)):
                        process, cell = running.pop(sentinel)  # type: ignore[arg-type]
                        process.join()
                        if process.exitcode:
                            failed.append(cell)
                            self._say_killed(cell, process.exitcode)
            finally:
                for process, _ in running.values():
                    process.terminate()
                    process.join()
        return failed

    def _ready(self, waiting: Sequence[Cell], running: Sequence[Cell]) -> list[Cell]:
        """The cells that needn't wait for the run they are written over."""
        unfinished = {(cell.row.name, cell.seed) for cell in (*waiting, *running)}
        return [
            cell
            for cell in waiting
            if not isinstance(cell.row, Baseline) or (cell.row.over, cell.seed) not in unfinished
        ]

    def _say_killed(self, cell: Cell, exit_code: int) -> None:
        if exit_code > 1 or exit_code < 0:
            said = f"the process ended with code {exit_code}, perhaps for want of memory"
            log.error("%s: %s", cell, said)
            self._error_file(cell).write_text(f"{said}\n", encoding="utf-8")


def _in_process(path: str, places: Places, name: str, seed: int, how: How) -> None:
    """Run one cell in a process of its own; its exit code is 1 if it fails."""
    logging.basicConfig(level=logging.WARNING, format=f"[{name}, {seed}] %(message)s")
    logging.getLogger("kbert_core").setLevel(logging.INFO)
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    torch.set_num_threads(1)
    try:
        experiment = Experiment(read_suite(path), places)
        good = experiment.attempt(Cell(experiment.suite.row(name), seed), how)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    raise SystemExit(0 if good else 1)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let processes that are started in here run on one thread."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before


class _Clock:
    """Adds up the time of a run over interruptions."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.seconds = 0.0
        if path.is_file():
            self.seconds = float(json.loads(path.read_text("utf-8")))

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.monotonic() - self._began
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(self.seconds), encoding="utf-8")


def seconds_left(statuses: Sequence[Status], todo: Sequence[Cell], jobs: int) -> float | None:
    """How long cells will take, from those that are done; None if none is."""
    known: dict[str, list[float]] = {}
    for status in statuses:
        if status.seconds is not None:
            known.setdefault(status.cell.row.name, []).append(status.seconds)
    trained = [
        s
        for status in statuses
        if isinstance(status.cell.row, Run)
        for s in known.get(status.cell.row.name, ())
    ]
    if not trained:
        return None
    typical = sum(trained) / len(trained)
    total = 0.0
    for cell in todo:
        own = known.get(cell.row.name)
        if own:
            total += sum(own) / len(own)
        elif isinstance(cell.row, Run):
            total += typical
    return total / max(1, jobs)


def duration(seconds: float) -> str:
    """A time for reading."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def headline_score(scores: Mapping[str, Any]) -> float:
    """The main one of several scores."""
    return float(next(scores[name] for name in MAIN_SCORES if name in scores))


def headline(result: Mapping[str, Any]) -> str:
    """A run's main score, in one phrase."""
    scores = result["scores"].get("test")
    if not scores:
        return "no test set"
    said = f"test {next(n for n in MAIN_SCORES if n in scores)} {100 * headline_score(scores):.1f}"
    if "unseen" in scores:
        said += f", recall on unseen {100 * scores['unseen']['recall']:.1f}"
    return said


def versions() -> dict[str, Any]:
    """What a result was made with."""
    found: dict[str, Any] = {
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
    }
    for package in ("kbert-lab", "torch", "transformers"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    found["cuda"] = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return found


def _about(fitted: Fitted) -> dict[str, Any]:
    return {
        **_sizes(fitted.splits),
        "device": str(fitted.pipeline.encoder.device),
        "parameters": sum(p.numel() for p in fitted.pipeline.encoder.model.parameters()),
        "learning_curve": list(fitted.curve),
        "type_labels": dict(fitted.type_labels),
    }


def _sizes(splits: Mapping[str, Sequence[Example]]) -> dict[str, Any]:
    sizes: dict[str, Any] = {split: len(examples) for split, examples in splits.items()}
    return {"examples": sizes}


def _card_notes(command: str, options: TrainOptions, made: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("scores", "without_knowledge", "edit_response", "type_labels", "parameters")
    return {
        "data": Path(options.data).name,
        "seed": options.seed,
        "command": command,
        "encoder": Path(options.encoder).name,
        "recipe": asdict(options.recipe),
        "epochs": options.epochs,
        **{key: made[key] for key in kept if key in made},
    }


def _split_files(folder: Path) -> list[Path]:
    """Train, dev and, where there is one, test."""
    files = [find_split(folder, "train"), find_split(folder, "dev")]
    try:
        files.append(find_split(folder, "test"))
    except DataError as error:
        log.warning("no scores on test: %s", error)
    return files


def _hash_of(files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        try:
            content = hashlib.sha256(file.read_bytes())
        except OSError as error:
            raise DataError(f"{file}: can't be read ({error.strerror}). Check the name.") from error
        digest.update(content.digest())
    return digest.hexdigest()


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _default(field: Any) -> Any:
    made = field.default_factory
    return made() if callable(made) else field.default


def _canonical(data: Mapping[str, Any]) -> str:
    return json.dumps(data, sort_keys=True, ensure_ascii=False)


def _plain(data: Mapping[str, Any]) -> dict[str, Any]:
    """As it will be read from JSON, so that the two can be compared."""
    plain: dict[str, Any] = json.loads(_canonical(data))
    return plain


def _differences(was: Any, is_: Any, where: str = "") -> list[str]:
    """What has changed between two inputs, in words."""
    if isinstance(was, dict) and isinstance(is_, dict):
        return [
            text
            for key in sorted({*was, *is_})
            for text in _differences(was.get(key), is_.get(key), f"{where}.{key}".strip("."))
        ]
    if was == is_:
        return []
    if where.endswith("sha256"):
        return [f"{where.removesuffix('.sha256')} has another content"]
    if isinstance(was, list) and isinstance(is_, list) and len(was) == len(is_):
        return [t for a, b in zip(was, is_, strict=True) for t in _differences(a, b, where)]
    return [f"{where} was {_short(was)} and is {_short(is_)}"]


def _short(value: Any) -> str:
    text = "unset" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."
