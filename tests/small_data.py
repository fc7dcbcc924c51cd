"""Twenty sentences to fine-tune on, and the graph that knows their entities."""

import random

import pytest

NAMES = {"疾病": ["糖尿病", "肺炎", "胃炎", "肝炎"], "检查": ["心电图", "血常规", "彩超", "胸片"]}
LABELS = {"疾病": "D", "检查": "E"}


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
