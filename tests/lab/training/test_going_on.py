"""Runs that are cut off, changed or broken: what goes on, what is refused, what is kept."""

import errno
import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from small_data import LINES, cut_off, pretraining

from kbert_core.errors import CheckpointError, DataError, OptionError
from kbert_lab.training import checkpoints
from kbert_lab.training.checkpoints import last_whole, what_is_broken
from kbert_lab.training.options import RunOptions
from kbert_lab.training.pretrain import pretrain
from kbert_lab.training.trainer import OrderedTrainer, arguments


@pytest.fixture
def options(tmp_path):
    return pretraining(tmp_path, decay=0.5, save_every=4, log_every=1, dropout=0.1)


def to(options, name):
    return options.changed(output=str(Path(options.run.output).parent / name))


def folder(options):
    return Path(options.run.output) / "checkpoints"


def weights(options):
    steps = sorted(folder(options).glob("checkpoint-*"), key=checkpoints.step_of)
    return load_file(steps[-1] / "model.safetensors")


def assert_same(one, other):
    for name, tensor in one.items():
        torch.testing.assert_close(other[name], tensor, rtol=1e-5, atol=1e-7)


# The schedule


def test_a_short_run_warms_up_for_half_of_its_steps(options):
    assert options.changed(steps=10, warmup=500).optimiser.warmup_steps == 5


def test_the_rate_rises_stays_and_falls(options):
    pretrain(options)
    state = json.loads((last_whole(folder(options)) / "trainer_state.json").read_text())
    logged = [e["learning_rate"] for e in state["log_history"] if "learning_rate" in e]
    shares = [0, 1 / 3, 2 / 3, 1, 1, 1, 1, 1, 1, 3 / 4, 1 / 2, 1 / 4]
    assert logged == pytest.approx([1e-3 * share for share in shares])


# Going on


def test_a_run_cut_off_goes_on_to_the_weights_of_a_whole_one(options):
    whole = pretrain(to(options, "whole"))
    cut_off(options, before=7)
    again = pretrain(options)
    assert_same(weights(to(options, "whole")), weights(options))
    assert again["loss"] == pytest.approx(whole["loss"], rel=1e-5)
    kept = json.loads((Path(options.run.output) / "pretraining.json").read_text())
    assert [scores["step"] for scores in kept["history"]] == [4, 8, 12]
    assert kept["history"][0]["train_loss"] > 0


@pytest.mark.parametrize(("before", "steps"), [(12, 24), (24, 8)])
def test_other_steps_while_the_rate_is_stable_equal_a_run_planned_so(options, before, steps):
    planned = options.changed(steps=steps)
    pretrain(to(planned, "planned"))
    cut_off(options.changed(steps=before), before=7)  # after checkpoint 4; it falls from step 8 on
    pretrain(planned)
    assert_same(weights(to(planned, "planned")), weights(options))


def test_fewer_steps_are_refused_once_the_rate_should_be_falling(options):
    cut_off(options.changed(steps=24), before=11)  # checkpoint 8
    with pytest.raises(
        OptionError, match="reached step 8 of 24 with another learning rate than steps 9"
    ):
        pretrain(options.changed(steps=9))


def test_more_steps_after_the_rate_fell_are_told_of(options, caplog):
    pretrain(options)
    report = pretrain(options.changed(steps=16))
    assert "now changes suddenly" in caplog.text
    assert report["options"]["steps"] == 16


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_tokens": 256}, "tokens a step 128, now 256"),
        ({"hidden_size": 32, "dropout": 0.0}, r"hidden_size 16, now 32; .*dropout 0\.1, now 0\.0"),
    ],
)
def test_other_options_are_refused_by_name_and_the_run_can_go_on(options, changes, message):
    cut_off(options, before=6)
    with pytest.raises(OptionError, match=f"checkpoints of a run with other options .*{message}"):
        pretrain(options.changed(**changes))
    assert pretrain(options)["tokens_seen"] > 0


def test_another_text_is_refused_and_the_same_text_elsewhere_is_not(options):
    cut_off(options, before=6)
    other = Path(options.corpus.text[0]).with_name("other.txt")
    other.write_text("\n".join([*LINES, "又一句话。"]), encoding="utf-8")
    with pytest.raises(OptionError, match=r"text \[.*now \["):
        pretrain(options.changed(text=(str(other),)))
    shutil.copy(options.corpus.text[0], other)
    pretrain(options.changed(text=(str(other),)))


# Half-written checkpoints


def test_a_half_written_checkpoint_is_left_out_for_the_one_before(options, caplog):
    cut_off(options, before=10)
    last = folder(options) / "checkpoint-8"
    assert what_is_broken(last) is None
    for name, kept in (
        ("trainer_state.json", None),
        ("trainer_state.json", 0),
        ("trainer_state.json", 0.5),
        ("model.safetensors", None),
        ("model.safetensors", 0.5),
        ("optimizer.pt", 0.9),
        ("scheduler.pt", None),
        ("rng_state.pth", 0.5),
    ):
        whole = (last / name).read_bytes()
        (last / name).unlink()
        if kept is not None:
            (last / name).write_bytes(whole[: int(kept * len(whole))])
        caplog.clear()
        assert last_whole(folder(options)) == folder(options) / "checkpoint-4", name
        assert "checkpoint-8 is incomplete" in caplog.text
        (last / name).write_bytes(whole)
    assert last_whole(folder(options)) == last


