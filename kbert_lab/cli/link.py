"""`kbert link`: what a KnowBert's names may mean, and which triples a Roof-BERT reads."""

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from functools import partial
from typing import Any

from kbert_core.errors import CheckpointError
from kbert_lab.cli import commands as options
from kbert_lab.cli.commands import command, loaded
from kbert_lab.cli.output import TRIPLE, placed, table, text_of
from kbert_lab.cli.texts import TEXT, Texts, each_text

ROOF_BERT = "roof-bert"
SHOWN = 5  # candidates of a span that are printed; JSON has them all
NO_NAME = ["the text holds no name of the graph"]
SCORES = {"prior": ".3f", "dot": ".2f", "score": ".2f", "weight": ".3f"}  # and how they are printed


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

    def linked(texts: Texts) -> Iterator[Mapping[str, Any]]:
        for sentences in texts:
            links = pipeline(*sentences, graph=graph, config=config).links
            yield {"text": text_of(sentences), "spans": [_span(own, sentences) for own in links]}

    each_text(args, linked, partial(linked_text, shown=None if all else SHOWN))


def _span(linked: Any, sentences: Sequence[str]) -> dict[str, Any]:
    return {
        **placed(linked.span.mention, sentences),
        "base": linked.span.base,
        "entity": None if linked.best is None else linked.best.candidate.entity,
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
        rows = []
        for own in candidates[:shown]:
            cells = {name: format(value, SCORES.get(name, "")) for name, value in own.items()}
            mark = "→" if own["entity"] == span["entity"] else ""
            rows.append({"": mark, **{"ψ" if n == "score" else n: c for n, c in cells.items()}})
        lines += [f"  {line}" for line in table(rows, 0)]
        if len(candidates) > len(rows):
            lines.append(f"  and {len(candidates) - len(rows)} more (--all)")
    return "\n".join(lines or NO_NAME)


def _read(reading: Any) -> dict[str, Any]:
    """What a Roof-BERT reads beside a text."""
    names = [
        {
            **placed(mention, reading.sentences, "entity"),
            "triples": [list(astuple(triple)) for triple in triples],
            "left_out": [
                {"triple": list(astuple(own.triple)), "why": own.why}
                for of, own in reading.left_out
                if of == number
            ],
        }
        for number, (mention, triples) in enumerate(reading.by_mention)
    ]
    sizes = {"text_tokens": sum(map(len, reading.tokens)), "kb_tokens": len(reading.kb)}
    text = text_of(reading.sentences)
    return {"text": text, "names": names, "kb_text": reading.kb.text, **sizes}


def read_text(data: Mapping[str, Any]) -> str:
    """What a Roof-BERT reads, for reading: a table of triples for each name, and the string."""
    lines = []
    for name in data["names"]:
        lines.append(f"{name['text']} [{name['start']}, {name['end']})")
        rows = [(triple, "read") for triple in name["triples"]]
        rows += [(own["triple"], own["why"]) for own in name["left_out"]]
        shown = [{**dict(zip(TRIPLE, t, strict=True)), "": why} for t, why in rows]
        lines += [f"  {line}" for line in table(shown, 0)]
    counts = f"{data['text_tokens']} tokens of text, {data['kb_tokens']} beside it:"
    return "\n".join([*(lines or NO_NAME), counts, data["kb_text"]])
