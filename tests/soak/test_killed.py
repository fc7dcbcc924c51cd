"""Training, and a corpus being read, killed again and again: the results are those of one run."""

import os
import random
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest
import torch
from ray_cluster import running_ray
from safetensors.torch import load_file
from small_data import LINES

from kbert_lab.training.checkpoints import last_whole, step_of

pytestmark = pytest.mark.soak
ROOT = Path(__file__).parents[2]
PATIENCE = 600  # seconds for a step further


def started(command, together=False):
    start = ["torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m"]
    words = [*(start if together else []), "kbert_lab.cli", *map(str, command), "--device", "cpu"]
    return subprocess.Popen(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process):
    said = process.communicate(timeout=3 * PATIENCE)
    assert process.returncode == 0, said
    return said


# Training

KILLS = 5


def pretraining(folder, output):
    (folder / "text.txt").write_text("\n".join(LINES * 5), encoding="utf-8")
    sizes = "--row-length 64 --batch-tokens 512 --hidden-size 64 --layers 2 --attention-heads 2"
    how = "--steps 240 --save-every 3 --dropout 0.1 --min-count 1 --word-pieces 60"
    files = ("--text", folder / "text.txt", "--output", output)
    return ["pretrain", *files, *sizes.split(), *how.split()]


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
    how = "--task ner --counterfactual 0.2 --branch-dropout 0.2 --epochs 40 --patience 30"
    sizes = "--batch-tokens 256 --hidden-size 64 --layers 1 --float32"
    files = ("--data", folder, "--output", output, "--kg", folder / "kg.spo")
    return ["train", *files, *how.split(), *sizes.split()]


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
    _, said = finished(started(command(tmp_path, tmp_path / "killed"), together))
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


# A corpus read by 1, 2 and 4 workers

SHARDS, ROWS = 12, 400
DEATHS = 2  # a shard whose worker dies three times is given up


@pytest.fixture
def reading(tmp_path, checkpoints):
    dice = random.Random(0)
    (tmp_path / "corpus").mkdir()
    for number in range(SHARDS):
        lines = ("".join(dice.choices("患者有糖尿病史 cat7。", k=40)) for _ in range(ROWS))
        (tmp_path / "corpus" / f"{number}.txt").write_text("\n".join(lines), encoding="utf-8")

    def read(output, *more):
        words = ["predict", "--data", tmp_path / "corpus", "--output", tmp_path / output]
        words += ["--model", checkpoints["ner"], "--kg", "demo_kgs/medical_zh.spo", *more]
        return started(words)

    return read


def contents(folder):
    return {f.name: f.read_bytes() for f in sorted(folder.glob("*.parquet"))}


def workers_reading():
    """Ray's own names for processes are all that tells them."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has just ended
            if "".join(process.cmdline()).startswith("ray::Worker.read"):
                found.append(process)
    return found


def kill_some(process, dice, folder):
    """Kill workers in the middle of a shard; how many shards were done each time."""
    done = []
    while process.poll() is None and len(done) < DEATHS:
        time.sleep(dice.uniform(0, 1))
        before = len(contents(folder))
        with suppress(psutil.NoSuchProcess, IndexError):  # none is reading
            dice.choice(workers_reading()).kill()
            done.append(before)
            while process.poll() is None and len(contents(folder)) <= before:
                time.sleep(0.05)
    return done


def test_a_corpus_whose_workers_are_killed_is_read_once(reading, tmp_path, figures):
    dice, began, kills = random.Random(3), time.monotonic(), {}
    with running_ray(workers=4) as address:
        finished(reading("whole", "--workers", 1, "--cluster", address))
        whole = contents(tmp_path / "whole")
        assert len(whole) == SHARDS
        for workers in (1, 2, 4):
            process = reading(f"by {workers}", "--workers", workers, "--cluster", address)
            kills[workers] = kill_some(process, dice, tmp_path / f"by {workers}")
            finished(process)
            assert len(kills[workers]) == DEATHS
            assert contents(tmp_path / f"by {workers}") == whole
    assert pq.read_table(tmp_path / "whole").num_rows == SHARDS * ROWS
    figures["corpus, workers killed"] = {
        "shards done at each kill, by workers": kills,
        "seconds": round(time.monotonic() - began, 1),
    }


def test_a_corpus_whose_command_is_killed_goes_on_and_leaves_no_process(reading, tmp_path, figures):
    finished(reading("whole", "--workers", 1))
    process = reading("killed", "--workers", 2)
    while process.poll() is None and len(contents(tmp_path / "killed")) < 3:
        time.sleep(0.05)
    mine = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.communicate()
    _, alive = psutil.wait_procs(mine, timeout=180)
    assert not alive
    there = contents(tmp_path / "killed")
    assert 3 <= len(there) < SHARDS
    out, _ = finished(reading("killed", "--workers", 2))
    assert f"done before: {len(there)}" in out
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
    figures["corpus, command killed"] = {"shards done then": len(there), "of": SHARDS}
