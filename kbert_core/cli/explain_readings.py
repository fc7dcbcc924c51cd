"""What `kbert explain counterfactuals`, `influence`, `noise` and `compare` run and print."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kbert_core.cli.explain_effects import case_of_args, last_of, model_and_reading, table_text
from kbert_core.cli.options import model_of
from kbert_core.errors import OptionError, TextError
from kbert_core.explain.compare import BERT, Comparison, ablations_of, compare
from kbert_core.explain.counterfactuals import Counterfactuals, Search, stream_counterfactuals
from kbert_core.explain.influence import Influence, influence
from kbert_core.explain.noise import NoiseCurve, stream_noise
from kbert_core.explain.reach import NEVER
from kbert_core.explain.result import name_of, nats
from kbert_core.explain.variants import Case
from kbert_core.knowledge import load_graph
from kbert_core.knowledge.tools.unrelated import said_by

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Counterfactuals


def run_counterfactuals(args: argparse.Namespace) -> Counterfactuals:
    """`kbert explain counterfactuals`: the smallest changes of the graph that flip it."""
    search = Search(
        tuple(args.kinds),
        args.to,
        args.most_edits,
        args.larger_too,
        args.budget,
        args.most,
        seed=args.seed,
    )
    steps = stream_counterfactuals(case_of_args(args), search)
    made: Counterfactuals = last_of(
        steps, lambda s: f"{s.runs} of {search.budget} runs, {len(s.found)} found"
    )
    return made


ENDED = {
    "all": "all of them were tried",
    "budget": "the budget of runs is used up",
    "enough": "enough were found",
}


def counterfactuals_text(result: Counterfactuals) -> str:
    """The sets of edits that flip it, the smallest first; else those that come nearest."""
    rows = [
        (one.after.answer, nats(one.change), one.said) for one in result.found or result.nearest
    ]
    what = "found to flip it" if result.found else "nothing found flips it; nearest to it"
    wish = "" if result.search.to is None else f"; wished for: {result.search.to}"
    lines = [
        " ‖ ".join(result.sentences),
        f"explained: {result.target}, in nats{wish}; {result.runs} readings: "
        f"{ENDED.get(result.ended, 'stopped')}",
        f"now: {result.base.answer}, score {result.base.score:.3f}; {what}:",
    ]
    if not rows:
        return "\n".join([*lines[:-1], f"now: {result.base.answer}; there is nothing to change"])
    return "\n".join([*lines, *table_text(("then", "change", "edits"), rows)])


# Influence


@dataclass(frozen=True)
class Followed:
    """Influence, and the token that was asked about."""

    sentences: tuple[str, ...]
    found: Influence
    token: int

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"text": list(self.sentences), "token": self.token, **self.found.as_dict()}

    def figure(self) -> "Figure":
        """Of the first triple."""
        return self.found.figure()


def run_influence(args: argparse.Namespace) -> Followed:
    """`kbert explain influence`: where triples can have come, and what they changed there."""
    pipeline, reading = model_and_reading(args, head=False)
    if not args.text:
        raise TextError("No text given. Write one in quotes.")
    found = influence(pipeline, *args.text, window=args.window, **reading)
    size = len(found.flat)
    if not 0 <= args.token < size:
        raise OptionError(
            f"There is no token {args.token}; the text has {size}, from 0 ([CLS]) to {size - 1}."
        )
    return Followed(tuple(args.text), found, args.token)


def influence_text(result: Followed) -> str:
    """For one token: when each triple can reach it, and how much it changed it after each layer."""
    found = result.found
    rows = [
        (
            "never" if one.layer == NEVER else str(one.layer),
            *(f"{100 * x:.2f} %" if x == x else "–" for x in one.measured),
            name_of(one.piece.triple),
        )
        for one in found.arrivals(result.token)
    ]
    heads = ("can from", *(f"after {layer}" for layer in range(found.layers + 1)), "triple")
    lines = [
        " ‖ ".join(result.sentences),
        f"token {result.token}, “{found.flat.tokens[result.token]}”: from which layer a triple can "
        "reach it, and by how much leaving it out changes its state",
        f"largest change out of reach: {found.largest_beyond_reach:.1e}",
    ]
    return "\n".join([*lines, *(table_text(heads, rows) if rows else ["no triple in the text"])])


# Noise


def run_noise(args: argparse.Namespace) -> NoiseCurve:
    """`kbert explain noise`: a prediction as unrelated triples are added."""
    source = None
    if args.noise_from:
        source = said_by(load_graph(*args.noise_from))
    steps = stream_noise(case_of_args(args), args.counts, args.seeds, source=source)
    made: NoiseCurve = last_of(steps, lambda c: f"{len(c.points)} of {c.total} readings")
    return made


def noise_text(result: NoiseCurve) -> str:
    """Score and distance from plain BERT, by ablation and number of unrelated triples."""
    rows = []
    for name in result.ablations:
        for count in result.counts:
            points = result.at(name, count)
            answers = list(dict.fromkeys(point.outcome.answer for point in points))
            score = result.spread(name, count, "from_plain")
            apart = result.spread(name, count, "variation")
            if score is None or apart is None:
                continue
            rows.append(
                (
                    str(count),
                    nats(score.mean),
                    f"{apart.mean:.3f}",
                    f"{apart.low:.3f} to {apart.high:.3f}",
                    ", ".join(answers),
                    name,
                )
            )
    lines = [
        " ‖ ".join(result.sentences),
        f"explained: {result.target}, in nats above plain BERT's ({result.plain.answer}); distance "
        "from plain BERT as total variation, 0 to 1",
    ]
    heads = ("noise", "score", "distance", "seeds", "answers", "read as")
    return "\n".join([*lines, *table_text(heads, rows)])


# Compare


def run_compare(args: argparse.Namespace) -> Comparison:
    """`kbert explain compare`: K-BERT's parts side by side, or several models."""
    case = case_of_args(args)
    if not args.beside:
        return compare(ablations_of(case), of=case)
    readings: dict[str, Case] = {model_of(args): case}
    for model in args.beside:
        other = argparse.Namespace(**{**vars(args), "model": model})
        pipeline, reading = model_and_reading(other)
        readings[model] = Case.of(pipeline, *args.text, target=case.target, **reading)
    return compare({f"{BERT}, {model_of(args)}": case.without_knowledge(), **readings}, of=case)


def compare_text(result: Comparison) -> str:
    """The readings, then every two of them, and why two are equal."""
    sides = [
        (
            side.outcome.answer if side.outcome else "–",
            f"{side.outcome.score:.3f}" if side.outcome else "–",
            str(side.triples),
            side.name,
        )
        for side in result.sides
    ]
    pairs = [
        (
            "–" if pair.score is None else nats(pair.score),
            "–" if pair.variation is None else f"{pair.variation:.3f}",
            "flips" if pair.flips else "",
            f"{pair.one} → {pair.other}"
            + (f"\nequal: {pair.why} (largest difference {pair.largest:.0e})" if pair.why else ""),
        )
        for pair in result.pairs
    ]
    lines = [
        " ‖ ".join(result.sentences),
        f"explained: {result.target}, in nats",
        *table_text(("predicts", "score", "triples", "reading"), sides),
        "",
        *table_text(("change", "distance", "", "from → to"), pairs),
    ]
    return "\n".join(lines)


RUNS: dict[str, tuple[Callable[[argparse.Namespace], Any], Callable[[Any], str]]] = {
    "counterfactuals": (run_counterfactuals, counterfactuals_text),
    "influence": (run_influence, influence_text),
    "noise": (run_noise, noise_text),
    "compare": (run_compare, compare_text),
}
