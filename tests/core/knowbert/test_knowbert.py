"""KnowBert on the seam: it reads, predicts, is explained, edited and saved; what is odd."""

import dataclasses
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from conftest import BIO, save_checkpoint
from tagged_texts import tagged
from tiny_knowbert import PLACE, SENSES, knowbert_in
from tiny_knowbert import TEXT as LINKED
from transformers import AutoModel, AutoModelForMaskedLM, AutoModelForTokenClassification

from kbert_core import (
    Card,
    InjectionOptions,
    KBertError,
    KnowledgeGraph,
    Pipeline,
    Triple,
    load_graph,
)
from kbert_core.checkpoints.checkpoint import load_model, load_tokenizer
from kbert_core.knowbert.candidates import MASKED, Base, graph_spans
from kbert_core.knowbert.entity_vectors import EntityVectors
from kbert_core.knowbert.kar import KarOptions
from kbert_core.knowbert.knowbert import RATE, KnowBertConfig
from kbert_core.knowledge.io.write import write_triples
from kbert_lab.cli import main
from kbert_lab.data.labelled import Example, GoldLink
from kbert_lab.study.counts import branch_begins
from kbert_lab.training.evaluate import evaluate
from kbert_lab.training.finetune import train
from kbert_lab.training.options import Recipe, TrainOptions
from kbert_lab.training.rows import RowMaker

ROOT = Path(__file__).parents[3]
SMALL = KarOptions(size=12, heads=3, inner=16)
TEXT = "患者有糖尿病史行心电图检查"
DIABETES, ECG = Triple("糖尿病", "类别", "疾病"), Triple("心电图", "类别", "检查")
CURE = Triple("糖尿病", "治疗", "布洛芬")
GRAPH = KnowledgeGraph([DIABETES, CURE, ECG, Triple("布洛芬", "类别", "治疗")])
OPTIONS = InjectionOptions(max_triples=8)


def config(checkpoints, options=InjectionOptions(), max_length=None, **changes):
    base = Base(**{"kar": SMALL, "vectors": str(checkpoints["encoder"]), **changes})
    return KnowBertConfig(options, max_length, (base,))


def pipeline_of(checkpoints, task="ner", auto=AutoModelForTokenClassification, **changes):
    folder = checkpoints[task]
    card = Card(task, config(checkpoints, **changes))
    return Pipeline(load_model(folder, auto, device="cpu"), load_tokenizer(folder), card)


@pytest.fixture
def knowbert(checkpoints):
    return pipeline_of(checkpoints)


def rows_with(knowbert, **recipe):
    """Rows of one text in forty draws of a recipe; 糖尿病 is gold, 心电图 is not."""
    example = tagged(TEXT, ("糖尿病", "疾病"))
    labels = {label: number for number, label in enumerate(BIO)}
    types = {"疾病": "疾病", "治疗": "治疗"}
    graph = KnowledgeGraph([DIABETES, ECG])
    made = RowMaker(
        *([example] * 40, knowbert.task, knowbert.reader, labels, graph),
        recipe=Recipe(**recipe),
        type_labels=types,
    )
    return [row for (row,) in made.rows(range(40), 0)]


def test_a_counterfactual_gives_a_candidate_another_type_and_the_name_its_label(knowbert):
    another = 0
    for made in rows_with(knowbert, counterfactual=0.5):
        (tail,) = (t.tail for t in made.row.spans[0].span.used)
        assert tail in ("疾病", "治疗")
        assert [BIO[label] for label in made.target[4:7]] == [f"B-{tail}", f"I-{tail}", f"I-{tail}"]
        assert made.row.spans[1].span.used == (ECG,)
        another += tail == "治疗"
    assert 10 < another < 30


