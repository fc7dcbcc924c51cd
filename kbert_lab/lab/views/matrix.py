"""The matrix panel: visible, attention, difference; what its cells are."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from kbert_core.kbert.flat_tree import FlatTree
from kbert_core.kbert.visible import Ablation
from kbert_lab.lab.selection import Marks, code_of
from kbert_lab.lab.texts import N_, sentences, t
from kbert_lab.lab.views.html import plain
from kbert_lab.lab.views.why import share, why
from kbert_lab.lab.words import MATRIX_TEXTS
from kbert_lab.lab.written import Identity

if TYPE_CHECKING:  # see kbert_lab/lab/views/why.py
    from kbert_core.kbert.kbert import KBertTrace

CANVAS = {
    "zoom_in": N_("Zoom in"),
    "zoom_out": N_("Zoom out"),
    "fit": N_("Whole matrix"),
    "mass": N_("In each row, show the fewest cells that hold"),
    "mass_all": N_("all"),
    "mass_kept": N_("{share} % of its mass: {kept} cells, {each} a row"),
    "hint": N_("Enter opens it"),
    "row_column": N_("its row and column"),
    "save": N_("Save as SVG, for a paper"),
    "axes": N_("row: looks · column: is looked at"),
}

Kind = Literal["visible", "attention", "difference"]
Status = Literal["same", "added", "removed"]
LEVELS = 250  # codes below are values; the others are kinds of cell
ONLY_BEFORE, ONLY_AFTER, HIDDEN = 253, 254, 255
TRUNK, BRANCH, LINK, ABLATED, SEEN, UNSEEN = range(6)  # codes of a visible matrix
KEPT = 6
NEW_AND_GONE = (SEEN, ONLY_AFTER), (UNSEEN, ONLY_BEFORE)
BLOCKED, OPENED = 7, 8  # by interventions
PART_BLOCKED, PART_OPENED = 9, 10  # in some layers only
FINE = 65_000  # steps of a value that the front end gets
NOTHING = Marks()  # is chosen


@dataclass(frozen=True, slots=True)
class Aligned:
    """One token of two trees."""

    identity: Identity  # see FlatTree.identities
    text: str  # what it reads
    before: int | None  # its index along N in each tree; None: not there
    after: int | None

    @property
    def status(self) -> Status:
        """Whether the token is in both trees or in one only."""
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "same"


def align(before: FlatTree, after: FlatTree) -> tuple[Aligned, ...]:
    """Join two flat trees by identity, in the order of the second.

    A token that only the first has keeps its place behind the token it
    followed there. An index-wise join would call everything behind an
    inserted branch changed.
    """
    places_before = {name: i for i, name in enumerate(before.identities)}
    places_after = {name: i for i, name in enumerate(after.identities)}
    gone: dict[Identity | None, list[Aligned]] = {}
    follows: Identity | None = None
    for index, name in enumerate(before.identities):
        if name in places_after:
            follows = name
        else:
            gone.setdefault(follows, []).append(Aligned(name, before.tokens[index], index, None))
    joined = gone.pop(None, [])
    for index, name in enumerate(after.identities):
        joined.append(Aligned(name, after.tokens[index], places_before.get(name), index))
        joined.extend(gone.pop(name, ()))
    return tuple(joined)


def same_text(before: FlatTree, after: FlatTree) -> bool:
    """Say whether two trees can be joined: same sentences, cut the same way."""
    return before.tree.sentences == after.tree.sentences and [
        list(zip(t.starts, t.ends, strict=True)) for t in before.trunk_tokens
    ] == [list(zip(t.starts, t.ends, strict=True)) for t in after.trunk_tokens]


@dataclass(frozen=True)
class MatrixView:
    """A square of cells, a code each."""

    kind: Kind  # which panel
    categorical: bool  # whether codes below LEVELS are categories
    codes: np.ndarray  # (N, N) uint8; row attends to column
    tokens: tuple[Aligned, ...]  # N, aligned where two scenes are compared
    roles: tuple[int, ...]  # N; 0 trunk, 1 branch, 2 mention
    # N; equal for neighbours of one mention or one branch, 0 for any other token
    groups: tuple[int, ...]
    low: float = 0.0  # what the codes 0 and LEVELS - 1 stand for
    high: float = 1.0
    # (N, N) float32, what the cells hold; None where codes say it all
    values: np.ndarray | None = None

    @property
    def identities(self) -> tuple[Identity, ...]:
        """What each row and column is."""
        return tuple(token.identity for token in self.tokens)

    def data(self, marks: Marks = NOTHING) -> dict[str, object]:
        """What the front end needs, as JSON; texts are plain, not HTML.

        Args:
            marks: what is chosen, as places among ``tokens``.
        """
        said = N_("{kind} matrix of {n} tokens; arrow keys move, Enter chooses a cell")
        return {
            "n": len(self.tokens),
            "kind": self.kind,
            "categorical": self.categorical,
            "cells": base64.b64encode(self._cells.tobytes()).decode(),
            "tokens": [plain(token.text) for token in self.tokens],
            "identities": [code_of(identity) for identity in self.identities],
            "status": [token.status for token in self.tokens],
            "roles": list(self.roles),
            "groups": list(self.groups),
            "low": self.low,
            "high": self.high,
            "token": marks.token,
            "cell": list(marks.cell) if marks.cell else None,
            "branch": list(marks.branch),
            "names": {str(code): t(name) for code, name in CELLS.items()},
            "label": t(said, kind=t(MATRIX_TEXTS[self.kind]), n=len(self.tokens)),
            "texts": {name: t(text) for name, text in CANVAS.items()},
        }

    @property
    def _cells(self) -> np.ndarray:
        """Codes, or values in 16 bit: fine enough to be read, and kinds of cell above them."""
        if self.values is None:
            return self.codes
        scaled = np.round((self.values - self.low) / ((self.high - self.low) or 1.0) * FINE)
        fine = np.clip(scaled, 0, FINE).astype("<u2")
        return np.where(self.codes >= LEVELS, FINE + self.codes.astype("<u2"), fine)


CELLS = {  # what each kind of cell is called in the tool tip and the legend, in its order
    TRUNK: N_("both on the trunk"),
    BRANCH: N_("on the same branch"),
    LINK: N_("a mention and its branch"),
    ABLATED: N_("visible only because of the ablation"),
    KEPT: N_("visible in both"),
    SEEN: N_("now visible"),
    UNSEEN: N_("now hidden"),
    BLOCKED: N_("× blocked"),
    PART_BLOCKED: N_("/ blocked in some layers"),
    OPENED: N_("○ opened"),
    PART_OPENED: N_("· opened in some layers"),
    ONLY_AFTER: N_("+ token only now"),
    ONLY_BEFORE: N_("− token only before"),
    HIDDEN: N_("hidden"),
}


def visible_view(flat: FlatTree, ablation: Ablation, share: np.ndarray | None = None) -> MatrixView:
    """The visible matrix, each visible cell by the clause of Eq. 3 that opens it.

    Args:
        flat: N tokens.
        ablation: how they are read.
        share: (N, N), the share of layers in which row may attend to column:
            cells that interventions changed are marked; None: none did.
    """
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
    if share is not None:
        was = codes != HIDDEN
        some = (share > 0) & (share < 1)
        codes[was & (share == 0)], codes[was & some] = BLOCKED, PART_BLOCKED
        codes[~was & (share == 1)], codes[~was & some] = OPENED, PART_OPENED
    return MatrixView("visible", True, codes, *_axis(flat, flat))


def attention_view(
    flat: FlatTree, weights: np.ndarray, visible: np.ndarray, *, high: float | None = None
) -> MatrixView:
    """Attention weights of one head, or their mean; hidden cells apart.

    Args:
        flat: N tokens.
        weights: (N, N), row attends to column, rows sum to 1.
        visible: (N, N) bool, row may attend to column.
        high: the scale's upper end, where several maps share one; None: the
            largest weight.
    """
    weights = np.asarray(weights, dtype=np.float32)
    high = high or float(max(weights.max(initial=0.0), 1e-6))
    codes = np.clip(np.round(weights / high * (LEVELS - 1)), 0, LEVELS - 1).astype(np.uint8)
    codes[~visible] = HIDDEN
    return MatrixView("attention", False, codes, *_axis(flat, flat), 0.0, high, weights)


def difference(
    before: FlatTree,
    after: FlatTree,
    visible: tuple[np.ndarray, np.ndarray],
    weights: tuple[np.ndarray, np.ndarray] | None = None,
) -> MatrixView:
    """Which cells became visible or hidden, in some layers is enough; or attention's change.

    The change is attention after minus before, centred at zero. Tokens are joined by identity.

    Args:
        before, after: the tokens of two scenes.
        visible: (N, N), of each: in which share of the layers row may attend
            to column, or bool.
        weights: (N, N), of each; None: the cells are told apart by what is visible.
    """
    tokens, roles, groups = _axis(before, after)
    places = [own.before for own in tokens], [own.after for own in tokens]
    was, now = (_spread(own, at) for own, at in zip(visible, places, strict=True))
    same = np.array([token.status == "same" for token in tokens])
    both, seen = same[:, None] & same, (was > 0) | (now > 0)
    codes, high, change = np.full(was.shape, HIDDEN, dtype=np.uint8), 1.0, None
    if weights is None:
        codes[seen] = np.select([now > was, now < was], [SEEN, UNSEEN], KEPT)[seen]
    else:
        change = _spread(weights[1], places[1]) - _spread(weights[0], places[0])
        high, centre = float(np.abs(change[both]).max(initial=0.0)), (LEVELS - 1) / 2
        scaled = np.clip(np.round(centre + change / (high or 1.0) * centre), 0, LEVELS - 1)
        codes[seen] = scaled[seen]
    codes[~both & (now > 0)], codes[~both & (was > 0)] = ONLY_AFTER, ONLY_BEFORE
    low = 0.0 if weights is None else -high
    return MatrixView(
        "difference", weights is None, codes, tokens, roles, groups, low, high, change
    )


def _spread(values: np.ndarray, places: Sequence[int | None]) -> np.ndarray:
    """Values of a tree's tokens over those of two; 0 where it lacks one of the two tokens."""
    there = [at for at, place in enumerate(places) if place is not None]
    own = [place for place in places if place is not None]
    found = np.zeros((len(places), len(places)), np.float32)
    found[np.ix_(there, there)] = np.asarray(values, np.float32)[np.ix_(own, own)]
    return found


