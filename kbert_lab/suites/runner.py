"""Runs the cells of a suite, one after another or several at a time."""

import logging
import os
import shlex
import shutil
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import count
from multiprocessing import active_children, get_context
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from filelock import FileLock, Timeout
from transformers.utils import logging as transformers_logging

from kbert_core.checkpoints.checkpoint import Card, card_of, device_named
from kbert_core.errors import DataError, KBertError
from kbert_core.files import json_object
from kbert_core.knowledge.surface_forms import BASIC
from kbert_core.systems import reader_class
from kbert_lab.data.labelled import surface_forms
from kbert_lab.data.sources import read_present
from kbert_lab.study.counts import packed_links, score_run, score_spans
from kbert_lab.study.dictionary import (
    choose_weight,
    dictionary_spans,
    guided_spans,
    learn_tail_labels,
    load_scores,
    save_scores,
    written_over,
)
from kbert_lab.study.gate import Candidates, Record, fit_gate, gated_spans, oracle
from kbert_lab.suites.grid import Experiment, tool
from kbert_lab.suites.results import (
    FORMAT,
    Cell,
    Status,
    versions,
    whole,
    write_json,
)
from kbert_lab.suites.suite import SCRATCH, Baseline, Run, train_options
from kbert_lab.training.devices import end_with_parent, made_for_bf16
from kbert_lab.training.finetune import MAIN_SCORE, fit
from kbert_lab.training.scores import scores_of_links
from kbert_lab.training.trainer import duration

PREDICTIONS = "predictions.json"  # what stays in a cell's folder: others may be written over it
TAG_SCORES = "tag_scores.npz"  # and this: decoding may be guided by others
FAILED = 1  # exit code of a process whose run failed and was recorded
RETRAINED_BY = 1000  # added to the seed by which training draws
log = logging.getLogger(__name__)


def run_cell(experiment: Experiment, cell: Cell, device: str = "auto") -> dict[str, Any]:
    """Run one cell, or go on with it, and keep its result.

    Raises:
        KBertError: it can't be run.
    """
    inputs = experiment.inputs(cell)
    row, path, began = cell.row, experiment.suite.path, time.monotonic()
    if isinstance(row, Run):
        made = _trained(experiment, row, cell.seed, device)
    else:
        made = {"device": "cpu", **_dictionary(experiment, row, cell.seed)}
        if row.over is not None:
            made["over_sha256"] = experiment.over_hash(cell)
    words = [path.name if path.is_absolute() else str(path), "--only", row.name]
    result = {
        "format": FORMAT,
        "suite": experiment.suite.name,
        "row": row.name,
        "seed": cell.seed,
        "inputs": inputs,
        "command": f"kbert experiment {shlex.join(words)} --seeds {cell.seed}",
        "versions": versions(),
        "seconds": round(time.monotonic() - began, 1),  # since it went on, if it was cut off
        **made,
    }
    experiment.records.add([result])
    experiment.error_file(cell).unlink(missing_ok=True)
    for left in experiment.cell_folder(cell).iterdir() if isinstance(row, Run) else ():
        if left.is_dir():
            shutil.rmtree(left)
        elif left.name not in (PREDICTIONS, TAG_SCORES):
            left.unlink(missing_ok=True)
    return result


