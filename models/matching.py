"""Make `matching-zh` and its twin under one rule: chosen on dev, test read once.

    python models/matching.py                # all of it, about an hour and a half of one core
    python models/matching.py --only pairs   # train one candidate and stop

LCQMC's training set isn't at hand, so its dev set is cut in two: a tenth is dev, and shares no text
with the rest, by which a model could tell its labels. Each candidate trains an adapter over zh-mini
on other pairs. The best on dev is trained for one more epoch with HowNet (`matching-zh`) and
without (its twin), and these two alone read the test sets. What is done is kept in ``--work``; the
summary stands in ``results/matching_trials.json``.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from contrast_pairs import write_contrast_set
from kbert_core.data.labelled import Example, read_examples
from kbert_core.data.splits import write_rows

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "results" / "matching_trials.json"
PAIRS = "$KBERT_DATA/pair"
LCQMC, TEST = f"{PAIRS}/lcqmc/dev_as_train.tsv", f"{PAIRS}/lcqmc/test.tsv"
OTHERS = (f"{PAIRS}/bq/dev_as_train.tsv", f"{PAIRS}/atec_finance/train.tsv")
TESTS = {"LCQMC": TEST, "BQ": f"{PAIRS}/bq/test.tsv", "ATEC": f"{PAIRS}/atec_finance/test.tsv"}
DEV_SHARE, SEED = 0.1, 1
CONTRAST = "{work}/contrast.tsv"
CANDIDATES = {  # what is trained on beside LCQMC's pairs, and how long
    "pairs": ((), 6),
    "contrast": ((CONTRAST,), 3),
    "others": (OTHERS, 3),
}
HOWNET = ("--kg", "$KBERT_DATA/kbert/HowNet.spo", "--max-triples", "1", "--tail-only")
MODELS = {  # the last epoch
    "matching-zh": (*HOWNET, "--tree-dropout", "0.1"),
    "matching-zh-bert": (),
}


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


def kbert(*words: str) -> dict[str, Any]:
    """Run a command; return what it printed, and the command."""
    told = " ".join(("kbert", *words)).replace("$KBERT_DATA", '"$KBERT_DATA"')
    run = [sys.executable, "-m", "kbert_core.cli", *map(os.path.expandvars, words), "--json"]
    done = subprocess.run(run, stdout=subprocess.PIPE, check=True, text=True)
    return {"command": told, **json.loads(done.stdout)}


def trained(work: Path, name: str, encoder: str, more: Sequence[str], *how: str) -> dict[str, Any]:
    """Train an adapter on LCQMC's pairs and more, or take the one that is there."""
    files = ("--train", f"{work}/pairs.tsv", "--dev", f"{work}/dev.tsv")
    also = ("--also-train", *(file.format(work=work) for file in more)) if more else ()
    model = ("--encoder", encoder, "--adapter", "8", "--batch-tokens", "2048", "--seed", str(SEED))
    return kbert(
        "train", "--task", "pair", *files, *also, *model, *how, "--output", f"{work}/{name}"
    )


def main() -> None:
    """Divide, train the candidates, choose one, train the twins, test them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", choices=CANDIDATES, help="train this candidate and stop")
    parser.add_argument("--twin", choices=MODELS, help="train only this of the two, and stop")
    parser.add_argument("--work", type=Path, default=Path("runs/matching"))
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    train, dev = apart(read_examples(os.path.expandvars(LCQMC), "pair"), DEV_SHARE, SEED)
    write_rows(args.work / "pairs.tsv", train)
    write_rows(args.work / "dev.tsv", dev)
    write_contrast_set(args.work / "pairs.tsv", args.work / "contrast.tsv", seed=SEED)
    tried = {
        name: trained(args.work, name, "models/zh-mini", more, "--epochs", str(epochs))
        for name, (more, epochs) in CANDIDATES.items()
        if args.only in (None, name)
    }
    if args.only:
        return
    best = max(tried, key=lambda name: float(tried[name]["scores"]["dev"]["accuracy"]))
    more, how = CANDIDATES[best][0], ("--epochs", "1", "--learning-rate", "5e-4")
    twins = {
        name: trained(args.work, name, f"{args.work}/{best}", more, *how, *knowledge)
        for name, knowledge in MODELS.items()
        if args.twin in (None, name)
    }
    if args.twin:
        return
    tested = [
        {
            "data": data,
            **kbert("evaluate", "--model", f"{args.work}/{name}", "--data", file, *graph),
        }
        for name, knowledge in MODELS.items()
        for data, file in TESTS.items()
        for graph in ((), knowledge[:2])[: 1 + bool(knowledge)]
    ]
    kept = {"dev pairs": len(dev), "candidates": tried, "chosen": best, "twins": twins}
    RESULT.write_text(
        json.dumps({**kept, "tested once": tested}, indent=1, ensure_ascii=False) + "\n"
    )


if __name__ == "__main__":
    main()
