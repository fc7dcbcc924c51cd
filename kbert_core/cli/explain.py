"""`kbert explain`: what injected knowledge does to a prediction; one sub-command an explanation.

What needs PyTorch is imported when a command is run.
"""

from argparse import BooleanOptionalAction, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbert_core.cli.commands import Argument, argument, command, several
from kbert_core.cli.output import last_of, table
from kbert_core.cli.shared import MODEL, loaded
from kbert_core.errors import OptionError, TextError
from kbert_core.knowledge import load_graph
from kbert_core.knowledge.triple import Triple

if TYPE_CHECKING:  # not imported to run: it needs PyTorch
    from kbert_core.explain.case import Case

NO_HEAD = "so it predicts nothing that could be explained. Train a head with `kbert train`."
KINDS = ("remove", "replace", "add")  # of candidates.py, which needs PyTorch
PICTURE = argument("--picture", "draw it: .png, .svg or .pdf", type=Path, metavar="FILE")
TEXT = several(
    argument("text", "a sentence, or two for a pair", nargs="*"),
    argument(
        "--target",
        "class, entity type, O, or token to explain; default: what is predicted",
        metavar="LABEL",
    ),
    argument(
        "--span",
        "which span or [MASK] to explain, in characters; default: the first with knowledge on it",
        metavar="START:END",
    ),
)
BY_MENTION = argument("--by-mention", "a triple at each mention by itself", False)


