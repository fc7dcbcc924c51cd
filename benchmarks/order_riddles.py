"""Trained ablations of notebook 7b: riddles that need the sentence's order and the graph.

    python -m benchmarks.order_riddles

Every row is trained from scratch by several seeds, as many runs at a time as there
are cores; one takes about a minute. What is done is kept in
results/order_riddles.json, so what was cut off goes on.
"""

import json
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "notebooks"))

from _riddles import ROWS, TRAINING, train_row  # noqa: E402

RESULTS = ROOT / "results" / "order_riddles.json"
SEEDS = (1, 2, 3)
OPTIONS = replace(TRAINING, steps=1500, every=100)


def run(row: str, seed: int) -> dict[str, Any]:
    """Train one row by one seed."""
    torch.set_num_threads(1)
    began = time.process_time()
    made = train_row(row, seed=seed, options=OPTIONS)
    of = made.riddles
    return {
        "row": row,
        "seed": seed,
        "curve": [
            {name: round(value, 4) for name, value in asdict(point).items()} for point in made.curve
        ],
        "more triples": round(made.more, 4),
        "ceilings": [round(of.ceiling(some), 4) for some in (of.unseen, of.more)],
        "cpu seconds": round(time.process_time() - began, 1),
    }


def planned() -> list[tuple[str, int]]:
    """Every run: row and seed."""
    return [(row, seed) for seed in SEEDS for row in ROWS]


def main() -> None:
    """Run what is missing, and keep it."""
    found: dict[str, Any] = {"runs": []}
    if RESULTS.is_file():
        found = json.loads(RESULTS.read_text(encoding="utf-8"))
    done = {(one["row"], one["seed"]) for one in found["runs"]}
    found |= {"command": "python -m benchmarks.order_riddles", "training": asdict(OPTIONS)}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(cores, mp_context=spawn) as pool:
        runs = [pool.submit(run, *one) for one in planned() if one not in done]
        for future in as_completed(runs):
            one = future.result()
            found["runs"].append(one)
            found["runs"].sort(key=lambda one: planned().index((one["row"], one["seed"])))
            last = one["curve"][-1]
            print(
                f"{one['row']:26} seed {one['seed']}: unseen names {last['unseen']:.2f}, more "
                f"triples {one['more triples']:.2f}, {one['cpu seconds']:.0f} s",
                flush=True,
            )
            RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
