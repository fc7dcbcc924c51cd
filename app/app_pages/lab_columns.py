"""Two to four readings side by side: prediction, where knowledge enters, a map; and the choice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import streamlit as st

from app import drawn, explained, services, state
from app.app_pages.lab_matrix import (
    Shown,
    canvas,
    cell_said,
    choose_map,
    hide_specials,
    with_maps,
)
from app.app_pages.lab_tree import clear_button
from app.app_pages.parts import bind, chart, segments, told_apart
from app.components import draw_tree
from app.drawn import linked
from kbert_core import SYSTEMS, KBertError
from kbert_core.explain.case import NOTHING
from kbert_core.roof.roof_bert import RoofTrace
from kbert_core.systems import K_BERT, reader_class
from kbert_core.tasks import NerPrediction
from kbert_lab.lab import comparing
from kbert_lab.lab.commands import ChangePanel, ChoosePanels
from kbert_lab.lab.comparing import FREE, Panel
from kbert_lab.lab.scene import MOST_PANELS, NO_MODEL, Choice, ablatable
from kbert_lab.lab.selection import marks_of
from kbert_lab.lab.texts import N_, listed, refusal, t
from kbert_lab.lab.views import model_facts, prediction, sides, tree
from kbert_lab.lab.views.html import escape, markdown
from kbert_lab.lab.views.prediction import Side, before_and_now
from kbert_lab.lab.views.why import visible_in
from kbert_lab.lab.words import OPTIONS_TEXTS, SIDES_SYSTEM

GRAPHS = {"edited": N_("the Lab's"), "loaded": N_("as loaded"), "none": N_("none")}
FOUR_IN_A_LINE = 36  # tokens up to which four readings stand in one line
PAGE = 1320  # pixels of a wide page that columns share


@dataclass(frozen=True, kw_only=True)
class Column(Shown):
    """A reading that was run, beside others."""

    title: str  # what it is called, at its head
    about: str  # what it reads, and how
    before: Any  # its trace before the last edit; None: there was none

    @property
    def side(self) -> Side:
        """What it predicts."""
        info = services.model_info(self.scene.model) if self.scene.has_model else None
        return Side(self.title, self.about, self.trace.prediction, info)


def columns_of(panels: Sequence[Panel], *, edited: bool) -> list[Column]:
    """Run what was chosen to stand side by side; empty: it can't be run.

    Args:
        edited: whether its last edit is about this text.
    """
    own = state.session()
    if own.compare == FREE:
        free_panels()
    several = len({panel.scene.model for panel in panels}) > 1
    columns = []
    for panel, title in zip(panels, sides.names_of(panels), strict=True):
        scene = panel.scene
        try:
            graph = state.session().graph_of(scene)
            trace = services.trace(scene, graph)
            earlier = comparing.before_last(own, scene) if edited else None
            before = services.trace(earlier, state.session().graph_of(earlier)) if earlier else None
        except KBertError as error:
            said = t("This panel failed: {reason}", reason=refusal(error))
            st.error(markdown(f"{title}: {said}"))
            continue
        named = replace(scene, system="") if panel.name == scene.system else scene
        about = sides.about(
            named, explained.model_name(scene) if several else "", len(set(trace.used))
        )
        columns.append(Column(scene, graph, trace, title=title, about=about, before=before))
    if len(columns) < comparing.FEWEST:
        st.info(t("Fewer than two panels can be run, so there is nothing to compare."))
        return []
    return columns


def compared(columns: Sequence[Column]) -> str:
    """Say how the predictions compare; plain text, empty where they are of several kinds."""
    told = [one.side for one in columns if one.trace.prediction is not None]
    kinds = {type(one.prediction) for one in told}
    alike = len(told) >= comparing.FEWEST and len(kinds) == 1
    return prediction.compared(columns[0].scene.sentences, told) if alike else ""


@linked("lab.columns")
def draw_columns(columns: Sequence[Column]) -> None:
    """Draw them on one scale, with one selection; choosing here draws this part only."""
    told = [one.side for one in columns if one.trace.prediction is not None]
    if told and not prediction.has_places(told[-1].prediction):
        st.html(prediction.drawn(columns[0].scene.sentences, told))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        count = max(len(one.trace.rows) for one in columns)
        chosen = drawn.choose_window(count)
        columns = [replace(one, window=min(chosen, len(one.trace.rows) - 1)) for one in columns]
        columns = mapped(columns)
    several = len(columns)
    if several == 4 and max(len(one.trace.rows[one.window]) for one in columns) > FOUR_IN_A_LINE:
        several = 2
    weights = [one.weights for one in columns if one.weights is not None]
    high = max((float(own.max(initial=0.0)) for own in weights), default=None)
    parts = (head, partial(flow, PAGE // several), partial(drawing, high))
    for start in range(0, len(columns), several):
        line = range(start, min(start + several, len(columns)))
        with st.container(gap="xsmall", key=f"lab_columns_{start}"):
            for place, number in zip(st.columns(several, gap="medium"), line, strict=False):
                for part in parts:  # each stands in one line with those beside it, see look.css
                    with place, st.container(gap="xsmall"):
                        part(columns[number], number)
    notes(columns)


def mapped(columns: Sequence[Column]) -> Sequence[Column]:
    """Choose what the matrices show: one view, one scale."""
    trees = [one for one in columns if sides.has_trees(one.trace)]
    if not trees:
        return columns
    able = all(one.scene.has_model for one in trees)
    if able and choose_map(t("Panel"), "columns_view") == "attention":
        try:
            made = iter(with_maps(trees))
            columns = [next(made) if sides.has_trees(one.trace) else one for one in columns]
        except KBertError as error:
            st.error(markdown(error))
    hide_specials()
    clear_button("lab.clear_columns")
    return columns


def head(one: Column, number: int) -> None:
    """What a column is, and the entities that it finds, on the text; before the last edit too."""
    title = f"<b>{escape(one.title)}</b> <span>{escape(one.about)}</span>"
    st.html(f'<div class="kb-column">{title}</div>')
    if isinstance(one.trace.prediction, NerPrediction):
        was = one.before.prediction if one.before else None
        made = before_and_now(one.side.info, one.trace.prediction, was)
        st.html(prediction.spans_html(one.scene.sentences[0], made, fold=True))


def flow(width: int, one: Column, number: int) -> None:
    """Where knowledge enters the text, drawn alike for all systems; what is gone is struck out."""
    st.caption(markdown(sides.enters(one.trace)))
    view = sides.flow_view(one.trace, one.window, one.before)
    visible, names = None, sides.identities(one.trace)
    if sides.system_of(one.trace) == K_BERT:
        visible, names = visible_in(one.trace, one.window), one.flat.identities
    off = {x for x in view.triples if x in one.graph and not one.graph.is_on(x)}
    marks = marks_of(names, state.selection(), visible)
    html = tree.tree_html(view, marks, off, line=width - 60, legend=False)
    html = f'<div class="kb-flow kb-flow-{sides.system_of(one.trace)}">{html}</div>'
    draw_tree(html, key=f"lab.tree.{number}", heard=drawn.hear)


def drawing(high: float | None, one: Column, number: int) -> None:
    """A column's matrix, and the chosen cell of it in words; without trees what knowledge gets."""
    if not sides.has_trees(one.trace):
        attends(one, number)
        return
    view, chosen = one.view(high), state.selection()
    st.caption(t(sides.TOKENS["visible" if one.weights is None else "attention"]))
    canvas(view, f"lab.matrix.{number}")
    if said := cell_said(view, one):
        st.caption(markdown(said))
    elif chosen.token is not None and {*(chosen.cell or [chosen.token])} - {*view.identities}:
        st.caption(t("not in this panel"))


