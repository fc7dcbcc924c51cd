"""The session of the Knowledge page: what is looked for, chosen, typed, and done about it."""

import re
from collections.abc import Callable
from typing import Any

import streamlit as st

from app import services, state
from kbert_core import KBertError, KnowledgeGraph, Triple
from kbert_core.knowledge.edit import Edit
from kbert_lab.graphs.search import Facets, Found, GraphSearch, Query, Where
from kbert_lab.graphs.store.importing import Source
from kbert_lab.lab import workspaces
from kbert_lab.lab.catalogue import Catalogue, entities_of
from kbert_lab.lab.texts import N_, refusal, t
from kbert_lab.lab.views.doubts import doubts
from kbert_lab.lab.views.importing import Preview
from kbert_lab.lab.views.knowledge import FIELDS, edits_between, rows_changed

TRIPLES, IMPORT, HISTORY, STRUCTURE = "triples", "import", "history", "structure"
WHERE: tuple[Where, ...] = ("anywhere", "head_starts", "head", "tail")
LARGE = 200_000  # triples from which on an index is asked first
MOST_PRIVATE = 20_000  # triples of an import that a session keeps

ss = st.session_state


def begin() -> None:
    """Fill a new session, and start afresh where another graph was chosen."""
    state.begin()
    for key, value in {
        "knowledge.view": TRIPLES,
        "knowledge.title": "",
        "knowledge.who": "",
        "knowledge.paste": "",
        "knowledge.table": 0,
        "knowledge.rows": 20,
    }.items():
        ss.setdefault(key, value)
    chosen = state.session().graph
    if ss.get("knowledge.of") != chosen:
        ss["knowledge.of"] = chosen
        _look("", "head_starts" if len(state.graph()) > LARGE else "anywhere")
        for name in ("preview", "problem", "structure"):
            ss.pop(f"knowledge.{name}", None)


# Looking


def catalogue() -> Catalogue:
    """The chosen graph, to be looked through."""
    shared = state.workspace()
    if shared is not None:
        searched = shared.searched
        facets = services.facets_of(searched)
        return Catalogue(shared.graph, shared.graph, searched, facets, shared, shared.graph.name)
    base, graph, log = state.base(), state.graph(), state.log()
    opened = state.session().graphs[state.session().graph]
    if opened.stored is not None:
        search, facets = opened.stored, services.facets_of(opened.stored)
    else:
        new = {entity for entity in entities_of(log.done) if not base.triples_of(entity)}
        search, facets = (_own_search if opened.own else services.search_of)(graph, new)
    return Catalogue(graph, base, search, facets, log, opened.source, opened.lines)


def _own_search(graph: KnowledgeGraph, first: set[str]) -> tuple[GraphSearch, Facets]:
    """An uploaded graph made ready for searching, which this session alone keeps."""
    kept: tuple[str, GraphSearch, Facets] | None = ss.get("knowledge.index")
    if kept is None or kept[0] != graph.fingerprint:
        search = GraphSearch.of(graph, first=first)
        kept = ss["knowledge.index"] = (graph.fingerprint, search, search.facets())
    return kept[1:]


def query() -> Query:
    """What is looked for now."""
    return Query(
        ss["knowledge.text"].strip(),
        ss["knowledge.where"],
        tuple(ss["knowledge.relations"]),
        tuple(ss["knowledge.types"]),
        bool(ss["knowledge.off"]),
    )


def found(look: Catalogue) -> Found:
    """The page of what is found, looked for once."""
    start = ss["knowledge.starts"][-1]
    key = (look.graph.fingerprint, query(), start)
    kept: tuple[object, Found] | None = ss.get("knowledge.found")
    if kept is None or kept[0] != key:
        kept = ss["knowledge.found"] = (key, look.find(query(), start))
    return kept[1]


def new_query() -> None:
    """Callback: something else is looked for, from its first page."""
    ss["knowledge.starts"] = [None]
    new_table()


def new_table() -> None:
    """Begin the table afresh, with nothing chosen, typed or said of it."""
    ss["knowledge.table"] += 1
    ss["knowledge.doubts"] = ()


def turn(following: Any) -> None:
    """Callback: the next page, or the one before."""
    starts = ss["knowledge.starts"]
    ss["knowledge.starts"] = starts[:-1] if following is None else [*starts, following]
    new_table()


