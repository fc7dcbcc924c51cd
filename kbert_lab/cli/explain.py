"""`kbert explain`: what injected knowledge does to a prediction; one sub-command an explanation.

What needs PyTorch is imported when a command is run.
"""

from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from kbert_core.errors import OptionError, TextError
from kbert_core.knowledge.io.write import write_triples
from kbert_core.knowledge.triple import Triple
from kbert_lab.cli import commands as options
from kbert_lab.cli.commands import Arguments, arguments_of, command, loaded
from kbert_lab.cli.output import Progress, last_of, report_text, table
from kbert_lab.cli.texts import texts_given
from kbert_lab.data.sources import read_split
from kbert_lab.files import or_refused

if TYPE_CHECKING:  # not imported to run: it needs PyTorch
    from kbert_core.explain.case import Case
    from kbert_lab.study.whole_file import FileScores, Group

NO_HEAD = "so it predicts nothing that could be explained. Train a head with `kbert train`."
Kind = Literal["remove", "replace", "add"]  # of counterfactuals.py, which needs PyTorch
ENDED = {
    "all": "all of them were tried",
    "budget": "the budget of runs is used up",
    "enough": "enough were found",
}


def _picture(name: str) -> Path:
    if (path := Path(name)).suffix not in (".png", ".svg", ".pdf"):
        raise OptionError(
            f"{path}: the name of a picture must end in .png, .svg or .pdf. Change the name."
        )
    return path


def _span(text: str) -> tuple[int, int]:
    start, _, end = text.partition(":")
    if start.isdecimal() and end.isdecimal() and int(start) < int(end):
        return int(start), int(end)
    raise OptionError(
        f"The span is '{text}', expected its start and end in characters, such as 3:6. The end "
        "is exclusive."
    )


@dataclass(frozen=True)
class Asked:
    """What every explanation takes.

    Args:
        picture (FILE): save a picture: .png, .svg or .pdf
        target (LABEL): class, entity type, O, token or linked entity to explain; default: what is
            predicted
        span (START:END): which span, [MASK] or answer to explain, in characters; default: the first
            with knowledge on it, or the best answer
    """

    picture: Annotated[Path | None, {"type": _picture}] = None
    target: str | None = None
    span: Annotated[Any, {"type": _span}] = None


PICTURE = arguments_of(Asked, only=("picture",))
TEXT = options.several(
    arguments_of(texts_given, only=("text", "question")),
    arguments_of(Asked, only=("target", "span")),
)


@dataclass(frozen=True)
class Page:
    """A result: as plain data, drawn, and for reading as facts with a table below."""

    data: Mapping[str, Any]
    figure: Callable[[], Any]
    facts: Mapping[str, Any]
    rows: Iterable[Mapping[str, Any]] = ()

    def as_dict(self) -> Mapping[str, Any]:
        """For JSON."""
        return self.data

    def text(self) -> str:
        """For reading."""
        return "\n".join([report_text(self.facts), *table(self.rows, shown=0)])


def page_of(
    result: Any, facts: Mapping[str, Any] | str, rows: Iterable[Any], columns: str = ""
) -> Page:
    """Print a result with its text and what is explained.

    Facts are by name, or named parts of the result; rows by column, or something with such parts.
    """
    runs = f"; {result.runs} readings" if hasattr(result, "runs") else ""
    about = {"text": joined(result.sentences), "explained": f"{result.target}, in nats{runs}"}
    about |= parts(result, facts) if isinstance(facts, str) else facts
    made = [parts(row, columns) for row in rows] if columns else rows
    return Page(result.as_dict(), result.figure, about, made)


def parts(value: Any, names: str) -> dict[str, Any]:
    """Parts of a value by name: "then=after.answer" is the part after.answer, called then."""
    pairs = (item.partition("=") for item in names.split())
    return {
        name.replace("_", " "): cell(attrgetter(path or name)(value)) for name, _, path in pairs
    }


def cell(value: Any) -> Any:
    """A score in nats, a triple in a line; anything else as it is."""
    from kbert_core.explain.case import Fact, Outcome
    from kbert_core.explain.result import name_of, nats

    match value:
        case float():
            return nats(value)
        case Triple():
            return name_of(value)
        case Fact():
            return name_of(value.triple)
        case Outcome():
            return f"{value.answer}, score {value.score:.3f}"
        case tuple():
            return [*map(cell, value)]
    return value


def joined(sentences: Sequence[str]) -> str:
    """The text in a line."""
    return " ‖ ".join(sentences)


