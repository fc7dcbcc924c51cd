"""Paths of knowledge: layer by token, what can have come and what it changed; in words and charts.

Tokens are rows, so that the tree can be read down the page, and layers are
columns, so that information goes to the right.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from app.texts import listed, sentences, t
from app.view_models.html import escape, plain, scrolling, shown
from app.view_models.ink import ink_on
from app.view_models.styles import BRANCH, CHANGED, ENTITY_TINTS, LINK, TRUNK
from kbert_core import FlatTree
from kbert_core.explain.influence import NEVER, ROUNDING, Influence, Reach

CIVIDIS = (
    *("#00224e", "#123570", "#3b496c", "#575d6d", "#707173"),
    *("#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"),
)
LINES = (TRUNK, BRANCH, LINK, CHANGED, *ENTITY_TINTS[1:])
DASHES = ("solid", "dash", "dot", "dashdot")
ROOM, CELL = 9, 3.3  # rem that names take, and at most a layer
MOST_LINES = 8  # triples in the chart: those that change the token most


@dataclass(frozen=True, slots=True)
class Cell:
    """One token after one layer.

    Attributes:
        css: classes and style, as they stand in the tag.
        text: what it reads.
        label: what it says to a screen reader, and when pointed at.
    """

    css: str
    text: str
    label: str


# What a triple changes


def influence_html(found: Influence, piece: int, token: int) -> str:
    """Draw what leaving one triple out changes, with a row a token and a column a layer."""
    measured, reached = found.measured[piece], found.reached[piece]
    high = max(ROUNDING, float(measured[reached].nan_to_num().max())) if reached.any() else 1.0
    own = set(found.own(piece))

    def cell(layer: int, at: int) -> Cell:
        if at in own:
            return Cell('class="kb-p-own"', "", t("paths.gone"))
        if not reached[layer, at]:
            return Cell('class="kb-p-out"', "", t("paths.out"))
        value = float(measured[layer, at])
        return Cell(f'style="{_shade(value / high)}"', short_percent(value), percent(value))

    label = t("paths.aria", triple=found.pieces[piece].triple)
    return _grid(found.flat, found.layers, cell, token, label) + _legend_of_change(high)


def say_arrival(found: Influence, piece: int, token: int) -> str:
    """Say when a triple can reach a token, by which way, and what it changed; plain text."""
    flat, triple = found.flat, found.pieces[piece].triple
    name = plain(flat.tokens[token])
    own = found.own(piece)
    if token in own:
        return t("paths.own", token=name, triple=triple)
    first = int(found.first[piece, token])
    if first == NEVER:
        return t("paths.never", triple=triple, token=name, layers=found.layers)
    if found.moved[piece, token]:
        said = [t("paths.first_moved", triple=triple, token=name)]
    else:
        way = _quickest(found, piece, token)
        key = "paths.first_way" if len(way) == first + 1 else "paths.first_by_move"
        said = [t(key, triple=triple, token=name, layer=first, way=say_way(flat, way))]
    values = [
        t("paths.value", value=percent(float(found.measured[piece, layer, token])), layer=layer)
        for layer in range(first, found.layers + 1)
    ]
    if len(values) > 3:
        values = [values[0], values[len(values) // 2], values[-1]]
    return sentences([*said, t("paths.measured", values=listed(values))])


def say_way(flat: FlatTree, way: Sequence[int]) -> str:
    """Name the stations of a way: branches and mentions whole, the token asked about by itself."""
    names = [_station(flat, at) for at in way[:-1]] + [plain(flat.tokens[at]) for at in way[-1:]]
    return t("paths.to").join(t("paths.step", text=name) for name in names)


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
    return t("paths.most", text=plain(found.flat.tokens[at]), value=percent(float(last[at])))


def say_agreement(found: Influence) -> str:
    """Say whether what was measured keeps to what can be; plain text."""
    largest = found.largest_beyond_reach
    key = "paths.agree" if largest < ROUNDING else "paths.disagree"
    return t(key, largest=power_of_ten(largest))


def arrivals_html(found: Influence, token: int) -> str:
    """Draw a table of every triple: when it can reach a token, and what it changed in the end."""
    arrivals = sorted(found.arrivals(token), key=lambda one: -_last(one.measured))
    rows = []
    for one in arrivals:
        own = one.measured[-1] != one.measured[-1]
        first = t("paths.never_short") if one.layer == NEVER else str(one.layer)
        last = t("paths.gone") if own else percent(one.measured[-1])
        rows.append(
            f"<tr><td>{escape(one.piece.triple)}</td>"
            f'<td class="kb-num">{escape(first)}</td><td class="kb-num">{escape(last)}</td></tr>'
        )
    heads = (
        f"<th>{escape(t('paths.triple'))}</th>"
        f'<th class="kb-num">{escape(t("paths.column_first"))}</th>'
        f'<th class="kb-num" title="{escape(t("paths.column_last_help"))}">'
        f"{escape(t('paths.column_last'))}</th>"
    )
    return scrolling(f'<table class="kb-table"><tr>{heads}</tr>{"".join(rows)}</table>')


def chart(found: Influence, token: int) -> go.Figure:
    """Draw the change of one token's state by layer, a line a triple."""
    arrivals = sorted(found.arrivals(token), key=lambda one: -_last(one.measured))[:MOST_LINES]
    figure = go.Figure()
    for number, one in enumerate(arrivals):
        figure.add_scatter(
            x=list(range(found.layers + 1)),
            y=[None if value != value else 100 * value for value in one.measured],
            name=plain_name(str(one.piece.triple)),
            mode="lines+markers",
            line={"color": LINES[number % len(LINES)], "dash": DASHES[number % len(DASHES)]},
            hovertemplate="%{x}: %{y:.2f} %<extra>%{fullData.name}</extra>",
        )
    figure.update_layout(
        height=250 + 20 * len(arrivals),
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        legend={"orientation": "h", "yanchor": "top", "y": -0.28, "x": 0},
        showlegend=True,
    )
    figure.update_xaxes(title=t("paths.chart_x"), dtick=1 if found.layers <= 12 else 2)
    figure.update_yaxes(title=t("paths.chart_y"), rangemode="tozero")
    return figure


