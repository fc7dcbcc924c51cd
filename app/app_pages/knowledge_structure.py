"""The shape of the graph: a way between two names, hubs, parts; a name opens its triples."""

from functools import partial

import streamlit as st

from app import curating
from app.app_pages.parts import table
from app.state import KEEP
from kbert_lab.lab.catalogue import Catalogue
from kbert_lab.lab.texts import t
from kbert_lab.lab.views import structure as view
from kbert_lab.lab.views.html import markdown

ss = st.session_state


def structure_view(look: Catalogue) -> None:
    """What networkx finds."""
    kept = ss.get("knowledge.structure")
    if kept is None or kept[0] != look.graph.fingerprint:
        network = view.network_of(look.graph)
        kept = (look.graph.fingerprint, network, view.hubs(network), view.parts(network))
        ss["knowledge.structure"] = kept
    _, network, hubs, (count, parts) = kept
    looked = {"looked": f"{network.number_of_edges():,}", "count": f"{len(look.graph):,}"}
    st.caption(
        t(
            "{looked} of {count} triples were looked at, those that are on and come first. Choose "
            "a name to see its triples. `kbert kg check` lists likely mistakes.",
            **looked,
        )
    )
    way(look, network)
    left, right = st.columns(2, gap="large")
    with left:
        names(t("The names in most triples"), hubs)
    with right:
        names(t("Parts with no triple between them: {parts}", parts=f"{count:,}"), parts)


def way(look: Catalogue, network: view.nx.MultiDiGraph) -> None:
    """The shortest way between two names, with the relations on it."""
    st.subheader(t("The shortest way between two names"), anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
        typed = [
            st.text_input(name, key=f"knowledge.way_{end}", max_chars=200, **KEEP)
            for end, name in (("from", t("From")), ("to", t("To")))
        ]
    if not all(map(str.strip, typed)):
        return
    ends = [view.name_in(network, name) for name in typed]
    for name in (own for own, end in zip(typed, ends, strict=True) if end is None):
        said = t(
            "“{name}” is no name of what was looked at. Names that begin alike: {near}",
            name=name,
            near=" · ".join(look.heads(name[:2])) or "–",
        )
        st.info(markdown(said))
    start, end = ends
    if start is None or end is None:
        return
    steps = view.way(network, start, end)
    if steps is None:
        st.info(t("No triples lead from one to the other."))
        return
    said = f"**{markdown(start)}**"
    for name, relation, onward in steps:
        arrow = "—{} →" if onward else "← {}—"
        said += f" :gray[{arrow.format(markdown(relation))}] **{markdown(name)}**"
    st.markdown(said)


def names(title: str, columns: view.Columns) -> None:
    """A table of names; one that is chosen is looked for."""
    st.subheader(title, anchor=False)
    heads = next(iter(columns.values()))
    go = partial(_go_to, heads)
    table(columns, f"knowledge.shape.{title}.{ss['knowledge.table']}", choose=go, most=460)


def _go_to(heads: list[str], row: int | None) -> None:
    if row is not None:
        curating.look_for(heads[row])