def _trained(experiment: Experiment, run: Run, seed: int, device: str) -> dict[str, Any]:
    """Train and score a run; what its result says of it."""
    suite, folder = experiment.suite, experiment.cell_folder(Cell(run, seed))
    kg, about_graph = experiment.graph_files(run, seed)
    injection = run.injection
    if injection is not None and injection.scorer is not None:
        injection = replace(injection, scorer=suite.resolved(injection.scorer))
    card = Card() if run.encoder == SCRATCH else card_of(suite.resolved(run.encoder))
    if injection is None and card.notes is None:  # the suite doesn't say, and there is no card
        system = reader_class(run.train.get("system") or card.system)
        injection = replace(system.config_class().options, names=BASIC)
    # a GPU does what the suite says too, so that rows of any machine compare
    in_bf16 = bool(run.train.get("bf16")) and made_for_bf16(device_named(device))
    options = train_options(
        suite,
        run,
        seed=seed + RETRAINED_BY * run.retrained,
        data=str(experiment.split(seed, run.unseen)[0]),
        kg=kg,
        hiding_kg=suite.resolved_all(run.hiding_kg),
        encoder=suite.resolved(run.encoder),
        injection=injection,
        output=str(folder),
        device=device,
        bf16=in_bf16,
    )
    fitted = fit(options, test_curve=run.test_curve)
    scored, predictions, tags = score_run(fitted, experiment.covering)
    write_json(folder / PREDICTIONS, {"format": FORMAT, "test": predictions})
    if tags:
        with whole(folder / TAG_SCORES) as file:
            save_scores(file, tags)
    model = fitted.pipeline.reader.model
    return {
        "examples": {split: len(examples) for split, examples in fitted.splits.items()},
        "device": str(model.device),
        "precision": "bfloat16" if in_bf16 else "float32",
        "parameters": sum(p.numel() for p in model.parameters()),
        "learning_curve": list(fitted.curve),
        "type_labels": dict(fitted.type_labels),
        **scored,
        **about_graph,
    }


def _dictionary(experiment: Experiment, row: Baseline, seed: int) -> dict[str, Any]:
    """Tag the test set by a graph alone, or with what a run predicted."""
    task, suite = experiment.suite.task, experiment.suite
    splits = read_present(str(experiment.split(seed, row.unseen)[0]), task)
    graph, about_graph = experiment.graph(row, seed)
    if row.senses is not None:
        encoder = suite.resolved(suite.encoder)
        columns = tool("senses").sense_columns(
            row.senses, splits["train"], splits["test"], graph, encoder
        )
        return {
            "examples": {split: len(of) for split, of in splits.items()},
            "scores": {"test": scores_of_links(columns)},
            "sentences": packed_links(splits["test"], columns),
        }
    labels = learn_tail_labels(splits["train"], graph)
    in_split = {split: dictionary_spans(of, graph, labels) for split, of in splits.items()}
    found: Sequence[Any] = in_split["test"]
    about: dict[str, Any] = {"tail_labels": len(labels), **about_graph}
    if row.guided or row.judge == "gate":
        if "dev" not in splits:
            raise DataError(f"'{row.name}' is fitted on dev, and there is none. Add a dev set.")
        scores = load_scores(_kept(experiment, row, seed, TAG_SCORES))
    if row.guided:
        gold = [example.spans for example in splits["dev"]]
        weight, about["dev_f1_by_weight"] = choose_weight(scores["dev"], in_split["dev"], gold)
        about["weight"] = weight
        found = guided_spans(scores["test"], found, weight)
    elif row.judge == "gate":
        record = Record.of(splits["train"], in_split["train"])
        dev, test = (Candidates(splits[s], in_split[s], scores[s]) for s in ("dev", "test"))
        fitted = fit_gate(dev, record)
        about["gate"] = fitted.model_dump()
        found = gated_spans(fitted, test, record)
    elif row.over is not None:
        kept = json_object(
            _kept(experiment, row, seed, PREDICTIONS),
            DataError,
            "Run what it is written over again.",
        )
        predicted = [[(a, b, label) for a, b, label in spans] for spans in kept["test"]]
        written = oracle(splits["test"], found) if row.judge == "oracle" else found
        found = written_over(predicted, written)
    made = score_spans(splits["test"], found, surface_forms(splits["train"]), experiment.covering)
    return {"examples": {split: len(of) for split, of in splits.items()}, **about, **made}


def _kept(experiment: Experiment, row: Baseline, seed: int, name: str) -> Path:
    """A file that the run under a baseline has left in the work folder."""
    run = experiment.suite.row(row.over or "")
    path = experiment.cell_folder(Cell(run, seed)) / name
    if not path.is_file():
        raise DataError(
            f"'{row.name}' needs the predictions of '{run.name}', seed {seed}, "
            f"which aren't in {experiment.work}. Run that one again: "
            f"--only {shlex.quote(run.name)} --seeds {seed} --again."
        )
    return path


