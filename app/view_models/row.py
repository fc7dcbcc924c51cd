"""One row of the matrix in words and as a table: who sees whom, and how much it looks there."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from app.selection import triple_of
from app.texts import listed, sentences, t
from app.view_models.diff import Identity
from app.view_models.html import escape, scrolling, shown, table_html
from app.view_models.matrix import HIDDEN, names_of, share, visible_view
from app.view_models.why import branch_of
from kbert_core import Ablation, FlatTree, Triple

MOST_LINES = 200  # of the table
MOST_NAMED = 6  # tokens or branches named in a sentence; the table has them all


@dataclass(frozen=True, slots=True)
class SeenToken:
    """A token that the row sees.

    Attributes:
        text: what it reads.
        place: its hard position.
        branch: the branch it stands on; empty on the trunk.
        why: the clause of Eq. 3 that opens the cell.
        now, before: the row's attention to it, 0 to 1; None: not shown, or
            not there.
    """

    text: str
    place: int
    branch: str
    why: str
    now: float | None = None
    before: float | None = None


@dataclass(frozen=True, slots=True)
class RowView:
    """A row in words and as a table.

    Attributes:
        said: sentences; plain text.
        seen: where it looks most first, or in reading order.
        compared: whether there is an earlier attention.
    """

    said: tuple[str, ...]
    seen: tuple[SeenToken, ...]
    compared: bool = False


def row_view(
    flat: FlatTree,
    row: int,
    ablation: Ablation,
    visible: np.ndarray,
    weights: np.ndarray | None = None,
    before: Mapping[Identity, float] | None = None,
) -> RowView:
    """Describe a row.

    Args:
        flat: N tokens.
        row: which.
        ablation: tells why a cell is open.
        visible: (N, N) bool, row may attend to column.
        weights: (N, N) attention, if it is shown.
        before: the row's attention in the scene compared with, by token.
    """
    codes = visible_view(flat, ablation).codes[row]
    names = {**names_of("visible"), str(HIDDEN): t("an intervention opens it")}
    hidden = [j for j in range(len(flat)) if not visible[row, j]]
    seen = [
        SeenToken(
            flat.tokens[j],
            j,
            branch_of(flat, j),
            t("the token itself") if j == row else names[str(codes[j])],
            float(weights[row, j]) if weights is not None else None,
            before.get(flat.identities[j]) if before is not None else None,
        )
        for j in range(len(flat))
        if visible[row, j]
    ]
    looks = {"a": flat.tokens[row], "seen": len(seen), "n": len(flat)}
    said = [
        t(
            "“{a}” sees {seen} of {n} tokens: {what}.",
            **looks,
            what=_named(flat, [token.place for token in seen]),
        )
    ]
    if hidden:
        said.append(t("Hidden from it: {what}.", what=_named(flat, hidden)))
    if weights is not None:
        seen.sort(key=lambda token: -(token.now or 0.0))
        most = [f"“{token.text}” {share(token.now or 0.0)}" for token in seen]
        said.append(
            t("“{a}” attends most to: {what}.", a=flat.tokens[row], what=listed(most[:MOST_NAMED]))
        )
    return RowView(tuple(said), tuple(seen), before is not None)


def row_html(view: RowView) -> str:
    """The row as a table."""
    heads = [t("Token"), t("Stands on"), t("Seen because")]
    with_weights = any(token.now is not None for token in view.seen)
    numbers = [t("Attention")] if with_weights else []
    if with_weights and view.compared:
        numbers = [t("Before"), t("Now"), t("Change")]
    rows = [_line(token, len(numbers)) for token in view.seen[:MOST_LINES]]
    more = len(view.seen) - MOST_LINES
    if more > 0:
        rows.append([escape(t("and {n} more", n=more))])
    return scrolling(table_html([*heads, *numbers], rows, numbers=len(numbers)))


def _line(token: SeenToken, numbers: int) -> list[str]:
    where = t("branch “{branch}”", branch=token.branch) if token.branch else t("trunk")
    cells = [f"{shown(token.text)} <small>{token.place}</small>", escape(where), escape(token.why)]
    values: list[str] = []
    if numbers == 1:
        values = [share(token.now or 0.0)]
    elif numbers:
        now, old = token.now or 0.0, token.before
        values = ["–" if old is None else share(old), share(now)]
        values.append("+" if old is None else f"{100 * (now - old):+.1f}".replace("-", "−"))
    return [*cells, *map(escape, values)]


def _named(flat: FlatTree, places: list[int]) -> str:
    """Name tokens: how many are of the trunk, and the branches, each once, in reading order."""
    trunk = sum(1 for j in places if flat.branch_ids[j] == 0)
    branches = dict.fromkeys(branch_of(flat, j) for j in places if flat.branch_ids[j] > 0)
    parts = [t("{n} of the trunk", n=trunk)] if trunk else []
    parts += [t("the branch “{branch}”", branch=branch) for branch in branches]
    more = len(parts) - MOST_NAMED
    return listed([*parts[:MOST_NAMED], *([t("and {n} more", n=more)] if more > 0 else [])])


MOST_NAMED = 6


@dataclass(frozen=True, slots=True)
class Mass:
    """What one token gives a branch.

    Attributes:
        place: of the token, which doesn't stand on the branch.
        share: of its attention, 0 to 1.
    """

    place: int
    share: float


def branch_mass(
    flat: FlatTree, triple: Triple, weights: np.ndarray, visible: np.ndarray
) -> tuple[Mass, ...]:
    """Sum the attention that each token outside gives to a triple's branches.

    Args:
        flat: N tokens.
        triple: whose branches, at all its mentions.
        weights: (N, N), rows sum to 1.
        visible: (N, N) bool, row may attend to column.

    Returns:
        One for every token that sees any of the branches' tokens, in reading
        order.
    """
    branch = np.array([triple_of(name) == triple for name in flat.identities], dtype=bool)
    outside = np.flatnonzero(visible[:, branch].any(1) & ~branch)
    return tuple(Mass(int(i), float(weights[i, branch].sum())) for i in outside)


def say_mass(
    flat: FlatTree, triple: Triple, weights: np.ndarray, visible: np.ndarray, token: int | None
) -> str:
    """Say how much attention a triple's branch gets; plain text.

    Args:
        flat, triple, weights, visible: as for :func:`branch_mass`.
        token: the chosen token, which is named first.
    """
    masses = list(branch_mass(flat, triple, weights, visible))
    if not masses:
        return t("its branch is not in this tree.")
    mean = sum(mass.share for mass in masses) / len(masses)
    named = sorted(masses, key=lambda mass: (mass.place != token, -mass.share))[:MOST_NAMED]
    given = [f"“{flat.tokens[mass.place]}” {share(mass.share)}" for mass in named]
    said = [t("{given}.", given=listed(given))]
    if len(masses) > 1:
        said.append(
            t("On average {mean} from the {n} tokens that see it.", mean=share(mean), n=len(masses))
        )
    on_it = token is not None and triple_of(flat.identities[token]) == triple
    if token is not None and not on_it and all(mass.place != token for mass in masses):
        said.append(t("“{a}” can't see it: 0.", a=flat.tokens[token]))
    return sentences(said)
