"""Answer selection trained on some of a question's wrong answers."""

from collections import Counter

import numpy as np
import pytest

from kbert_core.errors import OptionError
from kbert_lab.data.labelled import Example
from kbert_lab.training.batches import Batches, bucketed, with_negatives
from kbert_lab.training.finetune import train
from kbert_lab.training.options import TrainOptions
from kbert_lab.training.rows import TrainingRow

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


def test_without_the_option_and_with_a_large_number_all_are_read():
    every = list(range(len(EVERY)))
    assert all(read == every for read in read_by_epoch())
    assert all(read == every for read in read_by_epoch(negatives=5))
    random = np.random.default_rng(0)
    assert with_negatives(CANDIDATES, 100, random) == list(range(len(CANDIDATES)))


def test_only_the_numbers_asked_for_are_grouped():
    lengths = [5, 50, 7, 20, 9, 11]
    groups = bucketed(lengths, 20, np.random.default_rng(0), among=[0, 2, 3, 5])
    assert sorted(n for group in groups for n in group) == [0, 2, 3, 5]
    assert all(isinstance(n, int) for group in groups for n in group)


@pytest.mark.parametrize(
    ("task", "negatives", "said"),
    [
        ("rank", 0, "negatives is 0, expected at least 1"),
        ("pair", 3, r"for answer selection \(task rank\) alone; the task is 'pair'"),
    ],
)
def test_a_number_that_can_not_be_meant_is_refused(task, negatives, said):
    with pytest.raises(OptionError, match=said):
        TrainOptions.of(task=task, data="d", output="m", negatives=negatives)


def test_a_model_trained_so_ranks_answers_and_its_card_says_so(tmp_path):
    rows = [f"{e.sentences[0]}\t{e.sentences[1]}\t{e.label}" for e in EVERY]
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    report = train(
        TrainOptions.of(
            task="rank",
            data=str(tmp_path),
            output=str(tmp_path / "model"),
            negatives=2,
            hidden_size=64,
            num_hidden_layers=1,
            epochs=30,
            batch_tokens=128,
            learning_rate=3e-3,
            device="cpu",
        )
    )
    assert report["scores"]["test"]["mrr"] > 0.9 > 0.5 > report["scores"]["test"]["chance_mrr"]
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "Wrong answers of a question read in an epoch, drawn anew: 2" in card
