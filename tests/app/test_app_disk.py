"""What the app writes to disk: workspaces, up to so many megabytes."""

import pytest

from kbert_core import KnowledgeGraph, Triple
from kbert_lab.graphs.store.importing import Source
from kbert_lab.lab import workspaces
from kbert_lab.lab.workspaces import OpenWorkspace, WorkspaceError

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
    key = workspaces.create(GRAPH, (), title="first")
    shared = OpenWorkspace(key)
    shared.add(Source("more", [(1, "one", "is", "more")]))
    fill(folder, 6)
    for write in (
        lambda: workspaces.create(GRAPH, (), title="second"),
        lambda: shared.add(Source("more", [(1, "and", "is", "another")])),
    ):
        with pytest.raises(WorkspaceError, match="Workspaces take 5 MB here"):
            write()
    assert len(OpenWorkspace(key).graph) == 51
    assert len(list(folder.glob("*.kg"))) == 2


def test_a_limit_that_is_no_number_is_refused_by_name(folder, monkeypatch):
    monkeypatch.setenv("KBERT_WORKSPACES_MB", "a lot")
    with pytest.raises(WorkspaceError, match="KBERT_WORKSPACES_MB is “a lot”, expected a number"):
        workspaces.create(GRAPH, (), title="first")
