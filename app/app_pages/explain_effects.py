"""Effects: what every triple and every token does to the prediction, measured in the background."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from app import explained, services, state
from app.app_pages.long_run import begin, follow, kept
from app.app_pages.parts import chart, no_triple
from app.background import Look, Progress
from kbert_core import KBertError, KBertTrace, KnowledgeGraph
from kbert_core.explain.attributions import Attributions, attributions
from kbert_core.explain.case import Case, Target
from kbert_core.explain.effects import Effects, stream_effects
from kbert_core.explain.result import name_of
from kbert_core.explain.targets import NO_SPAN
from kbert_core.knowledge.edit import Edit
from kbert_lab.explain.attention import AttentionEffect, attention_effect
from kbert_lab.lab.models import ModelInfo
from kbert_lab.lab.scene import Scene
from kbert_lab.lab.texts import N_, refusal, t
from kbert_lab.lab.views import effects as view
from kbert_lab.lab.views.html import markdown

EFFECTS_HELP = {  # by the heads of the columns
    N_("triple"): N_("Head · relation · tail."),
    N_("at"): N_("The mentions it hangs from."),
    N_("left out"): N_("The probability with the triple and without it, all else the same."),
    N_("adds"): N_(
        "Percentage points: the probability as it is minus the one without the triple. Exact."
    ),
    N_("its tokens add"): N_(
        "Percentage points: the sum of its tokens' shares, by integrated gradients."
    ),
    N_("becomes"): N_("The prediction without the triple, where it is another."),
    N_("adds, if deleted"): N_(
        "Percentage points, where the triple is deleted from the graph and the next one of its "
        "name moves up."
    ),
    N_("then"): N_("What deleting it brings in or takes away, and what is predicted then."),
    N_("attention"): N_(
        "Attention of the whole trunk on the triple's branch, mean of all layers and heads."
    ),
}

ss = st.session_state
AT_ONCE = 40  # triples that are measured without being asked for
RUN = "explain.effects"


@dataclass(frozen=True, slots=True)
class NoShares:
    """Why tokens have no shares."""

    reason: str


Found = Effects | AttentionEffect | Attributions | NoShares


def effects_part(now: Scene, graph: KnowledgeGraph, target: Target) -> None:
    """Measure in the background, show what is known as it comes."""
    info = services.model_info(now.model)
    case = explained.case_of(now, graph, target)
    if not case.pieces:
        no_triple(graph)
    st.caption(markdown(view.say_chance(target, case.sentences, info)))
    key, count = (explained.key_of(now, graph), target), len(case.pieces)
    run = kept(RUN, key)
    if run is None and (
        count <= AT_ONCE
        or st.button(
            t("Measure {count} triples", count=f"{count:,}"),
            key="explain.measure",
            type="primary",
            icon=":material/play_arrow:",
        )
    ):
        run = begin(RUN, key, lambda: steps(case), growing=True, enough=measured)
    if run is not None:
        follow(run, partial(show, case, info), key=RUN, again=True)


def measured(look: Look[Found]) -> bool:
    """Whether all effects are; attention and shares may come later."""
    return any(isinstance(f, Effects) and len(f.each) == f.total for f in look.results)


def steps(case: Case) -> Iterator[Found | Progress]:
    """Effects batch by batch, then the attention beside them and the tokens' shares."""
    found = None
    for found in stream_effects(case):
        yield Progress(len(found.each), found.total)
        yield found
    if isinstance(case.trace, KBertTrace) and case.pieces:
        yield attention_effect(case, measured=found)
    try:
        yield attributions(case, probability=True)
    except KBertError as error:
        yield NoShares(refusal(error))


def show(case: Case, info: ModelInfo, look: Look[Found]) -> None:
    """What is known: in a few sentences, triple by triple, token by token."""
    by_type = {type(one): one for one in look.results}
    found, labels = by_type.get(Effects), case.pipeline.labels
    if not isinstance(found, Effects):
        return
    shown = view.View(
        found,
        info,
        lambda score: case.target.probability(score, labels),
        by_type.get(AttentionEffect),  # type: ignore[arg-type]
        by_type.get(Attributions),  # type: ignore[arg-type]
    )
    if found.total:
        st.markdown(markdown(shown.say()))
        triples(shown)
    if shown.shares is not None:
        st.markdown(f"**{t('What every token adds')}**")
        chart(view.tokens_chart(shown.shares), "explain.tokens")
        st.caption(markdown(shown.say_shares()))
    elif NoShares in by_type:
        st.caption(markdown(by_type[NoShares].reason))  # type: ignore[union-attr]
    if shown.attention is not None:
        with st.expander(t("Attention beside effect")):
            attention(case, shown)


def triples(shown: view.View) -> None:
    """The triples as a table; the one chosen in it can be switched off."""
    number = partial(st.column_config.NumberColumn, format="%+.1f")
    kinds: dict[str, Any] = {
        **dict.fromkeys(("adds", "its tokens add", "adds, if deleted"), number),
        "attention": partial(st.column_config.NumberColumn, format="%.2f %%"),
    }
    event = st.dataframe(
        shown.table(),
        key="explain.triples",
        on_select="rerun",
        selection_mode="single-row",
        hide_index=True,
        column_config={
            t(head): kinds.get(head, st.column_config.TextColumn)(help=t(help))
            for head, help in EFFECTS_HELP.items()
        },
    )
    chosen = [shown.ranked[at] for at in event.selection.rows if at < len(shown.ranked)]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for effect in chosen:
            shared = state.workspace() is not None
            name = markdown(name_of(effect.piece.triple))
            if st.button(
                t("Switch off {triple}", triple=name),
                key="explain.off",
                icon=":material/toggle_off:",
                help=t(
                    "Switches the triple off in the workspace, for everybody, and opens the Lab."
                    if shared
                    else "Switches the triple off in the graph, so that the next one moves up, "
                    "and opens the Lab. It can be undone there."
                ),
            ) and state.commit(Edit("switch_off", effect.piece.triple)):
                st.switch_page("app_pages/lab.py")
        if not chosen and shown.ranked:
            st.caption(t("Choose a row to switch its triple off."))


def attention(case: Case, shown: view.View) -> None:
    """Attention beside effect, and where the two disagree."""
    st.caption(
        t(
            "How much attention a triple gets says little of what it does. Attention is of the "
            "whole trunk on the triple's branch."
        )
    )
    reading = case.trace
    as_paper = reading.ablation.visible == "tree" and not reading.interventions
    if case.target.start == NO_SPAN and as_paper:
        st.caption(
            t(
                "The tokens explained are [CLS] alone. Under the visible matrix it sees no "
                "branch, so it gives them no attention in any layer: what they do comes through "
                "the mention."
            )
        )
    for said in shown.say_attention():
        st.markdown(markdown(said))
