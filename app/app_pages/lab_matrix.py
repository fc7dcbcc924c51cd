"""The Lab's matrix: visible, attention, difference; what a chosen cell and row are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
import streamlit as st

from app import drawn, services, state
from app.app_pages.lab_interventions import head_patch, interventions_panel, switch_link
from app.app_pages.parts import bind, segments
from app.components import Message, draw_heads, draw_matrix
from app.drawn import linked
from kbert_core import FlatTree, KBertError, KnowledgeGraph
from kbert_lab.lab.commands import SelectMap
from kbert_lab.lab.scene import Scene
from kbert_lab.lab.selection import MEAN, marks_of
from kbert_lab.lab.session import VIEWS
from kbert_lab.lab.texts import sentences, t
from kbert_lab.lab.views import heads, matrix
from kbert_lab.lab.views.html import markdown
from kbert_lab.lab.views.interventions import why_now
from kbert_lab.lab.views.matrix import MatrixView, row_of
from kbert_lab.lab.views.why import in_browser, say_row, share_of_layers, visible_in
from kbert_lab.lab.words import COMPARE_NAME, MATRIX_TEXTS
from kbert_lab.lab.written import Identity


@dataclass(frozen=True)
class Shown:
    """One reading, alone or beside others."""

    scene: Scene  # what was run
    graph: KnowledgeGraph  # the scene's, with the edits made
    trace: Any  # what came of it; of sentence trees where a matrix is drawn
    window: int = 0  # the row shown
    maps: np.ndarray | None = None  # (L, A, N, N) attention; None: not shown
    chosen: tuple[int, int] | None = None  # the layer and head of them, from 1; 0 is the mean

    @property
    def flat(self) -> FlatTree:
        """The N tokens."""
        found: FlatTree = self.trace.rows[self.window]
        return found

    @cached_property
    def weights(self) -> np.ndarray | None:
        """(N, N), the map chosen."""
        if self.maps is None or self.chosen is None:
            return None
        return matrix.picked(self.maps, *self.chosen)

    @property
    def visible(self) -> np.ndarray:
        """(N, N) bool, row may attend to column: in the layer chosen, or in any."""
        return visible_in(self.trace, self.window, self.chosen[0] if self.chosen else MEAN)

    @property
    def share(self) -> np.ndarray:
        """(N, N), in which share of the layers row may attend to column."""
        return share_of_layers(self.trace, self.window)

    def view(self, high: float | None = None) -> MatrixView:
        """The map chosen, on a scale that ends at ``high``; without one, who sees whom."""
        view = (
            matrix.visible_view(self.flat, self.trace.ablation, self.share)
            if self.weights is None
            else matrix.attention_view(self.flat, self.weights, self.visible, high=high)
        )
        return drawn_of(view)

    def place(self, name: Identity | None) -> int | None:
        """Where a token stands; None where it doesn't."""
        return self.flat.identities.index(name) if name in self.flat.identities else None


S = TypeVar("S", bound=Shown)


def shown(scene: Scene, window: int) -> Shown:
    """Lay a scene out, without running its model."""
    graph = state.session().graph_of(scene)
    return Shown(scene, graph, services.laid(scene, graph), window)


def with_maps(sides: Sequence[S]) -> list[S]:
    """Choose one attention map for all, or a mean; each has it as far as it has such layers."""
    sides = [
        replace(one, maps=services.attention(one.scene, one.graph, one.window)) for one in sides
    ]
    of = next((one for one in sides if one.flat.branches), sides[0])
    every = {one.maps.shape[:2] for one in sides if one.maps is not None}
    layers, count = map(max, zip(*every, strict=True))
    assert of.maps is not None
    first = heads.map_shown(state.selection(), of.maps, of.visible, of.flat)
    chosen = choose_attention_map(layers, count, first)
    if len(every) > 1:
        said = t(
            "The models differ in layers or heads: layer and head are taken as far as each has "
            "them."
        )
        st.caption(said)
    return [replace(one, chosen=chosen) for one in sides]


