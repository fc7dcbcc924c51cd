"""Search, facets and the table of triples, beside the one that is chosen."""

from functools import partial

import streamlit as st

from app import curating
from app.app_pages.knowledge_triple import several_panel, triple_panel
from app.app_pages.parts import action
from app.catalogue import Catalogue
from app.curating import WHERE
from app.state import KEEP
from app.texts import N_, t, tn
from app.view_models.html import markdown
from kbert_lab.graphs.search import Found

KG_WHERE = {
    "anywhere": N_("the whole triple"),
    "head_starts": N_("how a head begins"),
    "head": N_("heads"),
    "tail": N_("tails"),
}

ss = st.session_state
FACETS = 400  # names offered of a facet


def triples_view(look: Catalogue) -> None:
    """The table on the left, the chosen triple on the right."""
    with st.container(key="knowledge_panels"):
        left, right = st.columns([7, 5], gap="large")
    with left:
        search(look)
        table(look)
    with right:
        if len(ss.get("knowledge.chosen", ())) > 1:
            several_panel()
        else:
            triple_panel()


def search(look: Catalogue) -> None:
    """What to look for."""
    facets = look.facets()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
        st.text_input(
            t("Search"),
            key="knowledge.text",
            placeholder=t("Part of a name"),
            icon=":material/search:",
            on_change=curating.new_query,
            max_chars=200,
            live=True,
            width="stretch",
            **KEEP,
        )
        st.selectbox(
            t("in"),
            WHERE,
            key="knowledge.where",
            format_func=lambda name: t(KG_WHERE[name]),
            on_change=curating.new_query,
            width=170,
            **KEEP,
        )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
        for name, title, counts in (
            ("relations", t("Relations"), facets.relations),
            ("types", t("Types"), facets.types),
        ):
            chosen = ss[f"knowledge.{name}"]
            offered = [*counts][:FACETS]
            st.multiselect(
                title,
                [*offered, *(x for x in chosen if x not in offered)],
                key=f"knowledge.{name}",
                format_func=partial(_counted, counts),
                placeholder=t("any") if counts else t("none here"),
                on_change=curating.new_query,
                disabled=not counts and not chosen,
                width="stretch",
                **KEEP,
            )
        off = len(look.graph.off)
        st.checkbox(
            t("only switched off ({count})", count=f"{off:,}"),
            key="knowledge.off",
            on_change=curating.new_query,
            disabled=not off and not ss["knowledge.off"],
            **KEEP,
        )
    if not facets.complete:
        st.caption(
            t("The graph is large: relations and types were counted only in its first part.")
        )


def _counted(counts: dict[str, int], name: str) -> str:
    return f"{name} ({counts.get(name, 0):,})"


def table(look: Catalogue) -> None:
    """A page of what was found."""
    found = curating.found(look)
    count_line(look, found)
    if not found.triples:
        nothing(look, found)
        return
    key = f"knowledge.triples.{ss['knowledge.table']}"
    st.dataframe(
        {
            t("head"): [x.head for x in found.triples],
            t("relation"): [x.relation for x in found.triples],
            t("tail"): [x.tail for x in found.triples],
            t("state"): ["" if on else t("off") for on in found.on],
        },
        key=key,
        on_select=lambda: curating.choose(key, found.triples),
        selection_mode=["multi-row", "single-cell"],
        hide_index=True,
        width="stretch",
        height=min(560, 38 + 35 * len(found.triples)),
        column_config={t("state"): st.column_config.TextColumn(width=56)},
        lazy=False,
    )
    pager(found)


def count_line(look: Catalogue, found: Found) -> None:
    """How many were found."""
    if not found.triples:
        return
    total = len(look.graph) if curating.query().everything else found.total
    first = (len(ss["knowledge.starts"]) - 1) * look.page + 1
    places = {"first": f"{first:,}", "last": f"{first + len(found.triples) - 1:,}"}
    if total is None:
        said = t("{first} to {last}, and more.", **places)
    elif total > len(found.triples):
        said = t("{first} to {last} of {count} triples.", count=f"{total:,}", **places)
    else:
        said = tn(
            "1 triple.",
            "{n} triples. Choose one to see or change it, several to switch or delete them.",
            total,
        )
    st.caption(said)


def pager(found: Found) -> None:
    """To the next page and back."""
    starts = ss["knowledge.starts"]
    if found.next is None and len(starts) == 1:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        action(
            t("Previous"),
            "knowledge.previous",
            curating.turn,
            None,
            icon="chevron_left",
            disabled=len(starts) == 1,
        )
        action(
            t("Next") if found.complete else t("Search further"),
            "knowledge.next",
            curating.turn,
            found.next,
            icon="chevron_right",
            disabled=found.next is None,
        )
        if not found.complete:
            st.caption(t("The graph is large, and only part of it has been searched so far."))


def nothing(look: Catalogue, found: Found) -> None:
    """An empty graph, no hit, or no hit so far."""
    icon, said = "search_off", N_("Nothing found. Remove a filter, or add the triple here.")
    near: list[str] = []
    if not len(look.graph):
        icon, said = "eco", N_("This graph has no triples yet. Add one here, or import a file.")
    elif not found.complete:
        said = N_("The graph is large, and only part of it has been searched so far.")
        icon = "hourglass_empty"
    else:
        near = look.heads(curating.query().text[:2])
    st.info(t(said), icon=f":material/{icon}:")
    if near:
        st.markdown(f"{t('Similar heads:')} {' · '.join(f'**{markdown(name)}**' for name in near)}")
    pager(found)
