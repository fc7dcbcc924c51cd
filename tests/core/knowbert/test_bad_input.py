"""Knowledge bases and models that are odd or broken: documented behaviour, or a clear error."""

import dataclasses
import json

import pytest
import torch
from conftest import save_checkpoint
from tiny_knowbert import PLACE, SENSES, TEXT, knowbert_in
from transformers import AutoModel

from kbert_core import Card, InjectionOptions, KBertError, KnowledgeGraph, Pipeline, Triple
from kbert_core.knowbert.candidates import Base, graph_spans
from kbert_core.knowledge.io.write import write_triples
from kbert_lab.cli import main
from kbert_lab.data.labelled import Example, GoldLink
from kbert_lab.training.evaluate import evaluate

GLOSS, NAME = Triple("心电图.n.01", "gloss", "一种检查"), Triple("心电图.n.01", "synonym", "心电图")
WORDNET, GLOSSES = Base.of("wordnet"), Base(("gloss",))


@pytest.fixture
def linker(checkpoints, tmp_path):
    return knowbert_in(tmp_path / "linker", checkpoints, head=False)


@pytest.fixture
def tagger(checkpoints, tmp_path):
    return knowbert_in(tmp_path / "tagger", checkpoints)


def spans_of(*triples, base=Base(), text=TEXT):
    return graph_spans([text], KnowledgeGraph(triples), InjectionOptions(), base)


def test_without_priors_the_entities_of_a_name_share_it(linker):
    graph = KnowledgeGraph(triple for triple in SENSES if triple.relation != "count")
    trace = linker(TEXT, graph=graph)
    assert [own.prior for own in trace.reading.spans[0].candidates] == [0.5, 0.5]
    assert trace.candidates[0].priors.tolist() == [[[0.5, 0.5]]]
    assert trace.prediction.links[0].entity in ("心电图.n.01", "心电图.n.02")


def test_an_entity_given_twice_is_one_candidate_and_its_triple_counts_once():
    other = Triple("心电图.n.01", "synonym", "心 电 图")
    (span,) = spans_of(GLOSS, NAME, other, GLOSS, NAME, Triple("心电图.N.01", "gloss", "一种检查"))
    assert [own.entity for own in span.candidates] == ["心电图.n.01"]
    assert span.candidates[0].prior == 1
    assert span.candidates[0].triples.count(GLOSS) == 1


def test_a_graph_without_other_names_is_found_by_its_entities_own_names():
    (span,) = spans_of(Triple("心电图", "类别", "检查"))
    assert (span.mention.start, span.mention.end) == PLACE
    (span,) = spans_of(Triple("ecg", "gloss", "a test"), base=WORDNET, text="two ECGs")
    assert [own.entity for own in span.candidates] == ["ecg"]
    assert spans_of(GLOSS) == ()  # no text says "心电图.n.01"


def test_an_entity_without_a_text_is_no_candidate_and_a_name_of_such_no_span():
    assert spans_of(NAME, Triple("心电图.n.01", "count", "心电图 9"), base=GLOSSES) == ()
    (span,) = spans_of(GLOSS, NAME, Triple("心电图.n.02", "synonym", "心电图"), base=GLOSSES)
    assert [(own.entity, own.prior) for own in span.candidates] == [("心电图.n.01", 1.0)]


@pytest.mark.parametrize("text", ["\u2063", "龘", "龘龘"])
def test_a_text_of_which_no_token_is_known_still_gives_a_vector(linker, text):
    trace = linker(TEXT, graph=KnowledgeGraph([Triple("心电图.n.01", "gloss", text), NAME]))
    assert trace.kars[0].linked.entity.isfinite().all()
    assert [own.entity for own in trace.prediction.links] == ["心电图.n.01"]


def test_ten_thousand_senses_of_a_word_are_cut_to_the_thirty_most_common(linker):
    names = [f"心电图.n.{number}" for number in range(10_000)]
    triples = [
        t for n in names for t in (Triple(n, "gloss", "检查"), Triple(n, "synonym", "心电图"))
    ]
    graph = KnowledgeGraph([*triples, Triple("心电图.n.7777", "count", "心电图 5")])
    trace = linker(TEXT, graph=graph)
    (span,) = trace.reading.spans
    assert span.candidates[0].entity == "心电图.n.7777"
    assert len(span.candidates) == 30
    assert trace.kars[0].linked.weights.sum().item() == pytest.approx(1, abs=1e-5)


