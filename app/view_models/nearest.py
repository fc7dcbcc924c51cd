"""Which names of a graph come nearest to a text that names none of them."""

from collections.abc import Sequence
from itertools import islice, pairwise

from kbert_core import KnowledgeGraph
from kbert_core.knowledge.names import normalise_name

MOST_LOOKED_AT = 50_000  # heads; a visitor waits for them


def nearest_names(
    sentences: Sequence[str], graph: KnowledgeGraph, *, most: int = 5
) -> tuple[str, ...]:
    """Return heads that share most of their character pairs with the text.

    Args:
        sentences: the text.
        graph: whose heads are offered, as the graph writes them; the first ``MOST_LOOKED_AT``.
        most: at most so many.
    """
    text = " ".join(normalise_name(sentence) for sentence in sentences)
    pairs, characters = _pairs(text), set(text) - {" "}
    scored = []
    for entity in islice(graph.entities(), MOST_LOOKED_AT):
        if characters.isdisjoint(entity):
            continue
        own = _pairs(entity)
        shared = len(own & pairs) / len(own) if own else 0.0
        alike = len(set(entity) & characters) / len(set(entity))
        if shared >= 0.3 or (alike >= 0.5 and not entity.isascii() and len(entity) <= 4):
            scored.append((-shared - 0.3 * alike, len(entity), entity))
    best = [entity for _, _, entity in sorted(scored)[:most]]
    return tuple(graph.triples_of(entity)[0].head for entity in best)


def _pairs(text: str) -> set[str]:
    return {a + b for a, b in pairwise(text) if a + b != "  "}
