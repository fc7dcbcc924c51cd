"""The Lab in a cell of a notebook, without a browser: messages in, views out, state read after."""

import sys

import pytest

from kbert_core import Ablation, KnowledgeGraph, Pipeline, Triple, load_graph
from kbert_core.errors import CheckpointError, GraphEditError, MissingPackageError
from kbert_core.reader import SHOWN
from kbert_lab.lab.commands import Switch
from kbert_lab.lab.widget import lab

TEXT = "患者行胃镜检查未见异常"
KIND = Triple("胃镜", "类别", "检查")
ROW = ["胃镜", "类别", "检查"]
HOSTILE = '<img src=x onerror="alert(1)">'
WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(scope="module")
def medical():
    return load_graph("demo_kgs/medical_zh.spo")


@pytest.fixture(scope="module")
def kbert():
    return Pipeline.from_pretrained("models/medical-ner-kbert", device="cpu")


@pytest.fixture
def widget(kbert, medical):
    return lab(kbert, medical, TEXT)


@pytest.fixture
def told(widget, monkeypatch):
    """What the kernel answers beside views."""
    messages = []
    monkeypatch.setattr(widget, "send", messages.append)
    return messages


def send(widget, **message):
    """What a drawing sends."""
    widget._handle_custom_msg(message, [])


def labels(widget):
    return [span.label for span in widget.prediction.spans]


def test_a_widget_begins_with_what_the_pipeline_says(widget, kbert, medical):
    assert widget.prediction == kbert(TEXT, graph=medical).prediction
    assert widget.session.sentences == (TEXT,)
    assert widget.graph is medical
    assert "Examine" in widget.view["prediction"] and "Before" not in widget.view["prediction"]
    assert widget.view["matrix"]["n"] == len(widget.trace.rows[0])
    assert not widget.view["undo"]


def test_a_switch_changes_session_graph_and_prediction_and_is_undone(widget, medical):
    send(widget, do="switch", triple=ROW, on=False)
    assert labels(widget) == ["BodyPart"]
    assert KIND in widget.graph.off and KIND not in medical.off
    assert [edit.action for edit in widget.session.scene().edits] == ["switch_off"]
    assert "Before" in widget.view["prediction"] and widget.view["undo"]
    assert 'data-switch="on"' in widget.view["tree"]["html"]
    send(widget, do="undo")
    assert labels(widget) == ["Examine"]
    assert "Before" not in widget.view["prediction"] and not widget.view["undo"]


def test_a_tail_is_retyped_and_what_others_would_do_is_told(widget, told):
    send(widget, do="ask", triple=ROW, request=3, tails=[])
    assert told[0]["request"] == 3 and "疾病" in told[0]["tails"]
    assert told[0]["outcomes"]["疾病"][0].startswith("Disease")
    send(widget, do="ask", triple=ROW, request=4, tails=["治疗", ""])
    assert told[1]["tails"] is None
    assert told[1]["outcomes"] == {"治疗": told[0]["outcomes"]["治疗"], "": ("not possible", False)}
    send(widget, do="tail", triple=ROW, tail="疾病")
    assert labels(widget) == ["Disease"] and Triple("胃镜", "类别", "疾病") in widget.graph


def test_a_cell_is_blocked_and_opened_and_a_token_chosen_without_a_run(widget):
    looks, at = (widget.view["matrix"]["identities"][i] for i in (4, 6))
    trace = widget.trace
    send(widget, do="token", token=looks)
    assert widget.trace is trace and widget.view["matrix"]["token"] == 4
    send(widget, do="link", looks=looks, at=at)
    assert len(widget.session.standing) == 1 and not widget.trace.visible_layers[0][0, 4, 6]
    assert "may not see each other" in widget.view["said"] and widget.view["matrix"]["why"] is None
    send(widget, do="link", looks=looks, at=at)
    assert widget.session.standing == () and "Double-click" in widget.view["said"]


def test_attention_is_drawn_where_there_is_a_model_or_it_was_kept(widget, kbert, medical):
    send(widget, do="matrix", kind="attention")
    assert widget.view["matrix"]["kind"] == "attention"
    for kept in (True, False):
        shown = kbert(TEXT, graph=medical, attentions=kept).show()
        assert [kind for kind, _ in shown.view["maps"]] == ["visible", "attention"][: 1 + kept]


