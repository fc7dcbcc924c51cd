"""Search, facets and a page of triples to be changed in place; one of them, and what is around."""

from collections.abc import Callable, Hashable
from functools import partial
from typing import TypeVar

import pandas as pd
import streamlit as st

from app import editing, services, state
from app.app_pages.lab_try import see_in_lab
from app.app_pages.parts import HEAD, ROW, action, select, the_first
from app.components import Message, draw_graph
from app.state import KEEP
from kbert_core import Triple
from kbert_lab.graphs.search import Found, Query
from kbert_lab.lab.catalogue import PAGE, Catalogue
from kbert_lab.lab.texts import N_, t
from kbert_lab.lab.views import history
from kbert_lab.lab.views.html import markdown
from kbert_lab.lab.views.importing import doubts_of
from kbert_lab.lab.views.knowledge import FIELDS, ON
from kbert_lab.lab.views.neighbourhood import MOST, Drawn, neighbourhood, places_of
from kbert_lab.lab.words import KNOWLEDGE_TEXTS

KG_WHERE = {
    "anywhere": N_("the whole triple"),
    "head_starts": N_("how a head begins"),
    "head": N_("heads"),
    "tail": N_("tails"),
}
LARGE = 200_000  # triples from which on an index is asked first
FACETS = 400  # names offered of a facet
PARTIAL = N_("The graph is large, and only part of it has been searched so far.")

T = TypeVar("T")
ss = st.session_state


def begin() -> None:
    """Fill a new session, and look for nothing where another graph was chosen."""
    state.begin()
    ss.setdefault("knowledge.view", "triples")
    chosen = state.session().graph
    if ss.get("knowledge.of") != chosen:
        ss["knowledge.of"] = chosen
        look_for("", "head_starts" if len(state.graph()) > LARGE else "anywhere")


def kept(name: str, key: Hashable, make: Callable[[], T]) -> T:
    """What a visit made of a key the last time, or makes now; one of each name is kept."""
    last = ss.get(f"knowledge.kept.{name}")
    if last is None or last[0] != key:
        with st.spinner(t("Reading …")):  # of a large graph, seconds
            last = ss[f"knowledge.kept.{name}"] = (key, make())
    return last[1]


def catalogue() -> Catalogue:
    """The chosen graph, to be looked through."""
    now, shared = state.session(), state.workspace()
    opened, graph = now.graphs[now.graph], state.graph()
    stored = shared.searched if shared else opened.stored
    if stored is not None:
        return Catalogue(graph, now.base, stored, services.facets_of(stored), state.log())
    new = {entity for entity in state.log().edited if not now.base.triples_of(entity)}
    made = partial(services.search_of, graph, new, own=opened.own)
    return Catalogue(graph, graph, *kept("search", graph.fingerprint, made), state.log())


def look_for(text: str, where: str) -> None:
    """Show what is found of a text in the table, without any other filter."""
    ss["knowledge.text"], ss["knowledge.where"] = text, where
    ss["knowledge.relations"], ss["knowledge.types"], ss["knowledge.off"] = [], [], False
    turn()


def open_name(name: str) -> None:
    """Show the triples of a head; of a tail, those that lead to it."""
    ss["knowledge.view"] = "triples"
    look_for(name, "head" if state.graph().triples_of(name) else "tail")


def turn(*starts: int) -> None:
    """Callback: show a page of what is found, the first if no start of another follows it."""
    ss["knowledge.starts"] = (None, *starts)


def query() -> Query:
    """What is looked for now."""
    return Query(
        ss["knowledge.text"].strip(),
        ss["knowledge.where"],
        tuple(ss["knowledge.relations"]),
        tuple(ss["knowledge.types"]),
        bool(ss["knowledge.off"]),
    )


def triples_view(look: Catalogue) -> None:
    """The table on the left, one of its triples on the right."""
    with st.container(key="knowledge_panels"):
        left, right = st.columns([7, 5], gap="large")
    with left:
        search(look)
        start = ss["knowledge.starts"][-1]
        key = (look.graph.fingerprint, query(), start)
        found = kept("found", key, lambda: look.find(query(), start))
        table(look, found)
    with right:
        if found.triples:
            about(look, found)


def search(look: Catalogue) -> None:
    """What to look for."""
    asked = {"on_change": turn, **KEEP}
    facets = look.facets
    with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
        st.text_input(
            t("Search"),
            key="knowledge.text",
            placeholder=t("Part of a name"),
            icon=":material/search:",
            max_chars=200,
            live=True,
            width="stretch",
            **asked,
        )
        where = {name: t(said) for name, said in KG_WHERE.items()}
        how = {"key": "knowledge.where", "format_func": where.__getitem__, "width": 170, **asked}
        st.selectbox(t("in"), where, **how)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
        for name, title, counts in (
            ("relations", t("Relations"), facets.relations),
            ("types", t("Types"), facets.types),
        ):
            chosen, offered = ss[f"knowledge.{name}"], [*counts][:FACETS]
            called = {x: f"{x} ({counts.get(x, 0):,})" for x in [*offered, *chosen]}
            st.multiselect(
                title,
                called,
                key=f"knowledge.{name}",
                format_func=called.__getitem__,
                placeholder=t("any") if counts else t("none here"),
                disabled=not counts and not chosen,
                width="stretch",
                **asked,
            )
        off = len(look.graph.off)
        said = t("only switched off ({count})", count=f"{off:,}")
        none = not off and not ss["knowledge.off"]
        st.checkbox(said, key="knowledge.off", disabled=none, **asked)


