"""How much attention the chosen triple's branch gets, and from whom."""

from dataclasses import dataclass

import numpy as np

from app.selection import triple_of
from app.texts import listed, sentences, t
from app.view_models.matrix import share
from kbert_core import FlatTree, Triple

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
