"""Pages run as Streamlit runs them, one by one."""

import gzip
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from explaining_pages import opened
from explaining_pages import said as everything
from sessions import add, add_triple, do, session, write

from app import export, services
from kbert_core import KnowledgeGraph, Triple
from kbert_core.checkpoints import encoders
from kbert_core.errors import GraphFileError
from kbert_core.knowledge.edit import Edit
from kbert_lab.graphs.store.store import GraphStore
from kbert_lab.lab import examples
from kbert_lab.lab.commands import Options, Show
from kbert_lab.lab.models import read_model

FIGURE_2 = "Figure 2 of the paper, words as tokens"


@pytest.fixture
def lab(monkeypatch, tmp_path):
    """The Lab without any model: a graph, a tree and a matrix all the same."""
    monkeypatch.setenv("KBERT_MODELS", str(tmp_path))
    return opened()


def example(at, name):
    at.selectbox(key="lab.example").set_value(name).run()
    assert not at.exception
    return at


def edits(at):
    return session(at).scene().edits


def test_without_a_model_all_but_the_prediction_works_and_the_remedy_is_named(lab):
    assert "There is no model in" in everything(lab)
    assert "git checkout -- models" in everything(lab)
    assert "kbert train" in everything(lab)
    assert "14 tokens: 8 trunk, 6 branch" in everything(lab)


def test_an_example_whose_encoder_is_not_installed_is_not_offered(monkeypatch):
    nothing_there = SimpleNamespace(find_spec=lambda *_: None)
    monkeypatch.setattr(encoders, "PathFinder", nothing_there)
    monkeypatch.setitem(examples.FIRST, "en", "copd")
    services._model_info.clear()
    at = opened()
    services._model_info.clear()
    assert not at.exception
    assert not at.error
    offered = at.selectbox(key="lab.example").options
    assert any("胃镜" in name for name in offered)
    assert not any("COPD" in name or "spirin" in name for name in offered)
    assert session(at).texts[0] == "患者行胃镜检查未见异常"
    assert "which isn't installed" in read_model(str(services.ROOT / "models/ner-en")).problem


@pytest.mark.parametrize("name", ["tokenizer.json", "model.safetensors"])
def test_a_model_that_cannot_be_read_comes_last_and_is_never_the_first_choice(
    checkpoints, monkeypatch, tmp_path, name
):
    for folder in ("a-broken", "whole"):
        shutil.copytree(checkpoints["ner"], tmp_path / "models" / folder)
    for file in (tmp_path / "models" / "a-broken").glob(f"*{name[:5]}*"):
        file.write_bytes(b"garbage") if name == "model.safetensors" else file.unlink()
    monkeypatch.setenv("KBERT_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("KBERT_OPEN_PATHS", "0")
    at = opened()
    box = at.selectbox(key="lab.model")
    assert Path(box.value).name == "whole" and not at.error
    assert box.options[-1] == "a-broken · can't be used"
    at.selectbox(key="lab.model").set_value(str(tmp_path / "models" / "a-broken")).run()
    assert at.error and str(tmp_path) not in everything(at)


def test_two_graphs_of_one_name_are_told_apart(lab):
    graphs = [KnowledgeGraph([Triple(f"a{n}", "is", "b")], name="mine") for n in range(3)]
    for graph in graphs:
        add(lab, graph.fingerprint, graph)
    box = lab.run().selectbox(key="lab.graph")
    names = [name for name in box.options if name.startswith("mine")]
    assert names == ["mine, 1 triples", "mine, 1 triples (2)", "mine, 1 triples (3)"]
    assert len({*box.options}) == len(box.options)


def test_edits_belong_to_their_graph(lab):
    example(lab, FIGURE_2)
    add_triple(lab, "now", "is", "late")
    lab.run()  # the parts that an edit leaves as they are, too
    first = session(lab).graph
    other = next(f for f in session(lab).graphs if f != first)
    lab.selectbox(key="lab.graph").set_value(other).run()
    assert edits(lab) == ()
    lab.selectbox(key="lab.graph").set_value(first).run()
    assert len(edits(lab)) == 1


BLANK = ["", "  \n ", "\u200b\u2060", "\0", "\u3164", "\u202e \ufeff"]  # show nothing


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((blank, "Write a sentence above") for blank in BLANK),
        ("长" * 100_000, "100000 characters, and at most 5000"),
        ("nobody at all", "The text names no entity of this graph"),
        ("[CLS] Tim Cook 😀 [MASK] 𝒳", "branch"),
    ],
)
def test_odd_texts_are_read_or_refused_with_a_reason(lab, text, said):
    example(lab, FIGURE_2)
    write(lab, text)
    lab.run()
    assert not lab.exception
    assert said in everything(lab)


def test_what_is_in_the_drawer_is_made_when_it_is_opened_and_stays_as_chosen(lab):
    lab.number_input(key="lab.max_triples").set_value(1).run()
    lab.session_state["lab.drawer"] = False
    lab.run()
    assert not [box for box in lab.selectbox if box.key == "lab.model"]
    lab.session_state["lab.drawer"] = True
    lab.run()
    assert lab.number_input(key="lab.max_triples").value == 1
    assert lab.selectbox(key="lab.model").value == "words"


