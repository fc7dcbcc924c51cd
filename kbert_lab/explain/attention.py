"""Attention beside effect, and the arithmetic of one attention weight.

How much attention a triple gets, and what it really does: The attention mass
on a branch is the attention that a token gives to all tokens of the branch
together. It is averaged over the attention heads and over the tokens of the
target: the tokens of a span, [CLS] for a class, or the [MASK]; or over the
whole trunk with its special tokens. There is one number for each layer, and
the mean of the layers. Under K-BERT's visible matrix only a mention sees
its branches, so [CLS] gives them no attention at all: they reach it through
the mention, layer by layer. Attention is not explanation (Jain and Wallace
2019); the effect beside it is exact.

How one attention weight is computed, number by number (K-BERT, Eq. 4, 5):

    S = softmax((Q Kᵀ + M) / √D)        in the paper
    S = softmax(Q Kᵀ / √D + M)          in encoders, and here

M is 0 where the visible matrix has True and minus infinity elsewhere, so both
are the same; D is the size of an attention head. The paper writes √d_k.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from kbert_core.errors import EncoderError, OptionError
from kbert_core.explain.case import Case
from kbert_core.explain.effects import Effect, Effects, effects
from kbert_core.explain.result import NO_EFFECT, Plain, name_of, nats
from kbert_core.explain.targets import NO_SPAN, Target
from kbert_core.kbert.flat_tree import FlatTree
from kbert_core.kbert.kbert import KBertReading, KBertTrace
from kbert_core.pipeline import Pipeline
from kbert_core.reader import Fact, Reader
from kbert_lab.explain.drawing import BLUE, ORANGE, Figure, drawing, names_beside, tidy
from kbert_lab.explain.influence import check_branches

Looker = Literal["target", "trunk"]  # whose attention
HARDLY = 0.1  # of the largest effect: less is hardly any
FEWEST = 3  # facts for a rank correlation
PROJECTIONS = (("query", "key"), ("q_lin", "k_lin"), ("q_proj", "k_proj"), ("q", "k"))
TOLERANCE = 1e-4  # of a weight; half precision leaves more
HALF_TOLERANCE = 3e-2
MOST_NAMED = 12  # triples in a picture that are named there
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Attended(Plain):
    """One fact: how much attention it gets, and what it does.

    The attention mass on its branches is given for each layer, from 0 to 1; if
    it hangs on several mentions, it is their sum.
    """

    effect: Effect  # its exact effect
    by_target: tuple[float, ...]
    by_trunk: tuple[float, ...]

    keys: ClassVar = "triple=fact.triple effect=effect.effect by_target by_trunk"

    @property
    def fact(self) -> Fact:
        """The fact."""
        return self.effect.fact

    @property
    def size(self) -> float:
        """The size of the effect, without its sign."""
        return abs(self.effect.effect)

    def mass(self, looker: Looker = "trunk") -> float:
        """The mean attention mass of the layers."""
        layers = self.by_target if looker == "target" else self.by_trunk
        return sum(layers) / len(layers)


class Kind(StrEnum):
    """How attention and effect disagree."""

    IDLE = "attended, hardly any effect"
    OVERLOOKED = "largest effect, little attended"


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A fact whose attention and effect disagree."""

    kind: Kind
    attended: Attended
    rank: int  # of the fact, from 1: IDLE by effect, OVERLOOKED by attention
    count: int  # of how many
    strongest: Attended  # the fact with the largest effect

    def __str__(self) -> str:
        name, size = name_of(self.attended.fact.triple), nats(self.attended.effect.effect)
        if self.kind is Kind.IDLE:
            other = self.strongest
            return (
                f"{name} gets the most attention, and leaving it out changes the score by {size} "
                f"nats only; {name_of(other.fact.triple)} changes it by "
                f"{nats(other.effect.effect)}."
            )
        return (
            f"{name} has the largest effect ({size} nats) and is only number {self.rank} of "
            f"{self.count} by attention."
        )


