"""Paths of knowledge: what leaving a triple out changes by layer and token; a chart and words.

Tokens are rows, so that the tree can be read down the page, and layers are
columns, so that information goes to the right.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import plotly.graph_objects as go

from kbert_core.kbert.flat_tree import FlatTree
from kbert_lab.explain.influence import ROUNDING, Influence
from kbert_lab.lab.texts import N_, listed, sentences, t
from kbert_lab.lab.views.html import escape, plain
from kbert_lab.lab.views.styles import BRANCH, TRUNK, faint

ROW = 24  # pixels of a token


def change_chart(found: Influence, piece: int, *, dark: bool = False) -> go.Figure:
    """What leaving one triple out changes, in per cent of each token's state, by layer."""
    measured, reached = found.measured[piece].T, found.reached[piece].T
    own = np.zeros(measured.shape, bool)
    own[list(found.own(piece))] = True
    shown = (reached.numpy() & ~own).astype(bool)
    changes = measured.nan_to_num().numpy()
    figure = go.Figure()
    figure.add_heatmap(
        z=np.where(own, 1.0, np.nan),
        colorscale=[[0, faint(BRANCH, 0.55)], [1, faint(BRANCH, 0.55)]],
        hovertemplate=escape(t("gone")) + "<extra></extra>",
    )
    figure.add_heatmap(
        z=np.where(shown, 100 * changes, np.nan),
        text=np.where(shown, np.vectorize(short_percent)(changes), ""),
        texttemplate="%{text}",
        textfont={"color": "#FFFFFF"} if dark else {},
        customdata=np.where(shown, np.vectorize(percent)(changes), t("out of reach")),
        colorscale=[[0, faint(TRUNK, 0.06)], [1, faint(TRUNK, 1)]],
        zmin=0,
        hoverongaps=True,
        hovertemplate="%{customdata}<extra></extra>",
    )
    figure.update_traces(showscale=False, xgap=1, ygap=1)
    figure.update_layout(
        height=ROW * len(found.flat) + 70,
        margin={"l": 8, "r": 8, "t": 50, "b": 8},
        plot_bgcolor="rgba(128,128,128,0.10)",
    )
    figure.update_layout({f"{axis}axis": {"showgrid": False, "zeroline": False} for axis in "xy"})
    tokens: dict[str, Any] = {"ticktext": [*_beside(found.flat)], "autorange": "reversed"}
    figure.update_yaxes(tickvals=list(range(len(found.flat))), **tokens)
    figure.update_xaxes(title=t("after layer"), side="top", dtick=1)
    return figure


def say_reach(found: Influence, piece: int) -> str:
    """Say by which layer a triple can have come to how many tokens, and where it changes most."""
    own = list(found.own(piece))
    others = len(found.flat) - len(own)
    reached, said = [len(own)], []
    for layer, tokens in enumerate(found.reached[piece]):
        tokens[own] = True
        reached.append(int(tokens.sum()))
        if reached[-1] > reached[-2]:
            count = reached[-1] - len(own)
            said.append(t("in {count} after layer {layer}", count=count, layer=layer))
    last = found.measured[piece, -1].nan_to_num(-1.0)
    at = int(last.argmax())
    text = N_(
        "Of the {others} other tokens, the information of {triple} can be {counts}. It changes "
        "“{text}” most: by {value} after the last layer."
    )
    values = {"text": plain(found.flat.tokens[at]), "value": percent(float(last[at]))}
    reach = t(text, triple=found.pieces[piece].triple, counts=listed(said), others=others, **values)
    agreement = N_(
        "Where nothing can have arrived, the measured change is {largest}, which is more than "
        "rounding. Please report this text and model."
    )
    largest = found.largest_beyond_reach
    return (
        reach
        if largest < ROUNDING
        else sentences([reach, t(agreement, largest=power_of_ten(largest))])
    )


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


def _beside(flat: FlatTree) -> Iterable[str]:
    """Tokens down the page: mentions bold, branches set in."""
    for text, branch, anchor in zip(flat.tokens, flat.branch_ids, flat.anchor_ids, strict=True):
        name = escape(plain(text))
        yield f"<i>– {name}</i>" if branch else f"<b>{name}</b>" if anchor else name
