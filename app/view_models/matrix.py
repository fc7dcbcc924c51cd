"""The matrix panel: visible, attention, difference; what its cells are."""

import base64
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from app.texts import t
from app.view_models.diff import Aligned, Identity, align
from app.view_models.html import escape, plain
from app.view_models.why import is_visible, why
from kbert_core import Ablation, FlatTree

Kind = Literal["visible", "attention", "difference"]
LEVELS = 250  # codes below are values; the others are kinds of cell
ONLY_BEFORE, ONLY_AFTER, HIDDEN = 253, 254, 255
TRUNK, BRANCH, LINK, ABLATED, SEEN, UNSEEN = range(6)  # codes of a visible matrix
KEPT = 6


@dataclass(frozen=True)
class MatrixView:
    """A square of cells, a code each.

    Attributes:
        kind: which panel.
        categorical: whether codes below LEVELS are categories.
        codes: (N, N) uint8; row attends to column.
        tokens: N, aligned where two scenes are compared.
        roles: N; 0 trunk, 1 branch, 2 mention.
        groups: N; equal for neighbours of one mention or one branch, 0 for
            any other token.
        low, high: what the codes 0 and LEVELS - 1 stand for.
    """

    kind: Kind
    categorical: bool
    codes: np.ndarray
    tokens: tuple[Aligned, ...]
    roles: tuple[int, ...]
    groups: tuple[int, ...]
    low: float = 0.0
    high: float = 1.0

    @property
    def identities(self) -> tuple[Identity, ...]:
        """What each row and column is."""
        return tuple(token.identity for token in self.tokens)

    def data(self, selected: tuple[Identity, Identity] | None) -> dict[str, object]:
        """What the front end needs, as JSON; texts are plain, not HTML."""
        places = {name: i for i, name in enumerate(self.identities)}
        cell = None
        if selected and selected[0] in places and selected[1] in places:
            cell = [places[selected[0]], places[selected[1]]]
        return {
            "n": len(self.tokens),
            "kind": self.kind,
            "categorical": self.categorical,
            "codes": base64.b64encode(self.codes.tobytes()).decode(),
            "tokens": [plain(token.text) for token in self.tokens],
            "status": [token.status for token in self.tokens],
            "roles": list(self.roles),
            "groups": list(self.groups),
            "low": self.low,
            "high": self.high,
            "cell": cell,
            "names": names_of(self.kind),
            "label": t("matrix.aria", kind=t("matrix." + self.kind), n=len(self.tokens)),
        }


def names_of(kind: Kind) -> dict[str, str]:
    """What each category is called in the tool tip and the legend."""
    return {
        str(TRUNK): t("cell.trunk"),
        str(BRANCH): t("cell.branch"),
        str(LINK): t("cell.link"),
        str(ABLATED): t("cell.ablated"),
        str(SEEN): t("cell.seen"),
        str(UNSEEN): t("cell.unseen"),
        str(KEPT): t("cell.kept"),
        str(ONLY_BEFORE): t("cell.only_before"),
        str(ONLY_AFTER): t("cell.only_after"),
        str(HIDDEN): t("cell.hidden"),
    }


def visible_view(flat: FlatTree, ablation: Ablation) -> MatrixView:
    """The visible matrix, each visible cell by the clause of Eq. 3 that opens it."""
    branch, anchor = np.array(flat.branch_ids), np.array(flat.anchor_ids)
    same = branch[:, None] == branch[None, :]
    mention = (branch == 0) & (anchor > 0)
    near = (anchor[:, None] == anchor[None, :]) & (mention[:, None] | mention[None, :])
    codes = np.full((len(flat), len(flat)), HIDDEN, dtype=np.uint8)
    if ablation.visible == "all":
        codes[:] = ABLATED
    codes[near & ~same] = LINK
    codes[same] = BRANCH
    codes[same & (branch[:, None] == 0)] = TRUNK
    return MatrixView("visible", True, codes, _alone(flat), *_roles(flat))