def test_a_recipe_hides_gold_names_and_drops_spans_without_a_triple(knowbert):
    plain = knowbert.readings([[TEXT]], graph=GRAPH)[0].rows[0].input_ids
    hidden = rows_with(knowbert, mention_dropout=0.5)
    changed = [own for own in hidden if own.input_ids is not None]
    assert 10 < len(changed) < 30
    for own in changed:
        assert {i for i, (a, b) in enumerate(zip(own.input_ids, plain, strict=True)) if a != b} <= {
            *(4, 5, 6)
        }
    counts = {len(own.row.spans) for own in rows_with(knowbert, branch_dropout=0.5)}
    assert counts == {0, 1, 2}


def test_no_entity_begins_on_knowledge_that_is_in_no_row(knowbert):
    example = Example((TEXT,), None, ((3, 6),), ("B-疾病",))
    assert branch_begins(knowbert, [example], GRAPH) == [0]


def test_overlapping_names_are_spans_too_and_several_meanings_share_the_prior():
    graph = KnowledgeGraph(
        [
            Triple("糖尿病史", "类别", "症状"),
            DIABETES,
            *(Triple(f"消渴{n}", "别名", "糖尿病") for n in range(3)),
        ]
    )
    spans = graph_spans([TEXT], graph, OPTIONS)
    assert [(own.mention.start, own.mention.end) for own in spans] == [(3, 6), (3, 7)]
    assert sum(own.prior for own in spans[0].candidates) == pytest.approx(1)
    assert len({own.prior for own in spans[0].candidates}) == 1


def test_a_mention_that_touches_a_mask_means_the_mask_entity(checkpoints):
    pipeline = pipeline_of(checkpoints, "mask", AutoModelForMaskedLM)
    (reading,) = pipeline.readings([["[MASK]糖尿病"]], graph=GRAPH)
    assert [own.candidates[0].entity for own in reading.spans] == ["糖尿病"]
    graph = KnowledgeGraph([Triple("mask", "类别", "疾病")])
    spans = pipeline.readings([["有[MASK]病"]], graph=graph)[0].spans
    assert [own.candidates for own in spans] == [(MASKED,)]


def test_an_edited_triple_changes_the_prediction_and_an_unnamed_entity_nothing(knowbert):
    (before,) = knowbert.reader.logits(knowbert.readings([[TEXT]], graph=GRAPH))
    edited = GRAPH.replace(DIABETES, Triple("糖尿病", "类别", "治疗"))
    (after,) = knowbert.reader.logits(knowbert.readings([[TEXT]], graph=edited))
    assert not torch.allclose(before, after)
    other = GRAPH.add(Triple("布洛芬", "治疗", "糖尿病"))
    (same,) = knowbert.reader.logits(knowbert.readings([[TEXT]], graph=other))
    assert torch.equal(before, same)


def test_it_is_trained_with_the_encoder_that_it_starts_from_for_vectors(data, checkpoints):
    encoder = str(checkpoints["encoder"])
    how = {"task": "ner", "system": "knowbert", "encoder": encoder, "epochs": 1, "device": "cpu"}
    files = {"data": str(data), "kg": (str(data / "kg.spo"),), "output": str(data / "model")}
    report = train(TrainOptions.of(**how, **files))
    assert report["type_labels"] == {"疾病": "D", "检查": "E"}
    assert report["edit_response"].keys() == {"dev", "test"}
    model = Pipeline.from_pretrained(data / "model", device="cpu")
    assert model.config.bases[0].vectors == encoder
    assert {model.reader.rate_of(name) for name, _ in model.reader.model.named_parameters()} == {
        1.0,
        RATE,
    }
    fresh = pipeline_of(checkpoints, kar=KarOptions()).reader.kars[0]
    assert not torch.equal(model.reader.kars[0].down.weight, fresh.down.weight)
    special = [
        kar.linker.special for kar in (model.reader.kars[0], fresh)
    ]  # frozen; kept in 16 bits
    torch.testing.assert_close(*special, atol=1e-5, rtol=0)
    with pytest.raises(KBertError, match="Start from a pretrained encoder"):
        KnowBertConfig().trained_from(None)