def table(look: Catalogue, found: Found) -> None:
    """A page of what was found, and the way to the next; whatever is changed in it is an edit."""
    for doubt in doubts_of(state.session().last_step(state.session().graph), look.graph):
        st.warning(markdown(doubt), icon=":material/help:")
    if not found.triples:
        nothing_found(look, found)
    key, given = editing.begun("knowledge", tuple(zip(found.triples, found.on, strict=True)))
    field = partial(st.column_config.TextColumn, required=True)
    on = st.column_config.CheckboxColumn(t("on"), width=64, default=True)
    rows = {name: [getattr(triple, name) for triple, _ in given] for name in FIELDS}
    rows = {ON: [on for _, on in given], **rows}
    st.data_editor(
        pd.DataFrame(rows).astype({ON: bool, **dict.fromkeys(FIELDS, str)}),
        key=key,
        on_change=editing.read_table,
        args=(key,),
        num_rows="dynamic",
        hide_index=True,
        column_config={ON: on, **{n: field(t(KNOWLEDGE_TEXTS[n])) for n in FIELDS}},
        height=min(560, HEAD + ROW * (len(given) + 1)),
    )
    pages(look, found)
    st.caption(
        t(
            "Double-click a field to change it. The last row adds a triple, the first column "
            "chooses triples to delete, and *on* switches one."
        )
    )


def pages(look: Catalogue, found: Found) -> None:
    """Which of the triples these are, and the ways to the page before and to the next."""
    before = ss["knowledge.starts"][1:]
    first = len(before) * PAGE + 1
    total = len(look.graph) if query().everything else found.total
    values = {"first": f"{first:,}", "last": f"{first + len(found.triples) - 1:,}"}
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        if before:
            action(t("Previous"), "knowledge.previous", turn, *before[:-1], icon="chevron_left")
        if found.next is not None:
            more = t("Next") if found.complete else t("Search further")
            action(more, "knowledge.next", turn, *before, found.next, icon="chevron_right")
        if found.triples and total is None:
            st.caption(t("{first} to {last}, and more.", **values))
        elif found.triples:
            st.caption(t("{first} to {last} of {count} triples.", count=f"{total:,}", **values))


def nothing_found(look: Catalogue, found: Found) -> None:
    """Say why the table is empty, and what there is instead."""
    icon, said = "search_off", N_("Nothing found. Remove a filter, or add the triple here.")
    if not len(look.graph):
        icon, said = "eco", N_("This graph has no triples yet. Add one here, or import a file.")
    elif not found.complete:
        icon, said = "hourglass_empty", PARTIAL
    st.info(t(said), icon=f":material/{icon}:")
    if found.complete and (near := look.heads(query().text[:2])):
        st.markdown(markdown(f"{t('Similar heads:')} {' · '.join(near)}"))


def about(look: Catalogue, found: Found) -> None:
    """A triple: where it comes from, what it does, and what is around it."""
    triple = select(t("A triple"), found.triples, "knowledge.triple", str, width="stretch")
    st.caption(markdown(history.origin(look.log, triple)))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        action(t("See it in the Lab"), "knowledge.see", see_in_lab, triple, icon="account_tree")
        if not st.toggle(t("Draw its neighbours"), key="knowledge.around", **KEEP):
            return
    state_of = {True: t("switched on"), False: t("switched off")}
    near = look.around(triple)
    drawn = [Drawn(x, look.graph.is_on(x), state_of[look.graph.is_on(x)]) for x in near]
    data = neighbourhood(
        drawn,
        dark=st.context.theme.type == "dark",
        chosen=triple,
        before=ss.get("knowledge.places", {}),
        more=look.told_of(near),
    )
    ss["knowledge.places"] = places_of(data)

    def hear(sent: Message) -> None:
        if sent["do"] == "name":
            open_name(str(sent["name"]))
        elif sent["do"] == "triple":
            chosen = Triple(*sent["triple"])
            open_name(chosen.head)
            ss["knowledge.triple"] = chosen

    draw_graph(data, key="knowledge.drawing", heard=hear)
    the_first(MOST, len(drawn))
    st.caption(t("Solid lines are switched on, dashed ones off. Drag to move, scroll to zoom."))
