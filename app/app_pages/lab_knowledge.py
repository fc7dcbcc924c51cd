"""The Lab's knowledge: the sentence's triples, to switch, change, add and delete."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st

from app import drawn, editing, services, state
from app.app_pages.lab_columns import Column
from app.app_pages.lab_try import sentences_to_try
from app.app_pages.parts import (
    bind,
    graph_download,
    redo_button,
    segments,
    the_first,
    told_apart,
    undo_button,
)
from app.components import Message, draw_graph
from app.drawn import linked
from kbert_core import KBertTrace, KnowledgeGraph
from kbert_lab.lab.commands import Redo, SelectTriple, Undo
from kbert_lab.lab.history import Edited
from kbert_lab.lab.log import AnyLog, heads_of
from kbert_lab.lab.scene import Scene
from kbert_lab.lab.texts import N_, listed, sentences, t
from kbert_lab.lab.views import history, knowledge, neighbourhood
from kbert_lab.lab.views.html import markdown
from kbert_lab.lab.views.knowledge import DELETE, FIELDS, HEAD, ON, STATE, TripleRow
from kbert_lab.lab.words import KNOWLEDGE_TEXTS, RULE_TEXTS

FIRST_OF_HEAD = N_(
    "A new triple comes first among the triples of its head, so it is injected before them."
)

ss = st.session_state


def knowledge_panel(
    now: Scene, graph: KnowledgeGraph, trace: Any, before: Any, columns: Sequence[Column] = ()
) -> None:
    """The sentence's triples, and what each column makes of them."""
    rows, log, own = knowledge.triple_rows(trace, graph, before), state.log(), state.session()
    title = N_("Knowledge for this sentence")
    title = title if len(now.sentences) == 1 else N_("Knowledge for these texts")
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="lab_head_knowledge"
    ):
        st.subheader(t(title), anchor=False, width="stretch")
        box = partial(segments, t("View"), ["table", "graph"], names=KNOWLEDGE_TEXTS)
        view = drawn.choose_view(box, "knowledge_view")
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        undo_button("lab", partial(state.act, Undo()), history.step(log, own.last_step()))
        redo_button("lab", partial(state.act, Redo()), history.step(log, own.next_step()))
        graph_download(
            graph,
            N_("Download .spo"),
            key="lab.download",
            file_name=f"{services.safe_name(graph.name)}.spo",
            help=t(
                "The whole graph with your edits. Triples that are switched off are left out, "
                "because a file cannot mark them."
            ),
        )
    if not (rows or trace.reading.mentions):
        nothing_found(now, graph)
    elif view == "graph":
        graph_view(rows, trace)
    else:
        triple_table(rows, columns)
    if rows and services.has_trees(now):
        follow_triple(rows)
    said = [*last_edit(log, rows, trace, before), *state_of_knowledge(rows)]
    if said:
        st.caption(markdown(sentences(said)))
    if rows and services.has_trees(now) and not any(row.used for row in rows):
        nothing_injected(now, graph)
    add_form(trace)


def triple_table(rows: tuple[TripleRow, ...], columns: Sequence[Column]) -> None:
    """The editable table; its changes are read in the callbacks."""
    key, given = editing.begun("lab", tuple((row.triple, row.on) for row in rows))
    states = {one.title: knowledge.states(rows, one.trace, one.graph) for one in columns}
    linked = any(row.in_vectors for row in rows)
    # A gloss is long, and would push the columns after it out of sight.
    widths = (100, 80, 160, 96) if linked else (None,) * 4
    asked = N_("in a vector?") if linked else N_("in the tree?")
    asked = N_("read?") if any(row.beside for row in rows) else asked
    help = t(
        "Tick a triple to switch it on, untick it to switch it off. Double-click a field to "
        "change it. The bin at the end of a row deletes it."
    )
    config: dict[str, Any] = {ON: st.column_config.CheckboxColumn(t("on"), width=60)}
    for name, width in zip(FIELDS, widths, strict=False):
        label = t(KNOWLEDGE_TEXTS[name])
        config[name] = st.column_config.TextColumn(label, required=True, width=width)
    for name in states or [STATE]:
        label = t(asked) if name == STATE else name
        config[name] = st.column_config.TextColumn(
            label, disabled=True, help=help, width=widths[-1]
        )
    config[DELETE] = st.column_config.ButtonColumn(
        "",
        width=44,
        type="tertiary",
        key=editing.delete_key(key),
        on_click=state.redrawn,
        args=(editing.delete_row, key),
    )
    st.data_editor(
        knowledge.table(rows, given, states),
        key=key,
        on_change=state.redrawn,
        args=(editing.read_table, key),
        hide_index=True,
        width="stretch",
        height="auto" if len(rows) <= 10 else 372,
        column_config=config,
    )


