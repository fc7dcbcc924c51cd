"""Runs the cells of a suite, one after another or several at a time."""

import json
import logging
import os
import platform
import shlex
import shutil
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from statistics import fmean
from threading import Thread
from typing import Any

import torch
from filelock import FileLock, Timeout
from transformers.utils import logging as transformers_logging

from kbert_core.data.labelled import Example
from kbert_core.data.sources import read_present
from kbert_core.errors import DataError, KBertError
from kbert_core.experiments.counts import score_run, score_spans
from kbert_core.experiments.dictionary import (
    choose_weight,
    dictionary_spans,
    guided_spans,
    learn_tail_labels,
    load_scores,
    save_scores,
    written_over,
)
from kbert_core.experiments.grid import Cell, Experiment, Status
from kbert_core.experiments.results import FORMAT, processor, read_json, whole, write_json
from kbert_core.experiments.suite import Baseline, Run, train_options
from kbert_core.knowledge import load_graph
from kbert_core.knowledge.io.compression import plain_stem
from kbert_core.training.evaluate import surface_forms
from kbert_core.training.finetune import MAIN_SCORE, fit, save
from kbert_core.training.options import TrainOptions
from kbert_core.training.trainer import duration

PREDICTIONS = "predictions.json"  # what stays in a cell's folder: others may be written over it
TAG_SCORES = "tag_scores.npz"  # and this: decoding may be guided by others
SECONDS = "seconds.json"
FAILED = 1  # exit code of a process whose run failed and was recorded
ORPHANED = 2  # of one whose parent was killed
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class How:
    """How cells are run, apart from what they are."""

    device: str = "auto"  # or "cpu", "cuda"
    jobs: int = 1  # processes at a time, each on one thread where there are several
    keep_models: bool = False  # keep the trained models in the work folder


def run_cell(experiment: Experiment, cell: Cell, how: How = How()) -> dict[str, Any]:
    """Run one cell, or go on with it, and write its JSON.

    Raises:
        KBertError: it can't be run.
    """
    inputs = experiment.inputs(cell)
    row, folder = cell.row, experiment.cell_folder(cell)
    if isinstance(row, Baseline):
        began = time.monotonic()
        made = _dictionary(experiment, row, cell.seed)
        seconds = time.monotonic() - began
    else:
        made = _trained(experiment, row, cell.seed, how)
        seconds = json.loads((folder / SECONDS).read_text("utf-8"))
    result = {
        "format": FORMAT,
        "suite": experiment.suite.name,
        "row": row.name,
        "seed": cell.seed,
        "inputs": inputs,
        "command": _command(experiment, cell),
        "versions": versions(),
        "seconds": round(seconds, 1),
        **made,
    }
    write_json(experiment.file(cell), result)
    experiment.error_file(cell).unlink(missing_ok=True)
    if isinstance(row, Run) and not how.keep_models:
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name not in (PREDICTIONS, TAG_SCORES):
                path.unlink(missing_ok=True)
    return result


def _trained(experiment: Experiment, run: Run, seed: int, how: How) -> dict[str, Any]:
    """Train and score a run; what its JSON says of it."""
    cell, suite = Cell(run, seed), experiment.suite
    folder = experiment.cell_folder(cell)
    kg, unchanged = experiment.graph_files(run, seed)
    injection = run.injection
    if injection is not None and injection.scorer is not None:
        injection = replace(injection, scorer=suite.resolved(injection.scorer))
    options = train_options(
        suite,
        run,
        seed=seed,
        data=str(experiment.split(seed)[0]),
        kg=kg,
        hiding_kg=suite.resolved_all(run.hiding_kg),
        encoder=suite.resolved(run.encoder),
        injection=injection,
        output=str(folder),
        device=how.device,
    )
    with _clock(folder / SECONDS):
        fitted = fit(options)
        scored, predictions, tags = score_run(fitted, experiment.covering)
    write_json(folder / PREDICTIONS, {"format": FORMAT, "test": predictions})
    if tags:
        with whole(folder / TAG_SCORES) as file:
            save_scores(file, tags)
    encoder = fitted.pipeline.encoder
    made = {
        **_sizes(fitted.splits),
        "device": str(encoder.device),
        "parameters": sum(p.numel() for p in encoder.model.parameters()),
        "learning_curve": list(fitted.curve),
        "type_labels": dict(fitted.type_labels),
        **scored,
    }
    if unchanged is not None:
        made["shuffled_unchanged"] = unchanged
    if how.keep_models:
        save(options, fitted, notes=_card_notes(_command(experiment, cell), options, made))
    return made


