"""`kbert predict --data` beside one process of `kbert predict --file`: the same texts and graph.

First, in this process on one thread, in turns: the CPU seconds of a sentence as a worker reads it
and as the command for a file does; other work on the machine weighs on both alike. Then, on a
private Ray of this machine, wall clock with one worker and two and with one process, from an eighth
of the sentences on; this says something where little else runs, and `--cpu` leaves it out. One and
two workers must write the same files.
"""

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForTokenClassification

from benchmarks.common import data_folder, machine, spread, write
from kbert_core.knowledge.io import open_rows
from kbert_lab.data.labelled import read_examples
from kbert_lab.graphs.store.importing import Source, import_triples

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from ray_cluster import running_ray  # before Ray

from kbert_lab import cli
from kbert_lab.cli import read
from kbert_lab.cli.commands import call, loaded
from kbert_lab.cli.corpus import Worker
from kbert_lab.data.shards import find_shards

ROOT = Path(__file__).parents[1]
MODEL = ROOT / "models" / "medical-ner-kbert"
PER_SHARD, AIM, SENTENCES = 1_000, 1.8, 50_000_000
NODE, NODES = 16, (1, 8, 64)  # cores; nodes
LARGE = 160  # texts for BERT base
FILE, FILE_2 = "one process, one thread", "one process, two threads"
ONE, TWO = "one worker", "two workers"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--texts", type=int, default=12_000, help="whole thousands")
    parser.add_argument("--rounds", type=int, default=3, help="at least 2; default: 3")
    parser.add_argument("--cpu", action="store_true", help="leave wall clock out")
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        measure(args, Path(folder))


def measure(args: argparse.Namespace, folder: Path) -> None:
    data, kg = data_folder() / "kbert", folder / "graph.kg"
    triples = import_triples(kg, [Source("Medical.spo", open_rows(data / "Medical.spo"))]).triples
    examples = read_examples(data / "medical_ner" / "train.tsv", "ner")
    texts = [examples[n % len(examples)].sentences[0] for n in range(args.texts)]
    shards = args.texts // PER_SHARD
    write_texts(folder, texts, shards)
    result: dict[str, Any] = {
        "what": "sentences a second: a corpus in parallel, beside one process",
        "machine": machine("torch", "transformers", "ray", "pyarrow"),
        "load before": [round(each, 1) for each in os.getloadavg()],
        "aim": AIM,
        "texts": args.texts,
        "characters": round(sum(map(len, texts)) / len(texts), 1),
        "triples": triples,
        "shards": shards,
        "rounds": args.rounds,
    }
    rates: dict[str, list[float]] = {FILE: [], ONE: []}
    for turn in range(args.rounds):
        for way in list(rates)[:: 1 if turn % 2 else -1]:
            rates[way].append(args.texts / cpu_of(way, MODEL, kg, folder))
    size = sum(file.stat().st_size for file in (folder / f"{ONE}-out").glob("*.parquet"))
    result["sentences a CPU second"] = {way: spread(each) for way, each in rates.items()}
    ratios = [one / file for one, file in zip(rates[ONE], rates[FILE], strict=True)]
    result["worker, times one process"] = spread(ratios)
    result["bytes a sentence of results"] = round(size / args.texts)
    if not args.cpu:
        with running_ray(workers=2) as address:
            result |= wall_clock(args, kg, folder, address)
    write_texts(folder, texts[:LARGE], 1)
    rate = LARGE / cpu_of(ONE, bert_base(folder / "base"), kg, folder)
    result["BERT base, sentences a CPU second"] = round(rate, 1)
    result["hours for 50 million sentences"] = {
        name: {str(n): float(f"{SENTENCES / each / NODE / n / 3600:.3g}") for n in NODES}
        for name, each in (("medical-ner-kbert", median(rates[ONE])), ("BERT base", rate))
    }
    print(json.dumps(result, indent=1, ensure_ascii=False))
    write("corpus.json", result)


def write_texts(folder: Path, texts: list[str], shards: int) -> None:
    """The same texts as one file and as a corpus."""
    shutil.rmtree(folder / "corpus", ignore_errors=True)
    (folder / "corpus").mkdir()
    (folder / "all.txt").write_text("\n".join(texts), encoding="utf-8")
    for number, some in enumerate(np.array_split(texts, shards)):
        (folder / "corpus" / f"{number:02}.txt").write_text("\n".join(some), encoding="utf-8")