def attends(one: Column, number: int) -> None:
    """How each token attends to the knowledge beside the text, where there is some."""
    reading, weights = one.trace.reading, services.entering(one.scene, one.graph)
    if isinstance(one.trace, RoofTrace):
        assert reading.kb is not None
        tokens = services.tokens_of(one.scene, reading.kb.ids)
    else:
        last = (own.span.mention for own in reading.rows[0].of_base(len(one.trace.kars) - 1))
        tokens = [reading.sentences[m.sentence][m.start : m.end] for m in last]
    if tokens:
        chart(sides.map_chart(reading, weights[:, : len(tokens)], tokens), f"lab.entering.{number}")


def notes(columns: Sequence[Column]) -> None:
    """Which systems have no model here; why two are equal."""
    chosen, info = state.session().compare, columns[0].side.info
    if chosen == "systems" and info is not None:
        here = {sides.system_of(one.trace) for one in columns}
        missing = [t(name) for system, name in sides.SYSTEM.items() if system not in here]
        if missing:
            said = t(
                "No model of {systems} for this task and language is here.", systems=listed(missing)
            )
            st.caption(markdown(said))
    if chosen == "models" and info is not None:
        other = columns[-1].side.info
        st.caption(markdown((other and model_facts.scores_of_twins(info, other)) or ""))
    able = [one for one in columns if sides.has_trees(one.trace) and one.scene.has_model]
    if len(able) >= comparing.FEWEST:
        made = explained.compared([c.scene for c in able], [c.graph for c in able], NOTHING)
        names = {str(number): one.title for number, one in enumerate(able)}
        st.markdown(markdown(sides.say_equal(made, names)))


