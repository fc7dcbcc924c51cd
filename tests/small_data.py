"""Twenty sentences to fine-tune on, with the graph of their entities; and text to pretrain on."""

import os
import random
import socket
import sys
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace

import pytest

NAMES = {"疾病": ["糖尿病", "肺炎", "胃炎", "肝炎"], "检查": ["心电图", "血常规", "彩超", "胸片"]}
LABELS = {"疾病": "D", "检查": "E"}
_STARTED = get_context("forkserver")
_STARTED.set_forkserver_preload(["kbert_lab.cli", "kbert_lab.training.finetune", "small_data"])
LINES = [f"第{i}句话说的是天气很好，今天{i % 7}度。" for i in range(400)]


@pytest.fixture
def data(tmp_path):
    """A folder with the sentences, their graph, and room for models."""
    return write_data(tmp_path)


def write_data(folder):
    """Write twenty sentences, each with one entity, and the graph that knows its type."""
    dice = random.Random(0)
    rows = []
    for number in range(20):
        type_ = ("疾病", "检查")[number % 2]
        name = NAMES[type_][number // 2 % 4]
        text = dice.choice(["患者有", "今查", "既往"]) + name + dice.choice(["病史", "。", "明显"])
        tags = ["O"] * len(text)
        at = text.index(name)
        tags[at : at + len(name)] = [f"B-{LABELS[type_]}"] + [f"I-{LABELS[type_]}"] * (
            len(name) - 1
        )
        rows.append(" ".join(text) + "\t" + " ".join(tags))
    for split in ("train", "dev", "test"):
        (folder / f"{split}.tsv").write_text("text_a\tlabel\n" + "\n".join(rows) + "\n")
    lines = [f"{name}\t类别\t{type_}" for type_, names in NAMES.items() for name in names]
    (folder / "kg.spo").write_text("\n".join(lines) + "\n")
    return folder


def tuning(folder, output="model", **changes):
    """Options that train on a folder's data and graph, from scratch where no encoder is given."""
    from kbert_lab.training.options import TrainOptions

    size = {} if "encoder" in changes else {"hidden_size": 64, "num_hidden_layers": 2}
    given = {
        "task": "ner",
        "data": str(folder),
        "output": str(folder / output),
        "kg": (str(folder / "kg.spo"),),
        "epochs": 12,
        "batch_tokens": 128,
        "learning_rate": 3e-3,
        "dropout": 0.0,
        "device": "cpu",
        "float32": True,
    }
    return TrainOptions.of(**{**given, **size, **changes})


def pretraining(folder, output="model", lines=LINES, **changes):
    """Options that pretrain a tiny encoder on lines of text."""
    from kbert_lab.training.options import PretrainOptions

    (folder / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    given = {
        "text": (str(folder / "text.txt"),),
        "output": str(folder / output),
        "steps": 12,
        "batch_tokens": 128,
        "row_length": 64,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "max_positions": 64,
        "warmup": 3,
        "min_count": 1,
        "device": "cpu",
    }
    return PretrainOptions.of(**{**given, **changes})


def cut_off(options, *, before):
    """Train until a step, from 1 in this run, would begin, and be interrupted there."""
    from transformers import Trainer

    from kbert_lab.training.finetune import train
    from kbert_lab.training.options import TrainOptions
    from kbert_lab.training.pretrain import pretrain

    plain, steps = Trainer.training_step, 0

    def breaking(self, *args, **kwargs):
        nonlocal steps
        steps += 1
        if steps == before:
            raise KeyboardInterrupt
        return plain(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Trainer, "training_step", breaking)
        train(options) if isinstance(options, TrainOptions) else pretrain(options)


def together(folder: Path, *command: str) -> SimpleNamespace:
    """Run `kbert` in two processes that know of each other, as `torch.distributed.run` starts it.

    Args:
        folder: for what they print.
        command: of `kbert`.

    Returns:
        The larger exit status, what both printed, and what both wrote to stderr.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    processes = [
        _STARTED.Process(target=_run, args=(rank, port, folder, command)) for rank in (0, 1)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(300)
        process.kill()
    written = {
        name: "".join((folder / f"{rank}.{name}").read_text(encoding="utf-8") for rank in (0, 1))
        for name in ("stdout", "stderr")
    }
    return SimpleNamespace(returncode=max(abs(p.exitcode) for p in processes), **written)


def _run(rank: int, port: int, folder: Path, command: tuple[str, ...]) -> None:
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    for name in ("stdout", "stderr"):
        setattr(sys, name, (folder / f"{rank}.{name}").open("w", encoding="utf-8", buffering=1))
    from kbert_lab import cli

    sys.exit(cli.main(list(command)))
