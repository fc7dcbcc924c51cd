"""What the app writes to disk: workspaces, up to so many megabytes, and nothing of a sentence."""

import pytest
from load.visitor import Visitor
from served import served

from app import workspaces
from app.edit_log import EditLog
from app.open_workspace import OpenWorkspace
from app.workspaces import WorkspaceError
from kbert_core import KnowledgeGraph, Triple

SECRET = "geheim"
GRAPH = KnowledgeGraph([Triple(f"head {i}", "is", "tail") for i in range(50)])


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("KBERT_WORKSPACES", str(tmp_path / "workspaces"))
    return tmp_path / "workspaces"


def fill(folder, megabytes):
    with (folder / "another.kg").open("wb") as file:
        file.truncate(megabytes << 20)


def test_a_full_folder_takes_no_more(folder, monkeypatch):
    monkeypatch.setenv("KBERT_WORKSPACES_MB", "5")
    key = workspaces.create(GRAPH, EditLog(), title="first")
    shared = OpenWorkspace.open(key)
    shared.add("more", [(1, "one", "is", "more")])
    fill(folder, 6)
    for write in (
        lambda: workspaces.create(GRAPH, EditLog(), title="second"),
        lambda: shared.add("more", [(1, "and", "is", "another")]),
    ):
        with pytest.raises(WorkspaceError, match="Workspaces take 5 MB here"):
            write()
    assert len(OpenWorkspace.open(key).graph) == 51
    assert len(list(folder.glob("*.kg"))) == 2


def test_a_limit_that_is_no_number_is_refused_by_name(folder, monkeypatch):
    monkeypatch.setenv("KBERT_WORKSPACES_MB", "a lot")
    with pytest.raises(WorkspaceError, match="KBERT_WORKSPACES_MB is “a lot”, expected a number"):
        workspaces.create(GRAPH, EditLog(), title="first")


def test_a_server_keeps_nothing_of_what_was_typed(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    places = {name: str(home) for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_DATA_HOME")}
    with served(tmp_path, OMP_NUM_THREADS="1", **places) as server:
        with Visitor(server.stream) as page:
            page.open()
            page.write("lab.text", f"患者{SECRET}行胃镜检查")
            page.run()
            page.write("lab.add_head", SECRET)
            page.write("lab.add_relation", "类别")
            page.write("lab.add_tail", f"疾病{SECRET}")
            page.press("FormSubmitter:lab.add-Add")
            assert SECRET in "".join(page.tree())
        kept = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert kept  # its log, at least
        assert [path for path in kept if SECRET.encode() in path.read_bytes()] == []