def explanation(name: str, *shared: Arguments) -> Callable[[Callable[..., Page]], Any]:
    """Make a function a command that explains: its page is printed, and drawn with --picture."""

    def add(explain: Callable[..., Page]) -> Any:
        @wraps(explain)
        def run(args: Namespace, **others: Any) -> Page:
            page, path = explain(args, **others), args.picture
            if path is not None:
                figure, metadata = page.figure(), {"Date": None} if path.suffix == ".svg" else None
                with or_refused(path, OptionError, "Name another file with --picture."):
                    figure.savefig(path, dpi=160, metadata=metadata)
            return page

        return command(f"explain {name}", PICTURE, *shared, options.MODEL, text=Page.text)(run)

    return add


def case_of(args: Namespace, *, of: "Case | None" = None, whole: bool = False) -> "Case":
    """Read the text, and find what of its prediction is to be explained: as ``of`` another's.

    A ``whole`` reading needs no prediction, and so no model with a head.
    """
    from kbert_core.explain.case import NOTHING, Case, target_of

    if not args.text:
        raise TextError("No text given. Write one in quotes.")
    text = (*([] if args.question is None else [args.question]), *args.text)
    pipeline, graph, config = loaded(args, why="" if whole else NO_HEAD)
    if whole or of:
        target = of.target if of else NOTHING
        return Case.of(pipeline, *text, graph=graph, config=config, target=target)
    trace = pipeline(*text, graph=graph, config=config)
    target = target_of(trace.prediction, trace.reading, label=args.target, span=args.span)
    return Case(pipeline, graph, trace, target)


@explanation("effects", TEXT)
def effects(args: Namespace, *, by_mention: bool = False) -> Page:
    """Leave every triple out, and delete it from the graph: the exact effect on a prediction.

    Args:
        by_mention: treat a triple separately at each of its mentions
    """
    from kbert_core.explain.effects import stream_effects

    result = last_of(
        stream_effects(case_of(args), by_mention=by_mention),
        lambda e: f"{len(e.each)} of {e.total} triples",
    )
    columns = "left_out=effect flips deleted=deleted_effect deleted_flips"
    rows = [
        {**parts(e, columns), "triple": result.name(e), "moves up": cell(e.moved_up)}
        for e in result.ranked
    ]
    return page_of(result, "with_knowledge=base without_any=plain whole_effect=whole", rows)


@explanation("interactions", TEXT)
def interactions(args: Namespace) -> Page:
    """Show what every two triples do together beyond the sum of both."""
    from kbert_core.explain.effects import stream_interactions

    growing = stream_interactions(case_of(args))
    result = last_of(growing, lambda e: f"{len(e.each)} of {e.total} pairs")
    meaning = "together they raise the score by more, or lower it by less, than each alone in sum"
    rows = (
        {**parts(pair, "interaction=value"), "triples": " & ".join(map(cell, pair.facts))}
        for pair in result.ranked
    )
    return page_of(result, {"positive": meaning}, rows)


@explanation("shapley", TEXT)
def shapley(
    args: Namespace,
    *,
    by_mention: bool = False,
    orders: int = 64,
    seed: int = 0,
    exact: bool | None = None,
) -> Page:
    """Share the whole effect out among the triples: Shapley values.

    Args:
        by_mention: treat a triple separately at each of its mentions
        orders: orders that are drawn
        seed: of the draw
        exact: run every subset; default: only if there are few triples
    """
    from kbert_core.explain.effects import stream_shapley

    how: Any = {"by_mention": by_mention, "orders": orders, "seed": seed, "exact": exact}
    growing = stream_shapley(case_of(args), **how)
    result = last_of(growing, lambda s: f"{s.orders} of {s.total} orders")
    facts = "exact orders seed whole_effect,_their_sum=whole"
    columns = "value triple=fact" if result.exact else "value low high triple=fact"
    return page_of(result, facts, result.ranked, columns)


@explanation("attributions", TEXT)
def attributions(args: Namespace, *, steps: int = 64) -> Page:
    """Share the score out among the tokens of the text and its triples: integrated gradients.

    Args:
        steps: steps from the masked text to the text
    """
    from kbert_core.explain.attributions import attributions

    result = attributions(case_of(args), steps=steps)
    columns = "share token=text triple=fact"
    return page_of(result, "score all_masked=masked remainder", result.each, columns)