def say_change(view: MatrixView) -> str:
    """Say whether two scenes are equal, else how many links are new and how many are gone."""
    new, gone = (int(np.isin(view.codes, codes).sum()) for codes in NEW_AND_GONE)
    if not new + gone and (view.categorical or not view.high):
        return t("No difference: the two matrices are equal.")
    return t("{new} links more, {gone} fewer.", new=new, gone=gone) if view.categorical else ""


def cell_text(
    view: MatrixView,
    selected: tuple[Identity, Identity],
    before: FlatTree | None,
    after: FlatTree,
    ablation: Ablation,
    weights: np.ndarray | None,
    old: np.ndarray | None,
    visible: np.ndarray,
) -> tuple[str, str] | None:
    """Say why a cell is visible, and what it holds; plain text. None: it isn't there.

    Args:
        selected: the cell, who looks and at whom.
        before, after: the tokens of the scenes; only one where none is compared.
        ablation: of ``after``.
        weights, old: (N, N) attention of ``after`` and ``before``, if shown.
        visible: (N, N) bool, of ``after``, interventions included.
    """
    places = {token.identity: token for token in view.tokens}
    if selected[0] not in places or selected[1] not in places:
        return None
    row, column = places[selected[0]], places[selected[1]]
    if row.after is None or column.after is None:
        if before is None or row.before is None or column.before is None:
            text = N_("“{a}” and “{b}” are never in the same tree.")
            return t(text, a=row.text, b=column.text), ""
        said = why(before, row.before, column.before, ablation)
        return t("Before: {sentence}", sentence=said), ""
    sentence = why(after, row.after, column.after, ablation)
    if weights is None:
        return sentence, ""
    value = share(float(weights[row.after, column.after]))
    said = t("“{a}” gives “{b}” {p} of its attention.", a=row.text, b=column.text, p=value)
    if not visible[row.after, column.after]:
        said = t("Its attention there is exactly 0.")
    if old is not None and row.before is not None and column.before is not None:
        said = sentences([said, t("Before: {p}.", p=share(float(old[row.before, column.before])))])
    return sentence, said


