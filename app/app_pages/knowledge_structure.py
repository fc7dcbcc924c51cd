"""The shape of the graph: a way between two names, hubs, parts; a name opens its triples."""

import streamlit as st

from app.app_pages.knowledge_table import kept, open_name
from app.app_pages.parts import table
from app.state import KEEP
from kbert_lab.lab.catalogue import Catalogue
from kbert_lab.lab.texts import t
from kbert_lab.lab.views.html import markdown
from kbert_lab.lab.views.structure import Columns, Structure


def structure_view(look: Catalogue) -> None:
    """What networkx finds."""
    seen = kept("structure", look.graph.fingerprint, lambda: Structure.of(look.graph))
    said = t(
        "{looked} of {count} triples were looked at, those that are on and come first. Choose a "
        "name to see its triples. `kbert kg check` lists likely mistakes.",
        looked=f"{seen.network.number_of_edges():,}",
        count=f"{len(look.graph):,}",
    )
    st.caption(said)
    st.subheader(t("The shortest way between two names"), anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
        start, end = (
            st.text_input(name, key=f"knowledge.way_{key}", max_chars=200, **KEEP).strip()
            for key, name in (("from", t("From")), ("to", t("To")))
        )
    if start and end:
        way(look, seen, start, end)
    parts = t("Parts with no triple between them: {parts}", parts=f"{len(seen.components):,}")
    for column, title, found in zip(
        st.columns(2, gap="large"),
        (t("The names in most triples"), parts),
        (seen.hubs(), seen.parts()),
        strict=True,
    ):
        with column:
            st.subheader(title, anchor=False)
            names(found)


def way(look: Catalogue, seen: Structure, *typed: str) -> None:
    """The shortest way between two names, with the relations on it."""
    start, end = map(seen.name, typed)
    if start is None or end is None:
        unknown = typed[0] if start is None else typed[1]
        said = t(
            "“{name}” is no name of what was looked at. Names that begin alike: {near}",
            name=unknown,
            near=" · ".join(look.heads(unknown[:2])) or "–",
        )
        st.info(markdown(said))
    elif (steps := seen.way(start, end)) is None:
        st.info(t("No triples lead from one to the other."))
    else:
        said = f"**{markdown(start)}**"
        for name, relation, onward in steps:
            arrow = "—{} →" if onward else "← {}—"
            said += f" :gray[{arrow.format(markdown(relation))}] **{markdown(name)}**"
        st.markdown(said)


def names(columns: Columns) -> None:
    """A table of names; one that is chosen is looked for."""
    first = next(iter(columns))
    heads = columns[first]

    def choose(row: int | None) -> None:
        if row is not None:
            open_name(heads[row])

    table(columns, f"knowledge.shape.{'.'.join(columns)}", choose=choose, most=460)
