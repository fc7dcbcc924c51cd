"""The matrices of all panels: one view, one scale, one selection."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from app import selecting, services, state
from app.components.matrix import draw_matrix
from app.scene import Scene
from app.selecting import linked
from app.selection import MEAN
from app.state import KEEP
from app.texts import sentences, t
from app.view_models import matrix, sides
from app.view_models.html import markdown
from app.view_models.interventions import why_now
from app.view_models.matrix import MatrixView
from app.view_models.selected import marks_of
from app.view_models.visible import visible_in
from kbert_core import KBertError, KBertTrace

ss = st.session_state
Shown = tuple[str, str, Scene, KBertTrace]  # what it is called, what it reads, what was run
FOUR_IN_A_LINE = 36  # tokens up to which four matrices stand side by side


@linked("compare.matrices")
def matrices(panels: Sequence[Shown]) -> None:
    """Draw the matrices of all panels; choosing here re-runs this part only."""
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="compare_head"
    ):
        st.markdown(f"#### {t('sides.matrices')}", width="stretch")
        view_name = st.segmented_control(
            t("matrix.view"),
            ["visible", "attention"],
            key="compare.view",
            default="visible",
            required=True,
            label_visibility="collapsed",
            format_func=lambda name: t("matrix." + name),
        )
    window = choose_window(panels)
    shown = [one for one in panels if window < len(one[3].rows)]
    layer = MEAN
    flats = [trace.rows[window] for *_, trace in shown]
    attention = view_name == "attention"
    if attention and not all(scene.has_model for _, _, scene, _ in shown):
        st.caption(t("sides.no_attention"))
        attention = False
    try:
        weights: list[np.ndarray] | None = None
        if attention:
            maps = [services.attention(s, state.graph_of(s), window) for _, _, s, _ in shown]
            layer, head = choose_map(maps)
            seen = [visible_in(trace, window, layer) for *_, trace in shown]
            views = sides.attention_panels(flats, maps, seen, layer, head)
            weights = [sides.chosen_map(own, layer, head) for own in maps]
        else:
            views = [
                sides.visible_panel(flat, scene, visible_in(trace, window, MEAN))
                for flat, (_, _, scene, trace) in zip(flats, shown, strict=True)
            ]
    except KBertError as error:
        st.error(markdown(error))
        return
    if ss.get("lab.specials"):
        views = [matrix.without_specials(view) for view in views]
    st.html(legend(views))
    draw(shown, window, layer, views, weights)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.checkbox(t("matrix.specials"), key="lab.specials", **KEEP)
        clear()


def choose_window(panels: Sequence[Shown]) -> int:
    """Choose a window of a long text."""
    count = max(len(trace.rows) for *_, trace in panels)
    if count == 1:
        return 0
    chosen = st.selectbox(
        t("tree.window"),
        range(count),
        key=f"compare.window.{count}",
        format_func=lambda i: t("tree.window_name", number=i + 1, count=count),
        width=160,
    )
    return int(chosen or 0)


def choose_map(maps: Sequence[np.ndarray]) -> tuple[int, int]:
    """Choose a layer and an attention head, or the mean, for all panels."""
    layers, heads = max(own.shape[0] for own in maps), max(own.shape[1] for own in maps)
    chosen = state.selection().map_of(layers, heads)
    ss["compare.layer"], ss["compare.head"] = chosen
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        for name, options in (("layer", [*range(1, layers + 1), MEAN]), ("head", range(heads + 1))):
            st.selectbox(
                t("matrix." + name),
                options,
                key="compare." + name,
                format_func=lambda i: str(i) if i else t("matrix.mean"),
                on_change=take_map,
                width=92,
            )
        st.caption(t("sides.one_scale"))
    if len({own.shape[:2] for own in maps}) > 1:
        st.caption(t("sides.no_heads"))
    return chosen


def take_map() -> None:
    """Callback of the layer and head choosers."""
    ss["lab.selection"] = state.selection().with_map(ss["compare.layer"], ss["compare.head"])


def draw(
    shown: Sequence[Shown],
    window: int,
    layer: int,
    views: Sequence[MatrixView],
    weights: Sequence[np.ndarray] | None,
) -> None:
    """The matrices, two in a line where they are large."""
    several = len(shown)
    if several == 4 and max(len(trace.rows[window]) for *_, trace in shown) > FOUR_IN_A_LINE:
        several = 2
    ss["compare.names"] = {n: view.identities for n, view in enumerate(views)}
    for start in range(0, len(shown), several):
        columns = st.columns(several, gap="medium")
        for column, number in zip(columns, range(start, len(shown)), strict=False):
            with column:
                title, about, _, trace = shown[number]
                view = views[number]
                st.markdown(f"**{markdown(title)}**")
                st.caption(markdown(about))
                draw_matrix(
                    view,
                    marks_of(view.identities, state.selection()),
                    key=f"compare.matrix.{number}",
                    on_cell=partial(click_cell, number),
                    on_token=partial(click_token, number),
                )
                say(view, trace, window, layer, weights[number] if weights else None)


def say(
    view: MatrixView, trace: KBertTrace, window: int, layer: int, weights: np.ndarray | None
) -> None:
    """The chosen cell of one panel in words; where a token isn't there, that."""
    chosen = state.selection()
    if chosen.cell is not None:
        flat, seen = trace.rows[window], visible_in(trace, window, layer)
        said = matrix.cell_text(
            view, chosen.cell, None, flat, trace.ablation, weights, visible=seen
        )
        parts = (why_now(trace, window, chosen.cell, said.sentence), said.value) if said else ()
        st.caption(markdown(sentences(filter(None, parts)) or t("sides.gone")))
    elif chosen.token is not None and chosen.token not in view.identities:
        st.caption(t("sides.gone"))


def clear() -> None:
    """Let go of what is chosen."""
    st.button(
        t("select.clear"),
        key="compare.clear",
        type="tertiary",
        on_click=selecting.clear,
        disabled=state.selection().empty,
        help=t("select.clear_help"),
    )


def click_cell(number: int) -> None:
    """Callback of one matrix: a cell."""
    selecting.click_cell_of(f"compare.matrix.{number}", ss["compare.names"][number])


def click_token(number: int) -> None:
    """Callback of one matrix: a token's name."""
    selecting.click_token_of(f"compare.matrix.{number}", ss["compare.names"][number])


def legend(views: Sequence[MatrixView]) -> str:
    """The categories that occur in any panel."""
    codes = np.concatenate([view.codes.ravel() for view in views])
    return matrix.legend_html(replace(views[0], codes=codes))
