"""Workspaces in a PostgreSQL database, by KBERT_WORKSPACES alone."""

import re
from pathlib import Path

import pytest
from postgres import running_cluster
from sessions import session
from streamlit.testing.v1 import AppTest

from app import services, state
from kbert_core import KnowledgeGraph, Triple, find_mentions
from kbert_core.errors import GraphConflict, GraphFileError
from kbert_core.knowledge.edit import Edit
from kbert_lab.graphs.search import Query
from kbert_lab.graphs.store.importing import Source
from kbert_lab.lab import workspaces
from kbert_lab.lab.history import Edited
from kbert_lab.lab.texts import speaking
from kbert_lab.lab.workspaces import OpenWorkspace, WorkspaceError

DETAILS = re.compile(r"127\.0\.0\.1|postgresql:|kbert|port|[0-9]{4}")  # for the log alone
PEAR, PLUM, FIG = (Triple(name, "is", "fruit") for name in ("pear", "plum", "fig"))


@pytest.fixture(scope="module")
def cluster():
    with running_cluster() as cluster:
        yield cluster


@pytest.fixture
def key(cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("KBERT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KBERT_WORKSPACES", cluster.address().partition("?")[0])
    monkeypatch.setattr(workspaces, "_stores", type(workspaces._stores)())
    base = KnowledgeGraph([PEAR, PLUM], name="fruit")
    steps = [Edited("own", (Edit("switch_off", PLUM),))]
    return workspaces.create(
        base, steps, title="Fruit", source="fruit.spo", lines={PEAR: 7}, who="ann"
    )


def test_two_visitors_edit_undo_search_and_import(key):
    ann, bob = OpenWorkspace(key, who="ann"), OpenWorkspace(key, who="bob")
    assert (ann.graph.name, ann.base) == ("Fruit", 1)
    assert ann.store.origin(PEAR).line == 7
    ann.commit(Edit("add", FIG))
    with pytest.raises(GraphConflict, match="edited by ann meanwhile"):
        bob.commit(Edit("add", FIG))
    bob.refresh()
    assert bob.overtaken and FIG in bob.graph
    bob.commit(Edit("switch_off", FIG))
    bob.add(Source("more.spo", [(1, "quince", "is", "fruit"), (2, "pear", "is", "fruit")]))
    ann.refresh()
    assert not ann.graph.is_on(FIG)
    assert [m.entity for m in find_mentions(["a quince"], ann.graph)[0]] == ["quince"]
    found = ann.searched.find(Query("FRUIT", "tail", off=True))
    assert [t.head for t in found.triples] == ["fig", "plum"]
    assert services.facets_of(ann.searched).relations == {"is": 4}
    assert [c.after for c in ann.changes()][-1] == Triple("quince", "is", "fruit")
    with pytest.raises(GraphConflict, match="Undo entry 4 first"):
        ann.undo(3)  # the fig, which is off since
    bob.undo(5)
    ann.refresh()
    assert {t.head for t in ann.graph} == {"pear", "plum", "fig"}
    assert [e.action for e in ann.entries()][:3] == ["undo", "import", "switch_off"]


def test_a_key_is_the_only_way_and_stores_are_let_go(key, cluster, monkeypatch):
    with pytest.raises(WorkspaceError, match="No workspace has this key"):
        OpenWorkspace(key[:-1])
    assert key not in str(workspaces.place_of(key))
    monkeypatch.setattr(workspaces, "_OPEN_FAR", 1)
    graph, store = OpenWorkspace(key).graph, workspaces.store(key)
    other = workspaces.create(KnowledgeGraph(name="empty"), (), title="")
    assert len(OpenWorkspace(other).graph) == 0
    assert store._server._connection.closed
    assert graph.triples_of("plum") == (PLUM,)  # it is read again
    cluster.ask(f"DROP SCHEMA {str(workspaces.place_of(key)).rpartition('=')[2]} CASCADE")
    with pytest.raises(WorkspaceError, match="No workspace has this key"):
        OpenWorkspace(key)


def knowledge_page(key, monkeypatch, tmp_path):
    monkeypatch.setenv("KBERT_MODELS", str(tmp_path))
    page = Path(__file__).parents[2] / "app" / "app_pages" / "knowledge.py"
    at = AppTest.from_file(page, default_timeout=120)
    at.query_params["workspace"] = key
    at.session_state["knowledge.view"] = "history"
    at.run()
    assert not at.exception and not at.error
    return at


def test_a_server_that_is_away_is_told_without_its_place(key, cluster, caplog):
    workspace = OpenWorkspace(key)
    cluster.stop()
    try:
        for language, said in (("en", "no connection to the server"), ("zh", "无法连接")):
            with speaking(language):
                with pytest.raises(WorkspaceError) as gone:
                    OpenWorkspace(key)
                with pytest.raises(WorkspaceError) as unsaved:
                    workspaces.create(KnowledgeGraph([PEAR]), (), title="")
            for error in (gone, unsaved):
                assert said in str(error.value)
                assert not DETAILS.search(str(error.value))
    finally:
        cluster.start()
    assert workspace.commit(Edit("add", FIG)).revision == workspace.revision
    assert f"port {cluster.port} failed" in caplog.text  # for whoever runs the app


def test_the_place_of_the_mirror_is_not_told(key):
    store = workspaces.store(key)
    full = GraphFileError(f"{store.file}: the disk is full, so nothing was changed.")
    said = workspaces.without_path(full, workspaces.place_of(key), "Fruit")
    assert said == "Fruit: the disk is full, so nothing was changed."


def test_a_server_that_refuses_a_user_is_told_without_the_user(key, cluster, monkeypatch, caplog):
    cluster.ask("CREATE ROLE locked LOGIN PASSWORD 'other'")
    monkeypatch.setenv("PGPASSWORD", "sw0rdfish")
    monkeypatch.setenv("KBERT_WORKSPACES", cluster.address(user="locked").partition("?")[0])
    with pytest.raises(WorkspaceError, match="no connection") as refused:
        OpenWorkspace("anything")
    assert not re.search("locked|password", str(refused.value)) and "locked" in caplog.text
    assert not DETAILS.search(str(refused.value))


def test_a_page_opens_it_again_when_its_server_is_back(key, cluster, monkeypatch, tmp_path):
    at = knowledge_page(key, monkeypatch, tmp_path)
    cluster.stop()
    try:
        for _ in range(2):
            at.run()
        at.button(key="workspace.again").click().run()
        assert "no connection to the server" in at.error[0].value
        assert session(at).graph != state.WORKSPACE
    finally:
        cluster.start()
    at.button(key="workspace.again").click().run()
    assert not at.exception and not at.error
    assert session(at).graph == state.WORKSPACE
    assert at.query_params["workspace"] == key
    assert "workspace.again" not in [button.key for button in at.button]


def test_a_password_in_the_setting_is_refused_and_not_shown(key, monkeypatch):
    address = workspaces.server().replace("kbert@", "kbert:sw0rdfish@")
    monkeypatch.setenv("KBERT_WORKSPACES", address)
    with pytest.raises(WorkspaceError, match="a password doesn't belong") as refused:
        OpenWorkspace(key)
    assert "sw0rdfish" not in str(refused.value)