def test_a_name_cut_by_the_length_limit_gives_its_text_no_knowledge(tagger):
    config = dataclasses.replace(tagger.config, max_length=6)  # [CLS] 患者行心 [SEP]
    (cut,) = tagger.reader.read([[TEXT]], SENSES, config)
    assert [row.spans for row in cut.rows] == [()]
    assert len(cut.mentions) == 1 and cut.pieces == ()
    (same,) = tagger.reader.read([[TEXT[:4]]], SENSES, config)
    one, other = tagger.reader.logits([cut, same])
    assert torch.equal(one, other)
    assert tagger.reader.trace(cut).links == ()


def test_a_name_cut_by_the_length_limit_stays_in_no_row_when_spans_are_edited(tagger):
    config = dataclasses.replace(tagger.config, max_length=6)
    (cut,) = tagger.reader.read([[TEXT]], SENSES, config)
    assert [len(tokens) for tokens in cut.tokens] == [4]
    assert cut.with_nodes(cut.spans).rows == cut.rows
    (whole,) = tagger.reader.read([[TEXT]], SENSES)
    assert whole.with_nodes(whole.spans).rows == whole.rows and whole.pieces


def test_a_name_longer_than_a_window_is_not_linked(linker):
    short = Pipeline(
        linker.reader.model,
        linker.hugging_face_tokenizer,
        dataclasses.replace(linker.card, reading=dataclasses.replace(linker.config, max_length=4)),
    )
    trace = short(TEXT, graph=SENSES)
    assert len(trace.reading.rows) > 1
    assert trace.prediction.links == trace.links == ()
    example = Example((TEXT,), links=(GoldLink(*PLACE, ("心电图.n.01",)),))
    assert evaluate(short, [example], SENSES)["predicted"] == 0


def card_changed(folder, change):
    file = folder / "config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    change(config["kbert"])
    file.write_text(json.dumps(config), encoding="utf-8")
    return folder


def test_vectors_of_another_width_than_the_models_are_refused_when_it_is_loaded(
    linker, checkpoints, tmp_path
):
    wide = save_checkpoint(tmp_path / "wide", AutoModel, Card(), hidden_size=64)
    folder = card_changed(
        tmp_path / "linker", lambda card: card["bases"][0].update(vectors=str(wide))
    )
    with pytest.raises(KBertError, match=r"don't fit the model's card .*linker\.project\.weight"):
        Pipeline.from_pretrained(folder, device="cpu")


def test_a_card_of_another_system_is_refused_beside_a_kars_weights(tagger, tmp_path):
    assert Pipeline.from_pretrained(tmp_path / "tagger", device="cpu").card.system == "knowbert"

    def as_kbert(card):
        card["system"] = "k-bert"
        del card["bases"]

    with pytest.raises(KBertError, match="don't fit the model's card"):
        Pipeline.from_pretrained(card_changed(tmp_path / "tagger", as_kbert), device="cpu")


@pytest.mark.parametrize("system", ["k-bert", "plain-text"])
def test_a_model_with_a_kar_is_read_by_its_own_system_alone(tagger, system):
    with pytest.raises(KBertError, match=f"layers of the system 'knowbert'.* '{system}'"):
        tagger.read_as(system)
    assert tagger.read_as("knowbert") is tagger


@pytest.mark.parametrize(
    ("bases", "words"),
    [
        ([], "has no knowledge base"),
        ([{"like": "wiki"}], "No knowledge base 'wiki'"),
        ([{"layers": 3}], "no such option"),
        (["graph", 7], "expected its name or its options"),
        ([{"relations": "gloss"}], "relations is 'gloss', expected a list"),
        ([{"relations": 5}], "relations is 5, expected a list"),
        ([{"kar": 5}], "no such option"),
    ],
)
def test_a_card_with_impossible_bases_is_said(tagger, tmp_path, bases, words):
    folder = card_changed(tmp_path / "tagger", lambda card: card.update(bases=bases))
    with pytest.raises(KBertError, match=words):
        Pipeline.from_pretrained(folder, device="cpu")


def test_a_linker_without_a_graph_reads_the_one_beside_it_or_asks_for_one(
    linker, tmp_path, capsys, caplog
):
    data = tmp_path / "test.jsonl"
    label = {"span": PLACE, "entity_id": "心电图.n.01"}
    data.write_text(json.dumps({"text": TEXT, "labels": [label]}) + "\n", encoding="utf-8")
    given = ["evaluate", "--model", str(tmp_path / "linker"), "--data", str(data), "--json"]
    assert main([*given, "--device", "cpu"]) == 2
    assert "no graph is given (none lies in its folder)" in capsys.readouterr().err
    write_triples(SENSES, tmp_path / "linker" / "senses.spo")
    assert main([*given, "--device", "cpu"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["kg"] == [str(tmp_path / "linker" / "senses.spo")]
    assert report["scores"]["predicted"] == 1
    assert "reading the graph beside the model" in caplog.text
