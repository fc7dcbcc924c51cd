"""Options out of range, named before anything is read."""

import pytest

from kbert_core.errors import OptionError
from kbert_lab import cli
from kbert_lab.training.options import PretrainOptions, Recipe, TrainOptions


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, "steps is 0, expected at least 1"),
        ({"steps": -5}, "steps is -5"),
        ({"learning_rate": 0.0}, r"learning_rate is 0\.0, expected more than 0"),
        ({"learning_rate": -1e-3}, r"learning_rate is -0\.001"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"save_every": 0}, "save_every is 0"),
        ({"log_every": 0}, "log_every is 0"),
        ({"accumulate": 0}, "accumulate is 0"),
        ({"warmup": -1}, "warmup is -1"),
        ({"decay": 1.5}, r"decay is 1\.5, expected a share"),
        ({"dropout": -0.1}, r"dropout is -0\.1"),
        ({"seed": -1}, "seed is -1, expected a whole number from 0"),
        ({"seed": 2**32}, "seed is 4294967296"),
        ({"batch_tokens": 64}, "batch_tokens is 64, less than a row of 128"),
        ({"max_positions": 64}, "max_positions is 64, less than a row"),
        ({"attention_heads": 3}, "which 3 attention heads don't divide"),
        ({"word_pieces": 10, "vocabulary": "x"}, "Both vocabulary and word_pieces"),
        (
            {"word_pieces": 500, "vocabulary_size": 20},
            "word_pieces is 500, more than a voc.* of 20",
        ),
        ({"row_length": 2}, "row_length is 2"),
        ({"vocabulary_size": 0}, "vocabulary_size is 0"),
    ],
)
def test_pretraining_refuses_options_out_of_range(changes, message):
    changes = {("num_" * (k == "attention_heads") + k): v for k, v in changes.items()}
    with pytest.raises(OptionError, match=message):
        PretrainOptions.of(text=("a.txt",), output="model", **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "nre"}, "task is 'nre', expected one of ner"),
        ({"epochs": 0}, "epochs is 0"),
        ({"epochs": 3, "steps": 2}, "steps is 2, fewer than the 3 times"),
        ({"dropout": 3.0}, "dropout is 3.0"),
        ({"hidden_size": 200}, "Give a multiple of 64"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0"),
        ({"num_hidden_layers": 2, "encoder": "e"}, "is only for a BERT trained from scratch"),
        ({"learning_rate": 0.0}, r"learning_rate is 0\.0, expected more than 0"),
        ({"learning_rate": -1.0}, "learning_rate is -1"),
        ({"patience": -1}, "patience is -1, expected at least 0"),
        ({"accumulate": 0}, "accumulate is 0"),
        ({"log_every": 0}, "log_every is 0"),
        ({"seed": -3}, "seed is -3"),
        ({"batch_tokens": 8}, "batch_tokens is 8"),
    ],
)
def test_training_refuses_options_out_of_range(changes, message):
    with pytest.raises(OptionError, match=message):
        TrainOptions.of(**{"task": "ner", "data": "data", "output": "model", **changes})


def test_a_share_of_a_recipe_outside_0_to_1_is_named():
    with pytest.raises(OptionError, match="counterfactual is 7, expected a share"):
        Recipe(counterfactual=7)


def test_a_file_in_the_way_of_the_output_is_named(tmp_path):
    (tmp_path / "taken").write_text("")
    for output in ("taken", "taken/model"):
        with pytest.raises(OptionError, match=r"taken is a file\. Name a folder"):
            PretrainOptions.of(text=("a.txt",), output=str(tmp_path / output))
        with pytest.raises(OptionError, match=r"taken is a file\. Name a folder"):
            TrainOptions.of(task="ner", data="data", output=str(tmp_path / output))


def test_the_command_line_says_the_same(tmp_path, capsys):
    arguments = ["pretrain", "--text", "a.txt", "--output", str(tmp_path / "m"), "--steps", "-1"]
    assert cli.main(arguments) == 2
    assert "steps is -1, expected at least 1" in capsys.readouterr().err
