"""Two to four readings side by side: prediction, where knowledge enters, what it moves, matrix."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from app import drawn, explained, services, state
from app.app_pages.lab_free import free_panels
from app.app_pages.lab_matrix import Shown, choose_attention_map
from app.app_pages.lab_tree import clear_button
from app.app_pages.parts import choose_window, segments, table
from app.app_pages.target_chooser import choose_target
from app.components import draw_matrix, draw_tree
from app.drawn import linked
from app.state import FREE, KEEP
from kbert_core import NO_KNOWLEDGE, KBertError, KBertTrace, KnowledgeGraph
from kbert_core.explain.case import NOTHING, Target
from kbert_core.reader import Reading
from kbert_core.roof.roof_bert import RoofTrace
from kbert_core.tasks import NerPrediction
from kbert_lab.lab import comparing
from kbert_lab.lab.models import ModelInfo
from kbert_lab.lab.offer import PLAIN_TEXT
from kbert_lab.lab.scene import NO_GRAPH, Scene
from kbert_lab.lab.texts import N_, refusal, sentences, t
from kbert_lab.lab.views import links, matrix, model_facts, sides, tree, twins
from kbert_lab.lab.views.diff import row_of
from kbert_lab.lab.views.html import escape, markdown, scrolling
from kbert_lab.lab.views.interventions import why_now
from kbert_lab.lab.views.matrix import MatrixView
from kbert_lab.lab.views.selected import marks_of
from kbert_lab.lab.views.targets import answer_name, name_of
from kbert_lab.lab.views.twins import Side
from kbert_lab.lab.views.why import visible_in
from kbert_lab.lab.words import MATRIX_TEXTS

ss = st.session_state
FOUR_IN_A_LINE = 36  # tokens up to which four readings stand in one line
PAGE = 1320  # pixels of a wide page that columns share


@dataclass(frozen=True, kw_only=True)
class Column(Shown):
    """A reading that was run, beside others."""

    trace: Any  # what came of it; of sentence trees or not
    title: str  # what it is called, at its head
    about: str  # what it reads, and how
    graph: KnowledgeGraph  # the scene's, with the edits made
    bare: Reading  # the text as the same model reads it without a graph
    before: Any  # its trace before the last edit; None: without a graph
    # how far the last edit, or knowledge, has moved each token of the text
    moved: Mapping[tuple[int, int], float]
    drawn: MatrixView | None = None  # its matrix, where it is one of sentence trees

    @property
    def trees(self) -> bool:
        """Whether it is one of sentence trees."""
        return isinstance(self.trace, KBertTrace)

    @property
    def info(self) -> ModelInfo:
        """Of its model."""
        return services.model_info(self.scene.model)


def columns_of(now: Scene, *, edited: bool) -> list[Column]:
    """Run what was chosen to stand side by side; empty: nothing was, or it can't be run.

    Args:
        edited: whether its last edit is about this text.
    """
    chosen = state.session().compare
    panels = state.side_by_side(now).get(chosen, ())
    if chosen == FREE:
        panels = tuple(free_panels(now, state.known(now)))
    several = len({panel.scene.model for panel in panels}) > 1
    columns = []
    for panel, title in zip(panels, sides.names_of(panels), strict=True):
        scene = panel.scene
        try:
            graph = state.graph_of(scene)
            trace = services.trace(scene, graph)
            bare = scene.without_knowledge()
            before = (edited and state.before_last(scene)) or bare
            was = services.trace(before, state.graph_of(before))
            moved = {}
            if scene.has_model:
                moved = services.moved(scene, graph, before, state.graph_of(before))
            read = services.trace(bare, NO_KNOWLEDGE).reading
        except KBertError as error:
            st.error(
                markdown(f"{title}: {t('This panel failed: {reason}', reason=refusal(error))}")
            )
            continue
        named = replace(scene, system="") if panel.name == scene.system else scene
        about = sides.about(
            named, explained.model_name(scene) if several else "", len(set(trace.used))
        )
        earlier = was if before is not bare else None
        made = {"trace": trace, "graph": graph, "bare": read, "before": earlier, "moved": moved}
        columns.append(Column(scene, title=title, about=about, **made))
    if panels and len(columns) < comparing.FEWEST:
        st.info(t("Fewer than two panels can be run, so there is nothing to compare."))
        return []
    return columns


@linked("lab.columns")
def draw_columns(columns: Sequence[Column]) -> None:
    """Draw them on one scale, with one selection; choosing here draws this part only."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        with st.container(gap="xsmall"):
            predictions(columns)
        count = max(len(one.trace.rows) for one in columns)
        chosen = choose_window(count, f"lab.columns_window.{count}")
        columns = [replace(one, window=min(chosen, len(one.trace.rows) - 1)) for one in columns]
        columns = matrices(columns)
    several = len(columns)
    if several == 4 and max(len(one.trace.rows[one.window]) for one in columns) > FOUR_IN_A_LINE:
        several = 2
    most = max((value for one in columns for value in one.moved.values()), default=0.0)
    parts = (
        partial(head, columns[0]),
        partial(effect, most),
        partial(knowledge, PAGE // several),
        drawing,
    )
    for start in range(0, len(columns), several):
        line = range(start, min(start + several, len(columns)))
        with st.container(gap="xsmall", key=f"lab_columns_{start}"):
            for part in parts:
                for place, number in zip(st.columns(several, gap="medium"), line, strict=False):
                    with place, st.container(gap="xsmall"):
                        part(columns[number], number)
    if views := [one.drawn for one in columns if one.drawn is not None]:
        every = np.concatenate([view.codes.ravel() for view in views])
        st.html(matrix.legend_html(replace(views[0], codes=every)))


# Predictions


def predictions(columns: Sequence[Column]) -> None:
    """Say how they compare; draw those that aren't drawn on the text itself."""
    told = [one for one in columns if one.trace.prediction is not None]
    if len(told) < comparing.FEWEST or len({type(one.trace.prediction) for one in told}) > 1:
        return
    if len({one.scene.sentences for one in told}) > 1:
        st.caption(t("The scenes read different texts, so their tokens aren't joined."))
        return
    found = [Side(one.title, one.about, one.trace.prediction) for one in told]
    infos = [one.info for one in told]
    for said, html in twins.compared(told[0].scene.sentences, found, infos):
        st.markdown(markdown(said))
        if html:
            st.html(html)
    if state.session().compare == "models":
        scores = model_facts.scores_of_twins(columns[0].info, columns[-1].info)
        st.caption(markdown(scores or ""))


def head(first: Column, one: Column, number: int) -> None:
    """What a column is, and the entities that it finds, on the text."""
    title = f"<b>{escape(one.title)}</b> <span>{escape(one.about)}</span>"
    st.html(f'<div class="kb-column">{title}</div>')
    found, was = one.trace.prediction, one.before and one.before.prediction
    if not isinstance(found, NerPrediction):
        return
    text = one.scene.sentences[0]
    if isinstance(was, NerPrediction):
        st.html(twins.now_and_before(text, found, "", was))
        return
    against = first.trace.prediction
    same = isinstance(against, NerPrediction) and one.scene.sentences == first.scene.sentences
    pair = [against, found] if number and same else [found]
    st.html(twins.spans_lines(text, [Side("", "", each) for each in pair], last=True))


# What it reads, and what knowledge does to it


def knowledge(width: int, one: Column, number: int) -> None:
    """Where knowledge enters: branches of a tree, spans with candidates, a string beside."""
    if one.trees:
        marks = marks_of(one.flat.identities, state.selection(), visible_in(one.trace, one.window))
        key = f"lab.tree.{number}"
        if one.trace.reading.config.system == PLAIN_TEXT:
            st.caption(t("Triples after the text, in the same row."))
            draw_tree(
                sides.row_html(one.flat, marks),
                key=key,
                heard=drawn.hear,
            )
            return
        was = row_of(one.before, one.window, one.flat) if one.before else None
        view = tree.tree_view(one.trace, one.window, was)
        off = {x for x in view.triples if x in one.graph and not one.graph.is_on(x)}
        draw_tree(
            tree.tree_html(view, marks, off, line=width - 60, legend=False),
            key=key,
            heard=drawn.hear,
        )
    elif isinstance(one.trace, RoofTrace):
        assert one.trace.reading.kb is not None
        st.caption(t("Read by a second encoder, joined by the roof."))
        st.html(f'<p class="kb-string">{escape(one.trace.reading.kb.text)}</p>')
    else:
        st.caption(t("Vectors of each name's candidates, between two layers."))
        st.html(scrolling(links.spans_table(one.trace.links, one.scene.sentences)))


def effect(most: float, one: Column, number: int) -> None:
    """How far knowledge moves each token of the text, and what it costs the text."""
    if not one.scene.has_model:
        return
    reading = one.trace.reading
    places = [(n, i) for n, own in enumerate(reading.tokens) for i in range(len(own))]
    identities = [("trunk", *place) for place in places]
    marks = marks_of(identities, state.selection())
    key = f"lab.strip.{number}"
    draw_tree(
        sides.moved_html(reading, one.moved, most, marks, edit=one.before is not None),
        key=key,
        heard=drawn.hear,
    )
    st.caption(markdown(sides.budget(one.trace, one.bare)))


# Matrices


def matrices(columns: Sequence[Column]) -> Sequence[Column]:
    """Choose what the matrices show, and make them: one view, one scale."""
    shown = [one for one in columns if one.trees]
    if not shown:
        return columns
    able = all(one.scene.has_model for one in shown)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", width="content"):
        view = segments(
            t("Panel"),
            ["visible", "attention"] if able else ["visible"],
            "lab.columns_view",
            MATRIX_TEXTS,
            default="visible",
        )
        try:
            columns = with_matrices(attention(columns) if view == "attention" else columns)
        except KBertError as error:
            st.error(markdown(error))
        st.checkbox(t("Hide [CLS], [SEP]"), key="lab.specials", **KEEP)
        clear_button("lab.clear_columns")
    return columns


def attention(columns: Sequence[Column]) -> list[Column]:
    """Choose one attention map of each, or a mean."""
    maps = [
        services.attention(one.scene, one.graph, one.window) if one.trees else None
        for one in columns
    ]
    shapes = {own.shape[:2] for own in maps if own is not None}
    layers, heads = map(max, zip(*shapes, strict=True))
    chosen = choose_attention_map(layers, heads)
    if len(shapes) > 1:
        st.caption(
            t(
                "The models differ in layers or heads: layer and head are taken as far as each "
                "has them."
            )
        )
    return [replace(one, maps=own, chosen=chosen) for one, own in zip(columns, maps, strict=True)]


def with_matrices(columns: Sequence[Column]) -> list[Column]:
    """Each with its matrix, on one scale."""
    weights = [one.weights for one in columns if one.weights is not None]
    high = max((float(own.max(initial=0.0)) for own in weights), default=None)
    views = [one.view(high) if one.trees else None for one in columns]
    if ss.get("lab.specials"):
        views = [view and matrix.without_specials(view) for view in views]
    return [replace(one, drawn=view) for one, view in zip(columns, views, strict=True)]


def drawing(one: Column, number: int) -> None:
    """A column's matrix, and the chosen cell of it in words; where a token isn't there, that."""
    if not one.trees:
        attends(one, number)
        return
    view = one.drawn
    if view is None:
        return
    key = f"lab.matrix.{number}"
    draw_matrix(
        view,
        marks_of(view.identities, state.selection()),
        key=key,
        heard=drawn.hear,
    )
    chosen = state.selection()
    if chosen.cell is not None:
        flats, ablation = (None, one.flat), one.trace.ablation
        weights, seen = one.weights, one.visible
        said = matrix.cell_text(view, chosen.cell, *flats, ablation, weights, None, seen)
        why, value = said or ("", "")
        why = why_now(one.trace, one.window, chosen.cell, why) if said else ""
        st.caption(markdown(sentences(filter(None, (why, value))) or t("not in this panel")))
    elif chosen.token is not None and chosen.token not in view.identities:
        st.caption(t("not in this panel"))


def attends(one: Column, number: int) -> None:
    """How each token attends to the knowledge beside the text, where there is some."""
    reading = one.trace.reading
    weights = services.entering(one.scene, one.graph)
    if isinstance(one.trace, RoofTrace):
        assert reading.kb is not None
        tokens = services.tokens_of(one.scene, reading.kb.ids)
    else:
        tokens = [
            reading.sentences[m.sentence][m.start : m.end]
            for m in (own.span.mention for own in reading.rows[0].of_base(len(one.trace.kars) - 1))
        ]
    if tokens:
        chart = sides.entering_chart(reading, weights[:, : len(tokens)], tokens)
        st.plotly_chart(chart, key=f"lab.entering.{number}", config={"displayModeBar": False})


# One selection


# Differences


def differences(columns: Sequence[Column]) -> None:
    """A table of every two readings of trees, and why two of them are equal."""
    able = [one for one in columns if one.trees and one.scene.has_model]
    if len(able) < comparing.FEWEST or len({one.scene.sentences for one in columns}) > 1:
        return
    st.markdown(f"#### {t('Differences')}")
    target = what(able)
    made = explained.compared(
        [one.scene for one in able], [one.graph for one in able], target or NOTHING
    )
    names = {str(number): one.title for number, one in enumerate(able)}
    st.markdown(markdown(sides.say_equal(made, names)))
    label = answer_name(target.label, able[0].info, "") if target is not None else ""
    helped = {
        t(head): st.column_config.Column(help=t(said, target=label))
        for head, said in sides.DIFFERENCES_HELP.items()
    }
    table(sides.differences(made, names), "lab.differences", config=helped)


def what(able: Sequence[Column]) -> Target | None:
    """Choose what of the predictions is followed: of the first reading with knowledge."""
    told = [one for one in able if one.trace.prediction is not None]
    knowing = [one for one in told if one.scene.graph != NO_GRAPH]
    for one in (*knowing, *told):
        target = choose_target(one.scene, one.trace, "compare")
        if target is not None:
            text = N_("Prediction, score and distance are of {target}.")
            st.caption(markdown(t(text, target=name_of(target, one.trace, one.info))))
            return target
    return None
