"""The sentence tree as a picture: the trunk in lines, branches below their mention."""

from collections.abc import Iterator, Sequence

from app.texts import t
from app.view_models.figures import Form
from app.view_models.html import plain
from app.view_models.sheet import Sheet, sheet
from app.view_models.styles import BRANCH, CHANGED, TRUNK
from app.view_models.tree import BranchView, NodeView, TokenView, TreeView
from kbert_core.explain.drawing import EDGE, GREY

WIDTH = 760.0  # points
TEXT, NUMBER = 11.0, 7.0  # sizes of a token's text and of its positions
TOKEN, GAP, PADDING = 31.0, 3.0, 4.0  # height of a token, between two, beside its text
INDENT = 14.0  # of a branch below its mention
USED = "#C04F00"  # of the positions that the model was given


def tree_picture(view: TreeView, form: Form) -> bytes:
    """Draw a tree as it stands on the page; see ``tree.tree_html``."""
    with sheet(WIDTH) as page:
        y = _legend(page, view)
        for sentence in sorted({node.sentence for node in view.nodes}):
            nodes = [node for node in view.nodes if node.sentence == sentence]
            for line in _lines(page, view, nodes):
                y = _trunk(page, view, line, y) + 16
        return page.saved(form)


def _legend(page: Sheet, view: TreeView) -> float:
    x = 0.0
    kinds = [
        (t("tree.trunk"), (TRUNK, 0.13), "none"),
        (t("tree.mention"), (TRUNK, 0.34), "none"),
        (t("tree.branch"), (BRANCH, 0.26), "none"),
    ]
    branches = [branch for node in view.nodes for branch in node.branches]
    if any(branch.status == "added" for branch in branches):
        kinds.append((t("tree.added"), ("white", 0.0), CHANGED))
    if any(branch.status == "removed" for branch in branches):
        kinds.append((t("tree.removed"), ("white", 0.0), CHANGED))
    for name, face, edge in kinds:
        page.box(x, 1, 13, 11, face, edge, dashed=name == t("tree.removed"))
        page.text(x + 18, 7, name, 8.5, colour=GREY, anchor="left")
        x += 34 + page.width_of(name, 8.5)
    soft, hard = t("tree.soft"), t("tree.hard")
    page.text(x, 7, soft, 8.5, colour=GREY if view.hard_used else USED, anchor="left")
    x += page.width_of(soft, 8.5) + 6
    page.text(x, 7, f"| {hard}", 8.5, colour=USED if view.hard_used else GREY, anchor="left")
    return 26.0


def _lines(page: Sheet, view: TreeView, nodes: Sequence[NodeView]) -> Iterator[list[NodeView]]:
    """Break a trunk into lines that fit the sheet, none of them [SEP] alone."""
    line: list[NodeView] = []
    used = 0.0
    for node in nodes:
        width = _node_width(page, view, node)
        if line and used + width > page.width:
            alone = all(token.special for token in node.tokens) and len(line) > 1
            taken = [line.pop()] if alone else []
            yield line
            line = taken
            used = sum(_node_width(page, view, one) for one in taken)
        line.append(node)
        used += width
    if line:
        yield line


def _trunk(page: Sheet, view: TreeView, line: Sequence[NodeView], y: float) -> float:
    """Draw one line of the trunk at a height; return how far down it reaches."""
    x, bottom = 0.0, y + TOKEN
    places = []
    for node in line:
        places.append(x)
        at = x
        for token in node.tokens:
            at += _token(page, view, token, at, y, _trunk_face(node, token)) + GAP
        if node.branches:
            bottom = max(bottom, _branches(page, view, node, x, y + TOKEN + 9))
        x += _node_width(page, view, node)
    page.line([(0, y + TOKEN + 2), (x - GAP, y + TOKEN + 2)], TRUNK, 2.4)
    return bottom


def _trunk_face(node: NodeView, token: TokenView) -> tuple[str, float]:
    return (TRUNK, 0.0 if token.special else 0.26 if node.mention else 0.09)


