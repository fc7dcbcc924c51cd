"""`kbert predict --data`: a corpus read in parallel, shard by shard.

The workers are processes of this machine, or Ray's actors on a cluster. A worker loads the model
and maps the graph's index once, and then takes one shard after the other. A shard's results get
their name when they are whole, so a shard is done once or not at all, whoever is killed; and no
result depends on which worker read what.

These are plain actors and not Ray Data, whose blocks of rows know neither shards nor row numbers,
and which tries a shard that kills its worker without end.
"""

import json
import logging
import os
import platform
import secrets
import shutil
import socket
import time
from argparse import Namespace
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields
from itertools import cycle, islice
from multiprocessing import get_context
from pathlib import Path
from types import UnionType
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from filelock import AcquireReturnProxy, FileLock, Timeout

from kbert_core.checkpoints.adapters import weights_hash
from kbert_core.errors import DataError, KBertError, MissingPackageError, OptionError, TextError
from kbert_core.files import replaced
from kbert_core.knowledge.io.text_lines import VARIABLE
from kbert_core.tasks.link import Link
from kbert_core.tasks.mask import Filling
from kbert_core.tasks.ner import Span
from kbert_core.tasks.qa import Answer
from kbert_lab.cli.commands import NO_HEAD, columns_of, loaded
from kbert_lab.cli.output import TRIPLE, Progress
from kbert_lab.cli.read import predictions
from kbert_lab.data.shards import PARQUET_PROBLEMS, BrokenRow, Row, Shard, find_shards, rows_of
from kbert_lab.files import or_refused
from kbert_lab.study.gated import JudgedSpan
from kbert_lab.training.devices import end_with_parent

ROWS_AT_ONCE = 8192  # predicted and written together: a row group
TRIES = 3  # of a shard whose worker on a cluster dies
LOCK, UNFINISHED, BROKEN = "_lock", "_unfinished", "_broken"
NOTES = b"kbert"  # in a Parquet file's metadata
LEFT_HERE = ("command", "parser", "until_its_end")  # of the command line; no worker needs them
DIED = (
    "A worker died, perhaps for want of memory. Finished shards are kept, and the same command "
    "goes on. Use fewer --workers, or cut large files into smaller ones."
)
log = logging.getLogger(__name__)


# Results as Parquet

NAMED = pa.map_(pa.string(), pa.float32())  # probabilities by name
ARROW = {str: pa.string(), int: pa.int32(), float: pa.float32(), bool: pa.bool_()}


def _list_of(kind: type) -> pa.DataType:
    """A list of dataclasses."""
    hints: dict[str, Any] = {field.name: field.type for field in fields(kind)}
    single = {n: get_args(h)[0] if isinstance(h, UnionType) else h for n, h in hints.items()}
    return pa.list_(pa.struct([(name, ARROW.get(hint, NAMED)) for name, hint in single.items()]))


_CLASS = {"label": pa.string(), "probabilities": NAMED}
PREDICTED: dict[str, dict[str, pa.DataType]] = {  # by task: fields of its prediction
    "ner": {"spans": _list_of(Span)},
    "link": {"links": _list_of(Link)},
    "qa": {"answers": _list_of(Answer)},
    "mask": {"fillings": _list_of(Filling)},
    **dict.fromkeys(("classify", "pair", "rank"), _CLASS),
    "multilabel": {"labels": pa.list_(pa.string()), "probabilities": NAMED},
}
TRIPLES = pa.list_(pa.struct([(name, pa.string()) for name in TRIPLE]))
CUT = pa.list_(pa.struct([("sentence", pa.int32()), ("start", pa.int32())]))


def schema_of(task: str, *, sentences: int, compare: bool, gate: bool) -> pa.Schema:
    """The columns of the results.

    ``row`` counts from 1; ``text``, a list for pairs; the prediction's own; ``triples`` used, in
    reading order; ``cut``, where a text is over the length limit: characters from ``start`` on.
    """
    own = PREDICTED[task]
    judged = {"judged": _list_of(JudgedSpan)} if gate else {}
    plain = {"without_knowledge": pa.struct(list(own.items()))} if compare else {}
    text = pa.string() if sentences == 1 else pa.list_(pa.string())
    columns = {"row": pa.int64(), "text": text, **own, **judged, "triples": TRIPLES, "cut": CUT}
    return pa.schema(list({**columns, **plain}.items()))


