"""Roof-BERT models in the app: triples beside the text, its panel; pages that need trees."""

import pytest
from explaining_pages import PATIENCE, opened_on, said
from roof_taggers import GRAPH, TEXT, tagger
from transformers import AutoModelForTokenClassification

from kbert_core import Card, InjectionOptions, Pipeline, Triple
from kbert_core.checkpoints.checkpoint import load_model, load_tokenizer
from kbert_core.roof.roof_bert import MOST, RoofConfig
from kbert_lab.lab import comparing
from kbert_lab.lab.models import read_model, twin_of
from kbert_lab.lab.texts import t
from kbert_lab.lab.views import knowledge, sides

SYMPTOM = Triple("糖尿病", "症状", "多饮")


@pytest.fixture(scope="module")
def root(tmp_path_factory, checkpoints):
    """A models folder with a Roof-BERT tagger, its twin, and one that answers questions."""
    root = tmp_path_factory.mktemp("models")
    source = checkpoints["encoder"]
    model = load_model(source, AutoModelForTokenClassification, device="cpu", num_labels=2)
    card = Card("qa", RoofConfig(kb_encoder="shared"), knowledge=("kg",))
    card.write_to(model.config)
    answers = Pipeline(model, load_tokenizer(source), card)
    for name, own in (("tags-roof", tagger(source, kb_encoder="shared")), ("qa-roof", answers)):
        own.reader.model.save_pretrained(root / name)
        own.hugging_face_tokenizer.save_pretrained(root / name)
    (root / "tags-bert").symlink_to(checkpoints["ner"])
    return root


@pytest.fixture
def reader(checkpoints):
    return tagger(checkpoints["encoder"])


# View-models


def test_rows_beside_a_text_say_which_triples_are_read_and_why_others_are_not(reader):
    graph = GRAPH.switch_off(Triple("心电图", "类别", "检查"))
    config = RoofConfig(InjectionOptions(max_triples=1))
    trace = reader(TEXT, graph=graph, options=config.options)
    rows = knowledge.triple_rows(trace, graph)
    assert [(row.triple.tail, row.state) for row in rows] == [
        ("疾病", t("read")),
        ("多饮", t("over the limit per mention")),
        ("检查", t("switched off")),
    ]
    assert knowledge.names_in(trace) == ["糖尿病", "心电图"]
    off = graph.switch_off(Triple("糖尿病", "类别", "疾病"))
    after = reader(TEXT, graph=off, options=config.options)
    rows = knowledge.triple_rows(after, off, trace)
    assert knowledge.moved_up(rows) == (SYMPTOM,)


def test_the_table_names_a_repeated_mention_once_and_escapes(reader):
    graph = GRAPH.replace(SYMPTOM, Triple("糖尿病", "症状", "<b>多饮"))
    trace = reader(f"{TEXT}，糖尿病", graph=graph)
    name, triple, read = sides.beside_table(
        knowledge.triple_rows(trace, graph), trace.reading
    ).values()
    assert list(dict.fromkeys(name)) == ["糖尿病", "心电图"]
    assert any("<b>多饮" in own for own in triple) and read.count(t("read")) == 3
    assert not comparing.same_knowledge(trace, reader(TEXT, graph=graph))
    assert comparing.same_knowledge(trace, reader(f"{TEXT}，糖尿病", graph=graph))


def test_a_model_says_that_it_reads_beside_and_has_a_twin(root):
    both = info, plain = [read_model(str(root / name)) for name in ("tags-roof", "tags-bert")]
    assert info.reads_beside and not info.has_trees
    assert (twin_of(info, both), twin_of(plain, both)) == (plain, info)


# Pages


@pytest.fixture
def show(root, monkeypatch):
    """Open a page on the text, its graph and a model."""
    monkeypatch.setenv("KBERT_MODELS", str(root))
    return lambda page, model="tags-roof": opened_on(page, root / model, GRAPH, TEXT)


def test_the_lab_shows_the_triples_and_the_string_and_an_edit_changes_both(show):
    at = show("lab.py")
    assert not at.error, at.error[0].value
    assert t("Triples read beside the text") in said(at)
    before = [str(item.proto.body) for item in at.get("html")]
    assert list(at.dataframe[-1].value["read?"]).count(t("read")) == 3
    assert at.code[0].value.startswith("[CLS] 糖尿病的类别是疾病，它的症状是多饮 [SEP]")
    for key, value in (("head", "糖尿病"), ("relation", "部位"), ("tail", "口")):
        at.text_input(key=f"lab.add_{key}").set_value(value)
    at.button[[b.label for b in at.button].index(t("Add"))].click().run()
    assert not at.exception
    assert at.code[0].value.startswith("[CLS] 糖尿病的部位是口，它的类别是疾病")
    after = [str(item.proto.body) for item in at.get("html")]
    assert list(at.dataframe[-1].value["read?"]).count(t("read")) == 4
    tags = [[x for x in one if 'class="kb-ner"' in x] for one in (before, after)]
    assert tags[0] and tags[0] != tags[1]
    assert at.run().number_input(key="lab.max_triples").value == MOST
    at.text_area(key="lab.text").set_value("今天天气好").run()
    assert not at.exception
    assert at.code[0].value == "[CLS] [SEP]"
    assert "The text names no entity of this graph, so no triple is read." in said(at)


def test_the_lab_answers_a_question_with_triples_beside_it(show):
    at = show("lab.py")
    at.selectbox(key="lab.task").set_value("qa").run()
    at.text_area(key="lab.text").set_value("什么检查？").run()
    at.text_area(key="lab.text_b").set_value(TEXT).run()
    assert not at.exception and not at.error
    assert at.code[0].value.startswith("[CLS] 糖尿病的类别是疾病")
    assert any(t("Answer") in str(item.proto.body) for item in at.get("html"))


def test_every_triple_is_measured(show):
    at = show("explain.py")
    at.session_state["explain.effects"][1].join(PATIENCE)
    at.run()
    assert at.dataframe and at.get("plotly_chart") and not at.error