@linked("lab.graph_view")
def graph_view(rows: tuple[TripleRow, ...], trace: Any) -> None:
    """The triples drawn as a graph; a click chooses one, to be changed there."""
    data = neighbourhood.neighbourhood(
        rows,
        dark=st.context.theme.type == "dark",
        chosen=state.selection().triple,
        before=ss.get("lab.places", {}),
        flat=trace.rows[0] if isinstance(trace, KBertTrace) else None,
    )
    ss["lab.places"] = neighbourhood.places_of(data)
    draw_graph(data, key="lab.drawing", heard=hear_graph, editable=True)
    the_first(neighbourhood.MOST, len(rows))
    st.caption(t("Solid lines are injected, dashed ones are not. Drag to move, scroll to zoom."))


def hear_graph(sent: Message) -> None:
    """Do what is meant in the graph; a new tail stands where the old did."""
    if sent["do"] == "tail":
        places = ss["lab.places"]
        places.setdefault(sent["tail"], places[sent["triple"][2]])
    drawn.hear(sent)


@linked("lab.follow")
def follow_triple(rows: tuple[TripleRow, ...]) -> None:
    """Choose a triple: its branch, its rows and columns are then marked everywhere.

    The editable table can't tell which of its rows is chosen.
    """
    said = N_("{triple} · not in the tree")
    used = {row.triple: row.used for row in rows}
    names = told_apart({own: str(own) if used[own] else t(said, triple=own) for own in used})
    chosen = state.selection().triple
    bind(
        partial(st.selectbox, t("Follow a triple"), list(used)),
        "lab.triple",
        chosen if chosen in used else None,
        lambda triple: drawn.select(SelectTriple(triple, toggle=False)),
        format_func=lambda triple: names.get(triple, str(triple)),
        placeholder=t("None: choose one to see its branch, rows and columns"),
    )


def add_form(trace: Any) -> None:
    """Add a triple; it stands first under its head."""
    suggested = next(iter(knowledge.names_in(trace)), "")
    with (
        st.form("lab.add", border=False),
        st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"),
    ):
        for name in FIELDS:
            label = t(KNOWLEDGE_TEXTS[name])
            label = t("Add a triple: {field}", field=label) if name == HEAD else label
            how: Any = {"placeholder": suggested} if name == HEAD else {}
            st.text_input(label, key=f"lab.add_{name}", max_chars=200, width="stretch", **how)
        add = partial(state.redrawn, state.add_triple, suggested)
        st.form_submit_button(t("Add"), on_click=add, help=t(FIRST_OF_HEAD))


# What is said of them


def last_edit(log: AnyLog, rows: tuple[TripleRow, ...], trace: Any, before: Any) -> list[str]:
    """What the last edit did, and what moved up because of it."""
    step = state.session().last_step(state.session().graph)
    if step is None or not isinstance(step.what, Edited):
        return []
    said = [t("Last edit: {what}.", what=history.step(log, step))]
    if moved := knowledge.moved_up(rows):
        said.append(t("{triples} took the free place.", triples=listed(moved)))
    heads = knowledge.entities_of(trace)
    if before is not None:
        heads |= knowledge.entities_of(before)
    if step.what.edits and heads.isdisjoint(heads_of(step.what.edits)):
        said.append(t("It does not concern this sentence."))
    return said


def nothing_found(now: Scene, graph: KnowledgeGraph) -> None:
    """The sentence names no entity: the trunk alone, and what comes near."""
    st.info(t(knowledge.NO_NAME), icon=":material/search_off:")
    near = services.names_near(now.sentences, graph)
    names = " · ".join(f"**{markdown(name)}**" for name in near)
    st.markdown(
        f"{t('Similar names in the graph:')} {names}"
        if near
        else t("No name in the graph is similar.")
    )
    if ss.get("lab.try") != state.session().graph:  # else they are offered above
        sentences_to_try(graph, "lab.nothing")
    if services.has_trees(now):
        st.caption(t("Add a triple whose head is in the sentence, and it gets a branch."))


def state_of_knowledge(rows: tuple[TripleRow, ...]) -> list[str]:
    """How many triples are read, and what was left out by which rule."""
    if not rows:
        return []
    counts = {"used": sum(1 for row in rows if row.used), "total": len(rows)}
    said = [t("{used} of {total} triples are read.", **counts)]
    if left := knowledge.left_out(rows):
        text = N_("{count} {rule}")
        named = (t(text, count=n, rule=t(RULE_TEXTS[rule.name])) for rule, n in left.items())
        said.append(t("Left out: {what}.", what=listed(named)))
    return said


def nothing_injected(now: Scene, graph: KnowledgeGraph) -> None:
    """Say what the text is read as where no triple of its names is injected."""
    said = [t("No triple is injected: this is the same as BERT without a graph.")]
    if now.has_model:
        delta = f"{services.difference_from_bert(now, graph):g}"
        said.append(t("Checked against the run with an empty graph: Δ = {delta}.", delta=delta))
    st.info(sentences(said), icon=":material/equal:")