# Many cells


def run_all(
    experiment: Experiment, cells: Sequence[Cell], *, device: str = "auto", jobs: int = 1
) -> list[Cell]:
    """Run cells, one after another or several at a time.

    One that fails is recorded, and the rest goes on.

    Args:
        device: or "cpu", "cuda".
        jobs: processes at a time, each on one thread where there are several.

    Returns:
        Those that failed.

    Raises:
        DataError: a condition's graph can't be made. Nothing is trained then.
    """
    made_for: dict[str, Run | Baseline] = {}
    for cell in cells:
        if cell.seed == cells[0].seed and (cell.row.known, cell.row.right) != (None, None):
            made_for.setdefault(cell.row.in_words, cell.row)
    for row in made_for.values():  # one that can't be made would waste hours
        experiment.graph(row, cells[0].seed)
    before = experiment.records.all()

    def run(number: int, cell: Cell, tried: Callable[..., bool] = attempt) -> bool:
        if experiment.result(cell) != before.get(cell.key):
            log.info("%s: another process has run it", cell)
            return True
        log.info("%s: run %d of %d: %s", experiment.suite.name, number, len(cells), cell)
        return tried(experiment, cell, device)

    if jobs > 1:  # baselines are quick, and need the runs that they are written over
        trained = [cell for cell in cells if isinstance(cell.row, Run)]
        done = _at_once(partial(run, tried=_apart), trained, jobs)
        cells = [*trained, *(cell for cell in cells if isinstance(cell.row, Baseline))]
    else:
        done = []
    done += [run(number, cell) for number, cell in enumerate(cells[len(done) :], len(done) + 1)]
    return [cell for cell, good in zip(cells, done, strict=True) if not good]


def attempt(experiment: Experiment, cell: Cell, device: str) -> bool:
    """Run a cell under a lock; whatever goes wrong is kept in a file and logged."""
    experiment.work.mkdir(parents=True, exist_ok=True)
    lock = FileLock(experiment.error_file(cell).with_suffix(".lock"))
    try:
        with lock.acquire(timeout=0):
            began = time.monotonic()
            result = run_cell(experiment, cell, device)
    except Timeout:
        log.warning("%s: skipped, because another process already runs it", cell)
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


def _at_once(run: Callable[[int, Cell], bool], cells: Sequence[Cell], jobs: int) -> list[bool]:
    """Run cells several at a time."""
    pool = ThreadPoolExecutor(jobs)
    try:
        return list(pool.map(run, count(1), cells))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in active_children():
            process.terminate()


def _apart(experiment: Experiment, cell: Cell, device: str) -> bool:
    """Run a cell in a process of its own, so that one which is killed is one run that failed."""
    os.environ["OMP_NUM_THREADS"] = "1"  # in the process that is started here
    process = get_context("spawn").Process(target=_in_process, args=(experiment, cell, device))
    process.start()
    process.join()
    if process.exitcode not in (0, FAILED):
        why = f"the process ended with code {process.exitcode}, perhaps because memory ran out"
        log.error("%s: %s", cell, why)
        _keep_error(experiment, cell, why)
    return process.exitcode == 0


def _keep_error(experiment: Experiment, cell: Cell, said: str) -> None:
    """Note why a run failed; on a full disk in the log alone."""
    try:
        with whole(experiment.error_file(cell)) as file:
            file.write(f"{said}\n".encode())
    except DataError as error:
        log.warning("%s: %s", cell, error)


def _in_process(experiment: Experiment, cell: Cell, device: str) -> None:
    """Run one cell in a process of its own; its exit code is 1 if it fails."""
    told = str(cell).replace("%", "%%")  # "25 % new" is no format
    logging.basicConfig(level=logging.WARNING, format=f"[{told}] %(message)s")
    for package in ("kbert_core", "kbert_lab"):
        logging.getLogger(package).setLevel(logging.INFO)
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    torch.set_num_threads(1)
    end_with_parent()
    try:
        good = attempt(experiment, cell, device)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    raise SystemExit(0 if good else FAILED)


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
