"""What `kbert explain effects`, `shapley`, `counterfactuals` … run and print, for one text."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kbert_core.cli.output import last_of, table
from kbert_core.cli.shared import config_of, graph_of, model_of, pipeline_of
from kbert_core.errors import OptionError, TextError
from kbert_core.explain.attention import AttentionEffect, attention_effect
from kbert_core.explain.compare import BERT, Comparison, ablations_of
from kbert_core.explain.compare import compare as compare_readings
from kbert_core.explain.counterfactuals import Counterfactuals, Search, stream_counterfactuals
from kbert_core.explain.effects import Effects, Interactions, stream_effects, stream_interactions
from kbert_core.explain.influence import Influence
from kbert_core.explain.influence import influence as influence_of
from kbert_core.explain.noise import NoiseCurve, stream_noise
from kbert_core.explain.reach import NEVER
from kbert_core.explain.result import name_of, nats
from kbert_core.explain.shapley import Shapley, stream_shapley
from kbert_core.explain.target import target_named
from kbert_core.explain.variants import Case
from kbert_core.knowledge import load_graph
from kbert_core.pipeline import Pipeline

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# What is explained


def case_of(args: Namespace) -> Case:
    """Read the text, and find what of its prediction is to be explained."""
    if not args.text:
        raise TextError("No text given. Write one in quotes.")
    pipeline, reading = model_and_reading(args)
    trace = pipeline(*args.text, **reading)
    span = _span(args.span)
    target = target_named(trace.prediction, trace.reading, label=args.target, span=span)
    return Case(pipeline, reading["graph"], trace, target)


def model_and_reading(args: Namespace, *, head: bool = True) -> tuple[Pipeline, dict[str, Any]]:
    """The model, and with which graph, options, ablation and length it reads.

    Args:
        head: whether a task head is needed.
    """
    graph = graph_of(args)
    why = (
        "so it predicts nothing that could be explained. Train a head with `kbert train`."
        if head
        else ""
    )
    pipeline = pipeline_of(args, why=why)
    return pipeline, {"graph": graph, "config": config_of(args, pipeline.config)}


def _span(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    start, _, end = text.partition(":")
    if not (start.isdecimal() and end.isdecimal() and int(start) < int(end)):
        raise OptionError(
            f"The span is '{text}', expected two numbers of characters, as 3:6, the second one "
            "exclusive."
        )
    return int(start), int(end)


def _page(
    sentences: Sequence[str],
    about: Sequence[str],
    heads: Sequence[str] = (),
    rows: Sequence[Sequence[str]] = (),
) -> str:
    """The text, what is said of it, and a table."""
    lines = [" ‖ ".join(sentences), *about]
    return "\n".join([*lines, *(table(heads, rows) if heads else ())])


# Effects, interactions, Shapley values, attention


def effects(args: Namespace) -> Effects:
    """Every triple left out, and deleted from the graph."""
    growing = stream_effects(
        case_of(args), by_mention=args.by_mention, deleted=not args.left_out_only
    )
    return last_of(growing, lambda e: f"{len(e.each)} of {e.total} triples")


def effects_text(result: Effects) -> str:
    """Effects, the largest first."""
    rows = [
        (
            _flips(e.effect, e.flips),
            "" if e.deleted_effect is None else _flips(e.deleted_effect, e.deleted_flips),
            "\n→ ".join(
                [
                    result.name(e.piece, e.mentions),
                    *(f"{triple} moves up" for triple in e.moved_up),
                ]
            ),
        )
        for e in result.ranked
    ]
    base, plain = result.base, result.plain
    about = [
        f"explained: {result.target}, in nats; {result.runs} readings",
        f"with knowledge: {base.answer}, score {base.score:.3f}",
        f"without any: {plain.answer}, score {plain.score:.3f}; whole effect {nats(result.whole)}",
    ]
    return _page(result.sentences, about, ("left out", "deleted", "triple"), rows)


def _flips(effect: float, flips: bool | None) -> str:
    return nats(effect) + ("  flips" if flips else "")


def interactions(args: Namespace) -> Interactions:
    """Every two triples together."""
    return last_of(
        stream_interactions(case_of(args)), lambda e: f"{len(e.each)} of {e.total} pairs"
    )


def interactions_text(result: Interactions) -> str:
    """Interactions, the largest first."""
    rows = [
        (nats(pair.value), " & ".join(name_of(piece.triple) for piece in pair.pieces))
        for pair in result.ranked
    ]
    about = (
        f"explained: {result.target}, in nats; {result.runs} readings. Positive: together they "
        "raise the score by more, or lower it by less, than the sum of what each does alone"
    )
    return _page(result.sentences, [about], ("interaction", "triples"), rows)


def shapley(args: Namespace) -> Shapley:
    """The whole effect shared out."""
    options = {name: getattr(args, name) for name in ("by_mention", "orders", "seed", "exact")}
    return last_of(
        stream_shapley(case_of(args), **options), lambda s: f"{s.orders} of {s.total} orders"
    )


def shapley_text(result: Shapley) -> str:
    """Shapley values, the largest first."""
    rows = []
    for share in result.ranked:
        interval = ""
        if not result.exact and share.low is not None and share.high is not None:
            interval = f"{nats(share.low)} to {nats(share.high)}"
        rows.append((nats(share.value), interval, name_of(share.piece.triple)))
    how = "exact" if result.exact else f"{result.orders} orders, seed {result.seed}"
    about = [
        f"explained: {result.target}, in nats; {how}; {result.runs} readings",
        f"whole effect, their sum: {nats(result.whole)}",
    ]
    return _page(result.sentences, about, ("value", "95 %", "triple"), rows)


def attention(args: Namespace) -> AttentionEffect:
    """Attention on every triple beside its effect."""
    return attention_effect(case_of(args))


def attention_text(result: AttentionEffect) -> str:
    """Attention beside effect, the most attended first."""
    rows = [
        (
            f"{100 * one.mass('trunk'):.2f} %",
            f"{100 * one.mass('target'):.2f} %",
            nats(one.effect.effect),
            name_of(one.piece.triple),
        )
        for one in sorted(result.each, key=lambda one: -one.mass())
    ]
    rho = result.rank_correlation()
    correlation = "none can be correlation" if rho is None else f"{rho:+.2f}"
    about = [
        f"explained: {result.target}; rank correlation of attention and effect: {correlation} "
        f"(n = {len(result.each)})",
        *map(str, result.disagreements()),
    ]
    heads = ("of the trunk", "of the target", "effect", "triple")
    return _page(result.effects.sentences, about, heads, rows)


# Counterfactuals


def counterfactuals(args: Namespace) -> Counterfactuals:
    """The smallest changes of the graph that flip it."""
    search = Search(
        tuple(args.kinds),
        args.to,
        args.most_edits,
        args.larger_too,
        args.budget,
        args.most,
        seed=args.seed,
    )
    return last_of(
        stream_counterfactuals(case_of(args), search),
        lambda s: f"{s.runs} of {search.budget} runs, {len(s.found)} found",
    )


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
    about = [
        f"explained: {result.target}, in nats{wish}; {result.runs} readings: "
        f"{ENDED.get(result.ended, 'stopped')}",
        f"now: {result.base.answer}, score {result.base.score:.3f}; {what}:",
    ]
    if not rows:
        about[-1] = f"now: {result.base.answer}; there is nothing to change"
        return _page(result.sentences, about)
    return _page(result.sentences, about, ("then", "change", "edits"), rows)


# Influence


@dataclass(frozen=True)
class TokenInfluence:
    """Influence, and the token that was asked about."""

    sentences: tuple[str, ...]
    influence: Influence
    token: int

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"text": list(self.sentences), "token": self.token, **self.influence.as_dict()}

    def figure(self) -> "Figure":
        """Of the first triple."""
        return self.influence.figure()


def influence(args: Namespace) -> TokenInfluence:
    """Where triples can have come, and what they changed there."""
    pipeline, reading = model_and_reading(args, head=False)
    if not args.text:
        raise TextError("No text given. Write one in quotes.")
    found = influence_of(pipeline, *args.text, window=args.window, **reading)
    size = len(found.flat)
    if not 0 <= args.token < size:
        raise OptionError(
            f"There is no token {args.token}; the text has {size}, from 0 ([CLS]) to {size - 1}."
        )
    return TokenInfluence(tuple(args.text), found, args.token)


def influence_text(result: TokenInfluence) -> str:
    """For one token: when each triple can reach it, and how much it changed it after each layer."""
    found = result.influence
    rows = [
        (
            "never" if one.layer == NEVER else str(one.layer),
            *(f"{100 * x:.2f} %" if x == x else "–" for x in one.measured),
            name_of(one.piece.triple),
        )
        for one in found.arrivals(result.token)
    ]
    heads = ("can from", *(f"after {layer}" for layer in range(found.layers + 1)), "triple")
    about = [
        f"token {result.token}, “{found.flat.tokens[result.token]}”: from which layer a triple can "
        "reach it, and by how much leaving it out changes its state",
        f"largest change out of reach: {found.largest_beyond_reach:.1e}",
    ]
    if not rows:
        return _page(result.sentences, [*about, "no triple in the text"])
    return _page(result.sentences, about, heads, rows)


# Noise


def noise(args: Namespace) -> NoiseCurve:
    """A prediction as unrelated triples are added."""
    source = None
    if args.noise_from:
        source = tuple(load_graph(*args.noise_from).active_triples())
    steps = stream_noise(case_of(args), args.counts, args.seeds, source=source)
    return last_of(steps, lambda c: f"{len(c.points)} of {c.total} readings")


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
    about = [
        f"explained: {result.target}, in nats above plain BERT's ({result.plain.answer}); distance "
        "from plain BERT as total variation, 0 to 1",
    ]
    heads = ("noise", "score", "distance", "seeds", "answers", "read as")
    return _page(result.sentences, about, heads, rows)


# Compare


def compare(args: Namespace) -> Comparison:
    """K-BERT's parts side by side, or several models."""
    case = case_of(args)
    if not args.beside:
        return compare_readings(ablations_of(case), of=case)
    readings: dict[str, Case] = {model_of(args): case}
    for model in args.beside:
        other = Namespace(**{**vars(args), "model": model})
        pipeline, reading = model_and_reading(other)
        readings[model] = Case.of(pipeline, *args.text, target=case.target, **reading)
    return compare_readings(
        {f"{BERT}, {model_of(args)}": case.without_knowledge(), **readings}, of=case
    )


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
    about = [
        f"explained: {result.target}, in nats",
        *table(("predicts", "score", "triples", "reading"), sides),
        "",
    ]
    return _page(result.sentences, about, ("change", "distance", "", "from → to"), pairs)
