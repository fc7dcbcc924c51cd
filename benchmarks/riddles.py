"""The paper's Figure 5 on knowledge riddles: which of K-BERT's parts does what, at this size.

    python -m benchmarks.riddles

Every row is trained from scratch by three seeds, each with names of its own
held out, once with one triple a mention and once with up to five. What is
done is kept in results/riddles.json, so a run that was cut off goes on.
"""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from kbert_core.kbert.visible import FULL, Ablation
from kbert_core.knowledge import load_graph
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.tools.controls import shuffled
from kbert_core.pipeline import NO_KNOWLEDGE

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "notebooks"))

from _riddle_trial import KIND_ALONE, TrialOptions, trial  # noqa: E402
from _riddles import RiddleOptions, make_riddles  # noqa: E402

RESULTS = ROOT / "results" / "riddles.json"
GRAPHS = ("demo_kgs/general_en.spo", "demo_kgs/medical_en.spo")
SEEDS = (1, 2, 3)
INJECTIONS = {"one triple": KIND_ALONE, "up to five": InjectionOptions(max_triples=5)}
ROWS: dict[str, tuple[str, Ablation]] = {  # name → which graph, how trees are read
    "K-BERT": ("graph", FULL),
    "hard positions": ("graph", Ablation(positions="hard")),
    "everything visible": ("graph", Ablation(visible="all")),
    "both": ("graph", Ablation("hard", "all")),
    "shuffled graph": ("shuffled", FULL),
    "no knowledge (BERT)": ("none", FULL),
}
NO_INVENTED = "K-BERT, no invented names"


def graph() -> KnowledgeGraph:
    """What the riddles are made of."""
    return load_graph(*(ROOT / name for name in GRAPHS))


def run(row: str, injection: str, seed: int) -> dict[str, Any]:
    """Train one row by one seed."""
    plain = row == NO_INVENTED
    options = RiddleOptions(invented_share=0.0) if plain else RiddleOptions()
    riddles = make_riddles(graph(), options, seed=seed)
    kind, ablation = ("graph", FULL) if plain else ROWS[row]
    read = {
        "graph": lambda: riddles.graph,
        "shuffled": lambda: shuffled(riddles.graph, seed=seed).graph,
        "none": lambda: NO_KNOWLEDGE,
    }[kind]()
    began = time.process_time()
    made = trial(riddles, read, injection=INJECTIONS[injection], ablation=ablation, seed=seed)
    return {
        "row": row,
        "injection": injection,
        "seed": seed,
        "curve": [
            {name: round(value, 4) for name, value in asdict(point).items()} for point in made.curve
        ],
        "cpu seconds": round(time.process_time() - began, 1),
    }


def planned() -> Iterator[tuple[str, str, int]]:
    """Every run: row, injection and seed."""
    for seed in SEEDS:
        for injection in INJECTIONS:
            for row in (*ROWS, NO_INVENTED):
                yield row, injection, seed


def main() -> None:
    """Run what is missing, and keep it."""
    torch.set_num_threads(1)
    found: dict[str, Any] = {"runs": []}
    if RESULTS.is_file():
        found = json.loads(RESULTS.read_text(encoding="utf-8"))
    done = {(one["row"], one["injection"], one["seed"]) for one in found["runs"]}
    found |= {
        "command": "python -m benchmarks.riddles",
        "graphs": list(GRAPHS),
        "training": asdict(TrialOptions()),
        "chance": make_riddles(graph()).chance,
    }
    for row, injection, seed in planned():
        if (row, injection, seed) in done:
            continue
        one = run(row, injection, seed)
        found["runs"].append(one)
        last = one["curve"][-1]
        print(
            f"{injection:10}  {row:26} seed {seed}: names seen {last['seen']:.2f}, unseen "
            f"{last['unseen']:.2f}, {one['cpu seconds']:.0f} s",
            flush=True,
        )
        RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
