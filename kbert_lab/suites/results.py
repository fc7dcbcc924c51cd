"""The results of a suite: its runs in one file, what they were made from, what they say together.

The file is written whole or not at all, and read back checked. What a run depends
on is kept in it as ``inputs``, contents as hashes, so that a stale one can say what
has changed. :class:`Tables` holds all of a suite, for the report.
"""

import hashlib
import json
import logging
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, asdict, dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any, Literal

import torch
import transformers
from filelock import FileLock

from kbert_core.checkpoints.checkpoint import CARD_KEY
from kbert_core.errors import CheckpointError, DataError, ExperimentError
from kbert_core.files import replaced
from kbert_core.kbert.visible import FULL, Ablation
from kbert_core.knowledge.io.compression import PROBLEMS, open_unpacked, packing
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.surface_forms import BASIC
from kbert_core.options import option_fields
from kbert_lab.files import or_refused
from kbert_lab.study.statistics import (
    METRICS,
    RESAMPLES,
    Difference,
    Metric,
    Resampled,
    Score,
    Spread,
    unpacked,
)
from kbert_lab.suites.suite import Baseline, Run, Suite, slug
from kbert_lab.training.options import Recipe, TrainOptions

FORMAT = 1
State = Literal["done", "stale", "left", "failed"]
Key = tuple[Any, ...]  # of a result: mostly its row and seed
Pair = tuple[str, str]  # a comparison: one row minus another
log = logging.getLogger(__name__)
GROUPS = {"injection": InjectionOptions, "ablation": Ablation, "recipe": Recipe}  # of options


@contextmanager
def whole(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that is there whole or not at all; DataError if it can't be written."""
    remedy = "Free some space and run the same command again: it goes on where it was."
    with or_refused(path, DataError, remedy):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced(path) as file:
            yield file


def write_json(path: Path, data: Any) -> None:
    """Write a JSON file; see ``whole`` for errors."""
    text = json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False)
    with whole(path) as file:
        file.write(f"{text}\n".encode())


class Records:
    """Results in one packed file, ``.jsonl.xz``: a JSON a line, one for each key.

    A new result takes the place of the one with its key. The file is written anew then,
    whole or not at all, and processes that write to one file take turns.

    Args:
        path: the file, which needn't be there yet.
        by: the values of a result that make its key.
    """

    def __init__(self, path: Path, by: Sequence[str] = ("row", "seed")) -> None:
        self.path, self._by = path, by
        self._read_at: tuple[int, ...] = ()
        self._kept: Mapping[Key, dict[str, Any]] = {}

    def all(self) -> Mapping[Key, dict[str, Any]]:
        """All results, none where there is no file.

        Raises:
            DataError: the file is broken, or of another version.
        """
        try:
            there = self.path.stat()
        except FileNotFoundError:
            return {}
        stamp = there.st_ino, there.st_mtime_ns, there.st_size
        if stamp != self._read_at:
            self._kept, self._read_at = self._read(), stamp
        return self._kept

    def add(self, results: Iterable[Mapping[str, Any]]) -> None:
        """Keep results; see ``whole`` and ``all`` for errors."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self.path.with_suffix(".lock")):
            kept = {**self.all(), **{self._key(result): result for result in results}}
            with whole(self.path) as file, packing(file, self.path.name) as packed:
                for key in sorted(kept):
                    line = json.dumps(kept[key], ensure_ascii=False, allow_nan=False)
                    packed.write(f"{line}\n".encode())

    def _key(self, result: Mapping[str, Any]) -> Key:
        return tuple(result[name] for name in self._by)

    def _read(self) -> dict[Key, dict[str, Any]]:
        again = "Restore the file, or delete it to have its runs made again."
        try:
            with open_unpacked(self.path) as file:
                results = [json.loads(line) for line in file]
        except (*PROBLEMS, ValueError) as error:
            raise DataError(f"{self.path}: can't be read ({error}). {again}") from error
        for number, result in enumerate(results, start=1):
            keys = result.keys() if isinstance(result, dict) else ()
            if not {*self._by} <= {*keys} or result.get("format") != FORMAT:
                raise DataError(
                    f"{self.path}, line {number}: no result of this version (format {FORMAT}). "
                    f"{again}"
                )
        return {self._key(result): result for result in results}


# What a result was made from


def hash_of(files: Sequence[Path]) -> str:
    """Hash the contents of files, in order; DataError if one can't be read."""
    digest = hashlib.sha256()
    for file in files:
        with or_refused(file, DataError, "Check the name.", doing="read"):
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def config_hash(folder: Path) -> str:
    """Of an encoder's config, without what its card only notes."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        config.get(CARD_KEY, {}).pop("notes", None)
    except (OSError, ValueError, AttributeError) as error:
        raise CheckpointError(
            f"{folder}: no readable config.json ({error}). Name the folder of an encoder."
        ) from error
    return hashlib.sha256(canonical(config).encode()).hexdigest()[:8]


def canonical(data: Any) -> str:
    """As JSON that is the same for the same data."""
    return json.dumps(data, sort_keys=True, ensure_ascii=False, default=asdict)


def without_defaults(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """A cell's inputs as read from JSON, without options that have their default value.

    So an option that is new doesn't make old results stale.
    """
    plain: dict[str, Any] = json.loads(canonical(inputs))
    if "over" in plain:
        plain["over"] = without_defaults(plain["over"])
    if "options" in plain:
        options = _changed(TrainOptions, plain["options"], ablation=FULL)
        plain["options"] = {
            name: _changed(GROUPS[name], value, names=BASIC) if name in GROUPS and value else value
            for name, value in options.items()
        }
    return plain


def _changed(kind: type, values: Mapping[str, Any], **usual: Any) -> dict[str, Any]:
    """Options of a dataclass whose values aren't the usual or default ones."""
    for name, option in option_fields(kind).items():
        made = option.default if option.default_factory is MISSING else option.default_factory()
        usual.setdefault(name, made)
    return {
        name: value
        for name, value in values.items()
        if name not in usual or value != json.loads(canonical(usual[name]))
    }


