"""Knowledge noise: what unrelated triples do to a prediction, and what protects it.

The paper's argument for soft positions and the visible matrix is that without
them unrelated knowledge would change the sentence. Here every mention gets k
triples of other entities beside its own, and the prediction is measured as k
grows: with both mechanisms, with hard positions, and with everything
visible.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from statistics import fmean
from typing import Any, ClassVar, NamedTuple

from torch import Tensor

from kbert_core.errors import OptionError
from kbert_core.explain.case import AT_ONCE, Case, Outcome, Scored
from kbert_core.explain.result import Plain, Result, batches, final
from kbert_core.kbert.sentence_tree import SentenceTree, branch_of
from kbert_core.kbert.visible import FULL, Ablation
from kbert_core.knowledge.triple import Triple
from kbert_core.reader import Reading
from kbert_lab.explain.counterfactuals import MOST_READ
from kbert_lab.explain.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, Figure, drawing, tidy
from kbert_lab.graphs.controls import with_noise

COUNTS = (0, 1, 2, 4, 8, 16)
SEEDS = (1, 2, 3)
LOOKS = ((BLUE, "o"), (ORANGE, "s"), (GREEN, "D"), (PURPLE, "^"), (GREY, "x"))
K_BERT = "K-BERT"
ABLATIONS: Mapping[str, Ablation] = {
    K_BERT: FULL,
    "hard positions": Ablation("hard", "tree"),
    "everything visible": Ablation("soft", "all"),
}


@dataclass(frozen=True, slots=True)
class Point(Plain):
    """One reading with noise.

    ``variation`` is the total variation, from 0 to 1, between this distribution of
    labels and plain BERT's; for a span it is the mean over its tokens. ``moved``
    is the total variation to the same reading without noise: what the noise alone
    does.
    """

    ablation: str  # its name among those compared
    count: int  # unrelated triples a mention was given
    seed: int  # of what was drawn
    injected: int  # unrelated triples that stand in the text, all mentions together
    outcome: Outcome
    probability: float  # of the target: e to its score for a span, else of its label
    from_plain: float  # score minus plain BERT's, in nats
    variation: float
    moved: float

    keys: ClassVar = (
        "ablation count seed injected score=outcome.score answer=outcome.answer probability "
        "from_plain variation moved"
    )


class Spread(NamedTuple):
    """One measure over several seeds."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class NoiseCurve(Result):
    """A prediction as unrelated triples are added."""

    plain: Outcome  # without any knowledge
    plain_probability: float
    ablations: tuple[str, ...]  # those compared, by name
    counts: tuple[int, ...]  # of unrelated triples a mention, ascending
    points: tuple[Point, ...]  # the readings run so far, by count, then seed, then ablation
    total: int  # readings there are to be
    mentions: int  # places that get noise

    rows: ClassVar = "points"
    keys: ClassVar = "text=sentences target plain mentions points"

    def at(self, ablation: str, count: int) -> tuple[Point, ...]:
        """Return the points of one ablation and one count, one for each seed."""
        return tuple(p for p in self.points if (p.ablation, p.count) == (ablation, count))

    def spread(self, ablation: str, count: int, measure: str) -> Spread | None:
        """Return one attribute of :class:`Point` over the seeds; None: nothing was run yet."""
        values = [float(getattr(point, measure)) for point in self.at(ablation, count)]
        return Spread(fmean(values), min(values), max(values)) if values else None

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data, for JSON."""
        data = super().as_dict()
        data["plain"]["probability"] = self.plain_probability
        return data

    def figure(self) -> Figure:
        """Draw score and distance from plain BERT against the number of unrelated triples."""
        measures = {
            "from_plain": "score above plain BERT's, nats",
            "variation": "distance from plain BERT, total variation",
        }
        with drawing(9.6, 4.2) as figure:
            panels = figure.subplots(1, 2)
            for panel, (measure, axis) in zip(panels, measures.items(), strict=True):
                for number, name in enumerate(self.ablations):
                    spreads = [self.spread(name, count, measure) for count in self.counts]
                    drawn = [(n, *spread) for n, spread in enumerate(spreads) if spread]
                    x, mean, low, high = zip(*drawn, strict=True) if drawn else ((),) * 4
                    colour, marker = LOOKS[min(number, len(LOOKS) - 1)]
                    panel.plot(x, mean, marker=marker, color=colour, markersize=5, label=name)
                    panel.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
                panel.set_xticks(range(len(self.counts)), map(str, self.counts))
                panel.set_xlabel("unrelated triples per mention")
                panel.set_ylabel(axis)
                tidy(panel, "y")
            panels[0].axhline(0, color=GREY, linewidth=1, linestyle="--")
            handles, ways = panels[0].get_legend_handles_labels()
            below: Any = {"loc": "outside lower center", "ncols": len(ways), "frameon": False}
            figure.legend(handles, ways, **below)
            title = f"Knowledge noise and {self.target}: mean and range of the seeds"
            figure.suptitle(title, fontsize=10)
        return figure


def stream_noise(
    case: Case,
    counts: Sequence[int] = COUNTS,
    seeds: Sequence[int] = SEEDS,
) -> Iterator[NoiseCurve]:
    """Measure a prediction as mentions get more unrelated triples; each result has more points.

    The tree is read in the ways of ``ABLATIONS``, or the one way of a system that has none. A
    mention's own triples stay, and come first. The triples drawn for a count are among those of
    every larger count.

    Args:
        counts: unrelated triples for each mention.
        seeds: the seeds with which triples of the graph, of a large one the first, are drawn.

    Raises:
        OptionError: a count below 0, or no seed.
    """
    _ = case.pipeline.kbert
    if any(count < 0 for count in counts):
        raise OptionError(
            f"A count is {min(counts)}, expected a number of triples per mention, 0 or more."
        )
    if not seeds:
        raise OptionError("No seed is given, so nothing can be drawn. Give one or more.")
    source = tuple(islice(case.graph.active_triples(), MOST_READ))
    counts, reader, reading = tuple(sorted(set(counts))), case.pipeline.reader, case.reading
    ways = {reader.system: reading}
    if reader.has("ablation"):
        ways = {
            name: replace(reading, config=reader.configured(case.config, ablation=way))
            for name, way in ABLATIONS.items()
        }
    quiet = dict(zip(ways, case.run(ways.values()), strict=True))
    plain, of_score = case.plain, partial(case.target.probability, labels=case.pipeline.labels)

    def point(count: int, seed: int, name: str, noisy: Reading, scored: Scored) -> Point:
        return Point(
            *(name, count, seed, len(set(noisy.facts) - set(case.facts_by_mention))),
            *(scored.outcome, of_score(scored.score), scored.score - plain.score),
            variation=variation(plain.likely, scored.likely),
            moved=variation(quiet[name].likely, scored.likely),
        )

    # Nothing is drawn for 0, so that one seed is enough.
    known = [point(0, seeds[0], name, ways[name], quiet[name]) for name in ways if 0 in counts]
    todo = [(count, seed, name) for count in counts if count for seed in seeds for name in ways]
    curve = NoiseCurve(
        *(case.sentences, case.target, plain.outcome, of_score(plain.score), tuple(ways), counts),
        points=tuple(known),
        total=len(known) + len(todo),
        mentions=len(reading.mentions),
    )
    yield curve
    for some in batches(todo, case.at_once(AT_ONCE)):
        noisy = [
            case.pipeline.flatten(
                [noisy_tree(case, count, seed=seed, source=source)], ways[name].config
            )[0]
            for count, seed, name in some
        ]
        runs = zip(some, noisy, case.run(noisy), strict=True)
        more = [point(*key, variant, scored) for key, variant, scored in runs]
        curve = replace(curve, points=(*curve.points, *more))
        yield curve


noise_curve = final(stream_noise)


def noisy_tree(case: Case, count: int, *, seed: int, source: Sequence[Triple]) -> SentenceTree:
    """Hang unrelated triples on every mention of a text, after its own.

    They are added to the tree itself: a mention keeps its own triples,
    whatever the strategy and the limit.
    """
    tree, graph = case.trace.tree, case.graph
    entities = [node.mention.entity for node in tree.nodes]
    noisy = with_noise(graph, entities, count, seed=seed, source=source, place="before")
    nodes = []
    for node, entity in zip(tree.nodes, entities, strict=True):
        now = noisy.triples_of(entity)
        drawn = now[: len(now) - len(graph.triples_of(entity))]
        branches = (branch_of(triple, case.config.options) for triple in drawn)
        nodes.append(replace(node, branches=(*node.branches, *branches)))
    return replace(tree, nodes=tuple(nodes))


def variation(plain: Tensor, now: Tensor) -> float:
    """Return the total variation between log-probabilities (T, K), averaged over T."""
    return float((plain.exp() - now.exp()).abs().sum(-1).mean() / 2)
