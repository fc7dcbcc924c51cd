"""What every triple does to the prediction, one row each; and what to look into further."""

import zlib
from collections.abc import Iterator
from typing import Any

import streamlit as st

from app import explained, services, state
from app.app_pages.flips_further import further
from app.app_pages.kept_runs import begin, kept, offer_again
from app.app_pages.long_run import follow
from app.background import Look, Progress, Run
from app.scene import Scene
from app.texts import sentences, t
from app.view_models import effects as view
from app.view_models.html import markdown
from kbert_core import KBertTrace, KnowledgeGraph
from kbert_core.explain.attention import AttentionEffect, attention_effect
from kbert_core.explain.case import Case, Target
from kbert_core.explain.effects import Effects, stream_effects
from kbert_core.knowledge.edit import Edit

ss = st.session_state
AT_ONCE = 40  # triples that are measured without being asked for
BUTTON = 118  # pixels beside every row
Found = Effects | AttentionEffect


def effects_panel(now: Scene, graph: KnowledgeGraph, target: Target) -> None:
    """Measure in the background, show rows as they come.

    Args:
        now: the Lab's scene, with a prediction.
        graph: its graph with the edits made.
        target: what of the prediction is explained.
    """
    info = services.model_info(now.model)
    case = explained.case_of(now, graph, target)
    st.markdown(f"#### {t('effects.title')}")
    if not case.pieces:
        st.info(markdown(t("scene.no_triple", graph=graph.name)), icon=":material/info:")
        return
    score = view.say_score(target, case.sentences, info)
    st.caption(markdown(sentences([t("effects.what"), score])))
    by_mention = False
    if len(case.pieces) != len(case.pieces_by_mention):
        by_mention = st.checkbox(
            t("effects.by_mention"), key="flips.by_mention", help=t("effects.by_mention_help")
        )
    key = (explained.key_of(now, graph), target, by_mention)
    run = measured(key, case, by_mention)
    if run is None:
        return

    def draw(look: Look[Found]) -> None:
        effects = [one for one in look.results if isinstance(one, Effects)]
        if effects:
            with_attention = [one for one in look.results if isinstance(one, AttentionEffect)]
            show(now, effects[-1], with_attention[-1] if with_attention else None)

    follow(run, draw, key="flips.effects")
    offer_again("flips.effects", run)
    look = run.look()
    attention = [one for one in look.results if isinstance(one, AttentionEffect)]
    if attention:
        further(case, key, attention[-1])
    elif look.ended and not isinstance(case.trace, KBertTrace):
        further(case, key, None)


def measured(key: tuple[Any, ...], case: Case, by_mention: bool) -> Run[Found] | None:
    """The run that measures this; begun where it doesn't take long, else when asked for."""
    run = kept("flips.effects", key)
    if run is not None:
        return run
    count = len(case.pieces_by_mention if by_mention else case.pieces)
    if count > AT_ONCE and not st.button(
        t("effects.start", count=f"{count:,}"),
        key="flips.measure",
        type="primary",
        icon=":material/play_arrow:",
    ):
        return None
    return begin("flips.effects", key, lambda: steps(case, by_mention), growing=True)


def steps(case: Case, by_mention: bool) -> Iterator[Found | Progress]:
    """Effects batch by batch, then the attention beside them."""
    found = None
    for found in stream_effects(case, by_mention=by_mention):
        yield Progress(len(found.each), found.total)
        yield found
    if isinstance(case.trace, KBertTrace):
        yield attention_effect(case, by_mention=by_mention, measured=found)


def show(now: Scene, found: Effects, attention: AttentionEffect | None) -> None:
    """What is known: in a few sentences, then triple by triple."""
    info = services.model_info(now.model)
    said = [view.say_now(found, info), view.say_most(found, info), view.say_rest(found)]
    st.markdown(markdown(sentences(part for part in said if part)))
    deleted = any(effect.deleted is not None for effect in found.each)
    with st.container(horizontal=True, gap="small", key="flips_effects_head"):
        st.html(view.heads_html(deleted=deleted, attention=attention is not None), width="stretch")
        st.html("<span></span>", width=BUTTON)
    attended = view.attended_of(attention)
    ranked = found.ranked
    every = len(ranked) <= view.SHOWN or ss.get("flips.all")
    shared = state.workspace() is not None
    for effect in ranked if every else ranked[: view.SHOWN]:
        number = zlib.crc32(repr(effect.piece).encode())
        with st.container(
            horizontal=True, vertical_alignment="center", gap="small", key=f"flips_row_{number}"
        ):
            row = view.row_html(found, effect, info, attended.get(effect.piece))
            st.html(row, width="stretch")
            help_ = t("effects.off_shared" if shared else "effects.off_help")
            if st.button(
                t("effects.off"),
                key=f"flips.off.{number}",
                icon=":material/toggle_off:",
                type="tertiary",
                help=help_,
                width=BUTTON,
            ) and state.commit(Edit("switch_off", effect.piece.triple)):
                st.switch_page("app_pages/lab.py")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if len(ranked) > view.SHOWN:
            st.checkbox(t("effects.all", count=f"{len(ranked):,}"), key="flips.all")
        st.download_button(
            t("effects.csv"),
            lambda: view.effects_csv(found),
            file_name="effects.csv",
            mime="text/csv",
            key="flips.csv",
            icon=":material/download:",
            on_click="ignore",
        )
