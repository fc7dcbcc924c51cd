"""The chosen triple: its form, what may be wrong with it, where it comes from, what is around."""

from typing import Any

import streamlit as st

from app import curating
from app.app_pages.lab_try import see_in_lab
from app.app_pages.parts import action
from app.catalogue import Catalogue
from app.components.graph import draw_graph
from app.curating import FIELDS
from app.state import KEEP
from app.texts import N_, t
from app.view_models import history
from app.view_models.doubts import Doubt, doubts
from app.view_models.html import markdown
from app.view_models.knowledge import HEAD, RELATION
from app.view_models.neighbourhood import Drawn, caption, neighbourhood, places_of
from app.words import KNOWLEDGE_TEXTS
from kbert_core import Triple

ss = st.session_state
LISTED = 6


@st.fragment
def triple_panel() -> None:
    """The form; typing here draws nothing else anew."""
    if ss.pop("knowledge.to_lab", False):
        st.switch_page("app_pages/lab.py")
    if ss.pop("knowledge.rerun", False):
        st.rerun()
    look = curating.catalogue()
    triple: Triple | None = ss["knowledge.triple"]
    gone = triple is not None and triple not in look.graph
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="knowledge_head_triple"
    ):
        title = N_("Add a triple") if triple is None else N_("This triple")
        st.subheader(t(title), anchor=False, width="stretch")
        if triple is not None:
            action(t("New triple"), "knowledge.another", curating.new_triple, icon="add")
    problem = ss.get("knowledge.problem")
    if problem:
        st.error(markdown(problem))
    if gone and triple is not None:
        overtaken(look, triple)
    for name in FIELDS:
        field(look, name)
    said = doubts(look.graph, *curating.typed(), replacing=None if gone else triple)
    for doubt in said:
        doubt_line(doubt)
    buttons(look, triple, said, gone=gone)
    if triple is not None and not gone:
        about(look, triple)


def field(look: Catalogue, name: str) -> None:
    """A field, and names of the graph that go on as it begins."""
    head, relation, tail = curating.typed()
    value = {"head": head, "relation": relation, "tail": tail}[name]
    st.text_input(t(KNOWLEDGE_TEXTS[name]), key=f"knowledge.{name}", live=True, **KEEP)
    if name == HEAD:
        known = look.heads(value)
    elif name == RELATION:
        known = look.relations(value)
    else:
        known = look.tails(relation, value) if relation else []
    if value in known or not known:
        return
    st.pills(
        t("Known names"),
        known,
        key=f"knowledge.suggest_{name}",
        on_change=curating.take_suggestion,
        args=(name,),
        format_func=markdown,
        label_visibility="collapsed",
    )


def doubt_line(doubt: Doubt) -> None:
    """One thing that may be wrong."""
    icon, colour = (":material/block:", "red") if doubt.refused else (":material/help:", "orange")
    st.markdown(f":{colour}[{icon}] {markdown(doubt.text)}")


def buttons(look: Catalogue, triple: Triple | None, said: tuple[Doubt, ...], *, gone: bool) -> None:
    """What can be done with what was typed."""
    ready = all(part.strip() for part in curating.typed()) and not any(d.refused for d in said)
    primary: dict[str, Any] = {"type": "primary"}
    if triple is None or gone:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            action(t("Add"), "knowledge.add", curating.make, "add", disabled=not ready, **primary)
            st.checkbox(
                t("first among the head's triples"),
                key="knowledge.first",
                help=t(
                    "The first triples of a head are injected first; those over the limit per "
                    "mention are left out."
                ),
                **KEEP,
            )
        return
    on = look.graph.is_on(triple)
    ready &= Triple(*map(str.strip, curating.typed())) != triple  # something was changed
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        label = t("Save the change")
        action(label, "knowledge.save", curating.make, "replace", disabled=not ready, **primary)
        action(
            t("Switch off" if on else "Switch on"),
            "knowledge.switch",
            curating.switch,
            not on,
            triple,
            icon="toggle_off" if on else "toggle_on",
        )
        action(t("Delete"), "knowledge.delete", curating.delete, triple, icon="delete")
        action(t("See it in the Lab"), "knowledge.see", see_in_lab, triple, icon="account_tree")


def overtaken(look: Catalogue, triple: Triple) -> None:
    """Somebody else changed or deleted the triple: what is there now, beside what was typed."""
    st.warning(
        t(
            "This triple was changed or deleted in the meantime. Nothing was overwritten, and "
            "what you typed is still below."
        ),
        icon=":material/group:",
    )
    now = look.graph.triples_of(triple.head)
    if now:
        listed = "  \n".join(f"– {markdown(x)}" for x in now[:LISTED])
        more = t("… and {count} more", count=len(now) - LISTED) if len(now) > LISTED else ""
        st.markdown(
            f"{markdown(t('“{head}” has now:', head=triple.head))}  \n{listed} {markdown(more)}"
        )


def about(look: Catalogue, triple: Triple) -> None:
    """Where it comes from, and what is around it."""
    st.caption(markdown(history.origin(look, triple)))
    if not look.graph.is_on(triple):
        st.caption(t("Switched off: kept, but not injected."))
    draw = st.toggle(t("Draw its neighbours"), key="knowledge.around", **KEEP)
    if not draw:
        return
    drawn = [
        Drawn(x, look.graph.is_on(x), t("switched on" if look.graph.is_on(x) else "switched off"))
        for x in look.around(triple)
    ]
    data = neighbourhood(
        drawn,
        dark=st.context.theme.type == "dark",
        chosen=triple,
        before=ss.get("knowledge.places", {}),
    )
    ss["knowledge.places"], ss["knowledge.drawn"] = places_of(data), [x.triple for x in drawn]
    draw_graph(
        data, key="knowledge.drawing", on_node=curating.click_name, on_edge=curating.click_edge
    )
    st.caption(
        caption(
            drawn,
            on=N_("Solid lines are switched on, dashed ones off. Drag to move, scroll to zoom."),
        )
    )


def several_panel() -> None:
    """Several triples are chosen: what can be done with all of them."""
    chosen: tuple[Triple, ...] = ss["knowledge.chosen"]
    st.subheader(t("{count} triples chosen", count=f"{len(chosen):,}"), anchor=False)
    problem = ss.get("knowledge.problem")
    if problem:
        st.error(markdown(problem))
    with st.container(horizontal=True, gap="xsmall"):
        for on in (False, True):
            action(
                t("Switch on" if on else "Switch off"),
                f"knowledge.several_{'on' if on else 'off'}",
                curating.switch,
                on,
                *chosen,
            )
        action(t("Delete"), "knowledge.several_delete", curating.delete, *chosen, icon="delete")
    listed = "  \n".join(markdown(triple) for triple in chosen[:12])
    more = t("… and {count} more", count=len(chosen) - 12) if len(chosen) > 12 else ""
    st.markdown(f"{listed}  \n{markdown(more)}")