def differences(was: Any, is_: Any, where: str = "") -> list[str]:
    """What has changed between two inputs, in words."""
    if isinstance(was, dict) and isinstance(is_, dict):
        return [
            text
            for key in sorted({*was, *is_})
            for text in differences(was.get(key), is_.get(key), f"{where}.{key}".strip("."))
        ]
    if was == is_:
        return []
    if where.endswith("sha256"):
        if is_ is None:  # can't be read here
            return []
        return [f"{where.removesuffix('.sha256')} has another content"]
    if isinstance(was, list) and isinstance(is_, list) and len(was) == len(is_):
        return [t for a, b in zip(was, is_, strict=True) for t in differences(a, b, where)]
    texts = ["unset" if v is None else json.dumps(v, ensure_ascii=False) for v in (was, is_)]
    old, new = (text if len(text) <= 80 else text[:77] + "..." for text in texts)
    return [f"{where} was {old} and is {new}"]


# What a result was made with


def versions() -> dict[str, Any]:
    """Versions of what a result is made with, and the machine."""
    try:
        ours = version("kbert-lab")
    except PackageNotFoundError:
        ours = "not installed"
    return {
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "kbert-lab": ours,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "cpu": processor(),
        "cuda": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }


CPU_INFO = Path("/proc/cpuinfo")  # on Linux


def processor() -> str:
    """The model of this machine's processor and what tells its generation; sums may differ by it.

    Clouds hide the number of the model: "AMD EPYC" is said of four generations. Family, model and
    stepping tell them apart on Linux, and everywhere the widest vectors that PyTorch uses.
    """
    vectors = torch.backends.cpu.get_cpu_capability()
    lines = CPU_INFO.read_text(encoding="utf-8").splitlines() if CPU_INFO.is_file() else []
    said = {name.strip(): value.strip() for name, _, value in (li.partition(":") for li in lines)}
    parts = [f"{name} {said[name]}" for name in ("cpu family", "model", "stepping") if name in said]
    name = said.get("model name", platform.processor() or platform.machine())
    return f"{name} ({', '.join([*parts, vectors])})"


# All results of a suite


@dataclass(frozen=True)
class Cell:
    """One row at one seed."""

    row: Run | Baseline
    seed: int

    def __str__(self) -> str:
        return f"{self.row.name}, seed {self.seed}"

    @property
    def key(self) -> Key:
        """Of its result among those of a suite."""
        return self.row.name, self.seed

    @property
    def file_name(self) -> str:
        """What its files' names begin with."""
        return f"{slug(self.row.name)}-seed{self.seed}"


@dataclass(frozen=True)
class Status:
    """How a cell stands."""

    cell: Cell
    state: State
    reason: str = ""  # what has changed, or the error
    seconds: float | None = None  # that it took, if it was ever done
    unchecked: Mapping[str, str] = field(default_factory=dict)  # what can't be read here → why


