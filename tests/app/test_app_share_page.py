"""The Lab's Share: what it offers, and what it says of it."""

import hashlib
from dataclasses import replace
from types import SimpleNamespace
from urllib.parse import parse_qs

import pytest
from explaining_pages import opened
from explaining_pages import said as everything
from sessions import add, do, edit, session, write

from app import services
from app.app_pages import lab_share
from app.services import RoomError
from kbert_core import Ablation, KnowledgeGraph, Triple
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.selection import Strategy
from kbert_lab.lab import workspaces
from kbert_lab.lab.commands import Options
from kbert_lab.lab.models import NOTHING
from kbert_lab.lab.scene import WORDS, Choice, GraphRef, Scene
from kbert_lab.lab.selection import Selection
from kbert_lab.lab.session import OpenedGraph, Session
from kbert_lab.lab.share import Shared, from_link, to_link

BITS = [hashlib.sha256(str(n).encode()).hexdigest() for n in range(300)]  # too many for a link
TEXT = "Tim Cook is visiting Beijing now"


def test_a_session_file_without_room_for_its_graph_says_so(monkeypatch):
    def full(_):
        raise RoomError("There is no room for it.")

    session = {lab_share.FILE: SimpleNamespace(getvalue=lambda: b"a session file")}
    session["session"] = Session(WORDS, NOTHING, "a", {"a": OpenedGraph(KnowledgeGraph())})
    for module in (lab_share, lab_share.sharing, lab_share.state):
        monkeypatch.setattr(module, "ss", session)
    monkeypatch.setattr(lab_share.share, "from_file", full)
    monkeypatch.setattr(lab_share.st, "rerun", lambda: None)
    lab_share._take_file()
    assert session["told"] == ("There is no room for it.",)


