"""What every task says about itself, and classification."""

from types import SimpleNamespace

import pytest
import torch

from kbert_core.errors import TextError
from kbert_core.labels import Labels
from kbert_core.pipeline import check_sentences
from kbert_core.tasks import TASKS


@pytest.mark.parametrize(
    ("count", "task"),
    [(2, "ner"), (0, "classify"), (1, "pair"), (2, "mask"), (1, "rank"), (1, "qa")],
)
def test_wrong_number_of_sentences_is_refused(count, task):
    wanted = "two sentences" if task in ("pair", "rank", "qa") else "one sentence"
    with pytest.raises(TextError, match=f"{TASKS[task].title} takes {wanted}, got {count}"):
        check_sentences(TASKS[task], ["a"] * count)


def test_every_task_is_found_by_its_name():
    assert {name: task.name for name, task in TASKS.items()} == {
        name: name
        for name in ("ner", "classify", "multilabel", "pair", "mask", "rank", "link", "qa")
    }


def test_likeliest_class_is_the_label():
    labels = Labels({0: "bad", 1: "fair", 2: "good"})
    text = SimpleNamespace(sentences=("",))
    prediction = TASKS["classify"].decode(text, torch.tensor([0.0, 2.0, 1.0]), labels)
    assert prediction.label == "fair"
    assert list(prediction.probabilities) == ["bad", "fair", "good"]
    assert sum(prediction.probabilities.values()) == pytest.approx(1, abs=1e-6)
