"""What the server's first visitor sees before PyTorch is imported, and in which order."""

import subprocess
import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import services
from app.app_pages import first_look, lab_matrix
from app.components import tree
from kbert_core import Pipeline
from kbert_lab.lab.examples import EXAMPLES

ROOT = Path(__file__).resolve().parents[2]
MEANWHILE = """
import gc, importlib, sys
from streamlit.testing.v1 import AppTest

def imported(name, *of, **how):
    if name != "app.state":
        return kept(name, *of, **how)
    waits.append([gc.isenabled(), *{{"torch", "transformers", "pandas"}} & set(sys.modules)])
    import streamlit
    streamlit.stop()

kept, importlib.import_module, waits = importlib.import_module, imported, []
at = AppTest.from_file("{main}", default_timeout=60)
at.query_params["lang"] = "en"
at.run()
drawn = [part.proto.component_name for part in at.main if part.type == "bidi_component"]
print([waits + [[gc.isenabled()]], drawn, [info.value for info in at.info], list(at.exception)])
"""


@pytest.mark.parametrize("key", ["gastroscopy", "copd", "courier", "mask"])
def test_the_first_look_lays_an_example_out_as_its_model_reads_it(key):
    (example,) = (own for own in EXAMPLES if own.key == key)
    laid = first_look.lay(example)
    reader = Pipeline.from_pretrained(ROOT / "models" / example.model)
    graph = services.demo_graph(example.graph)
    (reading,) = reader.readings([example.sentences], graph=graph)
    for one, other in zip(laid.rows, reading.rows, strict=True):
        assert one.tokens == other.tokens
        assert one.identities == other.identities
        for codes in ("soft_positions", "branch_ids", "anchor_ids", "token_type_ids"):
            assert list(getattr(one, codes)) == list(getattr(other, codes))
    assert laid.ablation == reading.config.ablation


def test_tree_and_matrix_are_on_the_page_before_pytorch_is_imported():
    program = MEANWHILE.format(main=ROOT / "app" / "main.py")
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True
    )
    waits, drawn, (said,), problems = eval(run.stdout)
    assert not problems
    assert waits == [[False], [True]]  # nothing slow; the collector rests
    assert [name.rsplit(".")[-1] for name in drawn][-2:] == ["kbert_tree", "kbert_matrix"]
    assert "3 to 10 seconds" in said


def look():
    import streamlit

    from app.app_pages.first_look import first_look

    streamlit.session_state["drawn"] = first_look("Wait.")


def drawn(**asked):
    """Whether there is a first look for who comes by an address."""
    at = AppTest.from_function(look)
    at.query_params.update(asked)
    at.run()
    assert not at.exception
    return at.session_state["drawn"]


def test_only_who_asks_for_an_example_of_trees_has_a_first_look(monkeypatch, tmp_path):
    assert drawn(lang="zh", example="epilepsy")
    assert not drawn(scene="x")
    assert not drawn(example="reading")  # of Roof-BERT
    monkeypatch.setenv("KBERT_MODELS", str(tmp_path))
    assert not drawn()
    model = tmp_path / "medical-ner-kbert"
    model.mkdir()
    (model / "config.json").write_text('{"kbert": []}')
    assert not drawn()
    (model / "config.json").write_text("{}")
    (model / "tokenizer.json").write_text("{}")
    assert not drawn()


def test_the_lab_sends_tree_and_matrix_before_it_asks_the_model(monkeypatch, checkpoints):
    monkeypatch.setenv("KBERT_MODELS", str(checkpoints["ner"].parent))
    order = []

    def noted(place, name):
        kept = getattr(place, name)
        monkeypatch.setattr(place, name, lambda *a, **k: (order.append(name), kept(*a, **k))[1])

    for place, name in ((tree, "draw_tree"), (lab_matrix, "draw_matrix"), (services, "trace")):
        noted(place, name)
    at = AppTest.from_file(ROOT / "app" / "app_pages" / "lab.py", default_timeout=120).run()
    order.clear()
    at.selectbox(key="lab.task").set_value("ner").run()
    assert not at.exception
    assert order[:3] == ["draw_tree", "draw_matrix", "trace"]
