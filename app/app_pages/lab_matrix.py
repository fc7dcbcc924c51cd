"""The Lab's matrix: visible, attention, difference; what a chosen cell and row are."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import drawn, services, state
from app.app_pages.lab_interventions import interventions_panel, switch_link
from app.app_pages.parts import bind, segments, table
from app.components import Message, draw_heads, draw_matrix
from app.drawn import linked
from app.state import KEEP
from kbert_core import FlatTree, KBertError, KBertTrace
from kbert_lab.lab.commands import SelectMap, SelectToken
from kbert_lab.lab.scene import Scene
from kbert_lab.lab.selection import MEAN
from kbert_lab.lab.texts import N_, clauses, sentences, t
from kbert_lab.lab.views import heads, matrix, row
from kbert_lab.lab.views.diff import Identity, row_of
from kbert_lab.lab.views.html import markdown, plain
from kbert_lab.lab.views.interventions import why_now
from kbert_lab.lab.views.matrix import MatrixView
from kbert_lab.lab.views.selected import marks_of
from kbert_lab.lab.views.why import in_browser, share_of_layers, visible_in
from kbert_lab.lab.words import COMPARE_NAME, MATRIX_TEXTS

MATRIX_SHOWN = {"before": N_("before"), "after": N_("now"), "change": N_("change")}

ss = st.session_state


@dataclass(frozen=True)
class Shown:
    """One scene's part of the panel."""

    scene: Scene  # what was run
    trace: KBertTrace  # what came of it
    window: int = 0  # the row shown
    maps: np.ndarray | None = None  # (L, A, N, N) attention; None: not shown
    chosen: tuple[int, int] | None = None  # the layer and head of them, from 1; 0 is the mean

    @property
    def flat(self) -> FlatTree:
        """The N tokens."""
        return self.trace.rows[self.window]

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
        if self.weights is None:
            return matrix.visible_view(self.flat, self.trace.ablation, self.share)
        return matrix.attention_view(self.flat, self.weights, self.visible, high=high)

    def place(self, name: Identity | None) -> int | None:
        """Where a token stands; None where it doesn't."""
        return self.flat.identities.index(name) if name in self.flat.identities else None


@linked("lab.matrix_panel")
def matrix_panel(now: Scene, compared: Scene, kind: str, window: int) -> None:
    """Visible, attention, difference; choosing here re-runs this panel only."""
    ss.setdefault("lab.matrix_view", "visible")
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="lab_head_matrix"
    ):
        st.subheader(t("Matrix"), anchor=False, width="stretch")
        view_name = segments(
            t("Panel"), ["visible", "attention", "difference"], "lab.matrix_view", MATRIX_TEXTS
        )
    try:
        if view_name == "difference":
            difference_panel(now, compared, kind, window)
        else:
            one_panel(now, window, attention=view_name == "attention")
        if services.has_matrix(now):
            interventions_panel(now, window)
    except KBertError as error:
        st.error(markdown(error))


def one_panel(now: Scene, window: int, *, attention: bool) -> None:
    """One scene's visible matrix or attention."""
    if attention and not now.has_model:
        st.caption(t("Attention needs a model."))
        return
    side = side_of(now, window, attention=attention)
    above = st.container() if not attention else None  # the matrix first: it is to be in sight
    with controls():
        token_chooser(side.flat)
        (side,) = map_chooser(side)
    branch = heads.branch_read(side.flat, state.selection().triple)
    if side.maps is not None and branch is not None:
        st.caption(markdown(heads.said_of_readers(side.maps, side.visible, branch)))
    if attention and ss.get("lab.all_heads"):
        names, specials = side.flat.identities, not ss.get("lab.specials")
        keep = tuple(matrix.places_drawn(names, specials=specials))
        view = services.small_maps(now, state.graph_of(now), window, keep)
        if side.maps is not None and branch is not None:
            view = replace(view, shares=heads.shares_of(side.maps, side.visible, branch))
        small_maps(view, side)
    with above or st.container():
        if services.has_matrix(now):
            draw(side.view(), side, link=partial(switch_link, side.trace, window))
        else:
            draw(side.view(), side)