def test_the_encoder_of_entity_vectors_is_found_beside_the_model(data, checkpoints):
    together = data / "here"
    shutil.copytree(checkpoints["encoder"], together / "encoder")
    how = {"task": "ner", "system": "knowbert", "epochs": 1, "device": "cpu"}
    how |= {"data": str(data), "kg": (str(data / "kg.spo"),)}
    encoder, output = together / "encoder", together / "model"
    train(TrainOptions.of(**how, encoder=str(encoder), output=str(output)))
    stated = json.loads((output / "config.json").read_text())["kbert"]
    assert [base["vectors"] for base in stated["bases"]] == ["../encoder"]
    moved = together.rename(data / "there")
    model = Pipeline.from_pretrained(moved / "model", device="cpu")
    assert model.config.bases[0].vectors == str((moved / "encoder").resolve())
    assert model(TEXT, graph=GRAPH).prediction is not None
    (moved / "encoder").rename(moved / "other")
    with pytest.raises(KBertError, match="copy the encoder's folder next to model"):
        Pipeline.from_pretrained(moved / "model", device="cpu")


def test_the_shipped_linker_is_small_and_tells_senses_apart_from_any_folder(tmp_path, monkeypatch):
    folder = ROOT / "models" / "wsd-knowbert"
    assert sum(file.stat().st_size for file in folder.iterdir()) <= 10_000_000
    monkeypatch.chdir(tmp_path)
    graph = load_graph(ROOT / "demo_kgs" / "senses_en.spo")
    texts = ["They sat on the bank of the river", "She took her money to the bank"]
    linker = Pipeline.from_pretrained(folder, device="cpu")
    meant = [
        {own.entity for own in p.links} for p in linker.predict([(t,) for t in texts], graph=graph)
    ]
    assert "bank.n.01" in meant[0]
    assert "bank.n.02" in meant[1]


def test_a_model_that_lacks_its_kars_weights_is_refused(checkpoints, tmp_path):
    card = Card("ner", config(checkpoints))
    save_checkpoint(tmp_path, AutoModelForTokenClassification, card)
    with pytest.raises(KBertError, match="weights of what is inserted"):
        Pipeline.from_pretrained(tmp_path, device="cpu")


def test_knowbert_without_a_knowledge_base_is_refused():
    with pytest.raises(KBertError, match="has no knowledge base"):
        KnowBertConfig(bases=())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"vectors": ""}, "Name the encoder"),
        ({"layer": 4}, "from 1 to 3"),
        ({"vectors": "no/such/folder"}, "Found no model"),
    ],
)
def test_what_cannot_be_built_is_said(checkpoints, changes, words):
    with pytest.raises(KBertError, match=words):
        pipeline_of(checkpoints, **changes)


def test_a_model_without_a_kar_cant_be_read_as_knowbert(ner):
    with pytest.raises(KBertError, match="kbert train --system knowbert"):
        ner.read_as("knowbert")


def test_threads_that_share_entity_vectors_get_each_its_own(knowbert):
    similarity = knowbert.reader.vectors[0].similarity
    tails = [first + second for first in TEXT for second in TEXT]
    entities = [[(Triple("糖尿病", "类别", tail),)] for tail in dict.fromkeys(tails)]
    alone = [EntityVectors(similarity).of(own) for own in entities]
    shared = EntityVectors(similarity)
    with ThreadPoolExecutor(8) as threads:
        for made in (list(threads.map(shared.of, entities)), list(map(shared.of, entities))):
            assert torch.allclose(torch.cat(made), torch.cat(alone), atol=1e-3)


GLOSS, NAME = Triple("心电图.n.01", "gloss", "一种检查"), Triple("心电图.n.01", "synonym", "心电图")
WORDNET, GLOSSES = Base.of("wordnet"), Base(("gloss",))


@pytest.fixture
def linker(checkpoints, tmp_path):
    return knowbert_in(tmp_path / "linker", checkpoints, head=False)


