"""Similarity of texts and triples under an encoder, and the strategy that uses it."""

import numpy as np
import pytest
import torch
from conftest import tiny_config, tiny_tokenizer, tiny_vocabulary
from core.kbert.test_mask_transformer import small
from slow_trees import slow_tree
from transformers import BertModel

from kbert_core import InjectionOptions, KnowledgeGraph, Triple, grow_trees
from kbert_core.errors import OptionError
from kbert_core.pipeline import Pipeline
from kbert_core.scoring import Similarity, scorer_of, similarity_under
from kbert_core.text import WordPieces

GRAPH = KnowledgeGraph(
    [
        Triple("糖尿病", "类别", "疾病"),
        Triple("糖尿病", "症状", "多饮"),
        Triple("糖尿病", "检查", "心电图"),
        Triple("布洛芬", "类别", "治疗"),
        Triple("布洛芬", "治疗", "糖尿病"),
    ]
)
TEXTS = ["患者有糖尿病史", "给予布洛芬口服", "糖尿病和布洛芬", "入院后未见异常", "患者有糖尿病史"]
CONTEXT = InjectionOptions(max_triples=1, strategy="context")


@pytest.fixture(scope="module")
def own():
    torch.manual_seed(0)
    encoder = BertModel(tiny_config())
    return Similarity(encoder, WordPieces(tiny_tokenizer()))


def test_vector_is_the_mean_of_the_texts_tokens_without_special_ones(own):
    plain = Similarity(own.model, own.tokenizer, centred=False)
    ids = tiny_tokenizer()("患者有cats", return_tensors="pt")
    with torch.no_grad():
        states = own.model(**ids, output_hidden_states=True).hidden_states
    wanted = states[1][0, 1:-1].mean(0).numpy()  # the middle of three layers
    (vector,) = plain.vectors([("患者有cats",)]).values()
    assert np.allclose(vector, wanted / np.linalg.norm(wanted), atol=1e-5)


def test_many_texts_have_the_vectors_of_each(own):
    texts = [(text,) for text in TEXTS]
    together = Similarity(own.model, own.tokenizer).vectors(texts)
    for text in texts:
        alone = Similarity(own.model, own.tokenizer).vectors([text])
        assert np.allclose(together[text], alone[text], atol=1e-4)


def test_cache_is_bounded_and_used(own, monkeypatch):
    small = Similarity(own.model, own.tokenizer)
    small.cached = 3
    texts = [(c,) for c in "患者有糖尿病史"]
    assert len(small.vectors(texts)) == 7
    assert len(small._cache) == 3
    monkeypatch.setattr(small, "_means", lambda texts: pytest.fail(f"{texts} are made again"))
    assert len(small.vectors(texts[-3:])) == 3


@pytest.mark.parametrize(("kind", "padding"), [("modernbert", 100), ("roberta", 1)])
def test_a_text_is_cut_to_the_encoders_positions(kind, padding):
    encoder = small(kind, vocab_size=len(tiny_vocabulary()), pad_token_id=padding)
    plain = Similarity(encoder, WordPieces(tiny_tokenizer()), centred=False)
    short, long = plain.vectors([("糖尿病",), ("病" * 99,)]).values()
    assert np.isfinite(short).all() and np.isfinite(long).all()


# Where it is used


def test_model_scores_with_its_own_encoder(checkpoints):
    pipeline = Pipeline.from_pretrained(checkpoints["ner"], device="cpu")
    trace = pipeline(TEXTS[0], graph=GRAPH, options=CONTEXT)
    (node,) = trace.tree.nodes
    scores = {item.triple: item.score for item in node.left_out}
    (branch,) = node.branches
    assert branch.reason.rank == 1
    assert branch.reason.score >= max(scores.values())
    assert len(scores) == 2


def test_trees_of_many_texts_are_those_of_each(own):
    trees = grow_trees(TEXTS, GRAPH, CONTEXT, scorer=own)
    assert list(trees) == [slow_tree((text,), GRAPH, CONTEXT, scorer=own) for text in TEXTS]


def test_another_encoder_can_be_named(checkpoints):
    options = InjectionOptions(strategy="context", scorer=str(checkpoints["encoder"]))
    scorer = scorer_of(options, device="cpu")
    assert scorer is similarity_under(str(checkpoints["encoder"]), "cpu")
    pipeline = Pipeline.from_pretrained(checkpoints["ner"], device="cpu")
    assert pipeline.kbert.scorer(options) is scorer
    assert pipeline(TEXTS[0], graph=GRAPH, options=options).used


def test_own_encoder_without_a_model_is_refused():
    with pytest.raises(OptionError, match=r"The model's own encoder .* there is no model"):
        scorer_of(CONTEXT)
