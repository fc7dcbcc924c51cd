"""One row of the matrix in words: who sees whom, and how much it looks there."""

import numpy as np

from kbert_core.kbert.flat_tree import FlatTree
from kbert_core.knowledge.triple import Triple
from kbert_lab.lab.selection import triple_of
from kbert_lab.lab.texts import N_, listed, sentences, t
from kbert_lab.lab.views.matrix import share
from kbert_lab.lab.views.why import branch_of

MOST_NAMED = 6  # tokens or branches in a sentence


def say_row(
    flat: FlatTree, row: int, visible: np.ndarray, weights: np.ndarray | None = None
) -> str:
    """Say whom a token sees, what is hidden from it, and where it looks most; plain text.

    Args:
        flat: N tokens.
        visible: (N, N) bool, row may attend to column.
        weights: (N, N) attention, if it is shown.
    """
    token, seen = flat.tokens[row], np.flatnonzero(visible[row]).tolist()
    hidden = [place for place in range(len(flat)) if not visible[row, place]]
    counts = {"a": token, "seen": len(seen), "n": len(flat)}
    said = [t("“{a}” sees {seen} of {n} tokens: {what}.", what=_named(flat, seen), **counts)]
    if hidden:
        said.append(t("Hidden from it: {what}.", what=_named(flat, hidden)))
    if weights is not None:
        seen.sort(key=lambda place: -weights[row, place])
        most = [f"“{flat.tokens[i]}” {share(float(weights[row, i]))}" for i in seen[:MOST_NAMED]]
        said.append(t("“{a}” attends most to: {what}.", a=token, what=listed(most)))
    return sentences(said)


def _named(flat: FlatTree, places: list[int]) -> str:
    """Name tokens: how many are of the trunk, and the branches, each once, in reading order."""
    trunk = sum(1 for place in places if flat.branch_ids[place] == 0)
    branches = dict.fromkeys(branch_of(flat, own) for own in places if flat.branch_ids[own] > 0)
    parts = [t("{n} of the trunk", n=trunk)] if trunk else []
    parts += [t("the branch “{branch}”", branch=branch) for branch in branches]
    more = len(parts) - MOST_NAMED
    return listed([*parts[:MOST_NAMED], *([t("and {n} more", n=more)] if more > 0 else [])])


def say_mass(
    flat: FlatTree, triple: Triple, weights: np.ndarray, visible: np.ndarray, token: int | None
) -> str:
    """Say how much attention a triple's branches get from the tokens outside; plain text.

    Args:
        flat: N tokens.
        triple: whose branches, at all its mentions.
        weights: (N, N), rows sum to 1.
        visible: (N, N) bool, row may attend to column.
        token: the chosen token, which is named first.
    """
    branch = np.array([triple_of(name) == triple for name in flat.identities], dtype=bool)
    outside = np.flatnonzero(visible[:, branch].any(1) & ~branch).tolist()
    masses = {place: float(weights[place, branch].sum()) for place in outside}
    if not masses:
        return t("its branch is not in this tree.")
    named = sorted(masses, key=lambda place: (place != token, -masses[place]))[:MOST_NAMED]
    given = listed(f"“{flat.tokens[place]}” {share(masses[place])}" for place in named)
    said = [t("{given}.", given=given)]
    if len(masses) > 1:
        mean = share(sum(masses.values()) / len(masses))
        text = N_("On average {mean} from the {n} tokens that see it.")
        said.append(t(text, mean=mean, n=len(masses)))
    if token is not None and token not in masses and triple_of(flat.identities[token]) != triple:
        said.append(t("“{a}” can't see it: 0.", a=flat.tokens[token]))
    return sentences(said)