@contextmanager
def _clock(path: Path) -> Iterator[None]:
    """Add up the seconds of a run in a file, over interruptions."""
    before = float(json.loads(path.read_text("utf-8"))) if path.is_file() else 0.0
    began = time.monotonic()

    def note() -> None:
        with whole(path) as file:
            file.write(json.dumps(before + time.monotonic() - began).encode())

    try:
        yield
    except BaseException:
        try:
            note()
        except DataError as error:
            log.warning("%s", error)
        raise
    note()


def _dictionary(experiment: Experiment, row: Baseline, seed: int) -> dict[str, Any]:
    """Tag the test set by a graph alone, or with what a run predicted."""
    splits = read_present(str(experiment.split(seed)[0]), "ner")
    graph = load_graph(*experiment.suite.resolved_all(row.kg))
    labels = learn_tail_labels(splits["train"], graph)
    found: Sequence[Any] = dictionary_spans(splits["test"], graph, labels)
    about: dict[str, Any] = {"tail_labels": len(labels)}
    if row.over is not None and row.guided:
        scores = load_scores(_kept(experiment, row, seed, TAG_SCORES))
        in_dev = dictionary_spans(splits["dev"], graph, labels)
        gold = [example.spans for example in splits["dev"]]
        weight, about["dev_f1_by_weight"] = choose_weight(scores["dev"], in_dev, gold)
        about["weight"] = weight
        found = guided_spans(scores["test"], found, weight)
    elif row.over is not None:
        kept = read_json(_kept(experiment, row, seed, PREDICTIONS)) or {}
        predicted = [[(a, b, label) for a, b, label in spans] for spans in kept["test"]]
        found = written_over(predicted, found)
    made = score_spans(splits["test"], found, surface_forms(splits["train"]), experiment.covering)
    return {**_sizes(splits), **about, **made}


def _kept(experiment: Experiment, row: Baseline, seed: int, name: str) -> Path:
    """A file that the run under a baseline has left in the work folder."""
    assert row.over is not None
    run = experiment.suite.row(row.over)
    path = experiment.cell_folder(Cell(run, seed)) / name
    if not path.is_file():
        raise DataError(
            f"'{row.name}' needs the predictions of '{row.over}', seed {seed}, "
            f"which aren't in {experiment.work}. Run that one again: "
            f"--only {shlex.quote(row.over)} --seeds {seed} --again."
        )
    return path


def _command(experiment: Experiment, cell: Cell) -> str:
    path = experiment.suite.path
    shown = path.name if path.is_absolute() else str(path)
    return (
        f"kbert experiment {shlex.quote(shown)} "
        f"--only {shlex.quote(cell.row.name)} --seeds {cell.seed}"
    )


# Many cells


def run_all(experiment: Experiment, cells: Sequence[Cell], how: How = How()) -> list[Cell]:
    """Run cells, one after another or several at a time.

    One that fails is recorded, and the rest goes on.

    Returns:
        Those that failed.
    """
    failed = []
    if how.jobs > 1:  # baselines are quick, and need the runs that they are written over
        trained = [cell for cell in cells if isinstance(cell.row, Run)]
        failed = _parallel(experiment, trained, how)
        cells = [cell for cell in cells if not isinstance(cell.row, Run)]
    for number, cell in enumerate(cells, start=1):
        log.info("%s: run %d of %d: %s", experiment.suite.name, number, len(cells), cell)
        if not attempt(experiment, cell, how):
            failed.append(cell)
    return failed