# A worker


@dataclass(frozen=True)
class Done:
    """What came of a shard.

    Attributes:
        rows, broken: how many could be read, and how many not.
        refused: what is wrong with the file.
    """

    shard: str = ""
    rows: int = 0
    broken: int = 0
    refused: str = ""


class Worker:
    """Reads shards with a model and a graph, which it loads once.

    Args:
        args: of the command.
        run: what the run is made with, see ``what_runs``; nothing: whatever is found.
    """

    def __init__(self, args: Namespace, folder: str, run: Mapping[str, str]) -> None:
        self._given, self._folder, self._run = args, folder, run
        self._loaded: Any = None

    def _load(self) -> None:
        torch.set_num_threads(1)  # one worker, one core
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        if self._given.encoding:
            os.environ[VARIABLE] = self._given.encoding
        os.chdir(self._folder)
        args = Namespace(**vars(self._given), until_its_end=ExitStack())
        made = loaded(args, why=NO_HEAD)
        if other := _others(what_runs(args, *made), self._run):
            raise KBertError(
                f"found another {other} than where the run was started. Put the same files there."
            )
        self._loaded = made

    def read(self, shard: Shard) -> Done:
        """Read a shard and write its results, whole or not at all.

        Raises:
            KBertError: no worker can go on.
        """
        try:
            if not self._loaded:
                self._load()
            return self._written(shard, Path(self._given.output))
        except DataError as error:
            return Done(shard.name, refused=str(error))
        except (KBertError, OSError) as error:
            where = f"{platform.node()}, at {shard.path}"
            raise KBertError(
                f"A worker can't go on. Finished shards are kept. {where}: {error}"
            ) from error

    def _written(self, shard: Shard, output: Path) -> Done:
        task, args = self._loaded[0].task, self._given
        how: Any = {"compare": args.compare, "gate": args.gate is not None}
        schema = schema_of(task.name, sentences=task.sentences, **how)
        whole, broken = output / f"{shard.name}.parquet", output / BROKEN / f"{shard.name}.jsonl"
        part = output / UNFINISHED / secrets.token_hex(8)
        part.parent.mkdir(parents=True, exist_ok=True)
        count, bad = 0, list[BrokenRow]()
        rows = rows_of(shard, sentences=task.sentences, columns=columns_of(args))
        try:
            with pq.ParquetWriter(part, schema, compression="zstd") as writer:
                while some := list(islice(rows, ROWS_AT_ONCE)):
                    good = [*self._predicted(some, bad)]
                    writer.write_table(pa.Table.from_pylist(good, schema))
                    count += len(good)
                notes = {"size": shard.size, "run": self._run, "rows": count, "broken": len(bad)}
                writer.add_key_value_metadata({NOTES: json.dumps(notes)})
            if bad:
                broken.parent.mkdir(parents=True, exist_ok=True)
                with replaced(broken) as file:
                    for row in sorted(bad, key=lambda row: row.number):
                        line = json.dumps(asdict(row), ensure_ascii=False)
                        file.write(f"{line}\n".encode("utf-8", "backslashreplace"))
            whole.parent.mkdir(parents=True, exist_ok=True)
            os.replace(part, whole)
        finally:
            part.unlink(missing_ok=True)
        return Done(shard.name, count, len(bad))

    def _predicted(
        self, rows: Sequence[Row | BrokenRow], bad: list[BrokenRow]
    ) -> Iterator[dict[str, Any]]:
        """Predict for rows, by column; one that the model can't read is broken, too."""
        bad += (row for row in rows if isinstance(row, BrokenRow))
        left = deque(row for row in rows if isinstance(row, Row))
        while left:
            texts = [row.sentences for row in left]
            try:
                for data in predictions(texts, *self._loaded, compare=self._given.compare):
                    own = data["prediction"]
                    cut = [part for part in data["dropped"] if "start" in part]
                    number = left.popleft().number
                    yield {**data, **own, "judged": own.get("gate"), "row": number, "cut": cut}
            except TextError as error:
                row = left.popleft()
                bad.append(BrokenRow.of(row.number, error, " ‖ ".join(row.sentences)))


