"""The parts of Explain: effects, a search for what flips the prediction, paths."""

import zlib
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import streamlit as st

from app import explained, services, state
from app.app_pages.long_run import begin, follow, kept, with_progress
from app.app_pages.parts import chart, no_triple, segments, select, window_name
from app.background import Look, Progress
from kbert_core import KBertError, KBertTrace, KnowledgeGraph
from kbert_core.explain.attributions import Attributions, attributions
from kbert_core.explain.case import Case, Target
from kbert_core.explain.effects import Effects, stream_effects
from kbert_core.explain.result import name_of
from kbert_core.knowledge.edit import Edit
from kbert_lab.explain.attention import AttentionEffect, attention_effect
from kbert_lab.explain.counterfactuals import (
    KINDS,
    Counterfactuals,
    Search,
    stream_counterfactuals,
)
from kbert_lab.explain.influence import Influence, stream_influence
from kbert_lab.lab.models import ModelInfo
from kbert_lab.lab.scene import Scene
from kbert_lab.lab.texts import N_, t
from kbert_lab.lab.views import explaining as view
from kbert_lab.lab.views.html import markdown
from kbert_lab.lab.views.targets import answer_name, wishes

ss = st.session_state
AT_ONCE = 40  # triples that are measured without being asked for
READINGS = 6  # of a search, in a step
BUDGETS = (50, 100, 200, 500, 1000)
TALL = 760  # pixels of a drawing that doesn't scroll
SEARCH_KIND = {"remove": N_("remove"), "replace": N_("replace"), "add": N_("add")}
EFFECTS, SEARCH, PATHS = "explain.effects", "explain.search_run", "explain.paths"  # runs
Found = Effects | AttentionEffect | Attributions | KBertError


def open_lab(*edits: Edit) -> None:
    """Make edits, and go to the Lab, where they can be undone together."""
    if state.commit(*edits):
        st.switch_page("app_pages/lab.py")


# Effects


def effects_part(now: Scene, graph: KnowledgeGraph, target: Target) -> None:
    """Measure in the background, show what is known as it comes."""
    case = explained.case_of(now, graph, target)
    if not case.facts:
        no_triple(graph)
    key, count = (explained.key_of(now, graph), target), len(case.facts)
    run = kept(EFFECTS, key)
    label = t("Measure {count} triples", count=f"{count:,}")
    if run is None and (count <= AT_ONCE or st.button(label, key="explain.measure")):
        run = begin(EFFECTS, key, partial(measure, case), growing=True, enough=measured)
    if run is not None:
        info = services.model_info(now.model)
        follow(run, partial(show_effects, case, info), key=EFFECTS, again=True)


def measured(look: Look[Found]) -> bool:
    """Whether all effects are; attention and shares may come later."""
    return any(isinstance(f, Effects) and len(f.each) == f.total for f in look.results)


def measure(case: Case) -> Iterator[Found | Progress]:
    """Effects batch by batch, then the attention beside them and the tokens' shares."""
    found = None
    for found in stream_effects(case):
        yield Progress(len(found.each), found.total)
        yield found
    if isinstance(case.trace, KBertTrace) and case.facts:
        yield attention_effect(case, measured=found)
    try:
        yield attributions(case, probability=True)
    except KBertError as error:
        yield error


def show_effects(case: Case, info: ModelInfo, look: Look[Found]) -> None:
    """What is known: in a few sentences, triple by triple, token by token."""
    known: dict[type, Any] = {type(own): own for own in look.results}
    if Effects not in known:
        return
    chance = partial(case.target.probability, labels=case.pipeline.labels)
    attention, shares = known.get(AttentionEffect), known.get(Attributions)
    shown = view.View(known[Effects], info, chance, attention, shares)
    if shown.found.total:
        st.markdown(markdown(shown.say()))
        triples(shown)
    if shares is not None:
        st.markdown(f"**{t('What every token adds')}**")
        chart(view.tokens_chart(shares), "explain.tokens")
        st.caption(markdown(shown.say_shares()))
    for own in look.results:
        if isinstance(own, KBertError):  # why tokens have no shares
            st.caption(markdown(own))
    if attention is not None:
        with st.expander(t("Attention beside effect")):
            st.caption(t("How much attention a triple gets says little of what it does."))
            for said in shown.say_attention():
                st.markdown(markdown(said))


def triples(shown: view.View) -> None:
    """The triples as a table; the one chosen in it can be switched off."""
    formats = {
        **dict.fromkeys(("adds", "its tokens add", "adds, if deleted"), "%+.1f"),
        "attention": "%.2f %%",
    }
    config = {
        t(name): st.column_config.NumberColumn(help=t(help), format=formats[name])
        if name in formats
        else st.column_config.TextColumn(help=t(help))
        for name, help in view.COLUMNS.items()
    }
    event = st.dataframe(
        shown.table(),
        key="explain.triples",
        on_select="rerun",
        selection_mode="single-row",
        hide_index=True,
        column_config=config,
    )
    chosen = [shown.ranked[at].fact.triple for at in event.selection.rows]
    if not chosen:
        st.caption(t("Choose a row to switch its triple off."))
    for triple in chosen:
        label = t("Switch off {triple}", triple=markdown(name_of(triple)))
        help = t("Switches it off in the graph, of a workspace for everybody, and opens the Lab.")
        if st.button(label, key="explain.off", icon=":material/toggle_off:", help=help):
            open_lab(Edit("switch_off", triple))


