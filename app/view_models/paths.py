"""Paths of knowledge: layer by token, what can have come and what it changed; in words and charts.

Tokens are rows, so that the tree can be read down the page, and layers are
columns, so that information goes to the right.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from app.texts import N_, listed, sentences, t
from app.view_models.html import escape, plain
from app.view_models.styles import BRANCH, CHANGED, TRUNK, faint
from kbert_core import FlatTree
from kbert_lab.explain.influence import NEVER, ROUNDING, Influence, Reach

ROW = 24  # pixels of a token


# What a triple changes


def change_chart(found: Influence, piece: int, token: int) -> go.Figure:
    """What leaving one triple out changes, in per cent of each token's state, by layer."""
    measured, reached = found.measured[piece].T, found.reached[piece].T
    own = np.zeros(measured.shape, bool)
    own[list(found.own(piece))] = True
    shown = (reached.numpy() & ~own).astype(bool)
    changes = measured.nan_to_num().numpy()
    text = np.where(shown, np.vectorize(short_percent)(changes), "")
    said = np.where(shown, np.vectorize(percent)(changes), t("out of reach"))
    figure = _map(found.flat, found.layers, token)
    _layer(figure, own, BRANCH, t("gone"))
    figure.add_heatmap(
        z=np.where(shown, 100 * changes, np.nan),
        text=text,
        texttemplate="%{text}",
        customdata=said,
        colorscale=[[0, faint(TRUNK, 0.06)], [1, faint(TRUNK, 1)]],
        zmin=0,
        showscale=False,
        hoverongaps=True,
        xgap=1,
        ygap=1,
        hovertemplate="%{customdata}<extra></extra>",
    )
    return figure


