"""What a step reads: some wrong answers of each question; at once, in portions, among processes."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from small_data import pretraining, together, tuning

from kbert_core.errors import OptionError
from kbert_core.labels import IGNORED
from kbert_core.pipeline import Pipeline
from kbert_lab.data.labelled import Example
from kbert_lab.training.batches import BATCH, Batches
from kbert_lab.training.devices import join
from kbert_lab.training.finetune import fit, train
from kbert_lab.training.options import TrainOptions
from kbert_lab.training.pretrain import pretrain
from kbert_lab.training.rows import TrainingRow

LARGER = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
LARGER |= {"batch_tokens": 256, "learning_rate": 3e-3, "warmup": 2, "save_every": 1}
SMALL = {"num_hidden_layers": 1, "epochs": 4, "learning_rate": 2e-3, "log_every": 1}


def losses(options):
    curve = json.loads((Path(options.run.output) / "pretraining.json").read_text())["history"]
    return [scores["train_loss"] for scores in curve], [scores["loss"] for scores in curve]


def options_of(options, *names):
    flags = {"num_hidden_layers": "layers", "num_attention_heads": "attention-heads"}
    values = options.flat()
    named = ((f"--{flags.get(name, name.replace('_', '-'))}", str(values[name])) for name in names)
    return [word for pair in named for word in pair]


# In portions


def test_accumulated_gradients_equal_a_batch_so_many_times_as_large(tmp_path):
    large = pretraining(tmp_path, "large", **{**LARGER, "batch_tokens": 768})
    small = pretraining(tmp_path, "small", accumulate=3, **LARGER)
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
    how = {**SMALL, "task": task, "epochs": 3}
    curves = [
        fit(tuning(data, f"{parts}", batch_tokens=size, accumulate=parts, **how)).curve
        for parts, size in ((1, 192), (3, 64))
    ]
    assert [scores["step"] for scores in curves[0]] == [scores["step"] for scores in curves[1]]
    for one, other in zip(*curves, strict=True):
        assert other["train_loss"] == pytest.approx(one["train_loss"], rel=1e-4)


def test_a_step_with_fewer_examples_than_parts_fills_up_without_labels(data):
    made = tuning(data, **{**SMALL, "batch_tokens": 16, "epochs": 1})
    seen = []

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


def test_two_processes_pretrain_as_one_with_twice_the_batch(tmp_path):
    one = pretraining(tmp_path, "one", **{**LARGER, "batch_tokens": 512})
    two = one.changed(output=str(tmp_path / "two"), batch_tokens=256)
    alone = pretrain(one)
    done = together(
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


def tuned_alone_and_in_two_processes(data, one, *names, base=(), rel=1e-4):
    """The reports of a run in one process, and of two processes with half of its batch each."""
    half = one.optimiser.batch_tokens // 2
    two = one.changed(output=str(data / "two"), batch_tokens=half)
    alone = train(one)
    done = together(
        data,
        *("train", "--json", "--float32", "--kg", *two.knowledge.kg, *base),
        *options_of(two, "task", "data", "output", "epochs", "batch_tokens", "learning_rate"),
        *options_of(two, "dropout", "device", *names),
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    for mine, theirs in zip(alone["learning_curve"], report["learning_curve"], strict=True):
        assert theirs["step"] == mine["step"]
        assert theirs["train_loss"] == pytest.approx(mine["train_loss"], rel=rel)
        assert theirs["f1"] == pytest.approx(mine["f1"], abs=0.06)
    return alone, report


def test_two_processes_fine_tune_as_one_with_twice_the_batch_and_stop_together(data):
    one = tuning(data, "one", **{**SMALL, "batch_tokens": 256, "patience": 2, "epochs": 30})
    more = ("hidden_size", "num_hidden_layers", "patience")
    alone, report = tuned_alone_and_in_two_processes(data, one, *more)
    assert len(alone["learning_curve"]) < 30  # stopped early
    assert report["processes"] == 2
    assert not (data / "two" / "checkpoints").exists()
    assert (data / "two" / "model.safetensors").is_file()


@pytest.mark.soak
@pytest.mark.parametrize("system", ["k-bert", "knowbert", "roof-bert"])
def test_two_processes_train_every_system_as_one(data, checkpoints, system):
    base = ('{"kar": {"dropout": 0}}',) if system == "knowbert" else ()
    how = {"epochs": 2, "system": system, "encoder": str(checkpoints["encoder"]), "base": base}
    one = tuning(data, "one", learning_rate=2e-3, batch_tokens=256, **how)
    more = [word for own in base for word in ("--base", own)]
    tuned_alone_and_in_two_processes(data, one, "encoder", "system", base=more, rel=1e-3)
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
    with pytest.raises(OptionError, match=f"CUDA_VISIBLE_DEVICES={index}"):
        join(torch.device("cuda", index))


# Some wrong answers of each question


CANDIDATES = [
    Example((question, answer), str(int(answer == "丙")), group=question)
    for question in "子丑寅"
    for answer in "甲乙丙丁戊己"
]
UNANSWERED = [Example(("卯", answer), "0", group="卯") for answer in "甲乙丁"]
EVERY = [*CANDIDATES, *UNANSWERED]


class OfLengthTen:
    """Stands for a RowMaker, for which every candidate has ten tokens."""

    examples = EVERY

    def rows(self, numbers, epoch):
        return [[TrainingRow(range(10), 0)] for _ in numbers]


def read_by_epoch(epochs=8, **changes):
    made = {"task": "rank", "data": "d", "output": "m", "batch_tokens": 40, "epochs": epochs}
    batches = Batches(OfLengthTen(), TrainOptions.of(**made | changes), parts=1)
    assert batches.tokens[-1] == 10 * sum(len(numbers) for _, numbers in batches.steps)
    return [
        sorted(n for epoch, numbers in batches.steps if epoch == wanted for n in numbers)
        for wanted in range(epochs)
    ]


def test_an_epoch_reads_every_right_answer_and_so_many_wrong_ones_of_each_question():
    for read in read_by_epoch(negatives=2):
        assert len(set(read)) == len(read)
        counts = Counter((EVERY[n].group, EVERY[n].label) for n in read)
        assert counts == {
            **{(question, "1"): 1 for question in "子丑寅"},
            **{(question, "0"): 2 for question in "子丑寅卯"},
        }


def test_wrong_answers_are_drawn_anew_each_epoch_and_the_same_by_the_same_seed():
    drawn = read_by_epoch(60, negatives=1)
    assert len(set(map(tuple, drawn))) > 30
    assert set().union(*drawn) == set(range(len(EVERY)))
    assert drawn == read_by_epoch(60, negatives=1)
    assert drawn != read_by_epoch(60, negatives=1, seed=1)


def test_a_model_trained_so_ranks_answers_and_its_card_says_so(tmp_path):
    rows = [f"{e.sentences[0]}\t{e.sentences[1]}\t{e.label}" for e in EVERY]
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    how = {"task": "rank", "kg": (), "negatives": 2, "epochs": 30, "num_hidden_layers": 1}
    scores = train(tuning(tmp_path, **how))["scores"]["test"]
    assert scores["mrr"] > 0.9 > 0.5 > scores["chance_mrr"]
    assert scores["overlap_mrr"] == scores["order_mrr"]  # no letter is shared
    assert scores["p_at_1"] > 0.8
    assert (scores["questions"], scores["without_answer"], scores["candidates"]) == (3, 1, 18)
    pipeline = Pipeline.from_pretrained(tmp_path / "model", device="cpu")
    assert pipeline.rank("子", list("甲乙丙丁戊己"))[0].answer == "丙"
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "Wrong answers of a question read in an epoch, drawn anew: 2" in card
    assert "| mrr | p_at_1 |" in card