def look_for(head: str) -> None:
    """Show the triples of a head in the table; of a tail, those that lead to it."""
    ss["knowledge.view"] = TRIPLES
    _look(head, "head" if state.graph().triples_of(head) else "tail")


def _look(text: str, where: Where) -> None:
    ss["knowledge.text"], ss["knowledge.where"] = text, where
    ss["knowledge.relations"], ss["knowledge.types"], ss["knowledge.off"] = [], [], False
    new_query()


# Editing


def edit_table(key: str, found: Found) -> None:
    """Callback of the table: make what was changed, added and deleted in it, as one step."""
    given, changes = tuple(zip(found.triples, found.on, strict=True)), ss[key]
    written = [tuple(row.get(name) or "" for name in FIELDS) for row in changes["added_rows"]]
    try:
        pairs = zip(given, rows_changed(given, changes), strict=True)
        edits = [edit for before, after in pairs for edit in edits_between(before, after)]
        edits += [Edit("remove", found.triples[row]) for row in changes["deleted_rows"]]
        edits += [Edit("add", Triple.checked(*fields), index=0) for fields in written]
    except KBertError as error:
        ss["knowledge.problem"] = refusal(error)
        return
    new = [edit.new or edit.triple for edit in edits if edit.action in ("add", "replace")]
    done = _done(state.commit(*edits))
    new_table()  # what was typed and can't be done stands in what is said
    if done:
        ss["knowledge.doubts"] = [said for x in new for said in doubts(state.graph(), x)]


def click_edge() -> None:
    """Callback of the drawing: look for a triple."""
    number = getattr(ss.get("knowledge.drawing"), "edge", None)
    if number is not None and 0 <= int(number) < len(ss["knowledge.drawn"]):
        triple = ss["knowledge.drawn"][int(number)]
        look_for(triple.head)
        ss["knowledge.triple"] = triple


def click_name() -> None:
    """Callback of the drawing: look for the triples of a name, or for those that lead to it."""
    name = getattr(ss.get("knowledge.drawing"), "node", None)
    if name is not None:
        look_for(str(name))


def undo(number: int | None = None, do: Callable[..., bool] = state.undo) -> None:
    """Callback: take back the last edit, or a given one; or ``do`` another thing to it."""
    if _done(do(number)):
        new_table()


def redo(number: int | None = None) -> None:
    """Callback: make an edit again."""
    undo(number, state.redo)


def _done(done: bool) -> bool:
    """Keep what was said of an edit, until the next one."""
    problem = ss.pop("lab.problem", None)
    if done or problem:
        ss["knowledge.problem"] = "" if done else problem
    return done


# Importing


def add_rows(preview: Preview) -> None:
    """Callback: add what a preview showed, as one step."""
    count = len(preview.rows)
    done = _done(state.add(Source(preview.name, list(preview.rows))))
    if not done:
        return
    ss["knowledge.uploads"] = ss.get("knowledge.uploads", 0) + 1
    ss["knowledge.paste"] = ""
    ss.pop("knowledge.preview", None)
    text = N_("Added {count} triples of {name}, as one step of the history.")
    ss["knowledge.added"] = t(text, count=f"{count:,}", name=preview.name)
    new_table()


# Workspaces


def open_key() -> None:
    """Callback: open the workspace whose key was typed, or a whole link or address."""
    key = ss.get("knowledge.key", "").strip()
    if key and state.open_workspace(re.split("[&#]", key.rpartition("workspace=")[2])[0]):
        ss["knowledge.key"] = ""


def save_workspace(progress: Any) -> None:
    """Save the chosen graph with its edits as a workspace, and open that.

    Raises:
        WorkspaceError: it can't be saved.
    """
    base = state.base()
    opened = state.session().graphs[state.session().graph]
    key = workspaces.create(
        base,
        state.session().history.edited(state.session().graph),
        title=ss["knowledge.title"].strip(),
        source=opened.source,
        lines=opened.lines,
        who=ss["knowledge.who"].strip(),
        progress=progress,
    )
    if state.open_workspace(key):
        ss["knowledge.saved"] = key


def set_who() -> None:
    """Callback: what this visitor calls themselves in the log."""
    shared = state.workspace()
    if shared is not None:
        shared.who = ss["knowledge.who"].strip()