def attempt(experiment: Experiment, cell: Cell, how: How) -> bool:
    """Run a cell under a lock; whatever goes wrong is kept in a file and logged."""
    experiment.work.mkdir(parents=True, exist_ok=True)
    lock = FileLock(experiment.error_file(cell).with_suffix(".lock"))
    try:
        with lock.acquire(timeout=0):
            began = time.monotonic()
            result = run_cell(experiment, cell, how)
    except Timeout:
        log.warning("%s: another process runs it already; left to that", cell)
        return True
    except Exception as error:  # a night's other runs go on; this one's error is kept
        said = str(error) if isinstance(error, KBertError) else traceback.format_exc()
        head = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        log.error("%s: failed: %s", cell, said)
        _keep_error(experiment, cell, f"{head}\n\n{said}")
        return False
    took, name = duration(time.monotonic() - began), MAIN_SCORE[experiment.suite.task]
    log.info("%s: done in %s: test %s %.3f", cell, took, name, result["scores"]["test"][name])
    return True


def _parallel(experiment: Experiment, cells: Sequence[Cell], how: How) -> list[Cell]:
    """Run cells in processes of their own, so that one which is killed is one run that failed."""
    context = get_context("spawn")
    os.environ["OMP_NUM_THREADS"] = "1"  # in the processes that are started here

    def run(number: int, cell: Cell) -> bool:
        log.info("%s: run %d of %d: %s", experiment.suite.name, number, len(cells), cell)
        process = context.Process(target=_in_process, args=(experiment, cell, how))
        process.start()
        process.join()
        if process.exitcode not in (0, FAILED):
            why = f"the process ended with code {process.exitcode}, perhaps for want of memory"
            log.error("%s: %s", cell, why)
            _keep_error(experiment, cell, why)
        return process.exitcode == 0

    pool = ThreadPoolExecutor(how.jobs)
    try:
        good = list(pool.map(run, count(1), cells))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in active_children():
            process.terminate()
    return [cell for cell, done in zip(cells, good, strict=True) if not done]


def _keep_error(experiment: Experiment, cell: Cell, said: str) -> None:
    """Note why a run failed; on a full disk in the log alone."""
    try:
        with whole(experiment.error_file(cell)) as file:
            file.write(f"{said}\n".encode())
    except DataError as error:
        log.warning("%s: %s", cell, error)


def _in_process(experiment: Experiment, cell: Cell, how: How) -> None:
    """Run one cell in a process of its own; its exit code is 1 if it fails."""
    logging.basicConfig(level=logging.WARNING, format=f"[{cell}] %(message)s")
    logging.getLogger("kbert_core").setLevel(logging.INFO)
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    torch.set_num_threads(1)
    Thread(target=_end_with_parent, daemon=True).start()
    try:
        good = attempt(experiment, cell, how)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    raise SystemExit(0 if good else FAILED)


def _end_with_parent() -> None:
    """End this process when the one that started it is killed, as a kill of its own would."""
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(ORPHANED)


def seconds_left(statuses: Sequence[Status], todo: Sequence[Cell], jobs: int) -> float | None:
    """How long cells will take, from those that are done; None if no run is."""
    done = [(status.cell.row, status.seconds) for status in statuses if status.seconds is not None]
    of_runs = [seconds for row, seconds in done if isinstance(row, Run)]
    if not of_runs:
        return None

    def typical(row: Run | Baseline) -> float:
        usual = of_runs if isinstance(row, Run) else [0.0]
        return fmean([seconds for other, seconds in done if other.name == row.name] or usual)

    return sum(typical(cell.row) for cell in todo) / max(1, jobs)


def versions() -> dict[str, Any]:
    """What a result was made with."""
    packages = {}
    for package in ("kbert-lab", "torch", "transformers"):
        try:
            packages[package] = version(package)
        except PackageNotFoundError:
            packages[package] = "not installed"
    return {
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        **packages,
        "cpu": processor(),
        "cuda": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }


def _sizes(splits: Mapping[str, Sequence[Example]]) -> dict[str, Any]:
    return {"examples": {split: len(examples) for split, examples in splits.items()}}


def _card_notes(command: str, options: TrainOptions, made: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("scores", "without_knowledge", "edit_response", "type_labels", "parameters")
    hiding = [plain_stem(path) for path in options.knowledge.hiding_kg]
    return {
        "data": Path(options.files.data).name,
        "seed": options.run.seed,
        "command": command,
        "encoder": Path(options.start.encoder).name,
        "recipe": asdict(options.recipe),
        "epochs": options.optimiser.epochs,
        **({"hiding_knowledge": hiding} if hiding else {}),
        **{key: made[key] for key in kept if key in made},
    }
