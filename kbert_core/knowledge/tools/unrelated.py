"""A graph with irrelevant triples among the right ones: the control for choosing triples."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Literal

import numpy as np

from kbert_core.knowledge.aliases import AliasRelations
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import Triple

Place = Literal["before", "among"]
TRIES = 50  # triples drawn for one that the entity doesn't have


def said_by(graph: KnowledgeGraph, most: int | None = None) -> tuple[Triple, ...]:
    """The triples that noise may be made of: those that are on.

    Args:
        most: of a large graph only so many, the first; None: all.
    """
    return tuple(islice(graph.active_triples(), most))


def with_noise(
    graph: KnowledgeGraph,
    entities: Iterable[str],
    count: int,
    *,
    seed: int,
    source: Sequence[Triple] | None = None,
    place: Place = "among",
) -> KnowledgeGraph:
    """Give entities what is said of others.

    Triples that say another name are not drawn: they would say nothing of
    the entity, and change which names are found. The same seed draws the same
    triples: of two counts the larger has those of the smaller and more.

    Args:
        entities: that get it, as names are compared.
        count: triples for each.
        seed: of what is drawn, and of the places.
        source: whose relations and tails are drawn; None: the graph's own that are on.
        place: before the entity's triples, or at random places among them.
    """
    said = said_by(graph) if source is None else source
    if not count or not said:
        return graph
    changed: dict[str, tuple[Triple, ...]] = {}
    for entity in dict.fromkeys(entities):
        own = graph.triples_of(entity)
        if not own:
            continue
        random = np.random.default_rng([seed, *entity.encode()])
        noise = _drawn(own, said, graph.aliases, count, random)
        if place == "before":
            changed[entity] = (*noise, *own)
            continue
        triples = list(own)
        for triple in noise:
            triples.insert(int(random.integers(len(triples) + 1)), triple)
        changed[entity] = tuple(triples)
    return graph.updated(changed)


def _drawn(
    own: Sequence[Triple],
    said: Sequence[Triple],
    aliases: AliasRelations,
    count: int,
    random: np.random.Generator,
) -> list[Triple]:
    head, there = own[0].head, set(own)
    noise: list[Triple] = []
    for _ in range(TRIES * count):
        if len(noise) == count:
            break
        other = said[int(random.integers(len(said)))]
        triple = Triple(head, other.relation, other.tail)
        of_itself = normalise_name(other.tail) == normalise_name(head)
        if triple not in there and not of_itself and aliases.aliases_in(triple) is None:
            there.add(triple)
            noise.append(triple)
    return noise