@dataclass(frozen=True)
class Page:
    """A result, and how it is printed.

    Attributes:
        result: with ``as_dict()`` and ``figure()``.
        lines: the text, and what is said of it.
        heads, rows: a table below; see :func:`cell`.
        first: stands first in JSON.
    """

    result: Any
    lines: Sequence[str]
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()
    first: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The result as plain data, for JSON."""
        return {**self.first, **self.result.as_dict()}

    def text(self) -> str:
        """The result for reading."""
        rows = table(self.heads, [map(cell, row) for row in self.rows]) if self.heads else ()
        return "\n".join([*self.lines, *rows])


Explain = Callable[[Namespace], Page]


def cell(value: Any) -> str:
    """A score in nats, a triple in a line, nothing for None."""
    from kbert_core.explain.result import name_of, nats

    match value:
        case None:
            return ""
        case float():
            return nats(value)
        case Triple():
            return name_of(value)
    return str(value)


def explanation(
    name: str, *arguments: Argument, of: Argument = TEXT
) -> Callable[[Explain], Explain]:
    """Make a function a command that explains: its page is printed, and drawn with --picture."""

    def add(explain: Explain) -> Explain:
        @command(f"explain {name}", PICTURE, of, *arguments, MODEL, text=Page.text)
        @wraps(explain)
        def run(args: Namespace) -> Page:
            page = explain(args)
            if args.picture is not None:
                _save_picture(page.result.figure(), args.picture)
            return page

        return run

    return add


def _save_picture(figure: Any, path: Path) -> None:
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise OptionError(f"{path}: a picture ends in .png, .svg or .pdf. Name it so.")
    try:
        figure.savefig(path, dpi=160, metadata={"Date": None} if path.suffix == ".svg" else None)
    except OSError as error:
        raise OptionError(
            f"{path}: can't be written ({error.strerror}). Name another file with --picture."
        ) from error


def case_of(args: Namespace) -> "Case":
    """Read the text, and find what of its prediction is to be explained."""
    from kbert_core.explain.case import Case, target_of

    text = _text(args)
    pipeline, graph, config = loaded(args, why=NO_HEAD)
    trace = pipeline(*text, graph=graph, config=config)
    span = _span(args.span)
    target = target_of(trace.prediction, trace.reading, label=args.target, span=span)
    return Case(pipeline, graph, trace, target)


def _text(args: Namespace) -> Sequence[str]:
    if not args.text:
        raise TextError("No text given. Write one in quotes.")
    return args.text


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


def joined(sentences: Sequence[str]) -> str:
    """The text in a line."""
    return " ‖ ".join(sentences)


# Effects, interactions, Shapley values, attention


@explanation(
    "effects",
    BY_MENTION,
    argument("--left-out-only", "don't delete triples from the graph as well", False),
)
def effects(args: Namespace) -> Page:
    """Leave every triple out, and delete it from the graph: the exact effect on a prediction."""
    from kbert_core.explain.effects import stream_effects

    deleted = not args.left_out_only
    result = last_of(
        stream_effects(case_of(args), by_mention=args.by_mention, deleted=deleted),
        lambda e: f"{len(e.each)} of {e.total} triples",
    )
    base, plain = result.base, result.plain
    lines = [
        joined(result.sentences),
        f"explained: {result.target}, in nats; {result.runs} readings",
        f"with knowledge: {base.answer}, score {base.score:.3f}",
        f"without any: {plain.answer}, score {plain.score:.3f}; whole effect {cell(result.whole)}",
    ]
    rows = [
        (
            _flips(e.effect, e.flips),
            _flips(e.deleted_effect, e.deleted_flips),
            "\n→ ".join([result.name(e), *(f"{t} moves up" for t in e.moved_up)]),
        )
        for e in result.ranked
    ]
    return Page(result, lines, ("left out", "deleted", "triple"), rows)


def _flips(effect: float | None, flips: bool | None) -> str:
    return cell(effect) + ("  flips" if flips else "")


@explanation("interactions")
def interactions(args: Namespace) -> Page:
    """What every two triples do together beyond the sum."""
    from kbert_core.explain.effects import stream_interactions

    growing = stream_interactions(case_of(args))
    result = last_of(growing, lambda e: f"{len(e.each)} of {e.total} pairs")
    lines = [
        joined(result.sentences),
        f"explained: {result.target}, in nats; {result.runs} readings. Positive: together they "
        "raise the score by more, or lower it by less, than the sum of what each does alone",
    ]
    rows = [(p.value, " & ".join(cell(piece.triple) for piece in p.pieces)) for p in result.ranked]
    return Page(result, lines, ("interaction", "triples"), rows)


@explanation(
    "shapley",
    BY_MENTION,
    argument("--orders", "to draw", 64),
    argument("--seed", "of the draw", 0),
    argument(
        "--exact",
        "run every subset; default: where there are few triples",
        action=BooleanOptionalAction,
    ),
)
def shapley(args: Namespace) -> Page:
    """Share the whole effect out among the triples: Shapley values."""
    from kbert_core.explain.shapley import stream_shapley

    options = {name: getattr(args, name) for name in ("by_mention", "orders", "seed", "exact")}
    growing = stream_shapley(case_of(args), **options)
    result = last_of(growing, lambda s: f"{s.orders} of {s.total} orders")
    how = "exact" if result.exact else f"{result.orders} orders, seed {result.seed}"
    lines = [
        joined(result.sentences),
        f"explained: {result.target}, in nats; {how}; {result.runs} readings",
        f"whole effect, their sum: {cell(result.whole)}",
    ]
    rows = []
    for share in result.ranked:
        drawn = not result.exact and share.low is not None
        interval = f"{cell(share.low)} to {cell(share.high)}" if drawn else ""
        rows.append((share.value, interval, share.piece.triple))
    return Page(result, lines, ("value", "95 %", "triple"), rows)


@explanation("attention")
def attention(args: Namespace) -> Page:
    """Attention on every triple beside its effect."""
    from kbert_core.explain.attention import attention_effect

    result = attention_effect(case_of(args))
    rho = result.rank_correlation()
    correlation = "none can be said" if rho is None else f"{rho:+.2f}"
    lines = [
        joined(result.effects.sentences),
        f"explained: {result.target}; rank correlation of attention and effect: {correlation} "
        f"(n = {len(result.each)})",
        *map(str, result.disagreements()),
    ]
    rows = [
        (
            f"{100 * piece.mass('trunk'):.2f} %",
            f"{100 * piece.mass('target'):.2f} %",
            piece.effect.effect,
            piece.piece.triple,
        )
        for piece in sorted(result.each, key=lambda piece: -piece.mass())
    ]
    return Page(result, lines, ("of the trunk", "of the target", "effect", "triple"), rows)


# Counterfactuals

ENDED = {
    "all": "all of them were tried",
    "budget": "the budget of runs is used up",
    "enough": "enough were found",
}


@explanation(
    "counterfactuals",
    argument("--to", "what it shall become; default: anything else", metavar="LABEL"),
    argument("--kinds", "of changes; default: all of them", KINDS, choices=KINDS),
    argument("--budget", "model runs", 200),
    argument("--most", "stop at so many", 20),
    argument("--most-edits", "at most so many changes together", 3),
    argument(
        "--larger-too", "go on to larger sets of changes where smaller ones were found", False
    ),
    argument("--seed", "of the changes that are drawn", 0),
)
def counterfactuals(args: Namespace) -> Page:
    """Search for the smallest changes of the graph that flip a prediction."""
    from kbert_core.explain.counterfactuals import Search, stream_counterfactuals

    limits = {"most_edits": args.most_edits, "budget": args.budget, "most_found": args.most}
    search = Search(
        tuple(args.kinds), args.to, larger_too=args.larger_too, seed=args.seed, **limits
    )
    result = last_of(
        stream_counterfactuals(case_of(args), search),
        lambda s: f"{s.runs} of {search.budget} runs, {len(s.found)} found",
    )
    rows = [(one.after.answer, one.change, str(one)) for one in result.found or result.nearest]
    wish = "" if search.to is None else f"; wished for: {search.to}"
    what = "found to flip it" if result.found else "nothing found flips it; nearest to it"
    score = f", score {result.base.score:.3f}; {what}:" if rows else "; there is nothing to change"
    lines = [
        joined(result.sentences),
        f"explained: {result.target}, in nats{wish}; {result.runs} readings: "
        f"{ENDED.get(result.ended, 'stopped')}",
        f"now: {result.base.answer}{score}",
    ]
    return Page(result, lines, ("then", "change", "edits") if rows else (), rows)


# Influence


@explanation(
    "influence",
    argument("--token", "which to follow; default: 0, [CLS]", 0),
    argument(
        "--window",
        "which window of a long text, from 0; default: the first with knowledge",
        type=int,
        metavar="N",
    ),
)
def influence(args: Namespace) -> Page:
    """Where each triple can have come by which layer, and what it changed there."""
    from kbert_core.explain.case import NOTHING, Case
    from kbert_core.explain.influence import NEVER, influence

    text, token = _text(args), args.token
    pipeline, graph, config = loaded(args)
    case = Case.of(pipeline, *text, graph=graph, config=config, target=NOTHING)
    result = influence(case, window=args.window)
    size = len(result.flat)
    if not 0 <= token < size:
        raise OptionError(
            f"There is no token {token}; the text has {size}, from 0 ([CLS]) to {size - 1}."
        )
    rows = [
        (
            "never" if arrival.layer == NEVER else arrival.layer,
            *(f"{100 * x:.2f} %" if x == x else "–" for x in arrival.measured),
            arrival.piece.triple,
        )
        for arrival in result.arrivals(token)
    ]
    lines = [
        joined(text),
        f"token {token}, “{result.flat.tokens[token]}”: from which layer a triple can reach it, "
        "and by how much leaving it out changes its state",
        f"largest change out of reach: {result.largest_beyond_reach:.1e}",
        *(() if rows else ["no triple in the text"]),
    ]
    heads = ("can from", *(f"after {layer}" for layer in range(result.layers + 1)), "triple")
    first = {"text": list(text), "token": token}
    return Page(result, lines, heads if rows else (), rows, first)


# Noise


@explanation(
    "noise",
    argument("--counts", "unrelated triples a mention gets", (0, 1, 2, 4, 8, 16)),
    argument("--seeds", "of what is drawn", (1, 2, 3)),
    argument(
        "--noise-from",
        "graphs whose relations and tails are drawn; default: the same graph's",
        nargs="+",
        metavar="FILE",
    ),
)
def noise(args: Namespace) -> Page:
    """A prediction as unrelated triples are added."""
    from kbert_core.explain.noise import stream_noise

    source = None
    if args.noise_from:
        source = tuple(load_graph(*args.noise_from).active_triples())
    growing = stream_noise(case_of(args), args.counts, args.seeds, source=source)
    result = last_of(growing, lambda c: f"{len(c.points)} of {c.total} readings")
    lines = [
        joined(result.sentences),
        f"explained: {result.target}, in nats above plain BERT's ({result.plain.answer}); distance "
        "from plain BERT as total variation, 0 to 1",
    ]
    rows = []
    for name in result.ablations:
        for count in result.counts:
            answers = dict.fromkeys(point.outcome.answer for point in result.at(name, count))
            score = result.spread(name, count, "from_plain")
            apart = result.spread(name, count, "variation")
            if score is not None and apart is not None:
                seeds = f"{apart.low:.3f} to {apart.high:.3f}"
                row = (count, score.mean, f"{apart.mean:.3f}", seeds, ", ".join(answers), name)
                rows.append(row)
    return Page(result, lines, ("noise", "score", "distance", "seeds", "answers", "read as"), rows)