@dataclass(frozen=True)
class AttentionEffect(Plain):
    """Attention beside effect, of one text."""

    effects: Effects  # exact
    each: tuple[Attended, ...]  # in reading order

    rows: ClassVar = "pieces"
    keys: ClassVar = "text=effects.sentences target pieces=each"

    @property
    def target(self) -> Target:
        """The part of the prediction that is explained."""
        return self.effects.target

    def attended(self, looker: Looker = "trunk") -> bool:
        """Whether any fact gets attention."""
        return any(one.mass(looker) for one in self.each)

    @property
    def acts(self) -> bool:
        """Whether any fact has an effect larger than rounding errors."""
        return any(one.size >= NO_EFFECT for one in self.each)

    def rank_correlation(self, looker: Looker = "trunk") -> float | None:
        """Spearman's rho of attention mass and size of the effect, over the facts.

        None if there are fewer than three facts, or if all are equal in one of the two.
        """
        from scipy.stats import spearmanr  # slow to start

        points = self.points(looker)
        if len(points) < FEWEST or not np.ptp(points, axis=0).all():
            return None
        return float(spearmanr(points).statistic)

    def points(self, looker: Looker = "trunk") -> Floats:
        """(P, 2): the attention mass of every fact, and the size of its effect."""
        return np.array([(one.mass(looker), one.size) for one in self.each]).reshape(-1, 2)

    def disagreements(self, looker: Looker = "trunk") -> tuple[Disagreement, ...]:
        """Where attention and effect disagree.

        The fact with most attention is *idle* if its effect is below a tenth
        of the largest. The fact with the largest effect is *overlooked* if half
        of the facts get more attention. Equal facts share the better rank.
        """
        count, parts = len(self.each), []
        if count < 2 or not self.attended(looker) or not self.acts:
            return ()
        most = max(self.each, key=lambda one: (one.mass(looker), one.size))
        strongest = max(self.each, key=lambda one: one.size)
        if most.size < HARDLY * strongest.size:
            rank = 1 + sum(one.size > most.size for one in self.each)
            parts.append(Disagreement(Kind.IDLE, most, rank, count, strongest))
        rank = 1 + sum(one.mass(looker) > strongest.mass(looker) for one in self.each)
        if 2 * rank > count + 1:
            parts.append(Disagreement(Kind.OVERLOOKED, strongest, rank, count, strongest))
        return tuple(parts)

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data, for JSON."""
        correlations = {looker: self.rank_correlation(looker) for looker in get_args(Looker)}
        more = {"count": len(self.each), "disagreements": [*map(str, self.disagreements())]}
        return {**super().as_dict(), "rank_correlation": correlations, **more}

    def figure(self) -> Figure:
        """Draw a point for each fact: attention mass to the right, size of the effect up."""
        rho = self.rank_correlation()
        correlation = "" if rho is None else f", rank correlation {rho:+.2f}".replace("-", "−")
        return scatter(self.each, title=f"{len(self.each)} triples{correlation}", named=True)


def attention_effect(case: Case, *, measured: Effects | None = None) -> AttentionEffect:
    """Put the attention on every triple of a text beside what it does.

    Args:
        case: a text as it was read.
        measured: the effects, if they are known already.
    """
    check_branches(case)
    known = measured or effects(case, deleted=False)
    facts = [effect.fact for effect in known.each]
    sums = np.zeros((len(facts), 2, case.pipeline.encoder.layer_count))  # of target and trunk
    lookers = np.zeros((2, 1))
    for row in case.trace.rows:  # windows count together
        output = case.pipeline.reader.encode([row], case.config, attentions=True)
        maps = np.stack([layer[0].float().mean(0).cpu().numpy() for layer in output["attentions"]])
        trunk = [i for i, branch in enumerate(row.branch_ids) if branch == 0]
        for which, looking in enumerate((_target_tokens(case.target, row), trunk)):
            lookers[which] += len(looking)
            given = maps[:, looking].sum(axis=1)  # (L, N, N) to (L, N)
            for number, fact in enumerate(facts):
                for placed in row.branches:
                    if fact.covers(placed.node, placed.branch.triple):
                        sums[number, which] += given[:, placed.start : placed.end].sum(axis=1)
    masses = (sums / np.maximum(lookers, 1)).tolist()
    each = [Attended(e, *map(tuple, mass)) for e, mass in zip(known.each, masses, strict=True)]
    return AttentionEffect(known, tuple(each))


def _target_tokens(target: Target, row: FlatTree) -> list[int]:
    """Return the indices along N of the target's tokens; a window may have none of them."""
    if target.start == NO_SPAN:
        return [row.specials[0][0]] if row.specials else [0]  # [CLS]
    own = target.sentence
    first, last = row.trunk_tokens[own].over(target.start, target.end)
    places = enumerate(row.trunk_places)
    return [index for index, (sentence, at) in places if sentence == own and first <= at < last]


