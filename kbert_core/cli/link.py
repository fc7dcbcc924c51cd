"""`kbert link`: which entities a text's names may mean, and which of them the model takes."""

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kbert_core.cli import commands as options
from kbert_core.cli.commands import argument, command, loaded
from kbert_core.cli.output import table
from kbert_core.cli.texts import TEXT, each_text
from kbert_core.errors import CheckpointError

SHOWN = 5  # candidates of a span that are printed; JSON has them all


@command(
    "link",
    TEXT,
    options.MODEL,
    argument("--all", f"print every candidate, not the best {SHOWN} of each span", False),
)
def link(args: Namespace) -> None:
    """Show the names in a text, what each may mean, and what a KnowBert's linker makes of it.

    A span is printed with its candidates: prior, dot product, score ψ and weight. The arrow is at
    what it is taken to mean; NULL is nothing.
    """
    pipeline, graph, config = loaded(args)
    if not pipeline.reader.inserts:
        raise CheckpointError(
            f"The model's system, '{pipeline.card.system}', links nothing. Name a KnowBert, or see "
            "with `kbert tree` what this one reads."
        )

    def linked(texts: Sequence[Sequence[str]]) -> Iterator[Mapping[str, Any]]:
        for sentences in texts:
            trace = pipeline(*sentences, graph=graph, config=config)
            yield {
                "text": list(sentences) if len(sentences) > 1 else sentences[0],
                "spans": [_span(own, sentences) for own in trace.links],
            }

    shown = None if args.all else SHOWN
    each_text(args, linked, lambda data: linked_text(data, shown))


def _span(linked: Any, sentences: Sequence[str]) -> dict[str, Any]:
    mention, best = linked.span.mention, linked.best
    return {
        "text": sentences[mention.sentence][mention.start : mention.end],
        **{name: getattr(mention, name) for name in ("start", "end", "sentence")},
        "base": linked.span.base,
        "entity": None if best is None else best.candidate.entity,
        "candidates": [
            {
                "entity": own.candidate.entity,
                "prior": own.candidate.prior,
                **{name: getattr(own, name) for name in ("dot", "score", "weight")},
                "says": "; ".join(triple.tail for triple in own.candidate.triples),
            }
            for own in linked.candidates
        ],
    }


def linked_text(data: Mapping[str, Any], shown: int | None = None) -> str:
    """A linked text for reading: a table of candidates for each span."""
    lines = []
    for span in data["spans"]:
        candidates = sorted(span["candidates"], key=lambda own: -own["score"])
        lines.append(f"{span['text']} [{span['start']}, {span['end']})  {span['entity'] or 'NULL'}")
        rows = [
            {
                "": "→" if own["entity"] == span["entity"] else "",
                "entity": own["entity"],
                "prior": f"{own['prior']:.3f}",
                "dot": f"{own['dot']:.2f}",
                "ψ": f"{own['score']:.2f}",
                "weight": f"{own['weight']:.3f}",
                "says": own["says"],
            }
            for own in candidates[:shown]
        ]
        lines += [f"  {line}" for line in table(rows, 0)]
        if len(candidates) > len(rows):
            lines.append(f"  and {len(candidates) - len(rows)} more (--all)")
    return "\n".join(lines or ["no name of the graph stands in the text"])