def difference_panel(now: Scene, compared: Scene, kind: str, window: int) -> None:
    """Two scenes: before, now, and what changed, over the same tokens."""
    after = side_of(now, window)
    old = services.laid(compared, state.graph_of(compared))
    if row_of(old, window, after.flat) is None:
        st.caption(
            t(
                "The two scenes have different texts or tokens, so their matrices can't be "
                "compared cell by cell."
            )
        )
        return
    before = Shown(compared, old, window)
    with controls():
        how: dict[str, Any] = {"hidden": False, "names": MATRIX_TEXTS, "default": "visible"}
        attention = now.has_model and compared.has_model
        if attention:
            title, of = t("Difference of"), ["visible", "attention"]
            attention = segments(title, of, "lab.difference_of", **how) == "attention"
        how |= {"names": MATRIX_SHOWN, "default": "change"}
        shown = segments(t("Show"), MATRIX_SHOWN, "lab.difference_shown", **how)
    alike = True
    with controls():
        token_chooser(after.flat)
        if attention:
            before, after = (side_of(one, window, attention=True) for one in (compared, now))
            assert before.maps is not None and after.maps is not None
            if alike := before.maps.shape[:2] == after.maps.shape[:2]:
                before, after = map_chooser(before, after)
            else:
                before, after = (replace(one, chosen=(MEAN, MEAN)) for one in (before, after))
    view, change = compared_view(before, after, shown)
    said = [t("Difference: now − {name}.", name=t(COMPARE_NAME[kind]))]
    if not alike:
        said.append(
            t(
                "The two models have different numbers of layers or heads, so their means are "
                "compared."
            )
        )
    if matrix.largest_change(change) == 0:
        said.append(t("No difference: the two matrices are equal."))
    elif change.categorical:
        new, gone = matrix.links_changed(change)
        said.append(t("{new} links more, {gone} fewer.", new=new, gone=gone))
    st.caption(markdown(sentences(said)))
    draw(view, after, before)


def compared_view(before: Shown, after: Shown, shown: str) -> tuple[MatrixView, MatrixView]:
    """What is drawn of two scenes, and the change between them."""
    flats, high = (before.flat, after.flat), None
    if before.weights is None or after.weights is None:
        change = matrix.difference(*flats, (before.share, after.share))
    else:
        weights = (before.weights, after.weights)
        change = matrix.difference(*flats, (before.visible, after.visible), weights)
        high = float(max(one.max() for one in weights))  # one scale for both
    if shown == "before":
        return matrix.spread(before.view(high), *flats, "before"), change
    if shown == "after":
        return matrix.spread(after.view(high), *flats, "after"), change
    return change, change


def side_of(scene: Scene, window: int, *, attention: bool = False) -> Shown:
    """Lay a scene out; its model runs where its attention is shown."""
    graph = state.graph_of(scene)
    trace = services.laid(scene, graph)
    return Shown(
        scene, trace, window, services.attention(scene, graph, window) if attention else None
    )


# What is chosen


def controls() -> DeltaGenerator:
    """A line of choosers."""
    return st.container(horizontal=True, vertical_alignment="bottom", gap="small")


def token_chooser(flat: FlatTree) -> None:
    """Choose a token by name; what a click on its name in the matrix does too."""
    names = flat.identities
    places = {name: place for place, name in enumerate(names)}
    chosen = state.selection().token
    bind(
        partial(st.selectbox, t("Token"), names),
        "lab.token",
        chosen if chosen in places else None,
        lambda name: drawn.select(SelectToken(name, toggle=False)),
        format_func=lambda name: f"{plain(flat.tokens[places[name]])} ({places[name]})",
        placeholder=t("Choose one"),
        width=170,
    )


def choose_attention_map(
    layers: int, heads: int, shown: tuple[int, int] | None = None
) -> tuple[int, int]:
    """Choose a layer and an attention head of so many, from 1; 0 is the mean.

    Args:
        shown: what is until something is chosen; None: the mean of the last layer.
    """
    layer, head = shown or state.selection().map_of(layers, heads)
    named: dict[str, Any] = {"format_func": lambda i: str(i) if i else t("mean"), "width": 92}
    box = partial(st.selectbox, t("Layer"), [*range(1, layers + 1), MEAN])
    bind(box, "lab.layer", layer, lambda new: state.dispatch(SelectMap(new, head)), **named)
    box = partial(st.selectbox, t("Head"), range(heads + 1))
    bind(box, "lab.head", head, lambda new: state.dispatch(SelectMap(layer, new)), **named)
    return layer, head


def map_chooser(*sides: Shown) -> tuple[Shown, ...]:
    """Choose a layer and an attention head, or the mean; return the sides with that map."""
    maps = sides[0].maps
    if maps is None:
        return sides
    shown = heads.map_shown(state.selection(), maps, sides[0].visible, sides[0].flat)
    chosen = choose_attention_map(maps.shape[0], maps.shape[1], shown)
    if len(sides) == 1:
        help = t("One small map for every layer and attention head.")
        st.toggle(t("All heads"), key="lab.all_heads", help=help, **KEEP)
    return tuple(replace(side, chosen=chosen) for side in sides)


# The drawing