def say_arrival(found: Influence, piece: int, token: int) -> str:
    """Say when a triple can reach a token, by which way, and what it changed; plain text."""
    flat, triple = found.flat, found.pieces[piece].triple
    name = plain(flat.tokens[token])
    own = found.own(piece)
    if token in own:
        return t("“{token}” is part of {triple} itself.", token=name, triple=triple)
    first = int(found.first[piece, token])
    if first == NEVER:
        text = N_("{triple} can't reach “{token}” in {layers} layers.")
        return t(text, triple=triple, token=name, layers=found.layers)
    if found.moved[piece, token]:
        words = N_(
            "Without {triple}, “{token}” stands at another position, so it is another before the "
            "first layer: hard positions count the branch's tokens too."
        )
        said = [t(words, triple=triple, token=name)]
    else:
        way = _quickest(found, piece, token)
        key = (
            N_("Without {triple}, “{token}” can differ from layer {layer} on: {way}.")
            if len(way) == first + 1
            else N_(
                "Without {triple}, “{token}” can differ from layer {layer} on: it sees tokens "
                "that then stand at other positions, as hard positions count the branch's tokens "
                "too. By attention alone: {way}."
            )
        )
        said = [t(key, triple=triple, token=name, layer=first, way=say_way(flat, way))]
    values = [
        t(
            "{value} after layer {layer}",
            value=percent(float(found.measured[piece, layer, token])),
            layer=layer,
        )
        for layer in range(first, found.layers + 1)
    ]
    if len(values) > 3:
        values = [values[0], values[len(values) // 2], values[-1]]
    return sentences([*said, t("Measured, its state changes by {values}.", values=listed(values))])


def say_way(flat: FlatTree, way: Sequence[int]) -> str:
    """Name the stations of a way: branches and mentions whole, the token asked about by itself."""
    names = [_station(flat, at) for at in way[:-1]] + [plain(flat.tokens[at]) for at in way[-1:]]
    return t(" → ").join(t("“{text}”", text=name) for name in names)


def _station(flat: FlatTree, at: int) -> str:
    """What a token is part of: its branch, its mention, or itself."""
    branch, anchor = flat.branch_ids[at], flat.anchor_ids[at]
    if branch:
        return " ".join(map(plain, flat.branches[branch - 1].branch.texts))
    if anchor:
        mention = flat.tree.nodes[anchor - 1].mention
        return plain(flat.tree.sentences[mention.sentence][mention.start : mention.end])
    return plain(flat.tokens[at])


def say_most(found: Influence, piece: int) -> str:
    """Say which token's state changes most in the end; plain text."""
    last = found.measured[piece, -1].nan_to_num(-1.0)
    at = int(last.argmax())
    text = N_("It changes most in “{text}”: {value} after the last layer.")
    return t(text, text=plain(found.flat.tokens[at]), value=percent(float(last[at])))


def say_agreement(found: Influence) -> str:
    """Say whether what was measured keeps to what can be; plain text."""
    largest = found.largest_beyond_reach
    key = (
        N_(
            "Where nothing can have arrived, the measured change is at most {largest}, which is "
            "rounding."
        )
        if largest < ROUNDING
        else N_(
            "Where nothing can have arrived, the measured change is {largest}, which is more than "
            "rounding. Please report this text and model."
        )
    )
    return t(key, largest=power_of_ten(largest))


def arrivals(found: Influence, token: int) -> dict[str, list[str]]:
    """Every triple: when it can reach a token, and what it changed in the end; as columns."""
    last = {one.piece: np.nan_to_num(one.measured[-1], nan=np.inf) for one in found.arrivals(token)}
    ranked = sorted(found.arrivals(token), key=lambda one: -last[one.piece])
    never = t("never")
    return {
        t("Triple"): [str(one.piece.triple) for one in ranked],
        t("can from layer"): [never if one.layer == NEVER else str(one.layer) for one in ranked],
        t("changes it by"): [
            t("gone") if one.measured[-1] != one.measured[-1] else percent(one.measured[-1])
            for one in ranked
        ],
    }


# What a token can know


def known_chart(flat: FlatTree, ways: Reach, token: int) -> go.Figure:
    """Whose information can stand in one token's state, by layer."""
    into = ways.into(token).numpy().T
    branch = np.array(flat.branch_ids)[:, None] > 0
    figure = _map(flat, ways.layers, token)
    _layer(figure, into & ~branch, TRUNK, t("a trunk token it can know"))
    _layer(figure, into & branch, BRANCH, t("a branch token it can know"))
    return figure


def say_known(flat: FlatTree, ways: Reach, token: int) -> str:
    """Say how many tokens and branches a token can know, until it is all of them; plain text."""
    into, name = ways.into(token), plain(flat.tokens[token])
    on_trunk = [at for at, branch in enumerate(flat.branch_ids) if branch == 0]
    said = []
    for layer in range(1, ways.layers + 1):
        if into[layer].all():
            text = N_("From layer {layer} on, “{token}” can know everything in the tree.")
            said.append(t(text, layer=layer, token=name))
            break
        if layer > 1 and bool((into[layer] == into[layer - 1]).all()):
            continue  # a later layer may see more, where a link is opened there only
        known = sum(bool(into[layer, placed.start : placed.end].all()) for placed in flat.branches)
        said.append(
            t(
                "After layer {layer}, “{token}” can know {trunk} of {trunks} trunk tokens and "
                "{branches} of {all_branches} branches.",
                layer=layer,
                token=name,
                trunk=sum(bool(into[layer, at]) for at in on_trunk),
                trunks=len(on_trunk),
                branches=known,
                all_branches=len(flat.branches),
            )
        )
    return sentences(said)


# Both


def percent(value: float) -> str:
    """A share of a state as a sentence says it."""
    if value < ROUNDING:
        return "0 %"
    return f"{100 * value:.1f} %" if value >= 0.001 else "< 0.1 %"


def short_percent(value: float) -> str:
    """The same without its sign, in the room of a cell."""
    if value < ROUNDING:
        return "0"
    return f"{100 * value:.0f}" if value >= 0.005 else "<1"


def power_of_ten(value: float) -> str:
    """A very small number: 2 × 10⁻⁷."""
    if value == 0:
        return "0"
    digit, _, power = f"{value:.0e}".partition("e")
    raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{digit} × 10{raised}"


def first_token(flat: FlatTree) -> int:
    """Where one looks first: at the beginning of the first mention that has a branch."""
    anchors = {placed.node + 1 for placed in flat.branches}
    places = zip(flat.anchor_ids, flat.branch_ids, strict=True)
    return next((at for at, (anchor, of) in enumerate(places) if anchor in anchors and not of), 0)


def _map(flat: FlatTree, layers: int, token: int) -> go.Figure:
    """Axes for a row a token and a column a layer, the chosen token framed."""
    figure = go.Figure()
    figure.update_layout(
        height=ROW * len(flat) + 70,
        margin={"l": 8, "r": 8, "t": 50, "b": 8},
        plot_bgcolor="rgba(128,128,128,0.10)",
        legend={"orientation": "h", "y": 0, "yanchor": "top", "x": 0},
    )
    figure.update_yaxes(
        tickvals=list(range(len(flat))),
        ticktext=[*_beside(flat)],
        range=[len(flat) - 0.5, -0.5],
        showgrid=False,
        zeroline=False,
    )
    figure.update_xaxes(
        title=t("after layer"),
        side="top",
        dtick=1,
        range=[-0.5, layers + 0.5],
        showgrid=False,
        zeroline=False,
    )
    figure.add_shape(
        type="rect",
        x0=-0.5,
        x1=layers + 0.5,
        y0=token - 0.5,
        y1=token + 0.5,
        line={"width": 2, "color": CHANGED},
    )
    return figure


def _beside(flat: FlatTree) -> Iterable[str]:
    """Tokens down the page: mentions bold, branches set in."""
    for text, branch, anchor in zip(flat.tokens, flat.branch_ids, flat.anchor_ids, strict=True):
        name = escape(plain(text))
        yield f"<i>– {name}</i>" if branch else f"<b>{name}</b>" if anchor else name


def _layer(figure: go.Figure, cells: Any, colour: str, name: str) -> None:
    """Fill some cells with one colour."""
    figure.add_heatmap(
        z=np.where(cells, 1.0, np.nan),
        colorscale=[[0, faint(colour, 0.55)], [1, faint(colour, 0.55)]],
        showscale=False,
        xgap=1,
        ygap=1,
        hovertemplate=escape(name) + "<extra></extra>",
    )


def _quickest(found: Influence, piece: int, token: int) -> tuple[int, ...]:
    """The quickest way from any token of a triple, the last where several are as quick."""
    ways = [way for at in found.own(piece) if (way := found.ways.way(at, token))]
    return min(reversed(ways), key=len, default=())