def test_ablations_and_limits_are_said(lab):
    example(lab, FIGURE_2)
    do(lab, Options({"positions": "hard", "visible": "all"}))
    lab.number_input(key="lab.max_triples").set_value(1).run()
    assert "hard positions" in everything(lab)
    assert "everything visible" in everything(lab)
    assert "1 over the limit per mention" in everything(lab)
    lab.number_input(key="lab.max_triples").set_value(0).run()
    assert "the same as BERT without a graph" in everything(lab)


def test_about_names_limits_and_checks_what_is_there(monkeypatch, tmp_path):
    monkeypatch.setenv("KBERT_MODELS", str(tmp_path))
    at = opened("about.py")
    assert "no medical advice" in everything(at)
    assert "No model in" in everything(at)


def test_a_models_card_fetches_no_picture(tmp_path):
    (tmp_path / "README.md").write_text("---\nx: 1\n---\n# M\n![a](https://a.example/b.png)\n")
    assert services.model_readme(str(tmp_path)) == "# M\n[a](https://a.example/b.png)"


def test_a_graph_too_large_to_be_made_in_memory_is_not_offered_for_download(lab, monkeypatch):
    assert not button(lab, "lab.download").disabled
    monkeypatch.setattr(export, "MOST_TRIPLES", 1)
    lab.run()
    assert button(lab, "lab.download").disabled
    assert "kbert kg export" in button(lab, "lab.download").help


def button(at, key):
    """A download button's own description."""
    found = (item.proto for item in at.get("download_button"))
    return next(one for one in found if key in one.id)


def test_a_refusal_is_said_once_and_not_under_the_next_sentence(lab):
    example(lab, FIGURE_2)
    add_triple(lab, "Beijing", "capital", "China")
    assert "is in the graph already" in everything(lab)
    lab.run()
    lab.text_area(key="lab.text").set_value("Beijing now").run()
    assert "is in the graph already" not in everything(lab)


def test_an_example_is_no_longer_named_once_its_graph_is_changed(lab):
    example(lab, FIGURE_2)
    other = next(f for f in session(lab).graphs if f != session(lab).graph)
    lab.selectbox(key="lab.graph").set_value(other).run()
    assert lab.selectbox(key="lab.example").value is None
    example(lab, FIGURE_2)
    assert "14 tokens: 8 trunk, 6 branch" in everything(lab)


def test_an_uploaded_file_says_how_many_lines_repeat():
    opened = services.read_upload(b"a\tb\tc\na\tb\tc\n", "kg.spo")
    assert (len(opened.graph), opened.repeated) == (1, 1)


def test_a_packed_graph_is_opened_and_uploaded_up_to_what_it_unpacks_to(tmp_path, monkeypatch):
    data = gzip.compress(b"a\tb\tc\n" + b"\n" * 5000)
    (tmp_path / "kg.spo.gz").write_bytes(data)
    by_path = services.open_graph(str(tmp_path / "kg.spo.gz")).graph
    uploaded = services.read_upload(data, "kg.spo.gz").graph
    assert [(len(g), g.name) for g in (by_path, uploaded)] == [(1, "kg")] * 2
    monkeypatch.setattr(services, "MOST_BYTES", 1000)  # more than the packed file's
    for read in (
        lambda: services.read_upload(data, "kg.spo.gz"),
        lambda: services.open_graph(str(tmp_path / "kg.spo.gz"), skip_bad=True),
    ):
        with pytest.raises(GraphFileError, match="when unpacked"):
            read()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("kg.csv", "head,relation,tail\na,r,t\n"),
        ("kg.jsonl", '["a", "r", "t"]\n'),
        ("kg.nt", '<x:a> <x:r> "t" .\n'),
        ("kg.TSV", "a\tr\tt\n"),
    ],
)
def test_graphs_of_other_formats_are_opened_and_uploaded(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    for read in (services.open_graph(str(path)), services.read_upload(text.encode(), name)):
        assert list(read.graph) == [Triple("a", "r", "t")]
    assert name.split(".")[1].lower() in services.GRAPH_ENDINGS


def test_a_graph_file_of_any_size_is_opened_and_never_written(tmp_path, monkeypatch):
    path = tmp_path / "mine.kg"
    with GraphStore.create(path) as store:
        store.apply(Edit("add", Triple("a", "r", "t")))
    monkeypatch.setattr(services, "MOST_BYTES", 10)
    graph = services.open_graph(str(path)).graph
    assert (graph.name, list(graph)) == ("mine", [Triple("a", "r", "t")])
    assert len(graph.add(Triple("b", "r", "t"))) == 2  # the visitor's own
    assert len(services.open_graph(str(path)).graph) == 1


def test_an_edit_about_another_text_is_no_baseline(lab):
    example(lab, FIGURE_2)
    do(lab, Show("matrix_view", "difference"))
    for head, baseline in (("London", "no knowledge"), ("Beijing", "before the last edit")):
        add_triple(lab, head, "hosts", "games")
        assert f"Difference: now − {baseline}" in everything(lab)
