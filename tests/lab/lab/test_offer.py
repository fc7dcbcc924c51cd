"""What there is to choose from, and which model is for which text, graph, example and task."""

from dataclasses import replace
from pathlib import Path

import pytest

from kbert_core import KnowledgeGraph, Triple
from kbert_core.knowledge import load_graph
from kbert_lab.lab.commands import Write
from kbert_lab.lab.models import NOTHING, read_model
from kbert_lab.lab.offer import Offer
from kbert_lab.lab.scene import CHARACTERS, WORDS
from kbert_lab.lab.session import NO_TASK, OpenedGraph, Session

ROOT = Path(__file__).resolve().parents[3]
MODELS = ROOT / "models"
DEMOS = {
    name: OpenedGraph(load_graph(ROOT / "demo_kgs" / f"{name}.spo"))
    for name in ("medical_zh", "medical_en", "senses_en")
}
OWN = KnowledgeGraph([Triple("四氯化碳中毒", "类别", "疾病"), Triple("脚底干裂", "类别", "症状")])
ZH, EN = "患者行胃镜检查未见异常", "The patient was given aspirin"


@pytest.fixture(scope="module")
def offer():
    files = sorted(MODELS.glob("*/config.json"))
    return Offer(tuple(read_model(str(file.parent)) for file in files))


def begun(offer, model, graph="medical_en", text=EN, **more):
    path = str(MODELS / model) if model not in (WORDS, CHARACTERS) else model
    session = Session(path, offer.reads(path), graph, {**DEMOS, "own": OpenedGraph(OWN)}, **more)
    return Write((text,))(replace(session, task=session.reads.task or NO_TASK))


@pytest.mark.parametrize(
    ("model", "text", "reads"),
    [
        ("ner-en", EN, "ner-en"),
        ("ner-en", ZH, "medical-ner-kbert"),
        ("ner-en", "予布洛芬 ibuprofen", "ner-en"),
        ("medical-ner-kbert", EN, "ner-en"),
        ("medical-ner-roof", ZH, "medical-ner-roof"),  # what knows the text stays
        ("sentiment-zh", "The hotel was bad", "ner-en"),  # of no English model is the task its own
        ("wsd-knowbert", ZH, "medical-ner-kbert"),
        ("zh-mini", "", "zh-mini"),
        (WORDS, ZH, WORDS),
    ],
)
def test_a_text_is_read_by_the_chosen_model_or_by_one_that_knows_its_script(
    offer, model, text, reads
):
    assert Path(offer.reader(begun(offer, model), [text])).name == reads


@pytest.mark.parametrize(
    ("model", "text", "systems"),
    [
        ("medical-ner-kbert", ZH, ["k-bert", "knowbert", "roof-bert", "plain-text"]),
        ("ner-en", EN, ["k-bert", "plain-text"]),  # no other English model names entities
    ],
)
def test_a_text_is_read_by_every_system_that_has_a_model_for_it(offer, model, text, systems):
    assert list(offer.systems(begun(offer, model, text=text).scene())) == systems


@pytest.mark.parametrize(("text", "reads"), [(ZH, CHARACTERS), (EN, "ner-en")])
def test_where_no_model_knows_a_text_it_is_only_cut(offer, text, reads):
    english = Offer(tuple(info for info in offer.models if info.folder == "ner-en"))
    assert Path(english.reader(begun(offer, "ner-en"), [text])).name == reads


def test_a_graph_in_another_script_brings_its_model_and_all_comes_back(offer):
    before = begun(offer, "ner-en")
    session = offer.opened(replace(before, graph="own"), before)
    assert session.reads.folder == "medical-ner-kbert"
    assert session.replaced.by == "graph"
    assert session.texts == ("", "")  # ner's own text means nothing to it
    back = session.as_before()
    assert (back.model, back.texts, back.graph) == (before.model, before.texts, "medical_en")


def test_a_graph_that_the_model_knows_changes_nothing(offer):
    before = begun(offer, "medical-ner-roof", "medical_zh", ZH)
    assert offer.opened(before, before) == before


@pytest.mark.parametrize(
    ("graph", "text", "reads", "follows"),
    [
        ("medical_zh", EN, "ner-en", "medical_en"),
        ("senses_en", EN, "ner-en", "senses_en"),  # a graph that it knows stays
        ("medical_zh", ZH + "。", "medical-ner-kbert", "medical_zh"),
        ("own", EN, "ner-en", "medical_en"),
    ],
)
def test_a_text_in_another_script_brings_its_model_and_a_graph(offer, graph, text, reads, follows):
    before = begun(offer, "medical-ner-kbert", graph, ZH)
    session = offer.written(Write((text,))(before), before)
    assert (session.reads.folder, session.graph) == (reads, follows)
    assert session.as_before().model == before.model
    assert session.as_before().graph == graph
    assert session.as_before().texts[0] == text


def test_a_model_that_the_visitor_kept_stays(offer):
    before = begun(offer, "ner-en", text=ZH)
    session = offer.written(Write((ZH + "。",))(before), before)
    assert (session.model, session.replaced) == (before.model, None)


def test_another_model_brings_an_example_it_can_read_and_leaves_what_was_written(offer):
    shown = offer.with_example(begun(offer, "ner-en"), offer.first("gastroscopy"))
    assert shown.reads.folder == "medical-ner-kbert"
    english = offer.with_model(shown, str(MODELS / "ner-en"))
    assert english.example != shown.example and english.graph == "medical_en"
    written = offer.with_model(Write(("my own text",))(shown), str(MODELS / "ner-en"))
    assert written.texts[0] == "my own text"


def test_a_model_that_is_gone_makes_way_for_one_of_its_task(offer):
    gone = replace(begun(offer, "ner-en"), model="/nowhere")
    assert offer.mended(gone).task == "ner"
    assert Offer(()).mended(gone).task == NO_TASK
    assert Offer(()).mended(gone).reads is NOTHING


def test_without_models_the_examples_are_those_of_the_tree_alone():
    assert [one.task for one in Offer(()).examples().values()] == [None]
    assert Offer(()).first("copd").key == "figure2"
