"""Packed rows, masking and pretraining at toy size."""

import shutil

import pytest
from small_data import pretraining

from kbert_core.errors import CheckpointError, DataError, OptionError
from kbert_core.pipeline import Pipeline
from kbert_lab.training.pretrain import pretrain
from kbert_lab.training.vocabulary import character_tokenizer

PASSAGES = [f"第{i}句话说的是天气很好。" * (1 + i % 4) for i in range(300)]


def test_pretraining_lowers_the_loss_and_saves_a_fill_mask_model(tmp_path):
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "max_positions": 128, "batch_tokens": 512}
    options = pretraining(tmp_path, lines=PASSAGES * 4, steps=200, learning_rate=3e-3, **sizes)
    report = pretrain(options)
    assert report["loss"] < 1.5
    pipeline = Pipeline.from_pretrained(tmp_path / "model", device="cpu")
    filling = pipeline("第17句话说的是天[MASK]很好。").prediction.fillings[0]
    assert filling.candidates[0][0] == "气"


def small(tmp_path, **changes):
    return pretraining(tmp_path, **{"lines": PASSAGES, "steps": 3, "warmup": 0, **changes})


def test_another_tokenizer_can_be_taken_and_its_word_pieces_are_masked_whole(tmp_path, tokenizer):
    tokenizer.save_pretrained(tmp_path / "other")
    pretrain(small(tmp_path, vocabulary=str(tmp_path / "other")))
    pipeline = Pipeline.from_pretrained(tmp_path / "model", device="cpu")
    assert len(pipeline.hugging_face_tokenizer) == len(tokenizer)


def test_a_tokenizer_without_a_mask_token_and_one_that_is_missing_are_refused(tmp_path):
    made = character_tokenizer(PASSAGES)
    made.mask_token = None
    made.save_pretrained(tmp_path / "other")
    with pytest.raises(CheckpointError, match="its tokenizer has no mask_token"):
        pretrain(small(tmp_path, vocabulary=str(tmp_path / "other")))
    with pytest.raises(CheckpointError, match="Found no model 'nowhere'"):
        pretrain(small(tmp_path, vocabulary="nowhere"))


def test_missing_files_of_text_and_test_sentences_are_named(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "latin.txt").write_bytes("é".encode("latin-1"))
    (tmp_path / "lines.txt").write_text('\n{"text": "a"}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"lines\.txt: found JSON, .*expected plain text"):
        pretrain(small(tmp_path, text=(str(tmp_path / "lines.txt"),)))
    for name, message in (
        ("nowhere.txt", r"can't be read .*\. Check the name"),
        (str(tmp_path / "folder"), r"can't be read .*\. Name a file in it"),
        (str(tmp_path / "latin.txt"), ".*Save (it|the file) as UTF-8( and open it again)?"),
    ):
        for option in ("text", "exclude"):
            with pytest.raises(DataError, match=rf"{name}(, line 1)?: {message}\.$"):
                pretrain(small(tmp_path, **{option: (name,)}))


def test_options_that_leave_nothing_of_the_text_are_named(tmp_path):
    (tmp_path / "one.txt").write_text(
        "今天天气很好，我们去公园散步，晚上回家吃饭。\n" * 30, encoding="utf-8"
    )
    text = (str(tmp_path / "one.txt"),)
    with pytest.raises(DataError, match=r"^--exclude .*: every passage of the text holds"):
        pretrain(small(tmp_path, text=text, exclude=text))
    with pytest.raises(DataError, match=r"No character occurs 99999 times.* lower --min-count"):
        pretrain(small(tmp_path, min_count=99999))


def test_word_pieces_make_a_fill_mask_model_too(tmp_path):
    report = pretrain(small(tmp_path, word_pieces=40))
    assert report["options"]["word_pieces"] == 40
    assert "word pieces for Latin words" in (tmp_path / "model" / "README.md").read_text()
    assert Pipeline.from_pretrained(tmp_path / "model", device="cpu")(
        "天[MASK]好"
    ).prediction.fillings


def test_a_model_that_another_run_made_is_not_replaced(tmp_path):
    pretrain(small(tmp_path))
    shutil.rmtree(tmp_path / "model" / "checkpoints")
    before = (tmp_path / "model" / "model.safetensors").read_bytes()
    (tmp_path / "more.txt").write_text("\n".join(PASSAGES * 2), encoding="utf-8")
    for changes, what in (
        ({"steps": 4}, "another steps"),
        ({"text": (str(tmp_path / "more.txt"),)}, "another text"),
        ({"vocabulary": str(tmp_path / "model")}, "another vocabulary"),
    ):
        with pytest.raises(OptionError, match=f"holds a finished model of a run with {what}"):
            pretrain(small(tmp_path, **changes))
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == before
    pretrain(small(tmp_path))  # the same run, made again


def test_too_little_text_is_refused(tmp_path):
    (tmp_path / "short.txt").write_text("一句话。", encoding="utf-8")
    with pytest.raises(DataError, match=r"makes 1 rows of \d+ tokens.*needs 20"):
        pretrain(small(tmp_path, text=(str(tmp_path / "short.txt"),)))
