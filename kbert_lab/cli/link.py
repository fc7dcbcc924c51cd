"""`kbert link`: what a KnowBert's names may mean, and which triples a Roof-BERT reads."""

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from functools import partial
from typing import Any

from kbert_core.errors import CheckpointError
from kbert_lab.cli import commands as options
from kbert_lab.cli.commands import command, loaded
from kbert_lab.cli.output import table
from kbert_lab.cli.texts import TEXT, each_text

ROOF_BERT = "roof-bert"
SHOWN = 5  # candidates of a span that are printed; JSON has them all


@command("link", TEXT, options.MODEL)
def link(args: Namespace, *, all: bool = False) -> None:
    """Show the names in a text, and what the model makes of each.

    A KnowBert's spans are printed with their candidates: prior, dot product, score ψ and weight. An
    arrow marks the entity that is chosen; NULL is none. For a Roof-BERT the triples of each name
    are printed, those left out with the reason, and the string that its second encoder reads.

    Args:
        all: print every candidate, not only the best 5 of each span
    """
    pipeline, graph, config = loaded(args)
    if pipeline.card.system == ROOF_BERT:
        readings = partial(pipeline.readings, graph=graph, config=config)
        each_text(args, lambda texts: map(_read, readings(texts)), read_text)
        return
    if not pipeline.reader.inserts:
        raise CheckpointError(
            f"The model's system, '{pipeline.card.system}', links nothing. Name a KnowBert or a "
            "Roof-BERT, or see with `kbert tree` what this one reads."
        )

    def linked(texts: Sequence[Sequence[str]]) -> Iterator[Mapping[str, Any]]:
        for sentences in texts:
            trace = pipeline(*sentences, graph=graph, config=config)
            yield {
                "text": list(sentences) if len(sentences) > 1 else sentences[0],
                "spans": [_span(own, sentences) for own in trace.links],
            }

    shown = None if all else SHOWN
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
    return "\n".join(lines or ["the text holds no name of the graph"])


def _read(reading: Any) -> dict[str, Any]:
    """What a Roof-BERT reads beside a text."""
    kb, sentences = reading.kb, reading.sentences
    left: dict[int, list[dict[str, Any]]] = {}
    for number, own in reading.left_out:
        left.setdefault(number, []).append({"triple": list(astuple(own.triple)), "why": own.why})
    names = [
        {
            "text": sentences[mention.sentence][mention.start : mention.end],
            **{name: getattr(mention, name) for name in ("start", "end", "sentence", "entity")},
            "triples": [list(astuple(triple)) for triple in triples],
            "left_out": left.get(number, []),
        }
        for number, (mention, triples) in enumerate(reading.by_mention)
    ]
    text = list(sentences) if len(sentences) > 1 else sentences[0]
    sizes = {"text_tokens": sum(map(len, reading.tokens)), "kb_tokens": len(kb)}
    return {"text": text, "names": names, "kb_text": kb.text, **sizes}


def read_text(data: Mapping[str, Any]) -> str:
    """What a Roof-BERT reads, for reading: a table of triples for each name, and the string."""
    lines = []
    for name in data["names"]:
        lines.append(f"{name['text']} [{name['start']}, {name['end']})")
        rows = [(triple, "read") for triple in name["triples"]]
        rows += [(own["triple"], own["why"]) for own in name["left_out"]]
        columns = ("head", "relation", "tail")
        shown = [{**dict(zip(columns, t, strict=True)), "": why} for t, why in rows]
        lines += [f"  {line}" for line in table(shown, 0)]
    lines = lines or ["the text holds no name of the graph"]
    counts = f"{data['text_tokens']} tokens of text, {data['kb_tokens']} beside it:"
    return "\n".join([*lines, counts, data["kb_text"]])
