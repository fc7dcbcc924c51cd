"""One step's batch, however it is shared out: at once, in portions, among processes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from two_processes import together

from kbert_core.labels import IGNORED
from kbert_core.tasks import TASKS
from kbert_lab.training.batches import BATCH, Batches, bucketed
from kbert_lab.training.finetune import fit, train
from kbert_lab.training.options import PretrainOptions, TrainOptions
from kbert_lab.training.pretrain import pretrain
from kbert_lab.training.rows import TrainingRow

ROOT = Path(__file__).parents[3]
LINES = [f"第{i}句话说的是天气很好，今天{i % 7}度。" for i in range(400)]


def pretraining(tmp_path, **changes):
    (tmp_path / "text.txt").write_text("\n".join(LINES), encoding="utf-8")
    made = PretrainOptions.of(
        text=(str(tmp_path / "text.txt"),),
        output=str(tmp_path / "model"),
        steps=12,
        batch_tokens=256,
        row_length=64,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_positions=64,
        learning_rate=3e-3,
        warmup=2,
        min_count=1,
        save_every=1,
        device="cpu",
    )
    return made.changed(**changes)


def tuning(data, **changes):
    made = TrainOptions.of(
        task="ner",
        data=str(data),
        output=str(data / "model"),
        kg=(str(data / "kg.spo"),),
        hidden_size=64,
        num_hidden_layers=1,
        epochs=4,
        batch_tokens=128,
        learning_rate=2e-3,
        dropout=0.0,
        log_every=1,
        float32=True,
        device="cpu",
    )
    return made.changed(**changes)


def losses(options, name="pretraining.json"):
    curve = json.loads((Path(options.run.output) / name).read_text())["history"]
    return [scores["train_loss"] for scores in curve], [scores["loss"] for scores in curve]


def by_torchrun(folder, *command):
    """Run `kbert` in two processes as a user does; returns what it printed."""
    del folder
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    start = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    done = subprocess.run(
        [sys.executable, *start, "-m", "kbert_lab.cli", *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
    )
    return done


def options_of(options, *names):
    flags = {"num_hidden_layers": "layers", "num_attention_heads": "attention-heads"}
    return [
        word
        for name in names
        for word in (
            f"--{flags.get(name, name.replace('_', '-'))}",
            str(options.flat()[name]),
        )
    ]


# In portions


def test_accumulated_gradients_equal_a_batch_so_many_times_as_large(tmp_path):
    large = pretraining(tmp_path, output=str(tmp_path / "large"), batch_tokens=768)
    small = pretraining(tmp_path, output=str(tmp_path / "small"), accumulate=3)
    report = pretrain(large)
    assert pretrain(small)["tokens_seen"] == report["tokens_seen"]
    for one, other in zip(losses(large), losses(small), strict=True):
        assert len(one) == 12
        np.testing.assert_allclose(other, one, rtol=1e-4)


@pytest.mark.parametrize("task", ["ner", "classify", "mask"])
def test_fine_tuning_in_portions_equals_fine_tuning_at_once(data, tmp_path, task):
    if task == "classify":
        rows = [f"{n % 2}\t{'好' * (1 + n % 5)}{'坏' * (1 + n % 3)}" for n in range(20)]
        for split in ("train", "dev", "test"):
            (data / f"{split}.tsv").write_text("\n".join(["label\ttext_a", *rows]) + "\n")
    curves = [
        fit(tuning(data, task=task, output=str(data / str(parts)), batch_tokens=size, epochs=3,
                   accumulate=parts)).curve
        for parts, size in ((1, 192), (3, 64))
    ]  # fmt: skip
    assert [scores["step"] for scores in curves[0]] == [scores["step"] for scores in curves[1]]
    for one, other in zip(*curves, strict=True):
        assert other["train_loss"] == pytest.approx(one["train_loss"], rel=1e-4)


class OfLengths:
    """Stands for a RowMaker; its rows have the lengths given."""

    reader = config = None
    task = TASKS["ner"]

    def __init__(self, lengths):
        self.lengths, self.examples = lengths, [None] * len(lengths)

    def rows(self, numbers, epoch):
        return [[TrainingRow(range(self.lengths[number]), 0)] for number in numbers]

    def batch(self, numbers, epoch):
        return SimpleNamespace(), torch.zeros(len(numbers))


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_the_parts_of_a_step_hold_its_examples_once(parts):
    lengths = np.random.default_rng(0).integers(3, 40, 50).tolist()
    options = TrainOptions.of(task="ner", data="d", output="m", batch_tokens=64, epochs=2)
    batches = Batches(OfLengths(lengths), options, parts=parts)
    groups = bucketed(lengths, 64 * parts, np.random.default_rng((0, 0)))
    assert [numbers for epoch, numbers in batches.steps if epoch == 0] == groups
    assert len(batches) == parts * len(batches.steps)
    for step, (_, numbers) in enumerate(batches.steps):
        of_step = [batches[step * parts + part] for part in range(parts)]
        read = [item[BATCH].tolist() for item in of_step if not (item["labels"] == IGNORED).all()]
        assert [number for part in read for number in part] == numbers
        assert max(map(len, read)) - min(map(len, read)) <= 1
    assert batches.tokens[batches.epoch_ends[0]] == sum(lengths)


def test_a_step_with_fewer_examples_than_parts_fills_up_without_labels(data):
    made = tuning(data, batch_tokens=16, epochs=1)
    seen = []
    trained = {}

    class Watching(Batches):
        def __getitem__(self, index):
            item = super().__getitem__(index)
            seen.append((item[BATCH].tolist(), bool((item["labels"] != IGNORED).any())))
            return item

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kbert_lab.training.finetune.Batches", Watching)
        trained = fit(made.changed(accumulate=5))
    assert trained.curve[-1]["train_loss"] > 0
    counted = sorted(n for numbers, labelled in seen if labelled for n in numbers)
    assert counted == list(range(20))
    assert not all(labelled for _, labelled in seen)


# In two processes


@pytest.mark.parametrize("start", [together, pytest.param(by_torchrun, marks=pytest.mark.soak)])
def test_two_processes_pretrain_as_one_with_twice_the_batch(start, tmp_path):
    one = pretraining(tmp_path, output=str(tmp_path / "one"), batch_tokens=512)
    two = one.changed(output=str(tmp_path / "two"), batch_tokens=256)
    alone = pretrain(one)
    done = start(
        tmp_path,
        *("pretrain", "--text", *two.corpus.text, "--json", "--device", "cpu"),
        *options_of(two, "output", "steps", "batch_tokens", "row_length", "hidden_size"),
        *options_of(two, "num_hidden_layers", "num_attention_heads", "max_positions", "warmup"),
        *options_of(two, "learning_rate", "min_count", "save_every"),
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)  # printed once
    assert report["processes"] == 2
    assert report["tokens_a_step"] == alone["tokens_a_step"] == 512
    assert report["tokens_seen"] == alone["tokens_seen"]
    for here, there in zip(losses(one), losses(two), strict=True):
        assert len(here) == 12
        np.testing.assert_allclose(there, here, rtol=1e-4)
    assert done.stderr.count("step 12: held out") == 1  # one process speaks


def test_two_processes_fine_tune_as_one_with_twice_the_batch_and_stop_together(data):
    one = tuning(data, output=str(data / "one"), batch_tokens=256, patience=2, epochs=30)
    two = one.changed(output=str(data / "two"), batch_tokens=128)
    alone = train(one)
    done = together(
        data,
        *("train", "--json", "--float32", "--kg", *two.knowledge.kg),
        *options_of(two, "task", "data", "output", "epochs", "batch_tokens", "learning_rate"),
        *options_of(two, "dropout", "hidden_size", "num_hidden_layers", "patience", "device"),
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    here, there = alone["learning_curve"], report["learning_curve"]
    assert [scores["step"] for scores in there] == [scores["step"] for scores in here]
    assert len(here) < 30  # stopped early
    for mine, theirs in zip(here, there, strict=True):
        assert theirs["train_loss"] == pytest.approx(mine["train_loss"], rel=1e-4)
        assert theirs["f1"] == pytest.approx(mine["f1"], abs=0.06)
    assert report["processes"] == 2
    assert not (data / "two" / "checkpoints").exists()
    assert (data / "two" / "model.safetensors").is_file()


@pytest.mark.soak
@pytest.mark.parametrize("system", ["k-bert", "knowbert", "roof-bert"])
def test_two_processes_train_every_system_as_one(data, checkpoints, system):
    still = {"base": ('{"kar": {"dropout": 0}}',)} if system == "knowbert" else {}
    base = tuning(data, hidden_size=None, num_hidden_layers=None, epochs=2, system=system,
                  encoder=str(checkpoints["encoder"]), **still)  # fmt: skip
    one = base.changed(output=str(data / "one"), batch_tokens=256)
    two = base.changed(output=str(data / "two"), batch_tokens=128)
    alone = train(one)
    done = together(
        data,
        *("train", "--json", "--float32", "--kg", *two.knowledge.kg),
        *[word for base in two.knowledge.base for word in ("--base", base)],
        *options_of(two, "task", "data", "output", "epochs", "batch_tokens", "learning_rate"),
        *options_of(two, "dropout", "encoder", "system", "device"),
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    for mine, theirs in zip(alone["learning_curve"], report["learning_curve"], strict=True):
        assert theirs["train_loss"] == pytest.approx(mine["train_loss"], rel=1e-3)
        assert theirs["f1"] == pytest.approx(mine["f1"], abs=0.06)
    weights = [load_file(data / name / "model.safetensors") for name in ("one", "two")]
    for name, tensor in weights[0].items():
        torch.testing.assert_close(weights[1][name], tensor, rtol=0, atol=5e-3)


def test_a_mistake_ends_all_processes(tmp_path):
    command = ("pretrain", "--text", str(tmp_path / "nowhere.txt"), "--output", str(tmp_path))
    done = together(tmp_path, *command)
    assert done.returncode != 0
    assert "nowhere.txt: can't be read" in done.stderr


@pytest.mark.parametrize("index", [1, 3])
def test_another_cuda_device_than_the_first_is_refused_with_the_remedy(index):
    from kbert_core.errors import OptionError
    from kbert_lab.training.devices import join

    with pytest.raises(OptionError, match=f"CUDA_VISIBLE_DEVICES={index}"):
        join(torch.device("cuda", index))