def scatter(points: Sequence[Attended], *, title: str, named: bool = False) -> Figure:
    """Draw attention mass against size of effect, a point for each fact."""
    with drawing(6.4, 4.6) as figure:
        panel = figure.subplots()
        places = [(100 * one.mass(), one.size) for one in points]
        for one, place in zip(points, places, strict=True):
            colour = BLUE if one.effect.effect >= 0 else ORANGE
            panel.plot(*place, "o", color=colour, alpha=0.8, markersize=6)
        panel.margins(0.12)
        panel.set_xlabel("attention of the trunk on the branch, mean of layers and heads, %")
        panel.set_ylabel("size of the effect, nats")
        figure.suptitle(title, fontsize=10)
        tidy(panel, "both")
        if named and 0 < len(points) <= MOST_NAMED:
            triples = [one.fact.triple for one in points]
            names = [f"{triple.head[:12]} · {triple.tail[:12]}" for triple in triples]
            names_beside(figure, panel, places, names)
    return figure


# The arithmetic of a cell


@dataclass(frozen=True, slots=True)
class CellArithmetic:
    """How one attention weight comes about."""

    layer: int  # from 1
    head: int  # from 1
    query: int  # attends to key; indices along N
    key: int
    size: int  # D, of an attention head
    dot: float  # q · k, of the two tokens' projections
    visible: bool  # whether query may attend to key
    log_sum_exp: float  # log of the sum of e^score over the row
    seen: int  # how many tokens the row may attend to

    @property
    def scale(self) -> float:
        """1 / √D."""
        return 1 / math.sqrt(self.size)

    @property
    def scaled(self) -> float:
        """q · k / √D: how well the two fit, before the visible matrix is applied."""
        return self.dot * self.scale

    @property
    def mask(self) -> float:
        """The number that the visible matrix adds (M in Eq. 3): 0, or minus infinity."""
        return 0.0 if self.visible else -math.inf

    @property
    def score(self) -> float:
        """The number that goes into softmax."""
        return self.scaled + self.mask

    @property
    def weight(self) -> float:
        """Softmax of the score over its row: the share of attention, 0 to 1."""
        return math.exp(self.score - self.log_sum_exp)


