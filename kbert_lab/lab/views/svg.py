"""Tree, visible matrix and attention as SVG, for a paper: white, whole, and legible in grey."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any
from unicodedata import east_asian_width

import numpy as np

from kbert_lab.lab.texts import t
from kbert_lab.lab.views.html import escape, plain, shorten
from kbert_lab.lab.views.matrix import (
    ABLATED,
    BLOCKED,
    BRANCH,
    CELLS,
    HIDDEN,
    LEVELS,
    LINK,
    OPENED,
    PART_BLOCKED,
    PART_OPENED,
    TRUNK,
    MatrixView,
)
from kbert_lab.lab.views.tree import NodeView, TokenView, TreeView

LINE = 900  # units of a line of the trunk
HIGH, GAP, STEP = 24, 5, 46  # of a token; between two; from a trunk to its first branch
MOST_CELL, MOST_SIDE = 20, 760  # of a cell, and of a whole matrix
INK, GREY = "#222222", "#5C666E"
FILLS = {TRUNK: "#CFE2EF", BRANCH: "#E69F00", LINK: "#009E73", ABLATED: "#98A2AA"}
FILLS |= {BLOCKED: "#FADECB", PART_BLOCKED: "#FADECB", OPENED: "#F3E96B", PART_OPENED: "#F3E96B"}
FILLS |= {HIDDEN: "url(#hidden)"}
MARKS = {BLOCKED: "×", PART_BLOCKED: "/", OPENED: "○", PART_OPENED: "·"}
SHARES = (  # from nothing to the largest share, darker at every step
    *((247, 250, 252), (207, 226, 239), (141, 188, 216)),
    *((66, 146, 198), (0, 114, 178), (8, 48, 107)),
)
ROLES = {0: INK, 1: "#A66E00", 2: "#00517F"}  # of a label: trunk, branch, mention
HATCHED = (
    '<pattern id="hidden" width="5" height="5" patternUnits="userSpaceOnUse">'
    '<path d="M0 5 5 0" stroke="#C9CED2" stroke-width=".8"/></pattern>'
)


def tree_svg(view: TreeView) -> str:
    """Draw a sentence tree: the trunk in lines, branches below their mention."""
    drawn: list[str] = []
    top, wide = 0.0, 0.0
    for sentence in sorted({node.sentence for node in view.nodes}):
        nodes = [node for node in view.nodes if node.sentence == sentence]
        for line in _lines(nodes):
            below = 0
            for left, node in line:
                drawn += _node(node, left, top)
                below = max(below, len(node.branches))
                wide = max(wide, left + _node_width(node))
            top += STEP + (HIGH + 18) * below
        top += GAP
    said = f"{t('soft position')} | {t('hard position')}"
    states = {branch.status for branch in view.branches}
    if states & {"added", "removed"}:
        said += " · " + t("thick outline: new; struck out: gone")
    drawn.append(_text(0, top + 8, said, size=10, fill=GREY))
    return _svg(t("Sentence tree"), max(wide, _width(said, 10)), top + 14, drawn)


def _lines(nodes: Sequence[NodeView]) -> list[list[tuple[float, NodeView]]]:
    """Where each node begins, line by line; no branch stands over another."""
    lines: list[list[tuple[float, NodeView]]] = [[]]
    trunk = branches = 0.0  # where they end
    for node in nodes:
        left = max(trunk, branches) if node.branches else trunk
        if lines[-1] and left + _node_width(node) > LINE:
            lines.append([])
            left = branches = 0.0
        lines[-1].append((left, node))
        trunk = left + _widths(node.tokens) + GAP
        if node.branches:
            branches = left + _node_width(node) + 2 * GAP
    return lines


def _node(node: NodeView, left: float, top: float) -> list[str]:
    drawn = _tokens(node.tokens, left, top, "mention" if node.mention else "trunk")
    for number, branch in enumerate(node.branches):
        y = top + STEP + (HIGH + 18) * number
        gone = branch.status == "removed"
        path = f"M{left + 1:g} {top + HIGH:g}V{y + HIGH / 2:g}H{left + 14:g}"
        dashes = {"stroke-dasharray": "3 3"} if gone else {}
        drawn.insert(0, _tag("path", d=path, fill="none", stroke=GREY, **dashes))
        kind = {"removed": "gone", "added": "new"}.get(branch.status, "branch")
        drawn += _tokens(branch.tokens, left + 14, y, kind)
    return drawn


BOXES = {  # fill, outline, its width
    "trunk": ("#FFFFFF", "#98A2AA", 1),
    "mention": ("#CFE2EF", "#0072B2", 1.6),
    "branch": ("#FBECCC", "#E69F00", 1.2),
    "new": ("#FBECCC", "#CC79A7", 2.2),
    "gone": ("#FFFFFF", "#98A2AA", 1),
}


def _tokens(tokens: Iterable[TokenView], left: float, top: float, kind: str) -> list[str]:
    fill, outline, thick = BOXES[kind]
    struck: dict[str, Any] = {}
    if kind == "gone":
        struck = {"text-decoration": "line-through", "fill": GREY}
    drawn = []
    for token in tokens:
        wide = _token_width(token)
        box = {"x": left, "y": top, "width": wide, "height": HIGH, "rx": 3}
        drawn.append(_tag("rect", **box, fill=fill, stroke=outline, **{"stroke-width": thick}))
        middle = left + wide / 2
        drawn.append(_text(middle, top + 17, plain(token.text), anchor="middle", **struck))
        if kind != "gone":
            how: dict[str, Any] = {"size": 9, "anchor": "middle", "fill": GREY}
            drawn.append(_text(middle, top + HIGH + 11, _places(token), **how))
        left += wide + GAP
    return drawn


def _places(token: TokenView) -> str:
    return f"{token.soft} | {token.hard}" if token.soft is not None else ""


def _token_width(token: TokenView) -> float:
    return max(_width(plain(token.text)), _width(_places(token), 9) - 10)


def _node_width(node: NodeView) -> float:
    branches = [14 + _widths(branch.tokens) for branch in node.branches]
    return max([_widths(node.tokens), *branches])


def _widths(tokens: Sequence[TokenView]) -> float:
    return sum(map(_token_width, tokens)) + GAP * (len(tokens) - 1)


def _width(text: str, size: float = 14) -> float:
    """About how wide a text is with some room on both sides; fonts differ."""
    wide = sum(1.0 if east_asian_width(c) in "WF" else 0.58 for c in text)
    return max(26, size * wide + 12)


def matrix_svg(view: MatrixView, title: str) -> str:
    """Draw a matrix: who looks stands at its rows, what is looked at at its columns."""
    count = len(view.tokens)
    cell = min(MOST_CELL, MOST_SIDE / max(count, 1))
    size = min(12, 0.72 * cell)
    labels = [shorten(plain(token.text), 14) for token in view.tokens]
    edge = max((_width(label, size) for label in labels), default=0)
    left, top, side = edge + 16, edge + 40, cell * count
    drawn = [f"<defs>{HATCHED}</defs>", _text(0, 14, title, size=14, weight="bold")]
    for row in range(count):
        y = top + row * cell
        column = 0
        for code, run in groupby(view.codes[row].tolist()):
            long = len([*run])
            box = {"x": left + column * cell, "y": y, "width": long * cell, "height": cell}
            drawn.append(_tag("rect", **box, fill=_fill(view, code)))
            if mark := view.categorical and MARKS.get(code):
                at = (left + (column + i + 0.5) * cell for i in range(long))
                drawn += [_text(x, y + 0.78 * cell, mark, size=size, anchor="middle") for x in at]
            column += long
        role = view.roles[row]
        how: dict[str, Any] = {"size": size, "fill": ROLES[role]}
        how["weight"] = "bold" if role == 2 else "normal"
        drawn.append(_text(left - 5, y + 0.72 * cell, labels[row], anchor="end", **how))
        x, over = left + (row + 0.68) * cell, top - 5
        drawn.append(_text(x, over, labels[row], **how, transform=f"rotate(-90 {x:g} {over:g})"))
    lines = "".join(f"M{left:g} {top + i * cell:g}h{side:g}" for i in range(count + 1))
    lines += "".join(f"M{left + i * cell:g} {top:g}v{side:g}" for i in range(count + 1))
    drawn.append(_tag("path", d=lines, fill="none", stroke="#FFFFFF", **{"stroke-width": 0.6}))
    drawn.append(_tag("rect", x=left, y=top, width=side, height=side, fill="none", stroke=INK))
    axes = t("row: looks · column: is looked at")
    drawn.append(_text(left, top + side + 16, axes, size=10, fill=GREY))
    keys, wide, bottom = _keys(view, left, top + side + 34, max(side, 320))
    return _svg(title, max(left + side, left + wide, _width(title)) + 4, bottom, drawn + keys)


def _fill(view: MatrixView, code: int) -> str:
    if view.categorical or code >= LEVELS:
        return FILLS.get(code, "#FFFFFF")
    place = code / (LEVELS - 1) * (len(SHARES) - 1)
    channels = [np.interp(place, range(len(SHARES)), one) for one in zip(*SHARES, strict=True)]
    return "#" + "".join(f"{round(one):02x}" for one in channels)


def _keys(view: MatrixView, left: float, top: float, most: float) -> tuple[list[str], float, float]:
    """What the colours mean; how wide that is, and where it ends."""
    drawn, x, wide = [], left, 0.0
    if not view.categorical:
        for step in range(50):
            fill = _fill(view, round(step * (LEVELS - 1) / 49))
            drawn.append(_tag("rect", x=x + 3 * step, y=top, width=3.4, height=11, fill=fill))
        high = f"{100 * view.high:.1f} %"
        drawn.append(_text(x, top + 23, "0 %", size=10))
        drawn.append(_text(x + 150, top + 23, high, size=10, anchor="end"))
        x += 180
    for code, name in CELLS.items():
        if not (view.categorical or code >= LEVELS) or not (view.codes == code).any():
            continue
        said = t(name)
        long = _width(said, 11) + 18
        if x > left and x + long > left + most:
            x, top = left, top + 18
        box = {"x": x, "y": top, "width": 12, "height": 12, "stroke": GREY, "stroke-width": 0.5}
        drawn += [_tag("rect", **box, fill=FILLS.get(code, "#FFFFFF"))]
        drawn.append(_text(x + 17, top + 10, said, size=11))
        x += long
        wide = max(wide, x - left)
    return drawn, max(wide, 180), top + 30


def _text(x: float, y: float, text: str, *, size: float = 14, **how: Any) -> str:
    named = {"anchor": "text-anchor", "weight": "font-weight"}
    given = {named.get(name, name): value for name, value in how.items()}
    return _tag("text", text, x=x, y=y, **{"font-size": size, "fill": INK} | given)


def _tag(tag: str, text: str = "", /, **attributes: object) -> str:
    said = "".join(
        f' {name}="{escape(f"{value:g}" if isinstance(value, float) else value)}"'
        for name, value in attributes.items()
    )
    return f"<{tag}{said}>{escape(text)}</{tag}>" if text else f"<{tag}{said}/>"


def _svg(title: str, width: float, height: float, drawn: Iterable[str]) -> str:
    """A drawing with some room around it."""
    w, h = width + 16, height + 16
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{w:g}" height="{h:g}" '
        f'viewBox="-8 -8 {w:g} {h:g}" font-family="Helvetica, Arial, \'Noto Sans CJK SC\', '
        f"'Microsoft YaHei', sans-serif\"><title>{escape(title)}</title>"
        f'<rect x="-8" y="-8" width="{w:g}" height="{h:g}" fill="#FFFFFF"/>'
        f"{''.join(drawn)}</svg>\n"
    )