@pytest.fixture
def tagger(checkpoints, tmp_path):
    return knowbert_in(tmp_path / "tagger", checkpoints)


def spans_of(*triples, base=Base(), text=LINKED):
    return graph_spans([text], KnowledgeGraph(triples), InjectionOptions(), base)


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
    trace = linker(LINKED, graph=KnowledgeGraph([Triple("心电图.n.01", "gloss", text), NAME]))
    assert trace.kars[0].linked.entity.isfinite().all()
    assert [own.entity for own in trace.prediction.links] == ["心电图.n.01"]


def test_ten_thousand_senses_of_a_word_are_cut_to_the_thirty_most_common(linker):
    names = [f"心电图.n.{number}" for number in range(10_000)]
    triples = [
        t for n in names for t in (Triple(n, "gloss", "检查"), Triple(n, "synonym", "心电图"))
    ]
    graph = KnowledgeGraph([*triples, Triple("心电图.n.7777", "count", "心电图 5")])
    trace = linker(LINKED, graph=graph)
    (span,) = trace.reading.spans
    assert span.candidates[0].entity == "心电图.n.7777"
    assert len(span.candidates) == 30
    assert trace.kars[0].linked.weights.sum().item() == pytest.approx(1, abs=1e-5)


def test_a_name_cut_by_the_length_limit_gives_its_text_no_knowledge(tagger):
    config = dataclasses.replace(tagger.config, max_length=6)  # [CLS] 患者行心 [SEP]
    (cut,) = tagger.reader.read([[LINKED]], SENSES, config)
    assert [row.spans for row in cut.rows] == [()]
    assert len(cut.mentions) == 1 and cut.facts == ()
    (same,) = tagger.reader.read([[LINKED[:4]]], SENSES, config)
    one, other = tagger.reader.logits([cut, same])
    assert torch.equal(one, other)
    assert tagger.reader.trace(cut).links == ()


def test_a_name_cut_by_the_length_limit_stays_in_no_row_when_spans_are_edited(tagger):
    config = dataclasses.replace(tagger.config, max_length=6)
    (cut,) = tagger.reader.read([[LINKED]], SENSES, config)
    assert [len(tokens) for tokens in cut.tokens] == [4]
    assert cut.with_nodes(cut.spans).rows == cut.rows
    (whole,) = tagger.reader.read([[LINKED]], SENSES)
    assert whole.with_nodes(whole.spans).rows == whole.rows and whole.facts


def test_a_name_longer_than_a_window_is_not_linked(linker):
    short = Pipeline(
        linker.reader.model,
        linker.hugging_face_tokenizer,
        dataclasses.replace(linker.card, reading=dataclasses.replace(linker.config, max_length=4)),
    )
    trace = short(LINKED, graph=SENSES)
    assert len(trace.reading.rows) > 1
    assert trace.prediction.links == trace.links == ()
    example = Example((LINKED,), links=(GoldLink(*PLACE, ("心电图.n.01",)),))
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


def test_a_linker_without_a_graph_reads_the_one_beside_it_or_asks_for_one(
    linker, tmp_path, capsys, caplog
):
    data = tmp_path / "test.jsonl"
    label = {"span": PLACE, "entity_id": "心电图.n.01"}
    data.write_text(json.dumps({"text": LINKED, "labels": [label]}) + "\n", encoding="utf-8")
    given = ["evaluate", "--model", str(tmp_path / "linker"), "--data", str(data), "--json"]
    assert main([*given, "--device", "cpu"]) == 2
    assert "no graph is given (none lies in its folder)" in capsys.readouterr().err
    write_triples(SENSES, tmp_path / "linker" / "senses.spo")
    assert main([*given, "--device", "cpu"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["kg"] == [str(tmp_path / "linker" / "senses.spo")]
    assert report["scores"]["predicted"] == 1
    assert "reading the graph beside the model" in caplog.text