def attention_arithmetic(
    reader: Reader, trace: KBertTrace, row: int, layer: int, head: int, query: int, key: int
) -> CellArithmetic:
    """Compute one attention weight from the hidden states below its layer.

    The layer's own query and key projections are found by name. The result is
    compared with the encoder's own attention map: an encoder that computes
    attention in another way is refused, not explained wrongly.

    Args:
        reader: the reader that made the trace.
        trace: made with ``attentions=True, hidden_states=True``.
        row: which of ``trace.rows``.
        layer, head: from 1.
        query, key: indices along N.

    Raises:
        OptionError: the trace lacks what is needed, or a number is out of range.
        EncoderError: the projections aren't found, or aren't all there is.
    """
    if trace.hidden_states is None or trace.attentions is None:
        raise OptionError(
            "The trace has no hidden states or no attention maps. Call the pipeline with "
            "attentions=True, hidden_states=True."
        )
    maps = trace.attentions
    _check("row", row, 0, len(trace.rows) - 1)
    length, heads = len(trace.rows[row]), maps[0].shape[1]
    _check("layer", layer, 1, len(maps))
    _check("head", head, 1, heads)
    _check("query", query, 0, length - 1)
    _check("key", key, 0, length - 1)
    states = trace.hidden_states[layer - 1][row, :length].double()  # (N, H)
    projections = _projections(reader.model, layer, len(maps))
    q, k = (_of_head(states, one, head, heads) for one in projections)  # (N, D)
    dots, size = k @ q[query], int(q.shape[1])  # (N,), D
    seen = trace.visible if trace.visible_layers is None else trace.visible_layers[layer - 1]
    visible = seen[row, query, :length].to(dots.device)
    scores = (dots / math.sqrt(size)).masked_fill(~visible, -math.inf)
    given = maps[layer - 1][row, head - 1, query, :length].double()
    apart = float((scores.softmax(0) - given.to(scores.device)).abs().max())
    precise = trace.hidden_states[layer - 1].dtype.itemsize >= 4
    if apart > (TOLERANCE if precise else HALF_TOLERANCE):
        raise EncoderError(
            f"{type(reader.model).__name__} doesn't compute its attention as "
            "softmax(q·k / √D + M) alone: the row computed by hand differs by up to "
            f"{apart:.2g} from the encoder's. So its cells can't be explained. Use a BERT, "
            "RoBERTa, ELECTRA, ALBERT or DistilBERT."
        )
    row_sum, count = float(scores.logsumexp(0)), int(visible.sum())
    place = (layer, head, query, key)
    return CellArithmetic(*place, size, float(dots[key]), bool(visible[key]), row_sum, count)


def without_link(
    pipeline: Pipeline,
    reading: KBertReading,
    row: int,
    layer: int,
    head: int,
    seers: Sequence[int],
    seen: Sequence[int],
) -> Any:
    """Return what is predicted if one attention head may not look from some tokens at others.

    All other heads and layers look there as before: the change is what this link alone does.

    Args:
        row: which of ``reading.rows``.
        layer, head: from 1.
        seers, seen: indices along N; no token is cut off from itself.
    """
    reader, config = pipeline.reader, reading.config
    batch = reader.collate(reading.rows, config)
    made = getattr(batch, "intervened", None)
    visible = config.ablation.visible_in(batch)
    layers = list(made.layers if made else [visible] * pipeline.encoder.layer_count)
    count = pipeline.encoder.config.num_attention_heads
    blocked = layers[layer - 1][:, None].repeat(1, count, 1, 1)
    for looks in seers:
        blocked[row, head - 1, looks, [at for at in seen if at != looks]] = False
    layers[layer - 1] = blocked
    logits = pipeline.encoder(batch, ablation=config.ablation, visible=layers)["logits"]
    assert pipeline.task is not None
    return pipeline.task.decode(reading, reading.logits_on_text(list(logits)), pipeline.labels)


def _projections(model: Any, layer: int, layers: int) -> tuple[nn.Linear, nn.Linear]:
    """Find a layer's query and key projections by their names."""
    pairs = [
        tuple(getattr(module, name, None) for name in names)
        for module in model.base_model.modules()
        for names in PROJECTIONS
    ]
    found = [pair for pair in pairs if all(isinstance(one, nn.Linear) for one in pair)]
    if not found:
        known = ", ".join(map("/".join, PROJECTIONS))
        raise EncoderError(
            f"{type(model).__name__} has no separate query and key projections named {known}, so "
            "the arithmetic of a cell can't be shown. Attention maps are shown all the same."
        )
    query, key = found[(layer - 1) * len(found) // layers]  # fewer where layers share them (ALBERT)
    return cast(nn.Linear, query), cast(nn.Linear, key)


def _of_head(states: Tensor, projection: nn.Linear, head: int, heads: int) -> Tensor:
    """Project hidden states (N, H) for one attention head: (N, D)."""
    size = projection.out_features // heads
    part = slice((head - 1) * size, head * size)
    made = states @ projection.weight[part].detach().double().T
    return made if projection.bias is None else made + projection.bias[part].detach().double()


def _check(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise OptionError(f"{name} is {value}, expected {least} to {most}.")
