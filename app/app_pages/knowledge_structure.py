"""The shape of the graph: the way between two names, hubs, parts, names of several types."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from app import curating
from app.app_pages.parts import table, the_first
from app.catalogue import Catalogue
from app.state import KEEP
from app.texts import N_, t
from app.view_models.html import markdown
from app.view_models.structure import Structure, structure

ss = st.session_state
LISTED = 200  # names of several types


def structure_view(look: Catalogue) -> None:
    """What networkx finds, with a way to each name."""
    kept: tuple[str, Structure] | None = ss.get("knowledge.structure")
    if kept is None or kept[0] != look.graph.fingerprint:
        with st.spinner(t("Checking the graph …")):
            kept = ss["knowledge.structure"] = (look.graph.fingerprint, structure(look.graph))
    found = kept[1]
    key = (
        N_("All {looked} triples that are on were looked at. Separate parts: {parts}.")
        if found.looked_at == len(look.graph)
        else N_(
            "{looked} of {count} triples were looked at, those that are on and come first. "
            "Separate parts: {parts}."
        )
    )
    looked = {"looked": f"{found.looked_at:,}", "count": f"{len(look.graph):,}"}
    st.caption(t(key, **looked, parts=f"{found.parts:,}"))
    hubs, several, parts = found.hubs, found.several[:LISTED], found.largest
    left, right = st.columns(2, gap="large")
    with left:
        way(look, found)
        names(
            t("Hubs"),
            t("The names in most triples. Choose one to see its triples."),
            [name for name, *_ in hubs],
            {t("as head"): [x[1] for x in hubs], t("as tail"): [x[2] for x in hubs]},
        )
    with right:
        names(
            t("Names of several types"),
            t(
                "Homonyms, or a slip: give each meaning a name of its own, or delete the wrong "
                "type."
            ),
            [name for name, _ in several],
            {t("Types"): [" · ".join(types) for _, types in several]},
            len(found.several),
        )
        names(
            t("Separate parts"),
            t(
                "No triple leads from one part to another. Each is named by the name in most of "
                "its triples."
            ),
            [name for _, name in parts],
            {t("names in the part"): [count for count, _ in parts]},
            found.parts,
        )


def way(look: Catalogue, found: Structure) -> None:
    """The shortest way between two names, with the relations on it."""
    st.subheader(t("The shortest way between two names"), anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
        typed = [
            st.text_input(name, key=f"knowledge.way_{end}", max_chars=200, **KEEP)
            for end, name in (("from", t("From")), ("to", t("To")))
        ]
    types = st.checkbox(
        t("Also by way of a type that both have"), key="knowledge.way_types", **KEEP
    )
    if not all(name.strip() for name in typed):
        return
    ends = [found.name(name) for name in typed]
    for name in (own for own, end in zip(typed, ends, strict=True) if end is None):
        near = " · ".join(look.heads(name[:2])) or "–"
        text = N_("“{name}” is no name of what was looked at. Names that begin alike: {near}")
        st.info(markdown(t(text, name=name, near=near)))
    if None in ends:
        return
    triples = found.way(str(ends[0]), str(ends[1]), types=types)
    if triples is None:
        st.info(t("No triples lead from one to the other."))
        return
    at, said = str(ends[0]), [f"**{markdown(ends[0])}**"]
    for triple in triples:
        onward = triple.head == at
        at = triple.tail if onward else triple.head
        arrow = "—{} →" if onward else "← {}—"
        said.append(f":gray[{arrow.format(markdown(triple.relation))}] **{markdown(at)}**")
    st.markdown(" ".join(said))


def names(
    title: str,
    help: str,
    heads: Sequence[str],
    about: dict[str, Sequence[object]],
    count: int = 0,
) -> None:
    """A table of names; one that is chosen is looked for."""
    st.subheader(title, anchor=False, help=help)
    if not heads:
        st.caption(t("No likely mistakes were found."))
        return
    key = f"knowledge.shape.{title}.{ss['knowledge.table']}"
    table({t("name"): heads, **about}, key, choose=partial(_go_to, heads), most=250)
    the_first(len(heads), count)


def _go_to(heads: Sequence[str], row: int | None) -> None:
    if row is not None:
        curating.look_for(heads[row])