def bert_base(folder: Path) -> Path:
    """A BERT of base size with random weights: as many multiplications as a trained one."""
    config = AutoConfig.from_pretrained(MODEL)
    sizes = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
    config.update({**sizes, "intermediate_size": 3072})
    AutoModelForTokenClassification.from_config(config).save_pretrained(folder)
    for file in MODEL.glob("token*"):
        shutil.copy(file, folder)
    return folder


def command_of(way: str, model: Path, kg: Path, folder: Path) -> list[str]:
    command = ["predict", "--model", model, "--kg", kg, "--device", "cpu"]
    if way in (ONE, TWO):
        output = folder / f"{way}-out"
        shutil.rmtree(output, ignore_errors=True)
        command += ["--data", folder / "corpus", "--output", output]
    else:
        command += ["--file", folder / "all.txt"]
    return [*map(str, command)]


def cpu_of(way: str, model: Path, kg: Path, folder: Path) -> float:
    """CPU seconds for all texts, in this process, when model and graph are loaded."""
    command = command_of(way, model, kg, folder)
    args = cli.parser(command[:1]).parse_args(command)
    with ExitStack() as args.until_its_end:
        made = loaded(args)
        if way == ONE:
            worker = Worker(args, os.getcwd(), {})
            worker._loaded = made
            shards = find_shards(folder / "corpus")
            begun = time.process_time()
            done = [worker.read(shard) for shard in shards]
            assert not any(each.refused for each in done)
        else:
            begun = time.process_time()
            with redirect_stdout(io.StringIO()), patch.object(read, "loaded", return_value=made):
                call(args.command.run, args)
        return time.process_time() - begun


def wall_clock(args: argparse.Namespace, kg: Path, folder: Path, address: str) -> dict[str, Any]:
    """Every way on the whole machine, in turn."""
    ways: dict[str, list[dict[str, float]]] = {name: [] for name in (FILE, FILE_2, ONE, TWO)}
    for turn in range(args.rounds):
        for way in list(ways)[:: 1 if turn % 2 else -1]:
            ways[way].append(run(way, args.texts, kg, folder, address))
            print(way, ways[way][-1], flush=True)
    first, second = (folder / f"{way}-out" for way in (ONE, TWO))
    if contents(first) != contents(second):
        sys.exit("One and two workers wrote different files.")
    return {
        "wall clock": {
            way: {key: spread([each[key] for each in found]) for key in found[0]}
            for way, found in ways.items()
        },
        "two workers, times": {
            way: spread(
                [two["rate"] / one["rate"] for two, one in zip(ways[TWO], found, strict=True)]
            )
            for way, found in ways.items()
        },
        "load then": [round(each, 1) for each in os.getloadavg()],
    }


def run(way: str, total: int, kg: Path, folder: Path, address: str) -> dict[str, float]:
    """Run one way: its sentences a second after an eighth of them, and what the start takes."""
    command, printed = command_of(way, MODEL, kg, folder), folder / "lines"
    printed.write_bytes(b"")
    lines = lines_in(printed)
    if way in (ONE, TWO):
        command += ["--cluster", address, "--workers", "1" if way == ONE else "2"]

    def done() -> int:
        if way in (ONE, TWO):
            return PER_SHARD * len([*(folder / f"{way}-out").glob("*.parquet")])
        return next(lines)

    begun = time.perf_counter()
    with printed.open("w") as stdout:
        process = subprocess.Popen(
            [sys.executable, "-m", "kbert_lab.cli", *command],
            **{"cwd": ROOT, "stdout": stdout, "stderr": subprocess.PIPE, "text": True},
            env={**os.environ, "OMP_NUM_THREADS": "2" if way == FILE_2 else "1"},
        )
        start = first = None
        while (count := done()) < total:
            if process.poll() is not None and done() < total:
                sys.exit(f"{way}: {process.communicate()[1]}")
            now = time.perf_counter()
            start = start or (count and now - begun)
            if not first and count >= total / 8:
                first = count, now
            time.sleep(0.05)
        now = time.perf_counter()
        process.communicate()
    assert start and first and process.returncode == 0
    return {"rate": (total - first[0]) / (now - first[1]), "seconds to the first": start}


def lines_in(path: Path) -> Iterator[int]:
    """How many lines a growing file has."""
    count = 0
    with path.open("rb") as file:
        while True:
            count += file.read().count(b"\n")
            yield count


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.glob("*.parquet"))}


if __name__ == "__main__":
    main()
