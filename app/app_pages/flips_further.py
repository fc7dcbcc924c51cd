"""Pairs of triples, Shapley values, attention beside effect: on the page What flips it?"""

from collections.abc import Iterator
from typing import Any

import streamlit as st

from app.app_pages.kept_runs import begin, kept, offer_again
from app.app_pages.long_run import follow
from app.background import Look, Progress
from app.texts import t
from app.view_models import effects as view
from app.view_models.html import markdown
from kbert_core.explain.attention import AttentionEffect
from kbert_core.explain.case import Case
from kbert_core.explain.effects import (
    EXACT_UP_TO,
    Interactions,
    Shapley,
    stream_interactions,
    stream_shapley,
)
from kbert_core.explain.targets import NO_SPAN

ORDERS = (16, 32, 64, 128, 256)
MOST_EXACT = 8  # triples whose sets are all run here: 256 readings
PAIRS, SHAPLEY, ATTENTION = "pairs", "shapley", "attention"


def further(case: Case, key: tuple[Any, ...], attention: AttentionEffect | None) -> None:
    """Choose what to look into, and draw it."""
    offered = [ATTENTION, PAIRS, SHAPLEY] if attention else [PAIRS, SHAPLEY]
    chosen = st.segmented_control(
        t("effects.more"),
        offered,
        key="flips.more" if attention else "flips.more_linked",
        default=offered[0],
        required=True,
        label_visibility="collapsed",
        format_func=lambda name: t(f"effects.more.{name}"),
    )
    if chosen == PAIRS:
        pairs_panel(case, key)
    elif chosen == SHAPLEY:
        shapley_panel(case, key)
    elif attention is not None:
        attention_panel(case, attention)


def attention_panel(case: Case, found: AttentionEffect) -> None:
    """Attention beside effect, and where the two disagree."""
    st.caption(t("effects.attention_what"))
    reading = case.trace
    as_paper = reading.ablation.visible == "tree" and not reading.interventions
    if case.target.start == NO_SPAN and as_paper:
        st.caption(t("effects.attention_class"))
    for said in view.say_attention(found):
        st.markdown(markdown(said))
    st.html(view.attention_html(found))


def pairs_panel(case: Case, key: tuple[Any, ...]) -> None:
    """What every two triples do together."""
    st.caption(t("effects.pairs_what"))
    count = len(case.pieces) * (len(case.pieces) - 1) // 2
    if not count:
        st.caption(t("effects.pairs_none"))
        return
    run = kept("flips.pairs", key[:2])
    if run is None:
        pressed = st.button(
            t("effects.pairs_start", count=f"{count:,}"),
            key="flips.pairs_start",
            icon=":material/play_arrow:",
        )
        if not pressed:
            return

        def steps() -> Iterator[Interactions | Progress]:
            for found in stream_interactions(case):
                yield Progress(len(found.each), found.total)
                yield found

        run = begin("flips.pairs", key[:2], steps, growing=True)
    if run is not None:
        follow(run, draw_pairs, key="flips.pairs")
        offer_again("flips.pairs", run)


def draw_pairs(look: Look[Interactions]) -> None:
    """The largest of those measured."""
    if look.results and look.results[-1].each:
        found = look.results[-1]
        st.html(view.pairs_html(found))
        more = len(found.each) - view.MOST_PAIRS
        if more > 0:
            st.caption(t("effects.pairs_rest", count=f"{more:,}"))


def shapley_panel(case: Case, key: tuple[Any, ...]) -> None:
    """The whole effect shared out."""
    st.caption(t("effects.shapley_what"))
    by_mention = bool(key[2])
    count = len(case.pieces_by_mention if by_mention else case.pieces)
    exact, orders = count <= EXACT_UP_TO, ORDERS[2]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if EXACT_UP_TO < count <= MOST_EXACT:
            exact = st.checkbox(
                t("effects.exact", sets=f"{2**count:,}"),
                key="flips.exact",
                help=t("effects.exact_help", most=MOST_EXACT),
            )
        if not exact:
            orders = st.select_slider(
                t("effects.orders"), ORDERS, value=ORDERS[2], key="flips.orders", width=260
            )
        asked = (*key, exact, orders)
        run = kept("flips.shapley", asked)
        if run is None and st.button(
            t("effects.shapley_start"), key="flips.shapley_start", icon=":material/play_arrow:"
        ):

            def steps() -> Iterator[Shapley | Progress]:
                for found in stream_shapley(
                    case, by_mention=by_mention, orders=int(orders), exact=exact
                ):
                    done = (found.runs, 2**count) if exact else (found.orders, found.total)
                    yield Progress(*done)
                    yield found

            run = begin("flips.shapley", asked, steps, growing=True)
    if run is not None:
        follow(run, draw_shapley, key="flips.shapley")
        offer_again("flips.shapley", run)


def draw_shapley(look: Look[Shapley]) -> None:
    """The values so far."""
    if look.results:
        found = look.results[-1]
        st.caption(markdown(view.say_shapley(found)))
        if found.each:
            st.html(view.shapley_html(found))
