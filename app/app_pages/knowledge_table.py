"""Search, facets and a page of triples to be changed in place; one of them, and what is around."""

from functools import partial

import streamlit as st

from app import curating
from app.app_pages.lab_try import see_in_lab
from app.app_pages.parts import action, select
from app.components.graph import draw_graph
from app.curating import WHERE
from app.state import KEEP
from kbert_lab.graphs.search import Found
from kbert_lab.lab.catalogue import PAGE, Catalogue
from kbert_lab.lab.texts import N_, t
from kbert_lab.lab.views import history
from kbert_lab.lab.views.html import markdown
from kbert_lab.lab.views.knowledge import FIELDS, ON
from kbert_lab.lab.views.neighbourhood import Drawn, caption, neighbourhood, places_of
from kbert_lab.lab.words import KNOWLEDGE_TEXTS

KG_WHERE = {
    "anywhere": N_("the whole triple"),
    "head_starts": N_("how a head begins"),
    "head": N_("heads"),
    "tail": N_("tails"),
}

ss = st.session_state
FACETS = 400  # names offered of a facet
PARTIAL = N_("The graph is large, and only part of it has been searched so far.")


def triples_view(look: Catalogue) -> None:
    """The table on the left, one of its triples on the right."""
    with st.container(key="knowledge_panels"):
        left, right = st.columns([7, 5], gap="large")
    with left:
        search(look)
        found = curating.found(look)
        table(look, found)
    with right:
        if found.triples:
            about(look, found)


def search(look: Catalogue) -> None:
    """What to look for."""
    facets = look.facets()
    asked = {"on_change": curating.new_query, **KEEP}
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
        called = lambda name: t(KG_WHERE[name])  # noqa: E731
        where = {"key": "knowledge.where", "format_func": called, "width": 170, **asked}
        st.selectbox(t("in"), WHERE, **where)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
        for name, title, counts in (
            ("relations", t("Relations"), facets.relations),
            ("types", t("Types"), facets.types),
        ):
            chosen, offered = ss[f"knowledge.{name}"], [*counts][:FACETS]
            st.multiselect(
                title,
                [*offered, *(x for x in chosen if x not in offered)],
                key=f"knowledge.{name}",
                format_func=partial(_counted, counts),
                placeholder=t("any") if counts else t("none here"),
                disabled=not counts and not chosen,
                width="stretch",
                **asked,
            )
        off = len(look.graph.off)
        said = t("only switched off ({count})", count=f"{off:,}")
        none = not off and not ss["knowledge.off"]
        st.checkbox(said, key="knowledge.off", disabled=none, **asked)


def _counted(counts: dict[str, int], name: str) -> str:
    return f"{name} ({counts.get(name, 0):,})"


def table(look: Catalogue, found: Found) -> None:
    """A page of what was found, and the way to the next; whatever is changed in it is an edit."""
    for doubt in ss.get("knowledge.doubts", ()):
        st.warning(markdown(doubt), icon=":material/help:")
    if not found.triples:
        icon, said = "search_off", N_("Nothing found. Remove a filter, or add the triple here.")
        if not len(look.graph):
            icon, said = "eco", N_("This graph has no triples yet. Add one here, or import a file.")
        elif not found.complete:
            icon, said = "hourglass_empty", PARTIAL
        st.info(t(said), icon=f":material/{icon}:")
        near = look.heads(curating.query().text[:2])
        if near and found.complete:
            st.markdown(markdown(f"{t('Similar heads:')} {' · '.join(near)}"))
    key = f"knowledge.triples.{ss['knowledge.table']}"
    field = partial(st.column_config.TextColumn, required=True)
    on = st.column_config.CheckboxColumn(t("on"), width=50, default=True)
    st.data_editor(
        {
            ON: list(found.on),
            **{name: [getattr(triple, name) for triple in found.triples] for name in FIELDS},
        },
        key=key,
        on_change=curating.edit_table,
        args=(key, found),
        num_rows="dynamic",
        hide_index=True,
        column_config={ON: on, **{n: field(t(KNOWLEDGE_TEXTS[n])) for n in FIELDS}},
        height=min(560, 38 + 35 * (len(found.triples) + 1)),
    )
    starts = ss["knowledge.starts"]
    total = len(look.graph) if curating.query().everything else found.total
    first = (len(starts) - 1) * PAGE + 1
    last = first + len(found.triples) - 1
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        if len(starts) > 1:
            action(t("Previous"), "knowledge.previous", curating.turn, None, icon="chevron_left")
        if found.next is not None:
            more = t("Next") if found.complete else t("Search further")
            action(more, "knowledge.next", curating.turn, found.next, icon="chevron_right")
        if found.triples:
            text = N_("{first} to {last} of {count} triples.")
            if total is None:
                text = N_("{first} to {last}, and more.")
            count = "" if total is None else f"{total:,}"
            st.caption(t(text, first=f"{first:,}", last=f"{last:,}", count=count))
        st.caption(
            t(
                "Double-click a field to change it. The last row adds a triple, the first column "
                "chooses triples to delete, and *on* switches one."
            )
        )


def about(look: Catalogue, found: Found) -> None:
    """A triple: where it comes from, what it does, and what is around it."""
    triple = select(t("A triple"), found.triples, "knowledge.triple", str, width="stretch")
    st.caption(markdown(history.origin(look, triple)))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        action(t("See it in the Lab"), "knowledge.see", see_in_lab, triple, icon="account_tree")
        if not st.toggle(t("Draw its neighbours"), key="knowledge.around", **KEEP):
            return
    state = {True: t("switched on"), False: t("switched off")}
    near = look.around(triple)
    drawn = [Drawn(x, look.graph.is_on(x), state[look.graph.is_on(x)]) for x in near]
    data = neighbourhood(
        drawn,
        dark=st.context.theme.type == "dark",
        chosen=triple,
        before=ss.get("knowledge.places", {}),
        more=look.told_of(near),
    )
    ss["knowledge.places"], ss["knowledge.drawn"] = places_of(data), near
    clicked = {"on_node": curating.click_name, "on_edge": curating.click_edge}
    draw_graph(data, key="knowledge.drawing", **clicked)
    said = N_("Solid lines are switched on, dashed ones off. Drag to move, scroll to zoom.")
    st.caption(caption(drawn, on=said))