def small_maps(view: heads.HeadsView, side: Shown) -> None:
    """All maps at once."""
    assert side.chosen is not None
    draw_heads(view, side.chosen, key="lab.heads", heard=drawn.hear)
    st.caption(
        t(
            "A row is a layer, a column an attention head; all share one colour scale. Each small "
            "cell is the largest of {n} × {n} tokens. Click a map to see it large.",
            n=view.merged,
        )
        if view.merged > 1
        else t(
            "A row is a layer, a column an attention head; all share one colour scale. Click a "
            "map to see it large."
        )
    )
    if side.maps is not None and all(side.chosen):
        alike = heads.most_alike(side.maps, *side.chosen)
        named = (f"{heads.map_name(*place)} ({cosine:.2f})" for *place, cosine in alike)
        said = t(
            "Most like {this}, by cosine: {others}.",
            this=heads.map_name(*side.chosen),
            others=clauses(named),
        )
        st.caption(markdown(said))


def draw(
    view: MatrixView,
    side: Shown,
    before: Shown | None = None,
    link: Callable[[Message], object] = lambda _: None,
) -> None:
    """The matrix, and what is said of what is chosen in it; ``link``: of a cell clicked twice."""
    if ss.get("lab.specials"):
        view = matrix.without_specials(view)
    st.html(matrix.legend_html(view))
    why = None  # the browser says it, except where two trees or interventions have a say
    if before is None and not side.scene.interventions:
        places = [token.after for token in view.tokens if token.after is not None]
        why = in_browser(side.flat, places, side.scene.ablation)
    draw_matrix(
        view,
        marks_of(view.identities, state.selection()),
        why=why,
        key="lab.matrix",
        heard=lambda sent: (link if sent["do"] == "link" else drawn.hear)(sent),
    )
    st.checkbox(t("Hide [CLS], [SEP]"), key="lab.specials", **KEEP)
    say_cell(view, side, before, why=why is None)
    say_triple(side)
    say_row(side, before)
    if state.selection().empty:
        st.caption(
            t(
                "A row attends to the columns. Click a cell to see why it is visible or hidden, "
                "double-click it to block or open it, or click a token to follow its row and "
                "column."
            )
        )


def say_cell(view: MatrixView, side: Shown, before: Shown | None, *, why: bool) -> None:
    """Why the chosen cell is visible or not, if asked, and where its value comes from."""
    chosen = state.selection().cell
    if chosen is None:
        return
    flats = (before.flat if before else None, side.flat)
    weights = (side.weights, before.weights if before else None)
    ablation = side.scene.ablation
    said = matrix.cell_text(view, chosen, *flats, ablation, *weights, side.visible)
    if said is None or not (why or said[1]):
        return
    sentence = why_now(side.trace, side.window, chosen, said[0]) if why else ""
    with st.container(border=True, key="lab_cell"):
        st.markdown(markdown(sentences(filter(None, (sentence, said[1])))))
        query, key = (side.place(name) for name in chosen)
        if query is not None and key is not None:
            say_arithmetic(side, query, key)


def say_arithmetic(side: Shown, query: int, key: int) -> None:
    """The calculation of one weight; of a mean, which heads it is made of."""
    if side.maps is None or side.chosen is None:
        return
    layer, head = side.chosen
    if not layer or not head:
        st.caption(markdown(heads.of_mean(side.maps, layer, head, query, key)))
        return
    graph = state.graph_of(side.scene)
    try:
        found = services.arithmetic(side.scene, graph, side.window, layer, head, query, key)
    except KBertError as error:
        st.caption(markdown(error))
        return
    st.caption(markdown(t("layer {layer}, head {head}", layer=layer, head=head)))
    st.html(heads.table_html(found))


def say_row(side: Shown, before: Shown | None) -> None:
    """The chosen token's row in words and as a table."""
    token = state.selection().token
    place = side.place(token)
    if place is None:
        return
    was, at = None, before.place(token) if before is not None else None
    if before is not None and before.weights is not None and at is not None:
        was = dict(zip(before.flat.identities, map(float, before.weights[at]), strict=True))
    weights = side.weights
    said, seen = row.row_view(side.flat, place, side.scene.ablation, side.visible, weights, was)
    st.markdown(markdown(sentences(said)))
    title = t("Row of “{a}” as a table", a=markdown(plain(side.flat.tokens[place])))
    with st.expander(title, key="lab.row", on_change="rerun") as opened:
        if opened.open:
            table(seen, most=360)


def say_triple(side: Shown) -> None:
    """How much attention the chosen triple's branch gets."""
    triple = state.selection().triple
    if triple is None or not side.scene.has_model:
        return
    if side.maps is None:
        side = side_of(side.scene, side.window, attention=True)
    assert side.maps is not None
    layer, head = heads.map_shown(state.selection(), side.maps, side.visible, side.flat)
    side = replace(side, chosen=(layer, head))
    assert side.weights is not None
    token = side.place(state.selection().token)
    said = row.say_mass(side.flat, triple, side.weights, side.visible, token)
    where = heads.map_name(layer, head)
    st.markdown(
        markdown(t("Attention on {triple}, {map}: {said}", triple=triple, map=where, said=said))
    )