# A full disk, a folder that can't be written to


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ("torch.save", OSError(errno.ENOSPC, "No space left on device")),
        ("torch.save", RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos")),
        (
            "transformers.PreTrainedModel.save_pretrained",
            SafetensorError("Error while serializing: I/O error: No space left on device"),
        ),
    ],
)
def test_a_full_disk_keeps_the_checkpoint_before_and_says_how_to_go_on(
    options, monkeypatch, where, error
):
    plain = OrderedTrainer._save_checkpoint

    def failing(self, *args):
        with monkeypatch.context() as patch:
            if self.state.global_step == 8:
                patch.setattr(where, lambda *a, **k: (_ for _ in ()).throw(error))
            plain(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(OrderedTrainer, "_save_checkpoint", failing)
        with pytest.raises(CheckpointError, match=r"checkpoint-8: can't be saved .*goes on from"):
            pretrain(options)
    assert not (folder(options) / "checkpoint-8").exists()
    assert last_whole(folder(options)) == folder(options) / "checkpoint-4"
    assert pretrain(options)["loss"] > 0


@pytest.mark.parametrize(
    "where",
    [
        "transformers.PreTrainedModel.save_pretrained",
        "transformers.PreTrainedTokenizerBase.save_pretrained",
        "kbert_lab.training.pretrain.write_card",
    ],
)
def test_a_full_disk_leaves_the_model_as_it_was_when_a_run_is_given_more_steps(
    options, monkeypatch, where
):
    pretrain(options)

    def files():
        found = Path(options.run.output).iterdir()
        return {path.name: path.read_bytes() for path in found if path.is_file()}

    before = files()
    longer = options.changed(steps=options.optimiser.steps + 4)
    with monkeypatch.context() as patch:
        full = OSError(errno.ENOSPC, "No space left on device")
        patch.setattr(where, lambda *a, **k: (_ for _ in ()).throw(full))
        with pytest.raises(CheckpointError, match="no space left on the disk"):
            pretrain(longer)
    assert files() == before
    pretrain(longer)
    after = files()
    assert after.keys() == before.keys()
    assert after["model.safetensors"] != before["model.safetensors"]


def test_an_output_folder_that_cannot_be_written_to_is_named_before_training(options, monkeypatch):
    def refused(self, *args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refused)
    with pytest.raises(OptionError, match=r"model: can't be written to \(Permission denied\)"):
        pretrain(options)


# A loss that is no number, Ctrl-C


def test_a_loss_that_is_no_number_names_the_step_and_the_text(options):
    with pytest.raises(
        DataError, match=r"The loss is (nan|inf) in step \d+, on rows of text that "
    ):
        pretrain(options.changed(learning_rate=1e25, warmup=0, decay=0.0))


def test_ctrl_c_says_how_to_go_on(options, caplog):
    cut_off(options, before=2)
    assert "stopped after step 1; there is no checkpoint yet" in caplog.text
    cut_off(options, before=7)
    assert "run the same command again to go on from checkpoint-4" in caplog.text


# Progress


def test_progress_tells_tokens_a_second_and_time_left(options, caplog):
    caplog.set_level("INFO", "kbert_lab")
    pretrain(options)
    lines = [r.message for r in caplog.records if " tokens/s, " in r.message]
    assert len(lines) == 12
    assert lines[0].startswith("step 1 of 12, loss ")
    assert lines[0].endswith(" left")


# Half precision while computing


def test_computing_in_bfloat16_trains_about_as_well(options):
    plain = pretrain(options.changed(dropout=0.0, steps=40, learning_rate=3e-3))
    half = pretrain(to(options, "b").changed(dropout=0.0, steps=40, learning_rate=3e-3, bf16=True))
    assert half["loss"] == pytest.approx(plain["loss"], rel=0.02)
    assert half["loss"] != plain["loss"]


def test_bfloat16_is_refused_where_the_device_cannot(monkeypatch, tmp_path):
    monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda **how: False)
    with pytest.raises(OptionError, match="Leave --bf16 out"):
        arguments(torch.device("cuda"), RunOptions(output=str(tmp_path), bf16=True))


@pytest.mark.parametrize(
    ("cpu", "able"),
    [
        ({"cpu_name": "Intel Xeon", "avx2": True, "amx_bf16": False}, False),
        ({"cpu_name": "Intel Xeon", "avx512_bf16": True, "amx_bf16": True}, True),
        ({"cpu_name": "AMD EPYC", "avx512_bf16": True, "amx_bf16": False}, True),
    ],
)
def test_a_cpu_that_is_slow_in_bfloat16_is_warned_of(cpu, able, monkeypatch, tmp_path, caplog):
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: cpu)
    arguments(torch.device("cpu"), RunOptions(output=str(tmp_path)))
    assert not caplog.text
    arguments(torch.device("cpu"), RunOptions(output=str(tmp_path), bf16=True))
    assert ("isn't made for bfloat16" in caplog.text) is not able