def attention_view(flat: FlatTree, weights: np.ndarray, ablation: Ablation) -> MatrixView:
    """Attention weights of one head, or their mean; hidden cells apart.

    Args:
        flat: N tokens.
        weights: (N, N), row attends to column, rows sum to 1.
        ablation: decides which cells are hidden.
    """
    weights = np.asarray(weights, dtype=np.float32)
    high = float(max(weights.max(initial=0.0), 1e-6))
    codes = np.clip(np.round(weights / high * (LEVELS - 1)), 0, LEVELS - 1).astype(np.uint8)
    codes[~_visible(flat, ablation)] = HIDDEN
    return MatrixView("attention", False, codes, _alone(flat), *_roles(flat), 0.0, high)


def visible_difference(
    before: FlatTree, after: FlatTree, ablations: tuple[Ablation, Ablation]
) -> MatrixView:
    """Which cells became visible or hidden, token by token."""
    tokens, grid_before, grid_after, _ = _joined(before, after)
    was = _visible(before, ablations[0])[grid_before]
    now = _visible(after, ablations[1])[grid_after]
    codes = np.full(was.shape, HIDDEN, dtype=np.uint8)
    codes[was & now] = KEPT
    codes[now & ~was] = SEEN
    codes[was & ~now] = UNSEEN
    return _marked(codes, tokens, (before, after), categorical=True)


def attention_difference(
    before: FlatTree,
    after: FlatTree,
    weights: tuple[np.ndarray, np.ndarray],
    ablations: tuple[Ablation, Ablation],
) -> MatrixView:
    """Attention after minus before, centred at zero; tokens joined by identity."""
    tokens, grid_before, grid_after, both = _joined(before, after)
    change = np.asarray(weights[1], np.float32)[grid_after]
    change = change - np.asarray(weights[0], np.float32)[grid_before]
    high = float(np.abs(change[both]).max(initial=0.0))
    scale = high or 1.0
    centre = (LEVELS - 1) / 2
    codes = np.clip(np.round(centre + change / scale * centre), 0, LEVELS - 1).astype(np.uint8)
    hidden = (
        ~_visible(before, ablations[0])[grid_before] & ~_visible(after, ablations[1])[grid_after]
    )
    codes[hidden] = HIDDEN
    return _marked(codes, tokens, (before, after), categorical=False, low=-high, high=high)


def largest_change(view: MatrixView) -> float:
    """The largest difference, 0 where two scenes are equal."""
    if view.categorical:
        return float(np.isin(view.codes, (SEEN, UNSEEN, ONLY_BEFORE, ONLY_AFTER)).any())
    return max(abs(view.low), abs(view.high))


def legend(view: MatrixView) -> tuple[int, ...]:
    """The categories that occur, in a fixed order."""
    found = set(np.unique(view.codes).tolist())
    order = [TRUNK, BRANCH, LINK, ABLATED, KEPT, SEEN, UNSEEN]
    if not view.categorical:
        order = []
    return tuple(c for c in [*order, ONLY_AFTER, ONLY_BEFORE, HIDDEN] if c in found)


@dataclass(frozen=True, slots=True)
class CellText:
    """What the page says of the selected cell; plain text."""

    sentence: str
    value: str
    row: tuple[tuple[str, str], ...]


def cell_text(
    view: MatrixView,
    selected: tuple[Identity, Identity],
    before: FlatTree | None,
    after: FlatTree,
    ablation: Ablation,
    weights: np.ndarray | None,
) -> CellText | None:
    """Say why a cell is visible, what it holds, and where its row looks most."""
    places = {token.identity: token for token in view.tokens}
    if selected[0] not in places or selected[1] not in places:
        return None
    row, column = places[selected[0]], places[selected[1]]
    if row.after is None or column.after is None:
        if before is None or row.before is None or column.before is None:
            return CellText(t("cell.never", a=row.text, b=column.text), "", ())
        said = why(before, row.before, column.before, ablation)
        return CellText(t("cell.was", sentence=said), "", ())
    sentence = why(after, row.after, column.after, ablation)
    if weights is None:
        return CellText(sentence, "", _neighbours(after, row.after, ablation))
    value = float(weights[row.after, column.after])
    said = t("cell.value", a=row.text, b=column.text, p=_share(value))
    if not is_visible(after, row.after, column.after, ablation):
        said = t("cell.zero")
    order = np.argsort(-weights[row.after])[:6]
    best = tuple((after.tokens[i], _share(float(weights[row.after, i]))) for i in order)
    return CellText(sentence, said, best)


