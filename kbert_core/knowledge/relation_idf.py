"""How rare a relation is in a graph: what it says of an entity that has it."""

import math
from collections.abc import Mapping
from weakref import WeakKeyDictionary

from kbert_core.knowledge.graph import KnowledgeGraph

_known: WeakKeyDictionary[KnowledgeGraph, Mapping[str, float]] = WeakKeyDictionary()


def rarity(graph: KnowledgeGraph) -> Mapping[str, float]:
    """Return the information of every relation, in nats: -ln of its share of the triples.

    Counted once for each graph; an edited graph is another one.
    """
    found = _known.get(graph)
    if found is None:
        counts = graph.relations()
        total = sum(counts.values())
        found = _known[graph] = {name: math.log(total / n) for name, n in counts.items()}
    return found
