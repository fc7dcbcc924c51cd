"""The learned scorer: fitted, saved, loaded, explained."""

import json

import numpy as np
import pytest
import torch
from conftest import tiny_config, tiny_tokenizer
from safetensors.numpy import save_file
from transformers import BertModel

from kbert_core import InjectionOptions, Triple
from kbert_core.errors import CheckpointError, OptionError
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.strategies import Candidates
from kbert_core.scoring import scorer_of
from kbert_core.scoring.learned import NAMES, SIZE, LearnedScorer, buckets, features
from kbert_core.scoring.similarity import Similarity
from kbert_core.text import WordPieces
from kbert_core.training.select_train import ridge

TRIPLES = (Triple("糖尿病", "类别", "疾病"), Triple("糖尿病", "症状", "多饮"))
ASKED = Candidates(("患者有糖尿病史，多饮",), Mention(3, 6, "糖尿病"), TRIPLES)


@pytest.fixture(scope="module")
def similarity():
    torch.manual_seed(0)
    return Similarity(BertModel(tiny_config()), WordPieces(tiny_tokenizer()))


@pytest.fixture
def scorer(similarity):
    weights = np.zeros(SIZE, np.float32)
    weights[NAMES.index("tail occurs in the text")] = 2.0
    weights[NAMES.index("first in graph order")] = 0.5
    weights[buckets(TRIPLES[1])[0]] = 0.25
    return LearnedScorer(weights, -1.0, notes={"seed": 1}, similarity=similarity)


def test_features_are_what_their_names_say(similarity):
    (found,) = features([ASKED], similarity)
    assert found.shape == (2, SIZE)
    disease, thirst = (dict(zip(NAMES, row.tolist(), strict=False)) for row in found)
    assert (disease["tail occurs in the text"], thirst["tail occurs in the text"]) == (0, 1)
    assert (disease["first in graph order"], thirst["first in graph order"]) == (1, 0)
    assert thirst["place in graph order, 1 / place"] == 0.5
    assert disease["share of the tail's characters in the head"] == 0.5  # 病
    assert disease["share of the tail's characters in the rest of the text"] == 0
    best = "similarity less the best of the mention's triples"
    assert max(disease[best], thirst[best]) == 0
    assert found[:, len(NAMES) :].sum(1).tolist() == [2, 2]


def test_score_is_the_sum_of_its_parts_and_says_them(scorer):
    (scores,) = scorer.score([ASKED])
    assert scores == pytest.approx([-0.5, 1.25])
    first, second = scorer.explain(ASKED)
    assert sum(first.values()) == pytest.approx(scores[0])
    assert sum(second.values()) == pytest.approx(scores[1])
    assert next(iter(second.items())) == ("tail occurs in the text", 2.0)


def test_scorer_comes_back_as_it_was_saved(scorer, similarity, tmp_path):
    scorer.save(tmp_path / "scorer")
    names = {path.name for path in (tmp_path / "scorer").iterdir()}
    assert names == {"scorer.json", "scorer.safetensors"}
    again = LearnedScorer.load(tmp_path / "scorer")
    assert np.array_equal(again.weights, scorer.weights)
    assert (again.bias, again.encoder, again.notes) == (-1.0, "model", {"seed": 1})
    options = InjectionOptions(strategy="learned", scorer=str(tmp_path / "scorer"))
    opened = scorer_of(options, similarity)
    assert opened.score([ASKED]) == scorer.score([ASKED])


def test_scorer_without_its_encoder_is_refused(scorer, tmp_path):
    scorer.save(tmp_path)
    with pytest.raises(OptionError, match="needs an encoder"):
        LearnedScorer.load(tmp_path).score([ASKED])
    with pytest.raises(OptionError, match="there is no model"):
        scorer_of(InjectionOptions(strategy="learned", scorer=str(tmp_path)))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("scorer.json", None, "no scorer.json, so no scorer"),
        ("scorer.json", "{", "can't be read"),
        ("scorer.json", "[]", "can't be read"),
        ("scorer.safetensors", "no numbers", "can't be read"),
        ("scorer.safetensors", None, "can't be read"),
    ],
)
def test_broken_scorer_is_refused(scorer, tmp_path, name, content, said):
    scorer.save(tmp_path)
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(CheckpointError, match=said):
        LearnedScorer.load(tmp_path)


def test_scorer_of_other_features_is_refused(scorer, tmp_path):
    scorer.save(tmp_path)
    card = json.loads((tmp_path / "scorer.json").read_text())
    (tmp_path / "scorer.json").write_text(json.dumps({**card, "features": ["other"]}))
    with pytest.raises(CheckpointError, match="other features"):
        LearnedScorer.load(tmp_path)
    scorer.save(tmp_path)
    save_file({"weights": np.zeros(3, np.float32)}, tmp_path / "scorer.safetensors")
    with pytest.raises(CheckpointError, match="other features"):
        LearnedScorer.load(tmp_path)


def test_ridge_finds_what_is_linear_and_leaves_constants_alone():
    random = np.random.default_rng(0)
    x = random.normal(size=(4000, 3)).astype(np.float32)
    x[:, 2] = 1
    y = (2 * x[:, 0] - x[:, 1] + 3).astype(np.float32)
    weights, bias = ridge(x, y)
    assert weights == pytest.approx([2, -1, 0], abs=0.02)
    assert bias == pytest.approx(3, abs=0.02)
