"""Ways to pretrain, compared by held-out loss after an equal time.

Each trial begins from nothing, with the same size, text and seed, and differs
from the first in one thing. Its speed is measured over a few steps, and it
then gets as many steps as fit into the time: seconds of one CPU thread, so
that other work on the machine weighs on all alike, or on CUDA seconds on the
clock. Held-out text and masks are the same for all. One seed, so a difference
of a few hundredths says nothing.

Trials that are in the file already are skipped, and one that was cut off goes
on: its checkpoints are in --work.
"""

import argparse
import json
import logging
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import RESULTS, data_folder, machine, print_table, write
from kbert_core import KBertError
from kbert_core.training.pretrain import PretrainOptions, pretrain

NAME = "pretraining.json"
FIRST = "masked LM, 2,048 tokens a step, rate 1e-3"
PROBE = 30  # steps from which a trial's speed is measured
log = logging.getLogger(__name__)


def trials(data: Path) -> dict[str, dict[str, Any]]:
    """What each trial changes."""
    words = (str(data / "kbert" / "HowNet.spo"), str(data / "kbert" / "Medical.spo"))
    return {
        FIRST: {},
        "rate 5e-4": {"learning_rate": 5e-4},
        "rate 2e-3": {"learning_rate": 2e-3},
        "1,024 tokens a step, rate 7e-4": {"batch_tokens": 1024, "learning_rate": 7e-4},
        "4,096 tokens a step, rate 1.4e-3": {"batch_tokens": 4096, "learning_rate": 1.4e-3},
        "words of HowNet and MedicalKG masked whole": {"words": words},
        "10 % of the other tokens replaced, to be found": {"replaced": 0.1},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=30, help="a trial; default: 30")
    parser.add_argument("--only", metavar="TEXT", help="trials whose name holds this")
    parser.add_argument("--work", default="runs/pretraining", help="default: runs/pretraining")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.set_num_threads(1)
    data = data_folder()
    written = RESULTS / NAME
    for name, changes in trials(data).items():
        done = json.loads(written.read_text("utf-8")) if written.is_file() else {"trials": {}}
        if name in done["trials"] or (args.only and args.only not in name):
            continue
        done |= {
            "what": "held-out loss (nats a masked token) after an equal time, one seed",
            "minutes": args.minutes,
            "machine": {**machine("torch", "transformers"), "device": args.device},
        }
        options = PretrainOptions(
            text=(str(data / "text" / "zh_modern_mix.txt.xz"),),
            output=str(Path(args.work) / name),
            seed=1,
            save_every=250,
            device=args.device,
            **changes,
        )
        log.info("%s", name)
        try:
            done["trials"][name] = trial(options, args.minutes * 60)
        except KBertError as error:
            raise SystemExit(str(error)) from error
        write(NAME, done)
    report(json.loads(written.read_text("utf-8"))["trials"])


def trial(options: PretrainOptions, seconds: float) -> dict[str, float]:
    """Pretrain for a time.

    Returns:
        Steps, tokens seen, the held-out scores, and seconds where it wasn't
        cut off.
    """
    noted = Path(options.output) / "steps.json"
    if not noted.is_file():
        steps = max(2 * PROBE, round(seconds / seconds_a_step(options)))
        noted.parent.mkdir(parents=True, exist_ok=True)
        noted.write_text(json.dumps(steps))
    steps = json.loads(noted.read_text())
    cut_off = (noted.parent / "checkpoints").is_dir()
    begun = clock(options.device)
    found = pretrain(replace(options, steps=steps))
    return {
        "steps": steps,
        "tokens": found["tokens_seen"],
        **({} if cut_off else {"seconds": round(clock(options.device) - begun)}),
        **{name: round(found[name], 4) for name in ("loss", "perplexity", "accuracy")},
    }


def seconds_a_step(options: PretrainOptions) -> float:
    """How long a step takes: the difference of a short and a shorter run."""
    taken = []
    for steps in (2, 2 + PROBE):
        with tempfile.TemporaryDirectory() as folder:
            begun = clock(options.device)
            pretrain(replace(options, output=folder, steps=steps, save_every=10_000))
            taken.append(clock(options.device) - begun)
    return (taken[1] - taken[0]) / PROBE


def clock(device: str) -> float:
    """Seconds, see above."""
    return time.process_time() if device == "cpu" else time.perf_counter()


def report(found: dict[str, dict[str, float]]) -> None:
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
