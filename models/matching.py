"""Make `matching-zh` and its twin: nothing is chosen on a test set, which is read once.

    python models/matching.py                     # all of it, about an hour of one core
    python models/matching.py --only matching-zh  # train one of the two and stop

LCQMC and BQ come without a training set here: their dev sets train, beside ATEC's training set. Of
each, as many pairs of either label are taken, none that shares a text with a test set; a tenth is
dev, which shares no text with the rest. The epoch is chosen on dev. Beside the models stands what
counting shared characters gets, with the threshold that is best on train. Train and dev go to
``--work``; the summary stands in ``results/matching.json``. What is trained isn't trained again.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from kbert_core.labels import RIGHT, WRONG
from kbert_lab.data.labelled import Example, read_examples
from kbert_lab.data.splits import write_rows

RESULT = Path(__file__).resolve().parents[1] / "results" / "matching.json"
SETS = {  # what trains, and what tests
    "LCQMC": ("lcqmc/dev_as_train.tsv", "lcqmc/test.tsv"),
    "BQ": ("bq/dev_as_train.tsv", "bq/test.tsv"),
    "ATEC": ("atec_finance/train.tsv", "atec_finance/test.tsv"),
}
DEV_SHARE, SEED = 0.1, 1
MODELS = {
    "matching-zh": (
        *("--kg", "$KBERT_DATA/kbert/HowNet.spo"),
        *("--max-triples", "1", "--names", "width", "case", "--tail-only", "--tree-dropout", "0.1"),
    ),
    "matching-zh-bert": (),
}


def balanced(pairs: Sequence[Example], never: Collection[str], seed: int) -> list[Example]:
    """Take as many pairs of either label, drawn at random, and none with a text of ``never``."""
    some = [pair for pair in pairs if not any(text in never for text in pair.sentences)]
    order = np.random.default_rng(seed).permutation(len(some)).tolist()
    by_label = {label: [n for n in order if some[n].label == label] for label in (RIGHT, WRONG)}
    least = min(map(len, by_label.values()))
    return [some[n] for n in sorted(n for of in by_label.values() for n in of[:least])]


def apart(pairs: Sequence[Example], share: float, seed: int) -> tuple[list[Example], list[Example]]:
    """Divide pairs into train and a share for dev, so that no text stands in both."""
    chains = nx.connected_components(nx.Graph(pair.sentences for pair in pairs))
    chain = {text: number for number, texts in enumerate(chains) for text in texts}
    sizes = Counter(chain[pair.sentences[0]] for pair in pairs)
    held, count = set(), 0
    for number in np.random.default_rng(seed).permutation(len(sizes)).tolist():
        if count < share * len(pairs):
            held.add(number)
            count += sizes[number]
    parts: tuple[list[Example], list[Example]] = ([], [])
    for pair in pairs:
        parts[chain[pair.sentences[0]] in held].append(pair)
    return parts


def pairs_of(file: str) -> list[Example]:
    """Read a file of the data folder."""
    return read_examples(os.path.expandvars(f"$KBERT_DATA/pair/{file}"), "pair")


def shared(pair: Example) -> float:
    """Return the share of the characters of both texts that both have."""
    one, two = (Counter(text) for text in pair.sentences)
    return (one & two).total() / max(1, (one | two).total())


def counted(train: Sequence[Example], test: Sequence[Example]) -> float:
    """Accuracy of saying that two texts mean the same if they share enough characters."""
    known = np.array([pair.label == RIGHT for pair in train])
    shares = np.array([shared(pair) for pair in train])
    least = max(np.unique(shares), key=lambda share: ((shares >= share) == known).mean())
    return float(np.mean([(shared(pair) >= least) == (pair.label == RIGHT) for pair in test]))


def kbert(*words: str) -> dict[str, Any]:
    """Run a command; return what it printed, and the command."""
    told = " ".join(("kbert", *words)).replace("$KBERT_DATA", '"$KBERT_DATA"')
    run = [sys.executable, "-m", "kbert_lab.cli", *map(os.path.expandvars, words), "--json"]
    done = subprocess.run(run, stdout=subprocess.PIPE, check=True, text=True)
    return {"command": told, **json.loads(done.stdout)}


def main() -> None:
    """Divide the pairs, train the two, test them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", choices=MODELS, help="train one of the two and stop")
    parser.add_argument("--work", type=Path, default=Path("runs/matching"))
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    tested = {t for _, test in SETS.values() for pair in pairs_of(test) for t in pair.sentences}
    parts = [
        apart(balanced(pairs_of(file), tested, SEED), DEV_SHARE, SEED) for file, _ in SETS.values()
    ]
    train, dev = ([p for of_set in rows for p in of_set] for rows in zip(*parts, strict=True))
    write_rows(args.work / "train.tsv", train)
    write_rows(args.work / "dev.tsv", dev)
    files = ("--train", f"{args.work}/train.tsv", "--dev", f"{args.work}/dev.tsv")
    how = ("--encoder", "models/zh-mini", "--adapter", "8", "--epochs", "6", "--seed", str(SEED))
    made = {
        name: kbert(
            *("train", "--task", "pair", *files, "--batch-tokens", "2048", *how, *knowledge),
            *("--output", f"models/{name}"),
        )
        for name, knowledge in MODELS.items()
        if args.only in (None, name)
    }
    if args.only:
        return
    read = []
    for name, knowledge in MODELS.items():
        for data, (_, test) in SETS.items():
            place = ("--data", f"$KBERT_DATA/pair/{test}", *knowledge[:2])
            said = kbert("evaluate", "--model", f"models/{name}", *place)
            off = said.get("without_knowledge", {})
            accuracy = {"accuracy": said["scores"]["accuracy"], "graph off": off.get("accuracy")}
            read.append({"model": name, "data": data, "command": said["command"], **accuracy})
    kept = "command", "learning_curve", "scores"
    told = {
        "pairs, of train and dev": {s: [*map(len, of)] for s, of in zip(SETS, parts, strict=True)},
        "trained": {name: {n: said[n] for n in kept} for name, said in made.items()},
        "tested once": read,
        "counting shared characters": {
            data: counted(train, pairs_of(test)) for data, (_, test) in SETS.items()
        },
    }
    text = json.dumps(told, indent=1, ensure_ascii=False)
    RESULT.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