def test_a_command_can_be_given_in_a_cell_and_what_cannot_be_is_said(widget):
    widget.do(Switch((KIND,), on=False))
    assert labels(widget) == ["BodyPart"]
    session = widget.session
    widget.do(Switch((Triple("a", "b", "c"),), on=False))
    assert widget.session is session and "(a, b, c)" in widget.view["said"]
    with pytest.raises(GraphEditError):
        Switch((Triple("a", "b", "c"),), on=False)(session)


def test_a_trace_is_shown_to_be_looked_at_and_not_edited(kbert, medical):
    shown = kbert(TEXT, graph=medical).show()
    html = shown.view["tree"]["html"]
    assert "kb-switch" not in html and "data-name" in html
    assert "lab(pipeline, graph, text)" in shown.view["said"]
    looks, at = (shown.view["matrix"]["identities"][i] for i in (5, 6))
    send(shown, do="token", token=looks)
    assert shown.view["matrix"]["token"] == 5
    send(shown, do="link", looks=looks, at=at)
    assert shown.session.standing == () and "Before" not in shown.view["prediction"]
    assert shown.prediction == kbert(TEXT, graph=medical).prediction


@pytest.mark.parametrize("model", ["medical-ner-knowbert", "medical-ner-roof"])
def test_other_systems_are_drawn_without_a_matrix(model, medical):
    widget = lab(f"models/{model}", medical, TEXT)
    assert widget.view["matrix"] is None and "Double-click" not in widget.view["said"]
    before = widget.prediction
    send(widget, do="switch", triple=ROW, on=False)
    assert KIND in widget.graph.off and widget.prediction != before


def test_without_a_model_there_are_tree_and_matrix():
    widget = lab("words", "demo_kgs/figure2.spo", "Tim Cook is visiting Beijing now")
    assert widget.prediction is None and widget.view["prediction"] == ""
    assert len(widget.trace.rows[0].branches) == 3
    send(widget, do="switch", triple=["Beijing", "is_a", "City"], on=False)
    assert len(widget.trace.rows[0].branches) == 2
    every = lab("words", "demo_kgs/figure2.spo", "Tim Cook", ablation=Ablation(visible="all"))
    assert every.trace.visible.all()


def test_a_notebook_without_a_kernel_has_a_picture_and_a_sentence(widget, kbert, medical):
    first = kbert(TEXT, graph=medical)._repr_html_()
    send(widget, do="switch", triple=ROW, on=False)
    data, _ = widget._repr_mimebundle_()
    assert data["text/html"].startswith("<em>") and data["text/html"].endswith(first)
    assert data[WIDGET]["model_id"] == widget.model_id
    assert "KBertTrace" in data["text/plain"] and " at 0x" not in data["text/plain"]


def test_hostile_texts_are_escaped():
    graph = KnowledgeGraph([Triple("Beijing", "is_a", HOSTILE)], name=HOSTILE)
    widget = lab("words", graph, f"Beijing {HOSTILE}")
    send(widget, do="tail", triple=["Beijing", "is_a", HOSTILE], tail=f"{HOSTILE}!")
    assert HOSTILE[:4] not in widget.view["tree"]["html"] + widget.view["prediction"]
    assert HOSTILE[:4] not in widget._repr_mimebundle_()[0]["text/html"]
    assert Triple("Beijing", "is_a", f"{HOSTILE}!") in widget.graph


def test_a_model_that_is_not_there_is_named():
    with pytest.raises(CheckpointError, match="models/none"):
        lab("models/none", "demo_kgs/figure2.spo", "Tim Cook")


def test_without_anywidget_the_error_names_the_extra(kbert, medical, monkeypatch):
    monkeypatch.delitem(sys.modules, SHOWN.partition(":")[0])
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(
        MissingPackageError, match=r'anywidget.*pip install "kbert-lab\[notebooks\]"'
    ):
        kbert(TEXT, graph=medical).show()
