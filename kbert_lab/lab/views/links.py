"""What names of a text may mean, and the triples read beside it, as tables."""

from collections.abc import Sequence
from typing import Any

from kbert_core.knowledge.names import normalise_name
from kbert_core.roof.roof_bert import RoofReading
from kbert_lab.explain.drawing import HEADS, SHOWN, linked_html
from kbert_lab.lab.texts import N_, t
from kbert_lab.lab.views.knowledge import TripleRow

NO_NAME = N_("The text contains no name of the graph, so no entity is linked.")


def has_more(links: Sequence[Any]) -> bool:
    """Whether a span has more candidates than are shown at first."""
    return any(len(own.candidates) > SHOWN for own in links)


def linked_table(links: Sequence[Any], sentences: Sequence[str], *, every: bool = False) -> str:
    """The spans of a trace with their candidates, the best first; escaped."""
    words = {
        "entity": t("entity"),
        "prior": t("prior"),
        "dot": t("dot product"),
        "score": HEADS["score"],
        "weight": t("weight"),
        "says": t("what it says"),
        "more": t("and {count} more"),
        "base": t("knowledge base {number}"),
        "none": t(NO_NAME),
    }
    return linked_html(links, sentences, most=None if every else SHOWN, words=words)


def beside_table(rows: Sequence[TripleRow], reading: RoofReading) -> dict[str, list[str]]:
    """Each name of a text with its triples, and whether they are read or why not; as columns."""
    names: dict[str, dict[str, None]] = {}  # in reading order, with the entities they name
    for mention in reading.mentions:
        text = reading.sentences[mention.sentence][mention.start : mention.end]
        names.setdefault(text, {}).update(dict.fromkeys(mention.entities))
    lines = [
        (name, row)
        for name in names
        for row in rows
        if normalise_name(row.triple.head) in names[name]
    ]
    return {
        t("name"): [name for name, _ in lines],
        t("triple"): [str(row.triple) for _, row in lines],
        t("read?"): [row.state for _, row in lines],
    }