# Free choice: a model, a graph and an ablation for every panel


def free_panels() -> None:
    """Choose two to four panels."""
    chosen = comparing.choices(state.session(), state.offer())
    counts = range(comparing.FEWEST, MOST_PANELS + 1)
    widget = partial(segments, t("Panels"), counts, hidden=False)
    change = lambda count: state.dispatch(ChoosePanels(count))  # noqa: E731
    bind(widget, "lab.free_count", len(chosen), change)
    for number, column in enumerate(st.columns(len(chosen), gap="medium")):
        with column:
            choose(number, chosen[number])


def choose(number: int, own: Choice) -> None:
    """Model, graph, system and ablation of one panel."""
    session = state.session()
    model = own.model or session.model
    st.markdown(f"**{t('Panel {number}', number=number + 1)}**")

    def change(name: str, value: str) -> None:
        state.dispatch(ChangePanel(number, {name: value}))

    def one_of(name: str, label: str, chosen: str, names: Mapping[str, str]) -> None:
        names = told_apart(names)
        box = partial(st.selectbox, label, list(names), format_func=names.get)
        bind(box, f"lab.free.{number}.{name}", chosen, partial(change, name))

    one_of("model", t("Model"), model, state.offer().names(session.task))
    edited = comparing.loaded(session) is not None
    graphs = {name: t(said) for name, said in GRAPHS.items() if edited or name != "loaded"}
    one_of("graph", t("Knowledge graph"), own.graph, graphs)
    read = ["", *(x for x in SYSTEMS if model not in NO_MODEL and not reader_class(x).inserts)]
    systems = {name: t(SIDES_SYSTEM[name or "own"]) for name in read}
    one_of("system", t("How knowledge is read"), own.system if own.system in read else "", systems)
    fixed = own.system not in ("", K_BERT) or not state.reads(model).has_matrix
    for part, names in ablatable(state.session().sentences).items():
        widget = partial(segments, t(OPTIONS_TEXTS[part]), names, names=OPTIONS_TEXTS, hidden=False)
        shown, key = getattr(own.ablation, part), f"lab.free.{number}.{part}"
        bind(widget, key, shown, partial(change, part), disabled=fixed)
