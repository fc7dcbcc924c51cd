"""A suite small enough to run in seconds: invented names, a BERT from scratch."""

import itertools
import random

import pytest
import yaml
from matplotlib.figure import Figure
from PIL import Image
from tagged_texts import row, tagged

from kbert_lab.suites.suite import read_suite

ENDS = {"疾病": "病炎症疮", "检查": "图片试镜"}
LABELS = {"疾病": "D", "检查": "E"}
NAMES = {
    type_: ["".join(p) for p in itertools.product("甲乙丙丁", ends)] for type_, ends in ENDS.items()
}


def rows(count, seed):
    dice = random.Random(seed)

    def sentence(type_):
        name = dice.choice(NAMES[type_])
        before = dice.choice(["患者有", "今查", "既往见"])
        text = before + name + dice.choice(["病史", "。", "明显"])
        return row(tagged(text, (name, LABELS[type_])))

    return [sentence(("疾病", "检查")[number % 2]) for number in range(count)]


@pytest.fixture
def really_drawn():
    """Pictures of reports are drawn, which takes most of a report's time."""


@pytest.fixture(autouse=True)
def dots_for_pictures(request, monkeypatch):
    """A picture that no test looks at is a dot."""
    if "really_drawn" not in request.fixturenames:
        dot = Image.new("RGB", (1, 1))
        monkeypatch.setattr(Figure, "savefig", lambda self, file, **_: dot.save(file, "PNG"))
        monkeypatch.setattr(Figure, "draw_without_rendering", lambda self: None)


@pytest.fixture
def suite_data():
    """What the tiny suite says, to be changed and written."""
    return {
        "title": "A tiny suite",
        "about": "Invented names.",
        "task": "ner",
        "encoder": "scratch",
        "seeds": [1, 2],
        "data": {"folder": "data"},
        "kg": "kg.spo",
        "train": {
            "epochs": 2,
            "batch_tokens": 128,
            "hidden_size": 64,
            "num_hidden_layers": 1,
            "learning_rate": 3e-3,
        },
        "compare_with": "BERT",
        "runs": [
            {"name": "BERT", "knowledge": "none"},
            {"name": "K-BERT, graph", "recipe": {"counterfactual": 0.3}, "note": "With knowledge."},
        ],
        "baselines": [{"name": "dictionary"}, {"name": "BERT + dictionary", "over": "BERT"}],
        "also_compare": [["K-BERT, graph", "BERT + dictionary"]],
    }


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A current folder with the tiny suite's data and graph."""
    (tmp_path / "data").mkdir()
    for seed, (split, count) in enumerate({"train": 60, "dev": 20, "test": 30}.items()):
        text = "text_a\tlabel\n" + "\n".join(rows(count, seed)) + "\n"
        (tmp_path / "data" / f"{split}.tsv").write_text(text, encoding="utf-8")
    lines = [f"{name}\t类别\t{type_}" for type_, names in NAMES.items() for name in names]
    (tmp_path / "kg.spo").write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return tmp_path


@pytest.fixture
def written(folder):
    """Writes a suite file and returns its path."""

    def write(data, name="tiny.yaml"):
        path = folder / name
        path.write_text(yaml.safe_dump(data, allow_unicode=True, sort_keys=False), "utf-8")
        return path

    return write


MAP = """
task: ner
seeds: [1, 2]
data: {folder: data, split: substitution}
kg: graph.spo
compare_with: BERT
conditions:
  - {unseen: 0.25, known: 0.6, right: 0.6}
  - {unseen: 0.5, known: 0.6, right: 0.6}
  - {unseen: 0.25, known: 0, right: 0.6}
  - {unseen: 0.25, known: 0.9, right: 0.2}
runs:
  - {name: BERT, knowledge: none}
  - {name: K-BERT}
"""


@pytest.fixture
def small(tmp_path):
    """Reads a suite with conditions and what is added to it."""

    def read(more=""):
        path = tmp_path / "small.yaml"
        path.write_text(MAP + more, encoding="utf-8")
        return read_suite(path)

    return read