@explanation("attention", TEXT)
def attention(args: Namespace) -> Page:
    """Show the attention on every triple beside its effect."""
    from kbert_lab.explain.attention import attention_effect

    result = attention_effect(case_of(args))
    rho = result.rank_correlation()
    correlation = "none can be said" if rho is None else f"{rho:+.2f}"
    facts = {
        "text": joined(result.effects.sentences),
        "explained": str(result.target),
        "rank correlation of attention and effect": f"{correlation} (n = {len(result.each)})",
        "disagreements": "; ".join(map(str, result.disagreements())) or None,
    }
    rows = (
        {
            **{f"of the {who}": f"{100 * fact.mass(who):.2f} %" for who in ("trunk", "target")},
            **parts(fact, "effect=effect.effect triple=fact"),
        }
        for fact in sorted(result.each, key=lambda fact: -fact.mass())
    )
    return Page(result.as_dict(), result.figure, facts, rows)


@explanation("counterfactuals", TEXT)
def counterfactuals(
    args: Namespace,
    *,
    to: str | None = None,
    kinds: tuple[Kind, ...] = ("remove", "replace", "add"),
    budget: int = 200,
    most_edits: int = 3,
    seed: int = 0,
) -> Page:
    """Search for the smallest changes of the graph that flip a prediction.

    Args:
        to (LABEL): the prediction to search for; default: any other
        kinds: kinds of edits to try; default: all
        budget: at most this many model runs
        most_edits: at most this many edits together
        seed: of the changes that are drawn
    """
    from kbert_lab.explain.counterfactuals import Search, stream_counterfactuals

    search = Search(tuple(kinds), to, budget=budget, most_edits=most_edits, seed=seed)
    result = last_of(
        stream_counterfactuals(case_of(args), search),
        lambda s: f"{s.runs} of {search.budget} runs, {len(s.found)} found",
    )
    rows = [
        {**parts(one, "then=after.answer change"), "edits": str(one)}
        for one in result.found or result.nearest
    ]
    below = "found to flip it" if result.found else "nothing found flips it; nearest to it"
    facts = {
        "wished for": search.to,
        "searched": ENDED.get(result.ended, "stopped"),
        "now": cell(result.base),
        "below": below if rows else "there is nothing to change",
    }
    return page_of(result, facts, rows)


@explanation("influence", TEXT)
def influence(args: Namespace, *, token: int = 0) -> Page:
    """Show by which layer each triple can have arrived, and what it changed there.

    Args:
        token: number of the token to follow; default: 0, [CLS]
    """
    from kbert_lab.explain.influence import NEVER, influence

    case = case_of(args, whole=True)
    result = influence(case)
    if not 0 <= token < (size := len(result.flat)):
        raise OptionError(
            f"There is no token {token}; the text has {size}, from 0 ([CLS]) to {size - 1}."
        )
    facts = {
        "text": joined(case.sentences),
        f"token {token}, “{result.flat.tokens[token]}”": "from which layer a triple can reach it, "
        "and by how much leaving it out changes its state",
        "largest change out of reach": f"{result.largest_beyond_reach:.1e}",
    }
    rows = [
        {
            "can from": "never" if arrival.layer == NEVER else arrival.layer,
            **{
                f"after {layer}": f"{100 * change:.2f} %" if change == change else "–"
                for layer, change in enumerate(arrival.measured)
            },
            "triple": cell(arrival.fact),
        }
        for arrival in result.arrivals(token)
    ]
    data = {"text": list(case.sentences), "token": token, **result.as_dict()}
    return Page(data, result.figure, facts, rows)


@explanation("noise", TEXT)
def noise(
    args: Namespace,
    *,
    counts: tuple[int, ...] = (0, 1, 2, 4, 8, 16),
    seeds: tuple[int, ...] = (1, 2, 3),
) -> Page:
    """Show how a prediction changes as unrelated triples are added.

    Args:
        counts: numbers of unrelated triples per mention
        seeds: seeds of the drawing
    """
    from kbert_lab.explain.noise import stream_noise

    growing = stream_noise(case_of(args), counts, seeds)
    result = last_of(growing, lambda c: f"{len(c.points)} of {c.total} readings")
    rows: list[dict[str, Any]] = []
    for name, count in product(result.ablations, result.counts):
        answers = dict.fromkeys(point.outcome.answer for point in result.at(name, count))
        score = result.spread(name, count, "from_plain")
        apart = result.spread(name, count, "variation")
        if score is not None and apart is not None:
            row = {"noise": count, "score": cell(score.mean), "distance": f"{apart.mean:.3f}"}
            row |= {"seeds": f"{apart.low:.3f} to {apart.high:.3f}", "answers": ", ".join(answers)}
            rows.append({**row, "read as": name})
    facts = {
        "score": f"above plain BERT's ({result.plain.answer})",
        "distance": "from plain BERT as total variation, 0 to 1",
    }
    return page_of(result, facts, rows)