# The run


def predict_corpus(args: Namespace) -> dict[str, Any]:
    """Read a corpus and write its predictions; goes on where an earlier run was stopped.

    Raises:
        OptionError: an option, or the output is another run's.
        DataError: shards that can't be read, after all others were.
        KBertError: a worker can't go on.
    """
    if args.text or args.file is not None or args.question is not None:
        raise OptionError("Both --data and another text are given. Give one of them.")
    if not args.data or not args.output:
        raise OptionError("A corpus needs both --data CORPUS and --output DIR. Give the other too.")
    corpus, output = Path(args.data).absolute(), Path(args.output).absolute()
    if output.is_relative_to(corpus):
        raise OptionError(f"{output}: is in the corpus. Name a folder elsewhere with --output.")
    if args.workers is not None and args.workers < 1:
        raise OptionError(f"--workers is {args.workers}, expected 1 or more.")
    begun, shards = time.perf_counter(), find_shards(args.data)
    pipeline, graph, config = loaded(args, why=NO_HEAD, device="cpu")
    run = what_runs(args, pipeline, graph, config)
    del pipeline, graph
    kept = {name: value for name, value in vars(args).items() if name not in LEFT_HERE}
    given = Namespace(**{**kept, "output": str(output)})
    with _alone_in(output):
        results = _results(output, run)
        waiting = [shard for shard in shards if shard.name not in results]
        done = [_done(shard, results[shard.name]) for shard in shards if shard.name in results]
        new: list[Done] = []
        if waiting:
            waiting.sort(key=lambda shard: -shard.size)
            workers = _on_a_cluster if args.cluster else _here
            every = max(1, len(waiting) // 100)
            progress = Progress("shards", total=len(waiting), logged=every)
            new = [*progress.over(workers(given, os.getcwd(), run, waiting))]
            shutil.rmtree(output / UNFINISHED, ignore_errors=True)
    if broken := sum(each.broken for each in [*done, *new]):
        log.warning("%d rows can't be read; see %s", broken, output / BROKEN)
    if refused := sorted(each.refused for each in new if each.refused):
        raise DataError(
            f"{len(refused)} of {len(shards)} shards can't be read; the others are done. "
            f"Correct them and run the command again. {refused[0]}"
        )
    return {
        "shards": len(shards),
        "done_before": len(done),
        "rows": sum(each.rows for each in [*done, *new]),
        "broken_rows": broken,
        "seconds": round(time.perf_counter() - begun, 1),
    }


def _others(found: Mapping[str, str], expected: Mapping[str, str]) -> str:
    """What differs between two runs, in words; nothing where they are the same."""
    return ", another ".join(name for name in expected if found.get(name) != expected[name])


def what_runs(args: Namespace, pipeline: Any, graph: Any, config: Any) -> dict[str, str]:
    """What results depend on, in words, but for the shards themselves."""
    gate = getattr(pipeline, "gate", None)
    return {
        "corpus": str(Path(args.data).absolute()),
        "model": f"{weights_hash(pipeline.reader.model, ())[:16]} {pipeline.card.system}",
        "graph": graph.fingerprint,
        "reading": repr(config),
        "gate": "none" if gate is None else f"{gate.features}, {gate.bias}, {gate.threshold}",
        "option": f"columns {columns_of(args)}, compare {args.compare}, bf16 {args.bf16}"
        + ("" if args.label_threshold is None else f", threshold {args.label_threshold}")
        + (f", encoding {args.encoding}" if args.encoding else ""),
    }


def _alone_in(output: Path) -> AcquireReturnProxy:
    """The folder of a run, for this process alone, as long as what is returned is open."""
    remedy = "Name another folder with --output"
    allowed = f"{remedy} that you may write to and that has room."
    with or_refused(output, OptionError, allowed, doing="written to"):
        output.mkdir(parents=True, exist_ok=True)
        try:
            return FileLock(output / LOCK).acquire(timeout=0)
        except Timeout as error:
            raise OptionError(
                f"{output}: another process is writing there. Wait for its end. Or: {remedy}."
            ) from error


def _results(output: Path, run: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """What is known of the shards that were done in a run: name → its notes."""
    remedy, found = "Name another folder with --output", {}
    for path in sorted(output.rglob("*.parquet")):
        try:
            notes = json.loads((pq.read_metadata(path).metadata or {})[NOTES])
        except (*PARQUET_PROBLEMS, ValueError) as error:
            log.warning("%s: can't be read (%s) and is made again", path, error)
            continue
        except KeyError as error:
            raise OptionError(f"{path}: isn't a result of this command. {remedy}.") from error
        if other := _others(notes.get("run", {}), run):
            raise OptionError(
                f"{output}: holds results of another run, with another {other}. {remedy}, or "
                "repeat that run as it was."
            )
        found[path.relative_to(output).as_posix().removesuffix(".parquet")] = notes
    return found


def _done(shard: Shard, notes: Mapping[str, Any]) -> Done:
    if notes["size"] != shard.size:
        raise OptionError(
            f"{shard.path}: has {shard.size:,} bytes, and had {notes['size']:,} when it was read. "
            f"Delete {shard.name}.parquet to read it again, or name another folder with --output."
        )
    return Done(shard.name, notes["rows"], notes["broken"])


def _here(
    args: Namespace, folder: str, run: Mapping[str, str], shards: Sequence[Shard]
) -> Iterator[Done]:
    """Read shards by processes of this machine."""
    gpus = torch.cuda.device_count() if args.device != "cpu" else 0
    count = min(args.workers or gpus or os.cpu_count() or 1, len(shards))
    devices = get_context("spawn").Queue()
    names = cycle([f"cuda:{n}" for n in range(gpus)] or ["cpu"])
    for name in islice(names, count):
        devices.put(name)
    how: Any = {"mp_context": get_context("spawn"), "initializer": _start}
    with ProcessPoolExecutor(count, initargs=(devices, args, folder, run), **how) as pool:
        reading = [pool.submit(_read_by_this_process, shard) for shard in shards]
        try:
            yield from (each.result() for each in as_completed(reading))
        except BrokenProcessPool as error:
            raise KBertError(DIED) from error
        finally:
            pool.shutdown(cancel_futures=True)


_worker: Worker  # of a process that reads shards


def _start(devices: Any, args: Namespace, folder: str, run: Mapping[str, str]) -> None:
    """Make this process a worker, which ends with the one that started it."""
    global _worker
    args.device = devices.get()
    _worker = Worker(args, folder, run)
    end_with_parent()


def _read_by_this_process(shard: Shard) -> Done:
    return _worker.read(shard)


def _on_a_cluster(
    args: Namespace, folder: str, run: Mapping[str, str], shards: Sequence[Shard]
) -> Iterator[Done]:
    """Read shards by actors of a Ray cluster."""
    try:
        import ray
        from ray.util import ActorPool
    except ImportError as error:
        raise MissingPackageError(
            "A corpus is read on several machines by Ray, which isn't installed here. Install it: "
            "pip install 'kbert-lab[corpus]'"
        ) from error
    try:
        host, _, port = args.cluster.rpartition(":")
        socket.create_connection((host, int(port)), timeout=10).close()  # Ray tries for minutes
        ray.init(address=args.cluster, log_to_driver=False, logging_level="ERROR")
    except (OSError, ValueError, RuntimeError) as error:
        raise OptionError(
            f"No Ray cluster answers at {args.cluster} ({error}). Start it with `ray start "
            "--head`, and give its address as HOST:PORT."
        ) from error
    try:
        there = ray.cluster_resources()
        gpus = int(there.get("GPU", 0)) if args.device != "cpu" else 0
        if gpus:
            args.device = "cuda"  # the one that Ray gives it
        count = min(args.workers or gpus or int(there["CPU"]), len(shards))
        how: Any = {"num_cpus": 1, "num_gpus": 1 if gpus else 0}
        how |= {"max_restarts": -1, "max_task_retries": TRIES - 1}
        start: Any = ray.remote(Worker).options(**how).remote
        pool = ActorPool([start(args, folder, run) for _ in range(count)])
        yield from pool.map_unordered(lambda worker, shard: worker.read.remote(shard), shards)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error
    except ray.exceptions.RayActorError as error:
        raise KBertError(DIED) from error
    finally:
        ray.shutdown()
