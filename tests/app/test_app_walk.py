"""What a click costs, and how much a visit keeps beside its session: numbers that only go down."""

import ast
import json
import threading
from collections import Counter
from pathlib import Path

import pytest
from sessions import session
from streamlit.components.v2.bidi_component.main import _make_trigger_id
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.testing.v1 import AppTest

from kbert_core import Triple

ROOT = Path(__file__).resolve().parents[2]
OURS = tuple(f"{ROOT / package}/" for package in ("app", "kbert_lab", "kbert_core"))
COPD = Triple("COPD", "is_a", "disease")
MOST_KEYS = 59  # of a visit's state, those of widgets among them
MOST_FILES = 60  # of ours, the core's that read the text among them; the aim is 12
MOST_MESSAGES = 55  # the aim is 45


@pytest.fixture
def lab():
    at = AppTest.from_file(ROOT / "app" / "router.py", default_timeout=180)
    at.query_params["example"] = "copd"
    at.session_state["lab.drawer"] = False
    at.run()
    assert not at.exception
    return at


def switch(at, monkeypatch, on):
    """Switch COPD's branch as the tree does; return the files and stats, and the messages back."""
    drawn = (item.proto for item in at.get("bidi_component"))
    tree = next(own for own in drawn if own.component_name.endswith("kbert_tree"))
    sent = {
        "event": "sent",
        "value": {"do": "switch", "triple": [COPD.head, COPD.relation, COPD.tail], "on": on},
    }
    click = WidgetState(
        id=_make_trigger_id(tree.id, "events"), json_trigger_value=json.dumps([sent])
    )
    calls, messages, looked = Counter(), [], []

    def watch(frame, event, called):
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(OURS):
            calls[file] += 1
        elif event == "c_call" and getattr(called, "__name__", "") == "stat":
            looked.append(str(frame.f_locals.get("self", "")))

    states, enqueue = type(at._tree).get_widget_states, ForwardMsgQueue.enqueue

    def clicked(self):
        found = states(self)
        found.widgets.append(click)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(type(at._tree), "get_widget_states", clicked)
        patch.setattr(
            ForwardMsgQueue, "enqueue", lambda own, msg: (messages.append(msg), enqueue(own, msg))
        )
        threading.setprofile(watch)
        try:
            at.run()
        finally:
            threading.setprofile(None)
    assert not at.exception
    return calls, messages, looked


def test_a_branch_switched_off_goes_through_few_files_and_sends_few_messages(lab, monkeypatch):
    for on in (False, True, False):  # the last is as later clicks are: all is imported and kept
        calls, messages, looked = switch(lab, monkeypatch, on)
        assert session(lab).graph_now().is_on(COPD) is on
        lab.run()
    assert len(calls) <= MOST_FILES, sorted(calls)
    assert len(messages) <= MOST_MESSAGES
    assert [path for path in looked if "models" in path] == []


def keys_in(node):
    """The keys of ``ss`` that a piece of a program reads or writes; of an f-string its pattern."""
    match node:
        case ast.Subscript(value=ast.Name(id="ss"), slice=key):
            pass
        case ast.Call(func=ast.Attribute(value=ast.Name(id="ss")), args=[key, *_]):
            pass
        case ast.Compare(left=key, comparators=[ast.Name(id="ss")]):
            pass
        case _:
            return
    if isinstance(key, ast.Constant | ast.JoinedStr):
        yield ast.unparse(key)


def test_a_visit_keeps_little_beside_its_session():
    trees = (ast.parse(file.read_text("utf-8")) for file in (ROOT / "app").rglob("*.py"))
    keys = {key for tree in trees for node in ast.walk(tree) for key in keys_in(node)}
    assert len(keys) <= MOST_KEYS, sorted(keys)