def _neighbours(flat: FlatTree, row: int, ablation: Ablation) -> tuple[tuple[str, str], ...]:
    """The branch tokens a row may attend to: what the trunk alone doesn't tell."""
    return tuple(
        (flat.tokens[j], "")
        for j in range(len(flat))
        if flat.branch_ids[j] > 0 and j != row and is_visible(flat, row, j, ablation)
    )[:12]


def _joined(
    before: FlatTree, after: FlatTree
) -> tuple[tuple[Aligned, ...], tuple[np.ndarray, ...], tuple[np.ndarray, ...], np.ndarray]:
    tokens = align(before, after)
    old = np.array([token.before if token.before is not None else 0 for token in tokens])
    new = np.array([token.after if token.after is not None else 0 for token in tokens])
    same = np.array([token.status == "same" for token in tokens])
    return tokens, np.ix_(old, old), np.ix_(new, new), same[:, None] & same[None, :]


def _marked(
    codes: np.ndarray,
    tokens: tuple[Aligned, ...],
    flats: tuple[FlatTree, FlatTree],
    *,
    categorical: bool,
    low: float = 0.0,
    high: float = 1.0,
) -> MatrixView:
    added = np.array([token.status == "added" for token in tokens])
    removed = np.array([token.status == "removed" for token in tokens])
    codes = codes.copy()
    codes[added[:, None] | added[None, :]] = ONLY_AFTER
    codes[removed[:, None] | removed[None, :]] = ONLY_BEFORE
    roles_before, groups_before = _roles(flats[0])
    roles_after, groups_after = _roles(flats[1])
    roles, groups = [], []
    for token in tokens:
        if token.after is not None:
            roles.append(roles_after[token.after])
            groups.append(groups_after[token.after])
        else:
            assert token.before is not None
            roles.append(roles_before[token.before])
            groups.append(groups_before[token.before] + 10_000)
    return MatrixView(
        "difference", categorical, codes, tokens, tuple(roles), tuple(groups), low, high
    )


def _visible(flat: FlatTree, ablation: Ablation) -> np.ndarray:
    return visible_view(flat, ablation).codes != HIDDEN


def _alone(flat: FlatTree) -> tuple[Aligned, ...]:
    return tuple(
        Aligned(name, text, i, i)
        for i, (name, text) in enumerate(zip(flat.identities, flat.tokens, strict=True))
    )


def _roles(flat: FlatTree) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Per token its role, and the mention or branch it is part of."""
    codes = list(zip(flat.branch_ids, flat.anchor_ids, strict=True))
    most = max(flat.anchor_ids, default=0) + 1
    roles = tuple(1 if b else (2 if a else 0) for b, a in codes)
    return roles, tuple(most + b if b else a for b, a in codes)


def _share(value: float) -> str:
    if value == 0:
        return "0"
    return f"{100 * value:.1f} %" if value >= 0.0005 else "< 0.1 %"


def without_specials(view: MatrixView) -> MatrixView:
    """Leave [CLS] and [SEP] out of what is drawn; nothing is computed anew."""
    keep = [i for i, name in enumerate(view.identities) if name[0] != "special"]
    return replace(
        view,
        codes=np.ascontiguousarray(view.codes[np.ix_(keep, keep)]),
        tokens=tuple(view.tokens[i] for i in keep),
        roles=tuple(view.roles[i] for i in keep),
        groups=tuple(view.groups[i] for i in keep),
    )


def picked(maps: np.ndarray, layer: int, head: int) -> np.ndarray:
    """One map of (L, A, N, N): layer and head from 1; 0 is the mean."""
    chosen = maps.astype(np.float32)
    chosen = chosen[layer - 1] if layer else chosen.mean(0)
    return chosen[head - 1] if head else chosen.mean(0)


def legend_html(view: MatrixView) -> str:
    """The categories that occur, each with its colour and its name."""
    names = names_of(view.kind)
    keys = "".join(
        f'<span class="kb-key"><i class="kb-m-{code}"></i>{escape(names[str(code)])}</span>'
        for code in legend(view)
    )
    return f'<div class="kb-legend">{keys}</div>'
