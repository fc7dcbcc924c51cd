"""A graph with the same names and tails, wrongly paired: the control for an experiment.

Knowledge may help because it is true, or because a branch marks where a name
begins and ends. A shuffled graph keeps the second and takes away the first.
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import Triple

TRIES = 200  # partners looked at before all are


@dataclass(frozen=True)
class Shuffled:
    """A shuffled graph, and how well it could be done.

    Attributes:
        graph: every head keeps its relations, and the number of its triples
            unless it got one tail twice, which counts once.
        unchanged: share of triples whose tail is still a true one of their
            head. Where one tail has more than half of a relation's triples,
            some can't be changed without changing how often tails occur.
    """

    graph: KnowledgeGraph
    unchanged: float


def shuffled(graph: KnowledgeGraph, *, seed: int = 0) -> Shuffled:
    """Give every head another's tails: a derangement, within each relation.

    The tails of a relation are permuted, then those that came to a head
    which has them truly change places until none can. Triples that say
    another name stay, so that the same names are found.

    Args:
        graph: left as it is; what is switched off in it is left out.
        seed: of the permutation.
    """
    random = np.random.default_rng(seed)
    triples = list(graph.active_triples())
    true: dict[tuple[str, str], set[str]] = defaultdict(set)
    by_relation: dict[str, list[int]] = defaultdict(list)
    for i, triple in enumerate(triples):
        true[normalise_name(triple.head), triple.relation].add(triple.tail)
        if graph.aliases.aliases_in(triple) is None:
            by_relation[triple.relation].append(i)
    owned = [true[normalise_name(t.head), t.relation] for t in triples]
    tails = [t.tail for t in triples]
    for places in by_relation.values():
        own = [owned[i] for i in places]
        new = [tails[i] for i in random.permutation(places)]
        _derange(new, own, random)
        for i, tail in zip(places, new, strict=True):
            tails[i] = tail
    moved = [i for places in by_relation.values() for i in places]
    unchanged = sum(tails[i] in owned[i] for i in moved)
    made = KnowledgeGraph(
        (Triple(t.head, t.relation, tail) for t, tail in zip(triples, tails, strict=True)),
        name=f"{graph.name}, shuffled",
        aliases=graph.aliases,
    )
    return Shuffled(made, unchanged / max(1, len(moved)))


def _derange(new: list[str], own: list[set[str]], random: np.random.Generator) -> None:
    """Let tails change places, until none is its place's own or no change helps."""
    stuck: set[tuple[str, frozenset[str]]] = set()
    for i in random.permutation(len(new)):
        case = (new[i], frozenset(own[i]))
        if new[i] not in own[i] or case in stuck:
            continue
        some = random.integers(len(new), size=min(TRIES, len(new)))
        for j in (*some, *range(len(new))):
            if new[j] not in own[i] and new[i] not in own[j]:
                new[i], new[j] = new[j], new[i]
                break
        else:
            stuck.add(case)