def _axis(
    before: FlatTree, after: FlatTree
) -> tuple[tuple[Aligned, ...], tuple[int, ...], tuple[int, ...]]:
    """The tokens of two trees, or of one twice: each with its role, and mention or branch."""
    tokens = align(before, after)
    most = max((*before.anchor_ids, *after.anchor_ids), default=0) + 1
    roles, groups = [], []
    for own in tokens:
        gone = own.after is None
        flat, at = (before, own.before or 0) if gone else (after, own.after or 0)
        branch, anchor = flat.branch_ids[at], flat.anchor_ids[at]
        roles.append(1 if branch else 2 if anchor else 0)
        groups.append((most + branch if branch else anchor) + 10_000 * gone)
    return tokens, tuple(roles), tuple(groups)


def places_drawn(names: Sequence[Identity], *, specials: bool) -> list[int]:
    """Which tokens are drawn: all, or all but [CLS] and [SEP]; nothing is computed anew."""
    return [i for i, name in enumerate(names) if specials or name[0] != "special"]


def without_specials(view: MatrixView) -> MatrixView:
    """Leave [CLS] and [SEP] out of what is drawn."""
    keep = places_drawn(view.identities, specials=False)
    grid = np.ix_(keep, keep)
    return replace(
        view,
        codes=view.codes[grid],
        tokens=tuple(view.tokens[i] for i in keep),
        roles=tuple(view.roles[i] for i in keep),
        groups=tuple(view.groups[i] for i in keep),
        values=view.values[grid] if view.values is not None else None,
    )


def picked(maps: np.ndarray, layer: int, head: int) -> np.ndarray:
    """One map of (L, A, N, N): layer and head from 1, as far as there are so many; 0: the mean."""
    layer, head = min(layer, maps.shape[0]), min(head, maps.shape[1])
    layers = maps[layer - 1 : layer] if layer else maps
    return (layers[:, head - 1 : head] if head else layers).astype(np.float32).mean((0, 1))


def row_of(trace: "KBertTrace | None", window: int, like: FlatTree) -> FlatTree | None:
    """The row of another trace that can be laid over one, if there is one."""
    if trace is None or window >= len(trace.rows):
        return None
    row = trace.rows[window]
    return row if same_text(row, like) else None
