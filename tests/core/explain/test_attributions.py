"""Shares of tokens: they sum to the whole, and are those of a slow integral."""

import json

import pytest
import torch
from explaining import DISEASE, GRAPH, HAS_SYMPTOM, IS_DISEASE, TEXT
from roof_taggers import tagger
from tiny_knowbert import SENSES, knowbert_in
from tiny_knowbert import TEXT as LINKED

from kbert_core import Card, InjectionOptions, Pipeline
from kbert_core.errors import OptionError
from kbert_core.explain.attributions import attributions
from kbert_core.explain.case import Case, Fact, Target
from kbert_core.kbert.interventions import Intervention, Tokens
from kbert_core.plain_text import PlainTextConfig


@pytest.fixture(scope="module")
def cases(checkpoints, tmp_path_factory):
    """One case per system."""
    kbert = Pipeline.from_pretrained(checkpoints["ner"], device="cpu")
    config = PlainTextConfig(InjectionOptions(max_triples=2))
    plain = Pipeline(kbert.reader.model, kbert.hugging_face_tokenizer, Card("ner", config))
    classes = Pipeline.from_pretrained(checkpoints["classify"], device="cpu")
    knowbert = knowbert_in(tmp_path_factory.mktemp("knowbert"), checkpoints)
    made = {
        "kbert": Case.of(kbert, TEXT, graph=GRAPH, target=DISEASE),
        "kbert class": Case.of(classes, TEXT, graph=GRAPH),
        "plain-text": Case.of(plain, TEXT, graph=GRAPH, target=DISEASE),
        "knowbert": Case.of(knowbert, LINKED, graph=SENSES, target=Target("疾病", 3, 6)),
    }
    for name, encoder in (("roof shared", "shared"), ("roof", "own")):
        roof = tagger(checkpoints["encoder"], kb_encoder=encoder)
        made[name] = Case.of(roof, TEXT, graph=GRAPH, target=DISEASE)
    return made


SYSTEMS = ("kbert", "kbert class", "plain-text", "knowbert", "roof shared", "roof")


@pytest.mark.parametrize("system", SYSTEMS)
def test_shares_sum_to_the_score_less_that_of_a_masked_text(cases, system):
    case = cases[system]
    found = attributions(case)
    assert found.score == pytest.approx(case.base.score, abs=1e-5)
    assert abs(found.score - found.masked) > 1e-3
    assert abs(found.remainder) < 0.02 * max(1e-2, abs(found.score - found.masked))
    assert abs(attributions(case, steps=4).remainder) >= abs(found.remainder) - 1e-6
    assert json.loads(json.dumps(found.as_dict()))["tokens"]
    of_text = [own for own in found.each if own.fact is None]
    assert "".join(own.text for own in of_text) == case.sentences[0]
    assert [case.sentences[0][own.start] for own in of_text] == [own.text[0] for own in of_text]
    parts = [found.of(Fact(fact.triple)) for fact in case.facts]
    assert sum(parts) + found.of(None) == pytest.approx(sum(own.share for own in found.each))
    assert any(parts) is (system != "knowbert")


@pytest.mark.parametrize("system", SYSTEMS)
def test_shares_of_the_probability_sum_to_it(cases, system):
    case = cases[system]
    found = attributions(case, probability=True)
    labels = case.pipeline.labels
    assert found.score == pytest.approx(case.target.probability(case.base.score, labels), abs=1e-6)
    assert abs(found.remainder) < 0.02 * max(1e-3, abs(found.score - found.masked))


def test_shares_are_those_of_a_slow_sum_over_the_way(cases):
    case, steps = cases["kbert"], 400
    reader, labels = case.pipeline.reader, case.pipeline.labels
    (row,) = case.reading.rows
    ids = torch.tensor(row.input_ids)
    mask = case.pipeline.hugging_face_tokenizer.mask_token_id
    special = [at for at, _ in row.specials]
    empty = torch.full_like(ids, mask).index_copy(0, torch.tensor(special), ids[special])
    embed = reader.model.get_input_embeddings()
    end, begin = embed(ids).detach(), embed(empty).detach()
    whole = torch.zeros_like(end)
    for step in range(steps):
        here = (begin + (step + 0.5) / steps * (end - begin)).requires_grad_()
        batch = reader.collate([row], case.config)
        given = {**reader.encoder.inputs(batch), "inputs_embeds": here[None]}
        del given["input_ids"]
        logits = case.reading.on_text([reader.model(**given).logits[0]])
        likely = case.target.log_probabilities(case.reading, logits, labels)
        whole += torch.autograd.grad(case.target.scored(likely, labels), here)[0] / steps
    slow = ((end - begin) * whole).sum(-1)
    found = attributions(case)
    places = [placed for placed in row.branches if placed.branch.triple == HAS_SYMPTOM]
    expected = sum(float(slow[placed.start : placed.end].sum()) for placed in places)
    assert found.of(Fact(HAS_SYMPTOM)) == pytest.approx(expected, abs=1e-4)
    assert found.of(None) == pytest.approx(
        float(slow[[b == 0 for b in row.branch_ids]].sum()), abs=1e-4
    )


def test_a_triple_at_two_mentions_has_the_shares_of_both(checkpoints):
    ner = Pipeline.from_pretrained(checkpoints["ner"], device="cpu")
    case = Case.of(ner, "糖尿病史糖尿病", graph=GRAPH, target=Target("疾病", 0, 3))
    found = attributions(case, steps=8)
    each = [found.of(Fact(IS_DISEASE, node)) for node in (0, 1)]
    assert each[0] != each[1]
    assert found.of(Fact(IS_DISEASE)) == pytest.approx(sum(each))


def test_a_score_that_cannot_be_followed_back_is_refused(cases, checkpoints, tmp_path):
    linker = knowbert_in(tmp_path, checkpoints, head=False)
    with pytest.raises(OptionError, match="can't be computed for a link"):
        attributions(Case.of(linker, LINKED, graph=SENSES))
    block = Intervention("block", Tokens("trunk"), Tokens("branches"), layers=(1,))
    case = Case.of(
        cases["kbert"].pipeline, TEXT, graph=GRAPH, target=DISEASE, interventions=(block,)
    )
    with pytest.raises(OptionError, match="different visible matrices"):
        attributions(case)