# What a token can know


def known_html(flat: FlatTree, ways: Reach, token: int) -> str:
    """Draw whose information can stand in one token's state, by layer."""
    into = ways.into(token)

    def cell(layer: int, at: int) -> Cell:
        if not into[layer, at]:
            return Cell('class="kb-p-out"', "", t("paths.unknown"))
        kind = "branch" if flat.branch_ids[at] else "trunk"
        return Cell(f'class="kb-p-{kind}"', "", t("paths.known"))

    label = t("paths.aria_known", token=plain(flat.tokens[token]))
    keys = ("trunk", "branch", "unknown") if flat.branches else ("trunk", "unknown")
    css = {"trunk": "kb-p-trunk", "branch": "kb-p-branch", "unknown": "kb-p-out"}
    legend = "".join(
        f'<span class="kb-key"><i class="{css[key]}"></i>{escape(t("paths.legend_" + key))}</span>'
        for key in keys
    )
    return _grid(flat, ways.layers, cell, token, label) + f'<div class="kb-legend">{legend}</div>'


def say_known(flat: FlatTree, ways: Reach, token: int) -> str:
    """Say how many tokens and branches a token can know, until it is all of them; plain text."""
    into, name = ways.into(token), plain(flat.tokens[token])
    on_trunk = [at for at, branch in enumerate(flat.branch_ids) if branch == 0]
    said = []
    for layer in range(1, ways.layers + 1):
        if into[layer].all():
            said.append(t("paths.knows_all", layer=layer, token=name))
            break
        if layer > 1 and bool((into[layer] == into[layer - 1]).all()):
            continue  # a later layer may see more, where a link is opened there only
        known = sum(bool(into[layer, placed.start : placed.end].all()) for placed in flat.branches)
        said.append(
            t(
                "paths.knows",
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


def token_names(flat: FlatTree) -> dict[int, str]:
    """What every token is called in a chooser: its place, and what it reads."""
    return {
        number: t("paths.token_name", number=number, text=plain(text))
        for number, text in enumerate(flat.tokens)
    }


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


def plain_name(text: str, most: int = 40) -> str:
    """A name for Plotly, which reads some HTML: escaped, and not too long."""
    return escape(text if len(text) <= most else f"{text[: most - 1]}…")


def _grid(
    flat: FlatTree, layers: int, cell: Callable[[int, int], Cell], token: int, label: str
) -> str:
    heads = "".join(f'<th scope="col">{layer}</th>' for layer in range(layers + 1))
    rows = []
    for at, text in enumerate(flat.tokens):
        kind = "branch" if flat.branch_ids[at] else ("mention" if flat.anchor_ids[at] else "trunk")
        chosen = ' aria-current="true"' if at == token else ""
        cells = "".join(_cell(cell(layer, at)) for layer in range(layers + 1))
        rows.append(
            f'<tr{chosen}><th scope="row" class="kb-p-{kind}-name">{shown(text)}</th>{cells}</tr>'
        )
    return (
        f'<div class="kb-paths"><table style="width:{ROOM + CELL * (layers + 1)}rem" '
        f'aria-label="{escape(label)}"><thead>'
        f"<tr><th>{escape(t('paths.tokens'))}</th>"
        f'<th class="kb-p-layers" colspan="{layers + 1}">{escape(t("paths.layers"))}</th></tr>'
        f"<tr><th></th>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(cell: Cell) -> str:
    label = escape(cell.label)
    return f'<td {cell.css} title="{label}" aria-label="{label}">{escape(cell.text)}</td>'


def _legend_of_change(high: float) -> str:
    stops = ",".join(CIVIDIS)
    return (
        '<div class="kb-legend">'
        f'<span class="kb-key">0 <i class="kb-p-scale" style="background:'
        f'linear-gradient(to right,{stops})"></i> {escape(percent(high))}: '
        f"{escape(t('paths.legend_change'))}</span>"
        f'<span class="kb-key"><i class="kb-p-out"></i>{escape(t("paths.legend_out"))}</span>'
        f'<span class="kb-key"><i class="kb-p-own"></i>{escape(t("paths.legend_own"))}</span></div>'
    )


def _shade(share: float) -> str:
    """A colour of the scale, and one that can be read on it."""
    place = min(max(share, 0.0), 1.0) * (len(CIVIDIS) - 1)
    before = min(int(place), len(CIVIDIS) - 2)
    part = place - before
    low, high = (
        [int(CIVIDIS[at][i : i + 2], 16) for i in (1, 3, 5)] for at in (before, before + 1)
    )
    colour = [round(a + (b - a) * part) for a, b in zip(low, high, strict=True)]
    return f"background:#{''.join(f'{c:02x}' for c in colour)};color:{ink_on(colour)}"


def _quickest(found: Influence, piece: int, token: int) -> tuple[int, ...]:
    """The quickest way from any token of a triple, the last where several are as quick."""
    ways = [way for at in found.own(piece) if (way := found.ways.way(at, token))]
    return min(reversed(ways), key=len, default=())


def _last(measured: Sequence[float]) -> float:
    return measured[-1] if measured[-1] == measured[-1] else float("inf")
