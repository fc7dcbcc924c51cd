"""What flips it: a search for the smallest changes of the graph that flip a prediction."""

import zlib
from collections.abc import Iterator
from typing import Any

import streamlit as st

from app import explained, services, state
from app.app_pages.long_run import follow
from app.background import Look, Progress, Run
from app.models import ModelInfo
from app.scene import Scene
from app.state import KEEP
from app.texts import t
from app.view_models import flips_search as view
from app.view_models.html import markdown
from app.view_models.targets import answer_name, candidates_of
from kbert_core import KBertError, KnowledgeGraph
from kbert_core.explain.case import Target
from kbert_core.explain.counterfactuals import (
    KINDS,
    Counterfactuals,
    Search,
    stream_counterfactuals,
)
from kbert_core.labels import OUTSIDE

ss = st.session_state
BUDGETS = (50, 100, 200, 500, 1000)
BUDGET = 200
AT_ONCE = 6  # readings a turn
ANY = ""


def search_panel(now: Scene, graph: KnowledgeGraph, target: Target) -> None:
    """Choose what to look for, search in the background, and apply what is found.

    Args:
        now: the Lab's scene, with a prediction.
        graph: its graph with the edits made.
        target: which prediction is to flip.
    """
    info = services.model_info(now.model)
    st.markdown(f"#### {t('search.title')}")
    st.caption(t("search.what"))
    search = choose(now, target, info)
    key = (explained.key_of(now, graph), target, search)
    searched_for, run = ss.get("flips.search", (None, None))
    st.button(
        t("search.start" if run is None else "search.again"),
        key="flips.start",
        icon=":material/search:",
        type="primary" if searched_for != key else "secondary",
        disabled=not search.kinds,
        on_click=start,
        args=(key, now, graph, target, search),
    )
    problem = ss.pop("flips.problem", None)
    if problem:
        st.error(markdown(problem))
    if not search.kinds:
        st.info(t("search.no_kind"))
    if run is None:
        return
    if searched_for != key:
        run.stop()
        st.info(t("search.stale"), icon=":material/update:")
        return

    def draw(look: Look[Counterfactuals]) -> None:
        if look.results:
            show(look.results[-1], info)

    follow(run, draw, key="flips")


def choose(now: Scene, target: Target, info: ModelInfo) -> Search:
    """Kinds of changes, what it shall become, the budget."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        kinds = st.pills(
            t("search.kinds"),
            KINDS,
            selection_mode="multi",
            default=KINDS,
            key="flips.kinds",
            format_func=lambda kind: t("search.kind_" + kind),
        )
        to = choose_to(now, target, info)
        budget = st.select_slider(
            t("search.budget"), BUDGETS, value=BUDGET, key="flips.budget", width=240
        )
        most = st.segmented_control(
            t("search.most_edits"),
            [1, 2, 3],
            default=2,
            key="flips.most_edits",
            required=True,
        )
    larger = st.checkbox(t("search.larger_too"), key="flips.larger_too", **KEEP)
    return Search(
        tuple(kind for kind in KINDS if kind in (kinds or ())),
        to or None,
        int(most or 2),
        bool(larger),
        int(budget),
    )


def choose_to(now: Scene, target: Target, info: ModelInfo) -> str:
    """The label or token wished for; empty for any."""
    reader = services.pipeline(now.model, now.device)
    if info.card.task == "mask":
        return st.text_input(
            t("search.to_token"),
            key="flips.to_token",
            placeholder=t("search.to_token_empty"),
            width=220,
        ).strip()
    if info.card.task == "link":
        trace = services.trace(now, state.graph_of(now))
        offered = [name for name in candidates_of(target, trace) if name != target.label]
        return choose_label(offered, target, info)
    if info.card.task == "qa":
        answers = services.trace(now, state.graph_of(now)).prediction.answers
        offered = list(dict.fromkeys(own.text for own in answers if own.text != target.label))
        return choose_label(offered, target, info)
    labels = list(dict.fromkeys(label.split("-", 1)[-1] for label in reader.labels.values()))
    if info.card.task != "ner":
        labels = list(reader.labels.values())
    offered = [label for label in labels if label != target.label]
    if info.card.task == "ner" and target.label == OUTSIDE:
        offered = [label for label in offered if label != OUTSIDE]
    return choose_label(offered, target, info)


def choose_label(offered: list[str], target: Target, info: ModelInfo) -> str:
    """One of the labels, or any."""
    chosen = st.selectbox(
        t("search.to"),
        [ANY, *offered],
        key=f"flips.to.{target.label}",
        format_func=lambda label: answer_name(label, info, "") if label else t("search.to_any"),
        width=220,
    )
    return chosen or ANY


def start(
    key: tuple[Any, ...], now: Scene, graph: KnowledgeGraph, target: Target, search: Search
) -> None:
    """Callback: search in the background."""
    _, before = ss.get("flips.search", (None, None))
    if before is not None:
        before.stop()

    def steps() -> Iterator[Counterfactuals | Progress]:
        for found in stream_counterfactuals(case, search, at_once=AT_ONCE):
            yield Progress(found.runs, search.budget)
            yield found

    try:
        case = explained.case_of(now, graph, target)
        ss["flips.search"] = (key, Run.start(steps, visitor=state.visitor(), growing=True))
    except KBertError as error:
        ss["flips.problem"] = str(error)


def show(found: Counterfactuals, info: ModelInfo) -> None:
    """What was found so far, each to be applied."""
    st.markdown(markdown(view.say_now(found, info)))
    shared = state.workspace() is not None
    for line in view.lines(found, info) if found.found or found.ended else ():
        number = zlib.crc32(line.key.encode())
        with st.container(horizontal=True, vertical_alignment="center", key=f"flips_line_{number}"):
            st.html(line.html, width="stretch")
            if st.button(
                t("search.apply"),
                key=f"flips.apply.{number}",
                icon=":material/edit:",
                help=t("search.apply_shared" if shared else "search.apply_help"),
            ):
                state.commit(*line.edits, together=True)
                st.switch_page("app_pages/lab.py")
    said = view.say_end(found)
    if said:
        st.caption(markdown(said))
