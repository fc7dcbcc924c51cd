"""The session of the Knowledge page: what is looked for, chosen, typed, and done about it."""

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

import streamlit as st

from app import services, state, workspaces
from app.catalogue import Catalogue, entities_of
from app.services import OpenedGraph
from app.texts import N_, refusal, t
from app.view_models.importing import Preview
from app.view_models.knowledge import HEAD, RELATION, TAIL
from kbert_core import KBertError, KnowledgeGraph, Triple
from kbert_core.knowledge.edit import Edit
from kbert_lab.graphs.search import Facets, Found, GraphSearch, Query, Where
from kbert_lab.graphs.store.importing import Source

TRIPLES, IMPORT, HISTORY, DIFFERENCE, CHECK = "triples", "import", "history", "difference", "check"
STRUCTURE = "structure"
FIELDS = (HEAD, RELATION, TAIL)
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
        "knowledge.first": True,
        "knowledge.paste": "",
        "knowledge.table": 0,
        "knowledge.rows": 20,
    }.items():
        ss.setdefault(key, value)
    if ss.get("knowledge.of") != ss["lab.graph"]:
        ss["knowledge.of"] = ss["lab.graph"]
        _look("", "head_starts" if len(state.graph()) > LARGE else "anywhere")
        show(None)
        for name in ("checked", "preview", "problem", "structure"):
            ss.pop(f"knowledge.{name}", None)
    ss["knowledge.graph"] = ss["lab.graph"]


def choose_graph() -> None:
    """Callback of the graph chooser."""
    ss["lab.graph"] = ss["knowledge.graph"]


# Looking


def catalogue() -> Catalogue:
    """The chosen graph, to be looked through."""
    shared = state.workspace()
    if shared is not None:
        searched = shared.searched
        facets = services.facets_of(searched)
        return Catalogue(shared.graph, shared.graph, searched, facets, shared, shared.graph.name)
    base, graph, log = state.base(), state.graph(), state.log()
    opened: OpenedGraph = ss["lab.opened_as"].get(ss["lab.graph"], OpenedGraph(base))
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
    """Begin the table afresh, nothing in it chosen."""
    ss["knowledge.table"] += 1
    ss["knowledge.chosen"] = ()


def turn(following: Any) -> None:
    """Callback: the next page, or the one before."""
    starts = ss["knowledge.starts"]
    ss["knowledge.starts"] = starts[:-1] if following is None else [*starts, following]
    new_table()


def look_for(head: str) -> None:
    """Show the triples of a head in the table, and one of them in the form; of a tail, those."""
    ss["knowledge.view"] = TRIPLES
    triples = state.graph().triples_of(head)
    _look(head, "head" if triples else "tail")
    show(triples[0] if triples else None)


def _look(text: str, where: Where) -> None:
    ss["knowledge.text"], ss["knowledge.where"] = text, where
    ss["knowledge.relations"], ss["knowledge.types"], ss["knowledge.off"] = [], [], False
    new_query()


# The triple in the form


def choose(key: str, triples: Sequence[Triple]) -> None:
    """Callback of the table: its chosen rows."""
    selected = ss[key]["selection"] if key in ss else {}
    rows = selected.get("rows") or [row for row, _ in selected.get("cells", ())]
    chosen = tuple(triples[row] for row in rows if row < len(triples))
    ss["knowledge.chosen"] = chosen
    if len(chosen) == 1:  # none: the form stays as it is, with what was typed
        show(chosen[0])


def show(triple: Triple | None) -> None:
    """Put a triple into the form; None: an empty form, to add one."""
    ss["knowledge.triple"] = triple
    for name in FIELDS:
        ss[f"knowledge.{name}"] = getattr(triple, name) if triple is not None else ""
    ss.pop("knowledge.problem", None)


def click_edge() -> None:
    """Callback of the drawing: put a triple into the form."""
    number = getattr(ss.get("knowledge.drawing"), "edge", None)
    if number is not None and 0 <= int(number) < len(ss["knowledge.drawn"]):
        show(ss["knowledge.drawn"][int(number)])


def click_name() -> None:
    """Callback of the drawing: look for the triples of a name, or for those that lead to it."""
    name = getattr(ss.get("knowledge.drawing"), "node", None)
    if name is not None:
        look_for(str(name))
        rerun()


def new_triple() -> None:
    """Callback: begin another triple under the same head."""
    head = ss[f"knowledge.{HEAD}"]
    new_table()
    show(None)
    ss[f"knowledge.{HEAD}"] = head
    rerun()


def take_suggestion(field: str) -> None:
    """Callback of the suggestions: write one into its field."""
    taken = ss.get(f"knowledge.suggest_{field}")
    if taken:
        ss[f"knowledge.{field}"] = taken
    ss[f"knowledge.suggest_{field}"] = None


def typed() -> tuple[str, str, str]:
    """The form's fields."""
    head, relation, tail = (str(ss.get(f"knowledge.{name}") or "") for name in FIELDS)
    return head, relation, tail


def make(action: Literal["add", "replace"]) -> None:
    """Callback: add what was typed, or put it in the place of the triple."""
    rerun()
    try:
        new = Triple.checked(*typed())
    except KBertError as error:
        ss["knowledge.problem"] = refusal(error)
        return
    edit = Edit(action, new, index=0 if ss["knowledge.first"] else None)
    if action == "replace":
        edit = Edit(action, ss["knowledge.triple"], new)
    if _done(state.commit(edit)):
        new_table()  # what was ticked is not what stands there now
        show(new)


def switch(on: bool, *triples: Triple) -> None:
    """Callback: switch triples on or off."""
    graph = state.graph()
    edits = [
        Edit("switch_on" if on else "switch_off", x)
        for x in triples
        if x not in graph or graph.is_on(x) != on
    ]
    rerun()
    if edits:
        _done(state.commit(*edits))


def delete(*triples: Triple) -> None:
    """Callback: take triples out of the graph."""
    rerun()
    if _done(state.commit(*(Edit("remove", x) for x in triples))):
        new_table()
        show(None)


def undo(number: int | None = None, do: Callable[..., bool] = state.undo) -> None:
    """Callback: take back the last edit, or a given one; or ``do`` another thing to it."""
    if _done(do(number)):
        new_table()
        triple = ss.get("knowledge.triple")
        if triple is not None and triple not in state.graph():
            show(None)


def redo(number: int | None = None) -> None:
    """Callback: make an edit again."""
    undo(number, state.redo)


def _done(done: bool) -> bool:
    """Keep what was said of an edit, until the next one."""
    problem = ss.pop("lab.problem", None)
    if done or problem:
        ss["knowledge.problem"] = "" if done else problem
    return done


def rerun() -> None:
    """Have the whole page drawn anew, and not just the form."""
    ss["knowledge.rerun"] = True


# Importing


def add_rows(preview: Preview) -> None:
    """Callback: add what a preview showed, as one step."""
    count = len(preview.rows)
    done = _done(state.add(Source(preview.name, list(preview.rows)), count))
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
    opened: OpenedGraph = ss["lab.opened_as"].get(ss["lab.graph"], OpenedGraph(base))
    key = workspaces.create(
        base,
        state.log().steps,
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
    shared = ss.get("lab.workspace")
    if shared is not None:
        shared.who = ss["knowledge.who"].strip()