@linked("lab.matrix_panel")
def matrix_panel(now: Scene, compared: Scene, kind: str, window: int) -> None:
    """Visible, attention, difference; choosing here re-runs this panel only."""
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="lab_head_matrix"
    ):
        st.subheader(t("Matrix"), anchor=False, width="stretch")
        view_name = choose_map(t("Panel"), "matrix_view")
    try:
        side = shown(now, window)
        if view_name == "difference":
            difference_panel(side, shown(compared, window), kind)
        elif view_name == "visible":
            draw(side.view(), side)
        elif now.has_model:
            attention_panel(side)
        else:
            st.caption(t("Attention needs a model."))
        if services.has_matrix(now):
            interventions_panel(now, window)
    except KBertError as error:
        st.error(markdown(error))


def attention_panel(side: Shown) -> None:
    """One head's attention, or a mean; who reads the branch that is followed; all heads."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        (side,) = with_maps([side])
        help = t("One small map for every layer and attention head.")
        every = drawn.choose_view(partial(st.toggle, t("All heads"), help=help), "all_heads")
    assert side.maps is not None and side.chosen is not None
    shares = None
    branch = heads.branch_read(side.flat, state.selection().triple)
    if branch is not None:
        shares = heads.shares_of(side.maps, side.visible, branch)
        st.caption(markdown(heads.said_of_readers(shares, branch)))
        head_patch(side.scene, side.graph, side.window, side.chosen, branch, shares)
    if every:
        specials = not state.session().view("specials")
        keep = tuple(matrix.places_drawn(side.flat.identities, specials=specials))
        view = services.small_maps(side.scene, side.graph, side.window, keep)
        small_maps(side, replace(view, shares=shares))
    draw(side.view(), side)


def difference_panel(after: Shown, before: Shown, kind: str) -> None:
    """What has changed between two readings of one text, over the tokens of both."""
    if row_of(before.trace, before.window, after.flat) is None:
        st.caption(
            t(
                "The two scenes have different texts or tokens, so their matrices can't be "
                "compared cell by cell."
            )
        )
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        attention = after.scene.has_model and before.scene.has_model
        if attention:
            title = t("Difference of")
            attention = choose_map(title, "difference_of", hidden=False) == "attention"
        before, after = with_maps([before, after]) if attention else (before, after)
    flats, weights = (before.flat, after.flat), None
    if before.weights is not None and after.weights is not None:
        weights = (before.weights, after.weights)
    seen = (before.visible, after.visible) if weights else (before.share, after.share)
    view = matrix.difference(*flats, seen, weights)
    said = [t("Difference: now − {name}.", name=t(COMPARE_NAME[kind])), matrix.say_change(view)]
    st.caption(markdown(sentences(filter(None, said))))
    draw(drawn_of(view), after, before)


def choose_map(label: str, name: str, **how: Any) -> Any:
    """Choose which map a panel shows, by its name in ``VIEWS``."""
    widget = partial(segments, label, VIEWS[name], names=MATRIX_TEXTS, **how)
    return drawn.choose_view(widget, name)


def hide_specials() -> None:
    """Choose whether [CLS] and [SEP] are drawn."""
    drawn.choose_view(partial(st.checkbox, t("Hide [CLS], [SEP]")), "specials")


def choose_attention_map(layers: int, heads: int, shown: tuple[int, int]) -> tuple[int, int]:
    """Choose a layer and an attention head of so many, from 1; 0 is the mean.

    Args:
        shown: what is until something is chosen.
    """
    layer, head = shown
    named: dict[str, Any] = {"format_func": lambda i: str(i) if i else t("mean"), "width": 92}
    box = partial(st.selectbox, t("Layer"), [*range(1, layers + 1), MEAN])
    bind(box, "lab.layer", layer, lambda new: state.dispatch(SelectMap(new, head)), **named)
    box = partial(st.selectbox, t("Head"), range(heads + 1))
    bind(box, "lab.head", head, lambda new: state.dispatch(SelectMap(layer, new)), **named)
    return layer, head


# The drawing


def small_maps(side: Shown, view: heads.HeadsView) -> None:
    """All maps at once."""
    assert side.chosen is not None
    draw_heads(view, side.chosen, key="lab.heads", heard=drawn.hear)
    said = [
        t(
            "A row is a layer, a column an attention head; all share one colour scale. Click a map "
            "to see it large."
        )
    ]
    if view.merged > 1:
        said.append(t("Each small cell is the largest of {n} × {n} tokens.", n=view.merged))
    st.caption(markdown(sentences(said)))


def drawn_of(view: MatrixView) -> MatrixView:
    """A matrix without [CLS] and [SEP], where they are to be hidden."""
    return matrix.without_specials(view) if state.session().view("specials") else view


def canvas(
    view: MatrixView,
    key: str = "lab.matrix",
    why: dict[str, object] | None = None,
    link: Callable[[Message], object] = lambda _: None,
) -> None:
    """Draw a matrix that can be clicked; ``link``: of a cell clicked twice."""
    marks = marks_of(view.identities, state.selection())
    heard = lambda sent: (link if sent["do"] == "link" else drawn.hear)(sent)  # noqa: E731
    draw_matrix(view, marks, why=why, key=key, heard=heard)


def draw(view: MatrixView, side: Shown, before: Shown | None = None) -> None:
    """The matrix, and what is said of what is chosen in it."""
    why = None  # the browser says it, except where two trees or interventions have a say
    if before is None and not side.scene.interventions:
        places = [token.after for token in view.tokens if token.after is not None]
        why = in_browser(side.flat, places, side.scene.ablation)
    if before is None and services.has_matrix(side.scene):
        canvas(view, why=why, link=partial(switch_link, side.trace, side.window))
    else:
        canvas(view, why=why)
    hide_specials()
    said = cell_said(view, side, before, why=why is None)
    if said:
        with st.container(border=True, key="lab_cell"):
            st.markdown(markdown(said))
            say_arithmetic(side)
    place = side.place(state.selection().token)
    if place is not None:
        st.markdown(markdown(say_row(side.flat, place, side.visible, side.weights)))
    if state.selection().empty:
        st.caption(
            t(
                "A row attends to the columns. Click a cell to see why it is visible or hidden, "
                "double-click it to block or open it, or click a token to follow its row and "
                "column."
            )
        )


def cell_said(
    view: MatrixView, side: Shown, before: Shown | None = None, *, why: bool = True
) -> str:
    """Why the chosen cell is visible or not, if asked, and what it holds; empty: nothing."""
    chosen = state.selection().cell
    if chosen is None:
        return ""
    flats = (before.flat if before else None, side.flat)
    weights = (side.weights, before.weights if before else None)
    said = matrix.cell_text(view, chosen, *flats, side.trace.ablation, *weights, side.visible)
    if said is None:
        return ""
    sentence = why_now(side.trace, side.window, chosen, said[0]) if why else ""
    return sentences(filter(None, (sentence, said[1])))


def say_arithmetic(side: Shown) -> None:
    """The calculation of the chosen cell's weight, where it isn't a mean."""
    query, key = map(side.place, state.selection().cell or (None, None))
    if side.maps is None or side.chosen is None or query is None or key is None:
        return
    layer, head = side.chosen
    if not layer or not head:
        st.caption(t("Choose one layer and one head to see how the weight is worked out."))
        return
    try:
        found = services.arithmetic(side.scene, side.graph, side.window, layer, head, query, key)
    except KBertError as error:
        st.caption(markdown(error))
        return
    st.caption(markdown(heads.map_name(layer, head)))
    st.html(heads.table_html(found))
