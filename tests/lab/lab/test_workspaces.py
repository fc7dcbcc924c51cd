"""Workspaces: graphs that a key leads to, which several visitors edit, up to so many megabytes."""

import pytest

from kbert_core import KnowledgeGraph, Triple
from kbert_core.errors import GraphConflict, GraphEditError
from kbert_core.knowledge.edit import Edit
from kbert_lab.graphs.store.importing import Source
from kbert_lab.lab import workspaces
from kbert_lab.lab.commands import MakeEdits, Redo, Undo
from kbert_lab.lab.models import NOTHING
from kbert_lab.lab.scene import WORDS
from kbert_lab.lab.session import Session
from kbert_lab.lab.workspaces import OpenWorkspace, WorkspaceError

GRAPH = KnowledgeGraph([Triple(f"head {i}", "is", "tail") for i in range(50)])
FIRST, RED, BLUE = (Triple("head 1", "is", tail) for tail in ("tail", "red", "blue"))


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


def visits(*names):
    """A workspace as several visitors have it open."""
    key = workspaces.create(GRAPH, (), title="fruit")
    for who in names:
        shared = OpenWorkspace(key, who=who)
        new = Session(WORDS, NOTHING, shared.id, {}, workspace=shared)
        yield new.seen_together(new.history)


def edit(session, action, *triples):
    return MakeEdits((Edit(action, *triples),))(session)


def test_an_edit_of_another_triple_of_the_same_head_is_made_on_top(folder):
    ann, bob = visits("ann", "bob")
    ann = edit(ann, "add", RED)
    bob = edit(bob, "add", BLUE)
    assert bob.workspace.overtaken and not ann.workspace.overtaken
    assert {RED, BLUE} <= set(bob.graph_now())
    with pytest.raises(GraphConflict, match=r"was edited by bob meanwhile \(entry 3\), so nothing"):
        edit(ann, "add", BLUE)
    assert ann.workspace.is_behind()
    ann.workspace.refresh()
    assert ann.workspace.overtaken and BLUE in ann.workspace.graph


def test_undo_takes_back_ones_own_last_edit_or_anyones_entry(folder):
    ann, bob = visits("ann", "bob")
    ann, bob = edit(ann, "add", RED), edit(bob, "add", BLUE)
    undone = Undo()(ann)
    assert RED not in undone.graph_now() and BLUE in undone.graph_now()
    assert RED in Redo()(undone).graph_now()
    undone = Undo(3)(ann)  # bob's
    assert BLUE not in undone.graph_now()
    with pytest.raises(GraphEditError, match="entry 3 is undone already"):
        Undo()(bob)
    assert BLUE in Redo(3)(undone).graph_now()


@pytest.mark.parametrize(
    "typed",
    ["K-_9", " K-_9 ", "http://host/lab/?workspace=K-_9", "?lang=en&workspace=K-_9&lang=en#x"],
)
def test_a_key_is_found_in_what_was_pasted(typed):
    assert workspaces.key_in(typed) == "K-_9"