@pytest.fixture
def lab(monkeypatch, tmp_path):
    monkeypatch.setenv("KBERT_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("KBERT_WORKSPACES", str(tmp_path / "workspaces"))

    def open_lab(popover, **query):
        at = opened(query=query)
        return behind(at, popover) if popover else at

    return open_lab


def behind(at, popover):
    at.session_state[popover] = True
    at.run()
    for button in at.button:
        if button.key == "lab.card_open":
            button.click().run()
    assert not at.exception
    return at


def choose(at, graph):
    """Open a graph, and choose it."""
    add(at, graph.fingerprint, graph)
    at.run().selectbox(key="lab.graph").set_value(graph.fingerprint).run()


def link(at):
    return parse_qs(next(c.value for c in at.code if "?" in c.value and "=" in c.value)[1:])


def shared(at):
    """What the page's link carries."""
    return from_link(link(at)["scene"][0])


def labels(at):
    return [item.label for item in at.get("download_button")]


def test_nothing_is_made_before_it_is_asked_for(lab):
    at = lab("lab.nothing")
    assert not [code for code in at.code if "scene=" in code.value or "import" in code.value]
    assert labels(at) == ["Download .spo"]


def test_a_link_of_an_own_graph_says_that_others_lack_it(lab):
    at = lab("lab.nothing")
    graph = KnowledgeGraph([Triple("Beijing", "is", "<b>")], name="<i>mine")
    choose(at, graph)
    at = behind(at, "lab.share")
    assert "contains the triples of “<i>mine” that the text needs: 1." in everything(at)
    assert shared(at).triples == (Triple("Beijing", "is", "<b>"),)
    large = KnowledgeGraph([Triple("Beijing", "is", bit) for bit in BITS], name="large")
    choose(at, large)
    assert "Whoever opens it needs the graph “large”" in everything(at)
    assert not shared(at).triples


def test_a_page_too_long_for_a_link_offers_the_file(lab):
    at = lab("lab.nothing")
    edit(at, *(Edit("add", Triple("Beijing", "has", bit)) for bit in BITS))
    at = behind(at, "lab.share")
    assert "longer than the 8,000 characters" in everything(at)
    assert not [code for code in at.code if "scene=" in code.value]
    assert "Session, .kbert.json" in labels(at)


def test_an_empty_text_is_nothing_to_share(lab):
    at = lab("lab.share")
    write(at, " ")
    at.run()
    assert "then there is something to share" in everything(at)
    assert not at.code
    assert not {*labels(at)} & {"Session, .kbert.json", "This page, .html"}


def test_the_key_of_a_workspace_goes_along_only_when_it_is_wanted(lab, tmp_path):
    lab("lab.nothing")
    graph = KnowledgeGraph([Triple("Beijing", "is", "big")], name="shared")
    key = workspaces.create(graph, (), title="shared")
    at = lab("lab.share", workspace=key)
    assert set(link(at)) == {"scene"}
    assert key not in "".join(code.value for code in at.code)
    assert "does not open the workspace" in everything(at)
    at.checkbox(key="lab.share_key").check().run()
    query = link(at)
    assert query["workspace"] == [key] and "read and edit the whole workspace" in everything(at)
    other = lab("lab.share", workspace=key, scene=query["scene"][0])
    assert link(other)["scene"] == query["scene"]
    closed = lab("lab.nothing", scene=query["scene"][0])
    assert "made with the graph “shared”, which isn't here" in everything(closed)


def test_a_link_opens_on_the_panel_layer_head_and_readings_it_was_made_on(
    lab, monkeypatch, checkpoints
):
    monkeypatch.setenv("KBERT_MODELS", str(checkpoints["ner"].parent))
    scene = Scene((TEXT,), "ner", GraphRef.of(services.demo_graph("figure2")))
    cook = ("trunk", 0, 0)
    chosen = Selection().with_cell(cook, cook).with_map(1, 2)
    views = {"matrix_view": "attention", "all_heads": True}
    given = Shared(scene, "ner", selection=chosen, views=views)
    at = lab("lab.share", scene=to_link(given))
    assert (at.selectbox(key="lab.layer").value, at.selectbox(key="lab.head").value) == (1, 2)
    assert at.segmented_control(key="lab.matrix_view").value == "attention"
    assert at.toggle(key="lab.all_heads").value and session(at).selection.token == cook
    again = shared(at)
    assert again == replace(given, scene=again.scene, triples=again.triples)
    assert [triple.head for triple in again.triples] == ["Tim Cook", "Beijing", "Beijing"]

    panels = (Choice("ner", graph="none"), Choice("ner", ablation=Ablation("hard", "all")))
    given = Shared(scene, "ner", compare="free", selection=chosen, panels=panels)
    at = lab("lab.share", scene=to_link(given))
    assert at.segmented_control(key="lab.free.1.positions").value == "hard"
    assert at.selectbox(key="lab.free.0.graph").value == "none"
    again = shared(at)
    assert (again.compare, again.panels, again.selection) == ("free", panels, chosen)


def test_a_link_of_another_version_of_a_demo_graph_shows_what_its_text_needs_of_that(lab):
    old = GraphRef("of-an-older-version", "figure2")
    capital, edited = (Triple("Beijing", "capital", tail) for tail in ("China", "PRC"))
    scene = Scene((TEXT,), "words", old, (Edit("replace", capital, edited),))
    at = lab("", scene=to_link(Shared(scene, "tree", triples=(capital,))))
    at.button(key="lab.card_open").click().run()
    assert "“figure2” isn't here with the same triples" in everything(at)
    assert "10 tokens: 8 trunk, 2 branch" in everything(at)


def test_a_link_of_an_own_graph_shows_its_prediction_to_who_lacks_the_graph(
    lab, monkeypatch, checkpoints
):
    """Edits, what is switched off and what was there before come along; other names don't."""
    monkeypatch.setenv("KBERT_MODELS", str(checkpoints["ner"].parent))
    at = lab("lab.nothing")
    beside = [Triple(f"name {n}", "is", "rare") for n in range(50)]
    big, capital = Triple("Beijing", "is", "big"), Triple("Beijing", "capital of", "China")
    graph = KnowledgeGraph([*beside, big, capital], name="<i>mine").switch_off(capital)
    graph = KnowledgeGraph(graph, name=graph.name, off=graph.off)
    new = Triple("Tim Cook", "CEO", "Apple")
    edits = Edit("add", new, index=0), Edit("replace", big, Triple("Beijing", "is", "old"))
    choose(at, graph)
    edit(at, *edits)
    write(at, TEXT)
    at = behind(at, "lab.share")
    sent = shared(at)
    assert (sent.triples, sent.off) == ((big, capital), (capital,))

    other = lab("", scene=link(at)["scene"][0])
    assert TEXT in [item.value for item in other.subheader]
    assert "as they were shared" in everything(other)
    assert not other.text_area
    other.button(key="lab.card_open").click().run()
    assert not other.exception and other.text_area(key="lab.text").value == TEXT
    assert "as they were shared" in everything(other)
    mine, hers = (
        [item.proto.body for item in page.get("html") if "kb-ner" in item.proto.body]
        for page in (at, other)
    )
    assert mine == hers != []
    other.text_area(key="lab.text").set_value("name 7").run()
    assert "as they were shared" not in everything(other)


def test_triples_that_alone_would_be_read_differently_do_not_go_along(lab):
    """How rare a relation is depends on the whole graph."""
    at = lab("lab.nothing")
    about = [Triple("Beijing", "is", "big"), Triple("Beijing", "hosts", "games")]
    graph = KnowledgeGraph([*about, Triple("Paris", "is", "old")], name="mine")
    choose(at, graph)
    do(at, Options({"max_triples": 1}))
    for strategy, part in (("first", tuple(about)), ("rare", ())):
        do(at, Options({"strategy": Strategy(strategy)}))
        assert shared(behind(at, "lab.share")).triples == part
