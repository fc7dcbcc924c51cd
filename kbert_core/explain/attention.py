"""Attention beside effect: how much a triple is looked at, and what it really does.

The attention mass on a branch is the attention that a token gives to all
tokens of the branch together, averaged over the attention heads and over the
tokens that look: those of the target (of a span its tokens, of a class [CLS],
else the [MASK]), or all of the trunk, special tokens included; by layer, and
the mean of the layers. Under K-BERT's visible matrix only a mention sees its
branches, so [CLS] gives them no attention at all: what they do to it comes
through the mention, layer by layer. Attention is not explanation (Jain and
Wallace 2019); the effect beside it is exact.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from kbert_core.drawing import BLUE, ORANGE, drawing, names_beside, tidy
from kbert_core.explain.effects import Effect, Effects, effects
from kbert_core.explain.result import NO_EFFECT, Plain, Result, name_of, nats, of_text
from kbert_core.explain.target import Target
from kbert_core.explain.variants import Case, Piece

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

Looker = Literal["target", "trunk"]  # whose attention
HARDLY = 0.1  # of the largest effect: less is hardly any
FEWEST = 3  # pieces for a rank correlation
RESAMPLES = 1000
MOST_NAMED = 12  # triples in a picture that are named there
LEVEL = 0.95

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Attended(Plain):
    """One piece: how much it is looked at, and what it does.

    Attributes:
        effect: its exact effect.
        by_target, by_trunk: the attention mass on its branches by layer, from
            0 to 1; where it hangs at several mentions their sum.
    """

    effect: Effect
    by_target: tuple[float, ...]
    by_trunk: tuple[float, ...]

    keys: ClassVar = "triple=piece.triple effect=effect.effect by_target by_trunk"

    @property
    def piece(self) -> Piece:
        """Which."""
        return self.effect.piece

    def mass(self, looker: Looker = "trunk") -> float:
        """The mean over the layers."""
        layers = self.by_target if looker == "target" else self.by_trunk
        return sum(layers) / len(layers)


class Kind(StrEnum):
    """How attention and effect disagree."""

    IDLE = "attended, hardly any effect"
    OVERLOOKED = "largest effect, little attended"


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A piece whose attention says another thing than its effect.

    Attributes:
        kind: which way.
        attended: the piece.
        rank: its rank, from 1: IDLE by effect, OVERLOOKED by attention.
        count: of how many.
        strongest: the piece with the largest effect.
    """

    kind: Kind
    attended: Attended
    rank: int
    count: int
    strongest: Attended

    def __str__(self) -> str:
        name = name_of(self.attended.piece.triple)
        if self.kind is Kind.IDLE:
            return (
                f"{name} gets the most attention, and leaving it out changes the score by "
                f"{nats(self.attended.effect.effect)} nats only; "
                f"{name_of(self.strongest.piece.triple)} changes it by "
                f"{nats(self.strongest.effect.effect)}."
            )
        return (
            f"{name} has the largest effect ({nats(self.attended.effect.effect)} nats) and is only "
            f"number {self.rank} of {self.count} by attention."
        )


