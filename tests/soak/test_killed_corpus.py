"""A corpus read by 1, 2 and 4 workers that are killed at random: the results stay the same."""

import random
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest
from ray_cluster import running_ray

pytestmark = pytest.mark.soak
ROOT = Path(__file__).parents[2]
SHARDS, ROWS = 12, 400
KILLS = 2  # a shard whose worker dies three times is given up


@pytest.fixture
def command(tmp_path, checkpoints):
    dice = random.Random(0)
    (tmp_path / "corpus").mkdir()
    for number in range(SHARDS):
        lines = ("".join(dice.choices("患者有糖尿病史 cat7。", k=40)) for _ in range(ROWS))
        (tmp_path / "corpus" / f"{number}.txt").write_text("\n".join(lines), encoding="utf-8")

    def started(output, *more):
        words = ["predict", "--data", tmp_path / "corpus", "--output", tmp_path / output]
        words += ["--model", checkpoints["ner"], "--kg", "demo_kgs/medical_zh.spo", *more]
        return subprocess.Popen(
            [sys.executable, "-m", "kbert_lab.cli", *map(str, words), "--device", "cpu"],
            **{"cwd": ROOT, "text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE},
        )

    return started


def contents(folder):
    return {f.name: f.read_bytes() for f in sorted(folder.glob("*.parquet"))}


def finished(process):
    said = process.communicate(timeout=900)
    assert process.returncode == 0, said
    return said


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
    while process.poll() is None and len(done) < KILLS:
        time.sleep(dice.uniform(0, 1))
        before = len(contents(folder))
        with suppress(psutil.NoSuchProcess, IndexError):  # none is reading
            dice.choice(workers_reading()).kill()
            done.append(before)
            while process.poll() is None and len(contents(folder)) <= before:
                time.sleep(0.05)
    return done


def test_a_corpus_whose_workers_are_killed_is_read_once(command, tmp_path, figures):
    dice, began, kills = random.Random(3), time.monotonic(), {}
    with running_ray(workers=4) as address:
        finished(command("whole", "--workers", 1, "--cluster", address))
        whole = contents(tmp_path / "whole")
        assert len(whole) == SHARDS
        for workers in (1, 2, 4):
            process = command(f"by {workers}", "--workers", workers, "--cluster", address)
            kills[workers] = kill_some(process, dice, tmp_path / f"by {workers}")
            finished(process)
            assert len(kills[workers]) == KILLS
            assert contents(tmp_path / f"by {workers}") == whole
    assert pq.read_table(tmp_path / "whole").num_rows == SHARDS * ROWS
    figures["corpus, workers killed"] = {
        "shards done at each kill, by workers": kills,
        "seconds": round(time.monotonic() - began, 1),
    }


def test_a_corpus_whose_command_is_killed_goes_on_and_leaves_no_process(command, tmp_path, figures):
    finished(command("whole", "--workers", 1))
    process = command("killed", "--workers", 2)
    while process.poll() is None and len(contents(tmp_path / "killed")) < 3:
        time.sleep(0.05)
    mine = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.communicate()
    _, alive = psutil.wait_procs(mine, timeout=180)
    assert not alive
    there = contents(tmp_path / "killed")
    assert 3 <= len(there) < SHARDS
    out, _ = finished(command("killed", "--workers", 2))
    assert f"done before: {len(there)}" in out
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
    figures["corpus, command killed"] = {"shards done then": len(there), "of": SHARDS}
