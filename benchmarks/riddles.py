"""Knowledge riddles of notebook 6: BERT, K-BERT, and K-BERT that can remember every name.

    python -m benchmarks.riddles

Every row is trained from scratch by three seeds, each with names of its own
held out. What is done is kept in results/riddles.json, so a run that was cut
off goes on.
"""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from kbert_core.knowledge import load_graph
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.pipeline import NO_KNOWLEDGE

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "notebooks"))

from _riddles import TrialOptions, make_riddles, trial  # noqa: E402

RESULTS = ROOT / "results" / "riddles.json"
GRAPHS = ("demo_kgs/general_en.spo", "demo_kgs/medical_en.spo")
SEEDS = (1, 2, 3)
KBERT, BERT = "K-BERT", "no knowledge (BERT)"
NO_INVENTED = "K-BERT, no invented names"
ROWS = (KBERT, BERT, NO_INVENTED)


def graph() -> KnowledgeGraph:
    """What the riddles are made of."""
    return load_graph(*(ROOT / name for name in GRAPHS))


def run(row: str, seed: int) -> dict[str, Any]:
    """Train one row by one seed."""
    riddles = make_riddles(graph(), invented=0 if row == NO_INVENTED else 0.5, seed=seed)
    began = time.process_time()
    made = trial(riddles, NO_KNOWLEDGE if row == BERT else riddles.graph, seed=seed)
    return {
        "row": row,
        "seed": seed,
        "curve": [
            {name: round(value, 4) for name, value in asdict(point).items()} for point in made.curve
        ],
        "cpu seconds": round(time.process_time() - began, 1),
    }


def planned() -> Iterator[tuple[str, int]]:
    """Every run: row and seed."""
    return ((row, seed) for seed in SEEDS for row in ROWS)


def main() -> None:
    """Run what is missing, and keep it."""
    torch.set_num_threads(1)
    found: dict[str, Any] = {"runs": []}
    if RESULTS.is_file():
        found = json.loads(RESULTS.read_text(encoding="utf-8"))
    done = {(one["row"], one["seed"]) for one in found["runs"]}
    found |= {
        "command": "python -m benchmarks.riddles",
        "graphs": list(GRAPHS),
        "training": asdict(TrialOptions()),
        "chance": make_riddles(graph()).chance,
    }
    for row, seed in planned():
        if (row, seed) in done:
            continue
        one = run(row, seed)
        found["runs"].append(one)
        last = one["curve"][-1]
        print(
            f"{row:26} seed {seed}: names seen {last['seen']:.2f}, unseen "
            f"{last['unseen']:.2f}, {one['cpu seconds']:.0f} s",
            flush=True,
        )
        RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
