"""Explanations of another system than K-BERT: triples as plain text."""

import json
import math

import pytest
from explaining import DISEASE, GRAPH, TEXT

from kbert_core import Ablation, Card, InjectionOptions, Pipeline
from kbert_core.errors import OptionError
from kbert_core.explain.case import Case
from kbert_core.explain.effects import effects, interactions, shapley
from kbert_core.plain_text import PlainTextConfig
from kbert_lab.explain.attention import attention_effect
from kbert_lab.explain.compare import BERT, ablations_of, compare
from kbert_lab.explain.counterfactuals import Search, counterfactuals
from kbert_lab.explain.influence import ROUNDING, influence
from kbert_lab.explain.noise import noise_curve


@pytest.fixture(scope="module")
def case(checkpoints):
    read = Pipeline.from_pretrained(checkpoints["ner"], device="cpu")
    config = PlainTextConfig(InjectionOptions(max_triples=2))
    pipeline = Pipeline(read.reader.model, read.hugging_face_tokenizer, Card("ner", config))
    return Case.of(pipeline, TEXT, graph=GRAPH, target=DISEASE)


@pytest.mark.parametrize(
    "explain",
    [effects, interactions, shapley, attention_effect, counterfactuals, influence, noise_curve],
)
def test_triples_as_plain_text_are_explained_too(case, explain):
    options = {"search": Search(budget=20)} if explain is counterfactuals else {}
    found = explain(case, **options)
    assert json.loads(json.dumps(found.as_dict()))
    assert len(found.to_frame())
    assert found.figure().axes


def test_the_effect_of_a_triple_as_plain_text_is_that_of_a_run_without_it(case):
    for effect in effects(case, deleted=False).each:
        less = case.pipeline(TEXT, graph=GRAPH.remove(effect.piece.triple), config=case.config)
        logits = less.logits_on_text()
        score = DISEASE.score(less.reading, logits, case.pipeline.labels)
        assert effect.without.score == pytest.approx(score, abs=1e-5)
        assert math.isfinite(effect.effect) and abs(effect.effect) > 1e-6


def test_triples_as_plain_text_reach_every_token_after_one_layer(case):
    found = influence(case)
    assert found.reached[:, 1].all()
    assert found.largest_beyond_reach < ROUNDING


def test_a_system_without_ablations_is_compared_with_bert_and_has_one_curve(case):
    made = compare(ablations_of(case), of=case)
    assert [side.name for side in made.sides] == [BERT, "plain-text"]
    assert noise_curve(case, counts=(0, 1), seeds=(1,)).ablations == ("plain-text",)
    with pytest.raises(OptionError, match="'plain-text' has no option 'ablation'"):
        noise_curve(case, ablations={"hard": Ablation("hard", "tree")})


def test_kbert_and_triples_as_plain_text_stand_side_by_side(case, ner):
    beside = Case.of(ner, TEXT, graph=GRAPH, target=DISEASE)
    made = compare({"K-BERT": beside, "plain text": case})
    (pair,) = made.pairs
    assert (pair.why, pair.same_input, pair.largest) == (None, False, None)  # two models
    assert pair.score is not None and 0 < pair.variation < 1
    assert json.dumps(made.as_dict())
