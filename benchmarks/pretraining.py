"""Ways to pretrain, compared by held-out loss after an equal time.

Each trial begins from nothing, with the same size, text and seed, and differs
from the first in one thing (a batch with the rate that suits it). It gets as
many steps as take the time that the first needs for --steps. How long its
steps take is measured beside the first's, by turns, as a machine's speed
varies in the course of a day: seconds of one CPU thread, or on CUDA seconds on
the clock. Held-out rows and masks are the same for all but the one with another
seed, which holds out other rows of the same text. It tells how much a
difference has to be to say anything.

The file holds two trials more, of ways that are no longer offered as they were
behind: words of two graphs masked whole, and tokens replaced, to be found.

Trials that are in the file already are skipped, and one that was cut off goes
on: its checkpoints are in --work.
"""

import argparse
import json
import logging
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch.utils.data import default_collate

from benchmarks.common import RESULTS, data_folder, machine, print_table, write
from kbert_core import KBertError
from kbert_lab.training.corpus import (
    MaskedRows,
    encode_passages,
    pack,
    read_passages,
)
from kbert_lab.training.options import PretrainOptions
from kbert_lab.training.pretrain import new_model, pretrain, total_loss
from kbert_lab.training.vocabulary import character_tokenizer

NAME = "pretraining.json"
FIRST = "masked LM, 2,048 tokens a step, rate 1e-3"
WARM, TURNS = 3, 20  # steps before, and from which, a trial's speed is measured
SAMPLE = 20_000  # passages that they read
log = logging.getLogger(__name__)


def trials() -> dict[str, dict[str, Any]]:
    """What each trial changes."""
    return {
        FIRST: {},
        f"{FIRST}, seed 2": {"seed": 2},
        "rate 5e-4": {"learning_rate": 5e-4},
        "rate 2e-3": {"learning_rate": 2e-3},
        "1,024 tokens a step, rate 7e-4": {"batch_tokens": 1024, "learning_rate": 7e-4},
        "4,096 tokens a step, rate 1.4e-3": {"batch_tokens": 4096, "learning_rate": 1.4e-3},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=2400, help="of the first; default: 2400")
    parser.add_argument("--only", metavar="TEXT", help="trials whose name holds this")
    parser.add_argument("--work", default="runs/pretraining", help="default: runs/pretraining")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.set_num_threads(1)
    data = data_folder()
    written = RESULTS / NAME
    for name, changes in trials().items():
        done = json.loads(written.read_text("utf-8")) if written.is_file() else {"trials": {}}
        if name in done["trials"] or (args.only and args.only not in name):
            continue
        options = PretrainOptions.of(
            text=(str(data / "text" / "zh_modern_mix.txt.xz"),),
            output=str(Path(args.work) / name),
            seed=1,
            save_every=250,
            device=args.device,
        )
        log.info("%s", name)
        try:
            found = trial(options, changes, args.steps)
        except KBertError as error:
            raise SystemExit(str(error)) from error
        keep(name, found, args)
    if written.is_file():
        report(json.loads(written.read_text("utf-8"))["trials"])


def trial(options: PretrainOptions, changes: dict[str, Any], first: int) -> dict[str, Any]:
    """Pretrain for as long as the first trial's steps take.

    Returns:
        Steps, what a step takes beside one of the first trial, tokens seen,
        the held-out scores and their curve, and seconds where it wasn't cut off.
    """
    changed = options.changed(**changes)
    noted = Path(options.run.output) / "cost.json"
    if not noted.is_file():
        alike = not changes.keys() - {"learning_rate", "seed"}
        cost = 1.0 if alike else cost_of_a_step(options, changed)
        noted.parent.mkdir(parents=True, exist_ok=True)
        noted.write_text(json.dumps(cost))
    cost = json.loads(noted.read_text())
    cut_off = (noted.parent / "checkpoints").is_dir()
    begun = clock(options.run.device)
    found = pretrain(changed.changed(steps=round(first / cost)))
    return {
        "steps": round(first / cost),
        "cost_of_a_step": round(cost, 3),
        "tokens": found["tokens_seen"],
        **({} if cut_off else {"seconds": round(clock(options.run.device) - begun)}),
        **{name: round(found[name], 4) for name in ("loss", "perplexity", "accuracy")},
        "curve": curve_of(options.run.output),
    }


def curve_of(output: str) -> list[list[float]]:
    """Held-out losses while it was trained: [step, nats] each."""
    kept = json.loads((Path(output) / "pretraining.json").read_text("utf-8"))
    return [[point["step"], round(point["loss"], 4)] for point in kept["history"]]


def cost_of_a_step(options: PretrainOptions, changed: PretrainOptions) -> float:
    """The time that a step takes as changed, in steps as they were.

    A step of each by turns, on a part of the text; the median of their ratios.
    """
    first, other = step_of(options), step_of(changed)
    ratios = []
    for turn in range(WARM + TURNS):
        taken = []
        for step in (first, other):
            begun = clock(options.run.device)
            step(turn)
            taken.append(clock(options.run.device) - begun)
        ratios.append(taken[1] / taken[0])
    return median(ratios[WARM:])


def step_of(options: PretrainOptions) -> Callable[[int], None]:
    """One optimiser step of a new model as a function of its number."""
    passages = list(islice(read_passages(options.corpus.text), SAMPLE))
    tokenizer = character_tokenizer(
        passages, size=options.corpus.vocabulary_size, min_count=options.corpus.min_count
    )
    corpus = encode_passages(passages, tokenizer, max_length=options.corpus.row_length)
    rows = MaskedRows(
        corpus,
        pack(corpus, max_length=options.corpus.row_length, seed=options.run.seed),
        tokenizer,
        count=(WARM + TURNS) * options.rows,
        max_length=options.corpus.row_length,
        positions=options.bert.max_positions,
        seed=options.run.seed,
    )
    model = new_model(options, tokenizer).to(options.run.device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.optimiser.learning_rate)

    def step(number: int) -> None:
        first = number * options.rows
        made = default_collate([rows[item] for item in range(first, first + options.rows)])
        loss = total_loss(model, {name: t.to(options.run.device) for name, t in made.items()})
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        loss.item()  # waits for the device

    return step


def clock(device: str) -> float:
    """Seconds, see above."""
    return time.process_time() if device == "cpu" else time.perf_counter()


def keep(name: str, found: dict[str, Any], args: argparse.Namespace) -> None:
    """Write a trial beside those that others have written by now."""
    written = RESULTS / NAME
    done = json.loads(written.read_text("utf-8")) if written.is_file() else {"trials": {}}
    done |= {
        "what": "held-out loss (nats a masked token) after an equal time",
        "steps_of_the_first": args.steps,
        "machine": {**machine("torch", "transformers"), "device": args.device},
    }
    write(NAME, {**done, "trials": {**done["trials"], name: found}})


def report(found: dict[str, dict[str, Any]]) -> None:
    """Print the trials as a table."""
    rows = [["", "steps", "tokens", "held-out loss", "right"]]
    for name, of in found.items():
        rows.append(
            [
                name,
                f"{of['steps']:,}",
                f"{of['tokens'] / 1e6:.1f} M",
                f"{of['loss']:.3f}",
                f"{of['accuracy']:.1%}",
            ]
        )
    print_table(rows)


if __name__ == "__main__":
    main()
