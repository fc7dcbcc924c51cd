"""Search, facets and the table of triples, beside the one that is chosen."""

from functools import partial

import streamlit as st

from app import curating
from app.app_pages.knowledge_triple import several_panel, triple_panel
from app.catalogue import Catalogue
from app.curating import WHERE
from app.state import KEEP
from app.texts import t
from app.view_models.html import markdown
from app.view_models.knowledge import HEAD, ON, RELATION, TAIL
from kbert_core.knowledge.search import Found

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
            t("kg.search"),
            key="knowledge.text",
            placeholder=t("kg.search_placeholder"),
            icon=":material/search:",
            on_change=curating.new_query,
            max_chars=200,
            live=True,
            width="stretch",
            **KEEP,
        )
        st.selectbox(
            t("kg.where"),
            WHERE,
            key="knowledge.where",
            format_func=lambda name: t(f"kg.where_{name}"),
            on_change=curating.new_query,
            width=170,
            **KEEP,
        )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
        for name, counts in (("relations", facets.relations), ("types", facets.types)):
            chosen = ss[f"knowledge.{name}"]
            offered = [*counts][:FACETS]
            st.multiselect(
                t(f"kg.{name}"),
                [*offered, *(x for x in chosen if x not in offered)],
                key=f"knowledge.{name}",
                format_func=partial(_counted, counts),
                placeholder=t("kg.any") if counts else t("kg.none"),
                on_change=curating.new_query,
                disabled=not counts and not chosen,
                width="stretch",
                **KEEP,
            )
        off = len(look.graph.off)
        st.checkbox(
            t("kg.off", count=f"{off:,}"),
            key="knowledge.off",
            on_change=curating.new_query,
            disabled=not off and not ss["knowledge.off"],
            **KEEP,
        )
    if not facets.complete:
        st.caption(t("kg.facets_partly"))


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
            HEAD: [x.head for x in found.triples],
            RELATION: [x.relation for x in found.triples],
            TAIL: [x.tail for x in found.triples],
            ON: ["" if on else t("kg.is_off") for on in found.on],
        },
        key=key,
        on_select=lambda: curating.choose(key, found.triples),
        selection_mode=["multi-row", "single-cell"],
        hide_index=True,
        width="stretch",
        height=min(560, 38 + 35 * len(found.triples)),
        column_config={
            HEAD: st.column_config.TextColumn(t("knowledge.head")),
            RELATION: st.column_config.TextColumn(t("knowledge.relation")),
            TAIL: st.column_config.TextColumn(t("knowledge.tail")),
            ON: st.column_config.TextColumn(t("kg.state"), width=56),
        },
        lazy=False,
    )
    pager(found)


def count_line(look: Catalogue, found: Found) -> None:
    """How many were found."""
    if not found.triples:
        return
    total = len(look.graph) if curating.query().everything else found.total
    first = (len(ss["knowledge.starts"]) - 1) * look.page + 1
    last = first + len(found.triples) - 1
    if total is not None and total == len(found.triples):
        st.caption(t("kg.found_one" if total == 1 else "kg.found", count=f"{total:,}"))
    elif total is not None:
        st.caption(t("kg.page", first=f"{first:,}", last=f"{last:,}", count=f"{total:,}"))
    else:
        st.caption(t("kg.page_more", first=f"{first:,}", last=f"{last:,}"))


def pager(found: Found) -> None:
    """To the next page and back."""
    starts = ss["knowledge.starts"]
    if found.next is None and len(starts) == 1:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        st.button(
            t("kg.previous"),
            key="knowledge.previous",
            icon=":material/chevron_left:",
            on_click=curating.turn,
            args=(None,),
            disabled=len(starts) == 1,
        )
        st.button(
            t("kg.next") if found.complete else t("kg.search_on"),
            key="knowledge.next",
            icon=":material/chevron_right:",
            on_click=curating.turn,
            args=(found.next,),
            disabled=found.next is None,
        )
        if not found.complete:
            st.caption(t("kg.not_all"))


def nothing(look: Catalogue, found: Found) -> None:
    """An empty graph, no hit, or no hit so far."""
    if not len(look.graph):
        st.info(t("kg.empty"), icon=":material/eco:")
        return
    if not found.complete:
        st.info(t("kg.not_all"), icon=":material/hourglass_empty:")
        pager(found)
        return
    st.info(t("kg.no_hit"), icon=":material/search_off:")
    near = look.heads(curating.query().text[:2])
    if near:
        st.markdown(f"{t('kg.near')} {' · '.join(f'**{markdown(name)}**' for name in near)}")
    if len(ss["knowledge.starts"]) > 1:
        pager(found)