def _branches(page: Sheet, view: TreeView, node: NodeView, x: float, y: float) -> float:
    top = y - 7
    for branch in node.branches:
        colour = EDGE if branch.cut else BRANCH
        for tokens in _rows(page, view, branch, page.width - x - INDENT):
            at = x + INDENT
            for token in tokens:
                face = ("white", 0.0) if _gone(branch) else (BRANCH, 0.22)
                width = _token(page, view, token, at, y, face, struck=_gone(branch))
                at += width + GAP
            if branch.status != "same":
                page.box(
                    *(x + INDENT - 2, y - 2, at - x - INDENT - GAP + 4, TOKEN + 4),
                    edge=CHANGED,
                    dashed=branch.status == "removed",
                )
            if branch.cut:
                page.text(
                    at + 2,
                    y + TOKEN / 2,
                    t("rule." + branch.cut.name),
                    8,
                    colour=GREY,
                    anchor="left",
                )
            middle = y + TOKEN / 2
            page.line([(x + 5, top), (x + 5, middle), (x + INDENT - 3, middle)], colour)
            top = middle
            y += TOKEN + 6
    return y


def _gone(branch: BranchView) -> bool:
    return branch.status == "removed" or branch.cut is not None


def _rows(
    page: Sheet, view: TreeView, branch: BranchView, room: float
) -> Iterator[list[TokenView]]:
    row: list[TokenView] = []
    used = 0.0
    for token in branch.tokens:
        width = _token_width(page, view, token) + GAP
        if row and used + width > max(room, 160):
            yield row
            row, used = [], 0.0
        row.append(token)
        used += width
    if row:
        yield row


def _token(
    page: Sheet,
    view: TreeView,
    token: TokenView,
    x: float,
    y: float,
    face: tuple[str, float],
    *,
    struck: bool = False,
) -> float:
    """Draw a token at a place; return its width."""
    width = _token_width(page, view, token)
    page.box(
        x, y, width, TOKEN, face, EDGE if token.special or struck else "none", dashed=True, line=0.7
    )
    has_numbers = token.soft is not None
    middle = y + (12 if has_numbers else TOKEN / 2)
    size = 8.5 if token.special else TEXT
    page.text(
        x + width / 2,
        middle,
        _text(token),
        size,
        colour=GREY if token.special or struck else "#222222",
    )
    if struck:
        page.line([(x + 3, middle), (x + width - 3, middle)], GREY, 0.8)
    if has_numbers:
        soft, hard = f"{token.soft}", f"{token.hard}"
        half = x + width / 2
        used, other = (GREY, USED) if view.hard_used else (USED, GREY)
        segment = _segment(view, token)
        page.text(
            half - 2.5, y + 24.5, soft, NUMBER, colour=used, bold=not view.hard_used, anchor="right"
        )
        page.text(
            half + 2.5,
            y + 24.5,
            hard + segment,
            NUMBER,
            colour=other,
            bold=view.hard_used,
            anchor="left",
        )
        page.line([(half, y + 21), (half, y + 27.5)], EDGE, 0.6)
    return width


def _text(token: TokenView) -> str:
    shown = plain(token.text)
    return shown if len(shown) <= 40 else f"{shown[:39]}…"


def _segment(view: TreeView, token: TokenView) -> str:
    return f" {'AB'[min(token.segment, 1)]}" if view.segments > 1 else ""


def _token_width(page: Sheet, view: TreeView, token: TokenView) -> float:
    text = page.width_of(_text(token), 8.5 if token.special else TEXT)
    if token.soft is None:
        return max(18.0, text + 2 * PADDING)
    right = page.width_of(f"{token.hard}{_segment(view, token)}", NUMBER, True)
    numbers = 2 * (2.5 + max(right, page.width_of(f"{token.soft}", NUMBER, True)))
    return max(18.0, text + 2 * PADDING, numbers + 3)


def _node_width(page: Sheet, view: TreeView, node: NodeView) -> float:
    """How much of the line a mention needs, its branches included."""
    own = sum(_token_width(page, view, token) + GAP for token in node.tokens)
    below = 0.0
    for branch in node.branches:
        width = INDENT + 6 + sum(_token_width(page, view, token) + GAP for token in branch.tokens)
        if branch.cut:
            width += page.width_of(t("rule." + branch.cut.name), 8) + 6
        below = max(below, width)
    return min(page.width, max(own, below))