@explanation("compare", TEXT)
def compare(args: Namespace, *, beside: tuple[str, ...] = ()) -> Page:
    """Compare BERT, K-BERT and its ablations, or several models; say why two are equal.

    Args:
        beside (DIR): at most two other models; default: the model's ablations
    """
    from kbert_lab.explain.compare import BERT, ablations_of, compare

    case = case_of(args)
    readings: dict[str, Any] = ablations_of(case)
    if beside:
        model = options.model_of(args)
        readings = {f"{BERT}, {model}": case.without_knowledge(), model: case}
    for model in beside:
        readings[model] = case_of(Namespace(**{**vars(args), "model": model}), of=case)
    result = compare(readings, of=case)
    sides = [parts(side, "reading=name predicts=outcome triples") for side in result.sides]
    rows = [
        {
            **parts(pair, "from=one to=other change=score"),
            "distance": None if pair.variation is None else f"{pair.variation:.3f}",
            "flips": pair.flips,
            "equal": pair.why and f"{pair.why} (largest difference {pair.largest:.0e})",
        }
        for pair in result.pairs
    ]
    return page_of(result, {"readings": sides}, rows)


# A labelled file with a graph and without


@explanation("file", options.COLUMNS)
def file(
    args: Namespace,
    *,
    data: str,
    split: str = "dev",
    by: Literal["label", "entity", "relation", "triple"] = "relation",
    prune: Literal["counts", "leave-one-out"] | None = None,
    output: Path | None = None,
) -> Page:
    """Read a labelled file with the graph and without: where it helps and where it hurts.

    Args:
        data (FILE|DIR|hf:NAME): labelled texts
        split: of a folder
        prune: take out of the graph what hurts more texts than it helps: counted over the texts
            where it stands (counts), or measured by leaving it out of each (leave-one-out)
        output (FILE): where to put the pruned graph
    """
    from kbert_lab.study.whole_file import WholeFile, each_left_out, each_row
    from kbert_lab.study.whole_file import prune as pruned_by

    if not args.kg:
        raise OptionError(options.NO_GRAPH)
    if output and not prune:
        raise OptionError(
            "--output is of a pruned graph, and there is no --prune. Add it, or leave --output out."
        )
    pipeline, graph, config = loaded(args, why=NO_HEAD)
    assert pipeline.task is not None
    task = pipeline.task.name
    examples = read_split(data, split, task, options.columns_of(args))
    reading = each_row(pipeline, examples, graph, config=config)
    rows = tuple(Progress("texts", total=len(examples)).over(reading))
    whole = WholeFile(task, graph.name, rows, len(examples))
    plain = whole.as_dict()
    facts = {
        "texts": len(whole.rows),
        "graph": whole.graph,
        "texts with a triple of it": len(whole.with_knowledge),
        "changed by knowledge": len(whole.changed),
        **{"helped": whole.whole.helped, "hurt": whole.whole.hurt},
        whole.scores.metric: _scores(whole.scores),
        "in common": [_group(group) for group in whole.groups(by)],
    }
    if prune:
        left_out = []
        if prune == "leave-one-out":
            tried = each_left_out(pipeline, whole.rows, graph, config=config)
            left_out = list(Progress("triples", total=None).over(tried))
        rule: Any = prune.replace("-", " ")
        pruned = pruned_by(graph, whole.rows, left_out, rule=rule)
        if output is not None:
            write_triples((t for t in pruned.graph if pruned.graph.is_on(t)), output)
        plain["pruned"] = pruned.as_dict()
        facts |= {"pruned": str(pruned), "taken out": plain["pruned"]["removed"] or None}
    return Page(plain, partial(whole.figure, by), facts)


def _scores(scores: "FileScores") -> list[dict[str, str]]:
    """The score of each way and their difference in per cent, with 95 %."""
    from kbert_lab.study.whole_file import WITH, WITHOUT

    rows: list[tuple[str, Any, str]] = [(way, score, "") for way, score in scores.main.items()]
    if scores.difference is not None:
        rows.append((f"{WITH} minus {WITHOUT}", scores.difference, "+"))
    return [
        {"": name, " ": f"{100 * s.mean:{sign}.1f}", "95 %": _interval(s.low, s.high, sign)}
        for name, s, sign in rows
    ]


def _interval(low: float, high: float, sign: str = "") -> str:
    return f"{100 * low:{sign}.1f} to {100 * high:{sign}.1f}"


def _group(group: "Group") -> dict[str, Any]:
    """A row of the table; the shares of its texts in per cent, with 95 %."""
    return {
        group.by: group.name,
        "of": group.count,
        "hurt": group.hurt,
        "95 %": _interval(*group.hurt_interval),
        "helped": group.helped,
        "95 % ": _interval(*group.helped_interval),
        "mean gain": cell(group.mean_gain),
    }