@dataclass(frozen=True)
class AttentionEffect(Result):
    """Attention beside effect, of one text.

    Attributes:
        effects: the exact effects.
        each: the pieces, in reading order.
    """

    effects: Effects
    each: tuple[Attended, ...]

    keys: ClassVar = "text=effects.sentences target pieces=each"
    columns: ClassVar = "triple=piece.triple effect=effect.effect"

    @property
    def target(self) -> Target:
        """What of the prediction is followed."""
        return self.effects.target

    def attended(self, looker: Looker = "trunk") -> bool:
        """Whether any piece gets attention."""
        return any(one.mass(looker) for one in self.each)

    @property
    def acts(self) -> bool:
        """Whether any piece does more than rounding may."""
        return any(abs(one.effect.effect) >= NO_EFFECT for one in self.each)

    def rank_correlation(self, looker: Looker = "trunk") -> float | None:
        """Spearman's rho of attention mass and size of the effect, over the pieces.

        None of fewer than three pieces, or where all are equal in one of the two.
        """
        return _spearman(
            [one.mass(looker) for one in self.each],
            [abs(one.effect.effect) for one in self.each],
        )

    def disagreements(self, looker: Looker = "trunk") -> tuple[Disagreement, ...]:
        """Where attention and effect part, for the most attended and the strongest piece.

        The most attended piece is idle where its effect is under a tenth of
        the largest; the strongest is overlooked where it is in the less
        attended half. Nothing parts where no piece is attended, or none does
        more than rounding; pieces that are equal share the better rank.
        """
        if len(self.each) < 2 or not self.attended(looker) or not self.acts:
            return ()
        masses = [one.mass(looker) for one in self.each]
        sizes = [abs(one.effect.effect) for one in self.each]
        order = range(len(self.each))
        top, best = (
            max(order, key=lambda n: (masses[n], sizes[n])),
            max(order, key=sizes.__getitem__),
        )
        most, strongest, count = self.each[top], self.each[best], len(self.each)
        found = []
        if sizes[top] < HARDLY * sizes[best]:
            rank = 1 + sum(size > sizes[top] for size in sizes)
            found.append(Disagreement(Kind.IDLE, most, rank, count, strongest))
        rank = 1 + sum(mass > masses[best] for mass in masses)
        if 2 * rank > count + 1:
            found.append(Disagreement(Kind.OVERLOOKED, strongest, rank, count, strongest))
        return tuple(found)

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data, for JSON."""
        correlations = {looker: self.rank_correlation(looker) for looker in get_args(Looker)}
        more = {"count": len(self.each), "disagreements": [str(d) for d in self.disagreements()]}
        return {**super().as_dict(), "rank_correlation": correlations, **more}

    def to_frame(self) -> "DataFrame":
        """A row a piece, in reading order."""
        table = super().to_frame()
        for looker in get_args(Looker):
            table[f"attention_of_{looker}"] = [one.mass(looker) for one in self.each]
        return table

    def figure(self) -> "Figure":
        """A point a piece: attention mass across, size of the effect up."""
        rho = self.rank_correlation()
        said = "" if rho is None else f", rank correlation {rho:+.2f}".replace("-", "−")
        return scatter(self.each, title=f"{len(self.each)} triples{said}", named=True)


@of_text
def attention_effect(
    case: Case, *, by_mention: bool = False, measured: Effects | None = None
) -> AttentionEffect:
    """Put the attention on every triple of a text beside what it does.

    Args:
        case: a text as it was read.
        by_mention: one piece for each mention that a triple hangs from.
        measured: the effects, where they are known already.
    """
    known = measured or effects(case, by_mention=by_mention, deleted=False)
    masses = _masses(case, [effect.piece for effect in known.each])
    each = tuple(
        Attended(effect, tuple(by_target.tolist()), tuple(by_trunk.tolist()))
        for effect, (by_target, by_trunk) in zip(known.each, masses, strict=True)
    )
    return AttentionEffect(known, each)


def _masses(case: Case, pieces: Sequence[Piece]) -> list[tuple[Floats, Floats]]:
    """Per piece the attention mass by layer, of the target's tokens and of the trunk's: (L,) each.

    A long text's windows count together: the mean is over the tokens that
    look, in whatever window they stand.
    """
    sums = np.zeros((len(pieces), 2, case.pipeline.encoder.layer_count))
    lookers = np.zeros(2)
    for row in case.trace.rows:
        output = case.pipeline.reader.encode([row], case.config, attentions=True)
        maps = np.stack(
            [layer[0].float().mean(0).cpu().numpy() for layer in output["attentions"]]
        )  # (L, N, N)
        places = (case.target.tokens(row), [i for i, b in enumerate(row.branch_ids) if b == 0])
        for which, looking in enumerate(places):
            lookers[which] += len(looking)
            given = maps[:, looking].sum(axis=1)  # (L, N)
            for number, piece in enumerate(pieces):
                for hung in row.hung:
                    if piece.covers(hung.node, hung.branch.triple):
                        sums[number, which] += given[:, hung.start : hung.end].sum(axis=1)
    means = sums / np.maximum(lookers, 1)[None, :, None]
    return [(by_target, by_trunk) for by_target, by_trunk in means]


def scatter(points: Sequence[Attended], *, title: str, named: bool = False) -> "Figure":
    """Draw attention mass against size of effect, a point a piece."""
    with drawing(6.4, 4.6) as figure:
        panel = figure.subplots()
        places = [(100 * one.mass(), abs(one.effect.effect)) for one in points]
        for one, place in zip(points, places, strict=True):
            colour = BLUE if one.effect.effect >= 0 else ORANGE
            panel.plot(*place, "o", color=colour, alpha=0.8, markersize=6)
        panel.margins(0.12)
        panel.set_xlabel("attention of the trunk on the branch, mean of layers and heads, %")
        panel.set_ylabel("size of the effect, nats")
        figure.suptitle(title, fontsize=10)
        tidy(panel, "both")
        if named and 0 < len(points) <= MOST_NAMED:
            triples = [one.piece.triple for one in points]
            names = [f"{triple.head[:12]} · {triple.tail[:12]}" for triple in triples]
            names_beside(figure, panel, places, names)
    return figure


# Over many texts


@dataclass(frozen=True)
class FileCorrelation(Plain):
    """Rank correlation of attention and effect over the pieces of many texts.

    Attributes:
        looker: whose attention.
        rho: Spearman's, over all pieces together; None of too few.
        low, high: 95 % of resamples of the texts, seeded; None where rho is.
        pieces, texts: how many of each.
        within: mean of the texts' own rho, over those with one.
        texts_within: how many these are.
        disagreeing: texts in which attention and effect part.
    """

    looker: Looker
    rho: float | None
    low: float | None
    high: float | None
    pieces: int
    texts: int
    within: float | None
    texts_within: int
    disagreeing: int


def rank_correlation(
    texts: Iterable[AttentionEffect], *, looker: Looker = "trunk", seed: int = 0
) -> FileCorrelation:
    """Say over a whole file whether the triples that are looked at are those that matter.

    Args:
        texts: what :func:`attention_effect` found in each.
        looker: whose attention.
        seed: of the resampling.
    """
    some = [text for text in texts if text.each]
    groups = [
        np.array([[one.mass(looker), abs(one.effect.effect)] for one in text.each]) for text in some
    ]
    joined = np.concatenate(groups) if groups else np.zeros((0, 2))
    rho = _spearman(*joined.T.tolist())
    low, high = _interval(groups, seed) if rho is not None and len(groups) > 1 else (None, None)
    own = [r for text in some if (r := text.rank_correlation(looker)) is not None]
    return FileCorrelation(
        looker,
        rho,
        low,
        high,
        len(joined),
        len(some),
        float(np.mean(own)) if own else None,
        len(own),
        sum(bool(text.disagreements(looker)) for text in some),
    )


def _spearman(one: Sequence[float], other: Sequence[float]) -> float | None:
    if len(one) < FEWEST or np.ptp(one) == 0 or np.ptp(other) == 0:
        return None
    from scipy.stats import spearmanr  # slow to start

    return float(spearmanr(one, other).statistic)


def _interval(groups: Sequence[Floats], seed: int) -> tuple[float | None, float | None]:
    """95 % of resamples; texts are drawn, with all that is in them."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(RESAMPLES):
        drawn = random.integers(len(groups), size=len(groups))
        rho = _spearman(*np.concatenate([groups[i] for i in drawn]).T.tolist())
        if rho is not None:
            found.append(rho)
    if not found:
        return None, None
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(found, [tail, 100 - tail])
    return float(low), float(high)