# What flips it


def search_part(now: Scene, graph: KnowledgeGraph, target: Target) -> None:
    """Choose what to look for, search in the background, and apply what is found."""
    info = services.model_info(now.model)
    case = explained.case_of(now, graph, target)
    search = choose(case, info)
    if not search.kinds:
        st.info(t("Choose at least one kind of change."))
    pressed = st.button(
        t("Search"),
        key="explain.search",
        icon=":material/search:",
        type="primary",
        disabled=not search.kinds,
    )

    def steps() -> Iterable[Counterfactuals | Progress]:
        found = stream_counterfactuals(case, search, at_once=READINGS)
        return with_progress(found, lambda one: (one.runs, search.budget))

    key = (explained.key_of(now, graph), target, search)
    run = begin(SEARCH, key, steps, growing=True) if pressed else kept(SEARCH, key)
    if run is not None:
        follow(run, partial(show_found, case, info), key="explain.search")
    elif SEARCH in ss:
        said = t("The scene, the prediction or the goal has changed: search again.")
        st.info(said, icon=":material/update:")


def choose(case: Case, info: ModelInfo) -> Search:
    """Kinds of changes, what it shall become, the budget."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        named = lambda kind: t(SEARCH_KIND[kind])  # noqa: E731
        how: dict[str, Any] = {"selection_mode": "multi", "default": KINDS, "format_func": named}
        chosen: Any = st.pills(t("Kinds of change"), KINDS, key="explain.kinds", **how)
        if info.card.task == "mask":
            label, any_other = t("It should become the token"), t("empty: anything else")
            to = st.text_input(label, key="explain.to_token", placeholder=any_other, width=220)
        else:
            offered = ["", *wishes(case.trace, case.target, case.pipeline.labels.values())]
            name = lambda own: answer_name(own, info, "") if own else t("anything else")  # noqa: E731
            to = select(t("It should become"), offered, "explain.to", name)
        label = t("Budget (model runs)")
        budget = st.select_slider(label, BUDGETS, 200, key="explain.budget", width=240)
        label = t("Most changes per set")
        most = segments(label, [1, 2, 3], "explain.most_edits", hidden=False, default=2)
    kinds = tuple(kind for kind in KINDS if kind in chosen)
    return Search(kinds, to.strip() or None, most, budget=int(budget))


def show_found(case: Case, info: ModelInfo, look: Look[Counterfactuals]) -> None:
    """What was found so far, each to be applied."""
    if not look.results:
        return
    found, chance = look.results[-1], partial(case.target.probability, labels=case.pipeline.labels)
    st.markdown(markdown(view.say_found(found)))
    for one in found.found or (found.nearest if found.ended else ()):
        key = f"explain.apply.{zlib.crc32('|'.join(map(str, one.edits)).encode())}"
        with st.container(horizontal=True, vertical_alignment="center"):
            edits, outcome = view.say_edits(one), view.say_outcome(one, found, info, chance)
            st.markdown(f"{markdown(edits)}  \n**{markdown(outcome)}**", width="stretch")
            help = t("Makes these edits, in a workspace for everybody, and opens the Lab.")
            if st.button(t("Apply in the Lab"), key=key, icon=":material/edit:", help=help):
                open_lab(*one.edits)
    st.caption(markdown(view.say_end(found)))


# Paths


def paths_part(now: Scene, graph: KnowledgeGraph, trace: KBertTrace) -> None:
    """Choose a window, follow every triple of it in the background, draw one of them."""
    first = next((n for n, row in enumerate(trace.rows) if row.branches), None)
    if first is None:
        no_triple(graph)
        return
    if not now.has_model:
        st.info(t("Nothing can be measured without a model. Choose one in the Lab."))
        return
    count = len(trace.rows)
    window, name = 0, partial(window_name, count)
    if count > 1:
        window = select(t("Window"), range(count), f"explain.window.{count}", name, first)
    key = (explained.key_of(now, graph), window)
    run = kept(PATHS, key)
    if run is None:
        found = stream_influence(explained.case_of(now, graph), window=window)
        steps = partial(with_progress, found, lambda one: (len(one.facts), one.total))
        run = begin(PATHS, key, steps, growing=True)
    if run is not None:
        follow(run, draw_path, key=PATHS, again=True)


def draw_path(look: Look[Influence]) -> None:
    """What one triple changes, once all were followed or the run was stopped."""
    found = look.results[-1] if look.results else None
    if not look.ended or found is None or not found.facts:
        return
    facts = found.facts
    name = lambda number: str(facts[number].triple)  # noqa: E731
    fact = select(t("Triple"), range(len(facts)), f"explain.path_triple.{len(facts)}", name)
    st.markdown(markdown(view.say_reach(found, fact)))
    figure = view.change_chart(found, fact, dark=st.context.theme.type == "dark")
    height = int(figure.layout.height)
    with st.container(height=TALL if height > TALL else "content", border=False):
        chart(figure, "explain.path_map")
    said = N_(
        "Blue: change of the state, in per cent. Empty: nothing can have come here yet. Orange: "
        "the triple's own tokens, gone without it."
    )
    st.caption(t(said))
