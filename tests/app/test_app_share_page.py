"""The Lab's Share: what it offers, and what it says of it."""

from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from app import workspaces
from app.app_pages import lab_share
from app.edit_log import EditLog
from app.services import RoomError
from app.share import MOST_EDITS, from_link
from app.texts import t
from kbert_core import KnowledgeGraph, Triple
from kbert_core.knowledge.edit import Edit

LAB = Path(__file__).resolve().parents[2] / "app" / "app_pages" / "lab.py"
TEXT = "Tim Cook is visiting Beijing now"


def test_a_session_file_without_room_for_its_graph_says_so(monkeypatch):
    file = SimpleNamespace(getvalue=lambda: b"a session file")
    session = {"lab.share_upload.0": file}
    monkeypatch.setattr(lab_share, "ss", session)
    monkeypatch.setattr(lab_share, "from_file", lambda data: (data,))

    def full(_):
        raise RoomError("There is no room for it.")

    monkeypatch.setattr(lab_share.sharing, "take", full)
    lab_share._take_file()
    assert session["lab.share_problem"] == "There is no room for it."
    assert session["lab.share_taken"]


@pytest.fixture
def lab(monkeypatch, tmp_path):
    monkeypatch.setenv("KBERT_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("KBERT_WORKSPACES", str(tmp_path / "workspaces"))

    def opened(popover, **query):
        at = AppTest.from_file(LAB, default_timeout=120)
        for name, value in query.items():
            at.query_params[name] = value
        at.run()
        return behind(at, popover)

    return opened


def behind(at, popover):
    at.session_state[popover] = True
    at.run()
    assert not at.exception
    return at


def said(at):
    parts = (at.caption, at.info, at.warning, at.error)
    return "\n".join(str(item.value) for part in parts for item in part).replace("\\", "")


def link(at):
    return parse_qs(next(c.value for c in at.code if "?" in c.value and "=" in c.value)[1:])


def labels(at):
    return [item.label for item in at.get("download_button")]


def test_the_link_is_of_the_page_and_says_what_it_carries(lab):
    at = lab("lab.share")
    scene = from_link(link(at)["scene"][0]).scene
    assert (scene.sentences, scene.model, scene.graph.name) == ((TEXT,), "words", "figure2")
    assert "contains the text" in said(at) and "can read the text" in said(at)
    assert "Save the session" in labels(at)


def test_nothing_is_made_before_it_is_asked_for(lab):
    at = lab("lab.nothing")
    assert not [code for code in at.code if "scene=" in code.value or "import" in code.value]
    assert labels(at) == ["Download .spo"]


def test_a_link_of_an_own_graph_says_that_others_lack_it(lab):
    at = lab("lab.nothing")
    graph = KnowledgeGraph([Triple("Beijing", "is", "<b>")], name="<i>mine")
    at.session_state["lab.graphs"] = {
        **at.session_state["lab.graphs"],
        graph.fingerprint: graph,
    }
    at.run()
    at.selectbox(key="lab.graph").set_value(graph.fingerprint).run()
    assert "Not everybody has the graph “<i>mine”" in said(behind(at, "lab.share"))


def test_a_page_too_long_for_a_link_offers_the_file(lab):
    at = lab("lab.nothing")
    name = at.session_state["lab.graph"]
    edits = [Edit("add", Triple("Beijing", "has", f"{n}")) for n in range(MOST_EDITS + 1)]
    log = EditLog(at.session_state["lab.graphs"][name], *edits)
    at.session_state["lab.logs"] = {name: log}
    at = behind(at, "lab.share")
    assert "holds up to 60 edits and 8,000 characters" in said(at)
    assert not [code for code in at.code if "scene=" in code.value]
    assert "Save the session" in labels(at)


def test_an_empty_text_is_nothing_to_share(lab):
    at = lab("lab.share")
    at.session_state["lab.text"] = " "
    at.run()
    assert "then there is something to share" in said(at)
    assert not at.code
    assert not {*labels(at)} & {t("Save the session"), t("This page, .html")}


def test_the_key_of_a_workspace_goes_along_only_when_it_is_wanted(lab, tmp_path):
    lab("lab.nothing")
    graph = KnowledgeGraph([Triple("Beijing", "is", "big")], name="shared")
    key = workspaces.create(graph, (), title="shared")
    at = lab("lab.share", workspace=key)
    assert set(link(at)) == {"scene"}
    assert key not in "".join(code.value for code in at.code)
    assert "is asked for the graph" in said(at)
    at.checkbox(key="lab.share_key").check().run()
    query = link(at)
    assert query["workspace"] == [key] and "read and edit the whole graph" in said(at)
    other = lab("lab.share", workspace=key, scene=query["scene"][0])
    assert link(other)["scene"] == query["scene"]
    closed = lab("lab.nothing", scene=query["scene"][0])
    assert "made with the graph “shared”, which isn't here" in said(closed)


def test_the_session_the_page_and_the_graph_can_be_kept(lab):
    offered = ["Save the session", "This page, .html", "The edited graph, .spo"]
    assert labels(lab("lab.share"))[:3] == offered