@dataclass(frozen=True, eq=False)
class Tables:
    """What the results of a suite say."""

    suite: Suite  # what was run
    results: Mapping[str, Mapping[int, Mapping[str, Any]]]  # by row and seed, as their JSON says
    outdated: Sequence[Status] = ()  # cells whose result is of something else; left out
    unchecked: Mapping[str, str] = field(default_factory=dict)  # what can't be read here → why
    resamples: int = RESAMPLES  # for the statistics

    def check_same(self) -> None:
        """Refuse results of which an encoder or the data changed between two runs."""
        origins: dict[Any, tuple[str, str]] = {}  # what, and of which seed → its hash, a row of it
        for row, of_seed in self.results.items():
            for seed, result in of_seed.items():
                inputs = result["inputs"]
                data = inputs["data"]
                digests: dict[Any, str] = {("the data", seed, data.get("unseen")): data["sha256"]}
                if encoder := inputs.get("over", inputs).get("encoder"):
                    digests[f"the encoder {encoder['name']}", None] = encoder["sha256"]
                for origin, digest in digests.items():
                    before, first = origins.setdefault(origin, (digest, row))
                    if digest != before:
                        raise ExperimentError(
                            f"{self.suite.name}: {origin[0]} changed between '{first}' and "
                            f"'{row}', seed {seed}. Run the suite again: "
                            f"`kbert experiment {self.suite.path.name}`."
                        )

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The task's metrics, the main one first; without a covering graph, those without it."""
        every, covered = METRICS[self.suite.task], self.suite.covered_by
        return tuple(metric for metric in every if covered or "covered" not in metric.below)

    @property
    def main_metrics(self) -> tuple[Metric, ...]:
        """Those that differences and pictures are of."""
        return self.metrics[:2]

    def done(self, row: Run | Baseline) -> int:
        """How many seeds of a row are there and up to date."""
        return len(self.results.get(row.name, {}))

    def lacking(self, row: Run | Baseline) -> str:
        """What a row's figures lack, as in "1 of 3 seeds"; empty where nothing."""
        done, planned = self.done(row), len(row.seeds)
        return f"{done} of {planned} seeds" if done < planned else ""

    def values(self, row: str | None, *keys: str) -> list[Any]:
        """What stands under some keys in each result of a row, or of all; None is left out."""
        names = self.results if row is None else [row]
        values: list[Any] = [r for name in names for r in self.results.get(name, {}).values()]
        for key in keys:
            values = [value.get(key) for value in values if isinstance(value, Mapping)]
        return [value for value in values if value is not None]

    def spread(self, row: str, *keys: str) -> Spread | None:
        """Mean and deviation of what stands under some keys in the results of a row."""
        values = self.values(row, *keys)
        return Spread.of(values) if values else None

    @cached_property
    def labels(self) -> dict[str, list[int]]:
        """The labels of test's entities, and how many each seed has of each."""
        gold: dict[str, dict[int, int]] = {}
        for seed, result in (item for of in self.results.values() for item in of.items()):
            for label, scores in result["scores"].get("test", {}).get("by_label", {}).items():
                gold.setdefault(label, {})[seed] = scores["gold"]
        return {label: list(gold[label].values()) for label in sorted(gold)}

    @cached_property
    def resampled(self) -> Resampled:
        """The statistics over all rows."""
        counts = {
            row: {
                seed: unpacked(result["sentences"], result["inputs"]["data"]["sha256"])
                for seed, result in of_seed.items()
                if "sentences" in result
            }
            for row, of_seed in self.results.items()
        }
        data = {seed: c.data for of_seed in counts.values() for seed, c in of_seed.items()}
        for row in self.suite.baselines:  # without a model a seed changes nothing but the data
            for one in [*counts.get(row.name, {}).values()] if row.over is None else ():
                same = {seed: one for seed, of in data.items() if of == one.data}
                counts[row.name] = same | counts[row.name]
        return Resampled(counts, resamples=self.resamples)

    def score(self, row: str, metric: Metric) -> Score | None:
        """A row's score on test."""
        return self.resampled.score(row, metric)

    @property
    def pairs(self) -> list[Pair]:
        """Every comparison: with the run without knowledge, and what the suite compares besides.

        An oracle knows the answers, and is compared with none.
        """
        rows = (row for row in self.suite.rows if getattr(row, "judge", None) != "oracle")
        pairs = [(row.name, row.compare_with) for row in rows]
        planned = [(name, other) for name, other in pairs if other is not None and name != other]
        return list(dict.fromkeys([*planned, *self.suite.also_compare]))

    def differences(self, metric: Metric) -> dict[Pair, Difference]:
        """Every comparison that there are results for."""
        found = {pair: self.resampled.difference(*pair, metric) for pair in self.pairs}
        return {pair: difference for pair, difference in found.items() if difference is not None}

    def summary(self) -> Mapping[str, Any]:
        """The main figures of every row, for JSON."""
        stale = {status.cell.row.name for status in self.outdated}
        rows: dict[str, Any] = {}
        for row in self.suite.rows:
            rows[row.name] = {"seeds": self.done(row), "stale": row.name in stale}
            for metric in self.metrics:
                if s := self.score(row.name, metric):
                    score = {"mean": s.mean, "deviation": s.deviation, "interval": [s.low, s.high]}
                    rows[row.name][metric.name] = score
        return rows
