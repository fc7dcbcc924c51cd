"""What flips it: a search for the smallest changes of the graph that flip the prediction."""

import zlib
from collections.abc import Callable, Iterator

import streamlit as st

from app import explained, services, state
from app.app_pages.long_run import asked_for, follow, with_progress
from app.app_pages.parts import segments, select
from app.background import Look, Progress
from app.state import KEEP
from kbert_core import KnowledgeGraph
from kbert_core.explain.case import Case, Target
from kbert_lab.explain.counterfactuals import (
    KINDS,
    Counterfactuals,
    Search,
    stream_counterfactuals,
)
from kbert_lab.lab.models import ModelInfo
from kbert_lab.lab.scene import Scene
from kbert_lab.lab.texts import N_, t
from kbert_lab.lab.views import flips_search as view
from kbert_lab.lab.views.html import markdown
from kbert_lab.lab.views.targets import answer_name, candidates_of, kinds

SEARCH_KIND = {"remove": N_("remove"), "replace": N_("replace"), "add": N_("add")}

ss = st.session_state
BUDGETS = (50, 100, 200, 500, 1000)
BUDGET = 200
AT_ONCE = 6  # readings a turn
ANY = ""
RUN = "explain.search_run"


def search_part(now: Scene, graph: KnowledgeGraph, target: Target) -> None:
    """Choose what to look for, search in the background, and apply what is found."""
    info = services.model_info(now.model)
    case = explained.case_of(now, graph, target)
    search = choose(case, info)
    key = (explained.key_of(now, graph), target, search)
    searched_for, before = ss.get(RUN, (None, None))
    pressed = st.button(
        t("Search" if before is None else "Search again"),
        key="explain.search",
        icon=":material/search:",
        type="primary" if searched_for != key else "secondary",
        disabled=not search.kinds,
    )
    if not search.kinds:
        st.info(t("Choose at least one kind of change."))

    def steps() -> Iterator[Counterfactuals | Progress]:
        found = stream_counterfactuals(case, search, at_once=AT_ONCE)
        return with_progress(found, lambda one: (one.runs, search.budget))

    changed = t("The scene, the prediction or the goal has changed: search again.")
    run = asked_for(RUN, key, steps, pressed=pressed, changed=changed)

    def draw(look: Look[Counterfactuals]) -> None:
        if look.results:
            labels = case.pipeline.labels
            show(look.results[-1], info, lambda score: target.probability(score, labels))

    if run is not None:
        follow(run, draw, key="explain.search")


def choose(case: Case, info: ModelInfo) -> Search:
    """Kinds of changes, what it shall become, the budget."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        chosen = st.pills(
            t("Kinds of change"),
            KINDS,
            selection_mode="multi",
            default=KINDS,
            key="explain.kinds",
            format_func=lambda kind: t(SEARCH_KIND[kind]),
        )
        to = choose_to(case, info)
        budget = st.select_slider(
            t("Budget (model runs)"), BUDGETS, value=BUDGET, key="explain.budget", width=240
        )
        most = segments(
            t("Most changes per set"), [1, 2, 3], "explain.most_edits", hidden=False, default=2
        )
    larger = st.checkbox(
        t("Look for larger sets even after smaller ones are found"),
        key="explain.larger_too",
        **KEEP,
    )
    return Search(
        tuple(kind for kind in KINDS if kind in (chosen or ())),
        to or None,
        int(most or 2),
        bool(larger),
        int(budget),
    )


def choose_to(case: Case, info: ModelInfo) -> str:
    """The label or token wished for; empty for any."""
    if info.card.task == "mask":
        return st.text_input(
            t("It should become the token"),
            key="explain.to_token",
            placeholder=t("empty: anything else"),
            width=220,
        ).strip()
    offered = [ANY, *wishes(case, info.card.task)]
    name = lambda label: answer_name(label, info, "") if label else t("anything else")  # noqa: E731
    return select(t("It should become"), offered, "explain.to", name)


def wishes(case: Case, task: str | None) -> list[str]:
    """What a prediction might become; no entity is the last."""
    target, labels = case.target, case.pipeline.labels.values()
    if task == "link":
        offered = candidates_of(target, case.trace)
    elif task == "qa":
        offered = [answer.text for answer in case.trace.prediction.answers]
    elif task == "multilabel":
        offered = []  # each label is there or not
    else:
        offered = kinds(labels) if task == "ner" else list(labels)
    return [label for label in dict.fromkeys(offered) if label != target.label]


def show(found: Counterfactuals, info: ModelInfo, chance: Callable[[float], float]) -> None:
    """What was found so far, each to be applied."""
    st.markdown(markdown(view.say_now(found, info)))
    help = t(
        "Make these edits in the workspace, for everybody, and open the Lab."
        if state.workspace() is not None
        else "Make these edits, and open the Lab. They can be undone there together."
    )
    for one in (found.found or found.nearest) if found.found or found.ended else ():
        number = zlib.crc32("|".join(map(str, one.edits)).encode())
        key = f"explain_line_{number}"
        with st.container(horizontal=True, vertical_alignment="center", key=key):
            st.html(view.line_html(one, found, info, chance), width="stretch")
            icon = ":material/edit:"
            name = f"explain.apply.{number}"
            if st.button(t("Apply in the Lab"), key=name, icon=icon, help=help):
                state.commit(*one.edits)
                st.switch_page("app_pages/lab.py")
    said = view.say_end(found)
    if said:
        st.caption(markdown(said))
