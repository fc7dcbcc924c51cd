"""Training killed without warning, again and again: the weights are those of a run left alone."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch
from safetensors.torch import load_file

from kbert_lab.training.checkpoints import last_whole, step_of

pytestmark = pytest.mark.soak
ROOT = Path(__file__).parents[2]
KILLS = 5
PATIENCE = 600  # seconds for a step further


def pretraining(folder, output):
    lines = [f"第{i}句话说的是天气很好，今天{i % 7}度。" for i in range(2000)]
    (folder / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    sizes = "--row-length 64 --batch-tokens 512 --hidden-size 64 --layers 2 --attention-heads 2"
    return [
        *("pretrain", "--text", str(folder / "text.txt"), "--output", str(output)),
        *sizes.split(),
        *("--steps", "240", "--save-every", "3", "--dropout", "0.1", "--min-count", "1"),
        *("--word-pieces", "60", "--device", "cpu"),
    ]


def tuning(folder, output):
    dice, rows = random.Random(0), []
    for _ in range(200):
        text = "".join(
            dice.choice("患者有糖尿病史今查心电图明显") for _ in range(dice.randint(4, 30))
        )
        at = dice.randrange(len(text))
        tags = ["B-D" if i == at else "O" for i in range(len(text))]
        rows.append(" ".join(text) + "\t" + " ".join(tags))
    for split in ("train", "dev"):
        (folder / f"{split}.tsv").write_text("\n".join(["text_a\tlabel", *rows]), encoding="utf-8")
    (folder / "kg.spo").write_text("糖尿病\t类别\t疾病\n心电图\t类别\t检查\n", encoding="utf-8")
    return [
        *("train", "--task", "ner", "--data", str(folder), "--output", str(output)),
        *("--kg", str(folder / "kg.spo"), "--counterfactual", "0.2", "--branch-dropout", "0.2"),
        *("--epochs", "40", "--patience", "30", "--batch-tokens", "256", "--hidden-size", "64"),
        *("--layers", "1", "--float32", "--device", "cpu"),
    ]


def started(command, together):
    start = ["torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m"]
    return subprocess.Popen(
        [sys.executable, "-m", *(start if together else []), "kbert_lab.cli", *command],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process):
    _, said = process.communicate(timeout=3 * PATIENCE)
    assert process.returncode == 0, said
    return said


@pytest.mark.parametrize(
    ("command", "together"), [(pretraining, False), (tuning, False), (pretraining, True)]
)
def test_training_killed_at_random_moments_ends_with_the_same_weights(
    command, together, tmp_path, figures
):
    dice, began, kills = random.Random(5), time.monotonic(), []
    finished(started(command(tmp_path, tmp_path / "whole"), together))
    checkpoints = tmp_path / "killed" / "checkpoints"
    while len(kills) < KILLS:
        before = step(checkpoints)
        process = started(command(tmp_path, tmp_path / "killed"), together)
        end = time.monotonic() + PATIENCE
        while process.poll() is None and step(checkpoints) <= before and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(dice.uniform(0, 1))  # anywhere: in a step, while saving or scoring
        if process.poll() is not None:
            break
        own = psutil.Process(process.pid)
        for each in (own, *own.children(recursive=True)):  # torchrun's have sessions of their own
            each.kill()
        process.communicate()
        kills.append(step(checkpoints))
    assert len(kills) >= 2
    assert kills == sorted(set(kills))  # further each time
    said = finished(started(command(tmp_path, tmp_path / "killed"), together))
    assert f"going on at step {kills[-1]} of" in said
    whole, killed = (load_file(tmp_path / n / "model.safetensors") for n in ("whole", "killed"))
    for name, tensor in whole.items():
        torch.testing.assert_close(killed[name], tensor, rtol=1e-5, atol=1e-7)
    figures[f"{command.__name__} {'in two processes ' * together}killed"] = {
        "kills": len(kills),
        "steps then": kills,
        "seconds": round(time.monotonic() - began, 1),
    }


def step(checkpoints):
    last = last_whole(checkpoints)
    return step_of(last) if last else 0
