"""What `kbert explain effects`, `interactions`, `shapley` and `attention` run and print."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kbert_core.cli.options import ablation_of, graph_of, injection_of, model_of
from kbert_core.cli.text import width
from kbert_core.errors import CheckpointError, OptionError, TextError
from kbert_core.explain.attention import AttentionEffect, attention_effect
from kbert_core.explain.effects import Effects, Interactions, stream_effects, stream_interactions
from kbert_core.explain.result import name_of, nats
from kbert_core.explain.shapley import Shapley, stream_shapley
from kbert_core.explain.target import target_named
from kbert_core.explain.variants import Case
from kbert_core.pipeline import Pipeline

# What is explained


def case_of_args(args: argparse.Namespace) -> Case:
    """Read the text, and find what of its prediction is to be explained."""
    if not args.text:
        raise TextError("No text given. Write one in quotes.")
    pipeline, reading = model_and_reading(args)
    trace = pipeline(*args.text, **reading)
    target = target_named(trace.prediction, trace.reading, label=args.target, span=_span(args.span))
    return Case(pipeline, reading["graph"], trace, target)


def model_and_reading(
    args: argparse.Namespace, *, head: bool = True
) -> tuple[Pipeline, dict[str, Any]]:
    """The model, and with which graph, options, ablation and length it reads.

    Args:
        head: whether a task head is needed.
    """
    graph = graph_of(args)
    pipeline = Pipeline.load(model_of(args), device=args.device)
    if head and pipeline.task is None:
        raise CheckpointError(
            f"{model_of(args)} is an encoder without a task head, so it predicts nothing that "
            "could be explained. Train a head with `kbert train`."
        )
    return pipeline, {
        "graph": graph,
        "options": injection_of(args, pipeline.card.reading.options),
        "ablation": ablation_of(args, pipeline.card),
        "max_length": args.max_length,
    }


def last_of(results: Iterator[Any], said: Callable[[Any], str]) -> Any:
    """The last of growing results; where someone looks on, with what is said of each."""
    result = None
    shown = sys.stderr.isatty()
    for result in results:
        if shown:
            print(f"\r{said(result)}", end="", file=sys.stderr)
    if shown:
        print(file=sys.stderr)
    return result


def _span(said: str | None) -> tuple[int, int] | None:
    if said is None:
        return None
    start, _, end = said.partition(":")
    if not (start.isdecimal() and end.isdecimal() and int(start) < int(end)):
        raise OptionError(
            f"The span is '{said}', expected two numbers of characters, as 3:6, the second one "
            "exclusive."
        )
    return int(start), int(end)


# Effects, interactions, Shapley values, attention


def run_effects(args: argparse.Namespace) -> Effects:
    """`kbert explain effects`: every triple left out, and deleted from the graph."""
    case = case_of_args(args)
    found = stream_effects(case, by_mention=args.by_mention, deleted=not args.left_out_only)
    made: Effects = last_of(found, lambda e: f"{len(e.each)} of {e.total} triples")
    return made


def run_interactions(args: argparse.Namespace) -> Interactions:
    """`kbert explain interactions`: every two triples together."""
    found = stream_interactions(case_of_args(args))
    made: Interactions = last_of(found, lambda e: f"{len(e.each)} of {e.total} pairs")
    return made


def run_shapley(args: argparse.Namespace) -> Shapley:
    """`kbert explain shapley`: the whole effect shared out."""
    found = stream_shapley(
        case_of_args(args),
        by_mention=args.by_mention,
        orders=args.orders,
        seed=args.seed,
        exact=args.exact,
    )
    made: Shapley = last_of(found, lambda s: f"{s.orders} of {s.total} orders")
    return made


def run_attention(args: argparse.Namespace) -> AttentionEffect:
    """`kbert explain attention`: attention on every triple beside its effect."""
    return attention_effect(case_of_args(args))


# What is printed


def effects_text(result: Effects) -> str:
    """Effects, the largest first."""
    rows = [
        (
            nats(e.effect) + ("  flips" if e.flips else ""),
            ""
            if e.deleted_effect is None
            else nats(e.deleted_effect) + ("  flips" if e.deleted_flips else ""),
            result.name(e.piece, e.mentions)
            + "".join(f"\n→ {triple} moves up" for triple in e.moved_up),
        )
        for e in result.ranked
    ]
    base, plain = result.base, result.plain
    lines = [
        " ‖ ".join(result.sentences),
        f"explained: {result.target}, in nats; {result.runs} readings",
        f"with knowledge: {base.answer}, score {base.score:.3f}",
        f"without any: {plain.answer}, score {plain.score:.3f}; whole effect {nats(result.whole)}",
    ]
    return "\n".join([*lines, *table_text(("left out", "deleted", "triple"), rows)])


def interactions_text(result: Interactions) -> str:
    """Interactions, the largest first."""
    rows = [
        (nats(pair.value), " & ".join(name_of(piece.triple) for piece in pair.pieces))
        for pair in result.ranked
    ]
    lines = [
        " ‖ ".join(result.sentences),
        f"explained: {result.target}, in nats; {result.runs} readings. Positive: together they "
        "raise the score by more, or lower it by less, than the sum of what each does alone",
    ]
    return "\n".join([*lines, *table_text(("interaction", "triples"), rows)])


def shapley_text(result: Shapley) -> str:
    """Shapley values, the largest first."""
    rows = []
    for share in result.ranked:
        interval = ""
        if not result.exact and share.low is not None and share.high is not None:
            interval = f"{nats(share.low)} to {nats(share.high)}"
        rows.append((nats(share.value), interval, name_of(share.piece.triple)))
    how = "exact" if result.exact else f"{result.orders} orders, seed {result.seed}"
    lines = [
        " ‖ ".join(result.sentences),
        f"explained: {result.target}, in nats; {how}; {result.runs} readings",
        f"whole effect, their sum: {nats(result.whole)}",
    ]
    return "\n".join([*lines, *table_text(("value", "95 %", "triple"), rows)])


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
    said = "none can be said" if rho is None else f"{rho:+.2f}"
    lines = [
        " ‖ ".join(result.effects.sentences),
        f"explained: {result.target}; rank correlation of attention and effect: {said} "
        f"(n = {len(result.each)})",
        *map(str, result.disagreements()),
    ]
    heads = ("of the trunk", "of the target", "effect", "triple")
    return "\n".join([*lines, *table_text(heads, rows)])


def table_text(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns side by side; the last may have several lines."""
    widths = [max(width(line[i]) for line in (heads, *rows)) for i in range(len(heads) - 1)]
    lines = []
    for row in (heads, *rows):
        cells = zip(row, widths, strict=False)
        first = "  ".join(cell + " " * (size - width(cell)) for cell, size in cells)
        last, *more = row[-1].split("\n")
        lines.append(f"{first}  {last}")
        lines += [" " * (len(first) + 2) + line for line in more]
    return lines


RUNS: dict[str, tuple[Callable[[argparse.Namespace], Any], Callable[[Any], str]]] = {
    "effects": (run_effects, effects_text),
    "interactions": (run_interactions, interactions_text),
    "shapley": (run_shapley, shapley_text),
    "attention": (run_attention, attention_text),
}
