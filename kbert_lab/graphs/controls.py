"""Control graphs for experiments: with wrong tails, or with irrelevant triples put in.

Knowledge may help because it is true, or because a branch marks where a name
begins and ends. A shuffled graph keeps the second and takes away the first; one
with a constant tail keeps nothing but the mark; a graph with noise tells how
well triples are chosen.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.triple import COUNT, AliasRelations, Triple

Place = Literal["before", "among"]
_PARTNERS = 200  # looked at before all are
_DRAWS = 50  # for each triple of noise


@dataclass(frozen=True)
class Shuffled:
    """A shuffled graph, and how well it could be done.

    Attributes:
        graph: every head keeps its relations and the number of its triples, except that a tail
            which it got twice counts once.
        unchanged: share of triples whose tail is still true. If one tail has more than half of a
            relation's triples, some of these must keep it, since each tail occurs as often as
            before.
    """

    graph: KnowledgeGraph
    unchanged: float


def shuffled(graph: KnowledgeGraph, *, seed: int = 0, deranged: bool = True) -> Shuffled:
    """Give every head another's tails: a derangement, within each relation, or a permutation.

    The tails of a relation are permuted. For a derangement, tails that are still true then change
    places until none is left that can. So a deranged tail says what a head is not, and with few
    types this nearly says what it is; a tail that was only permuted says less. Triples that give
    another name, or its count, stay, so that the same names are found; switched-off triples are
    left out.
    """
    random = np.random.default_rng(seed)
    triples = list(graph.active_triples())
    true: dict[tuple[str, str], set[str]] = defaultdict(set)
    by_relation: dict[str, list[int]] = defaultdict(list)
    for i, triple in enumerate(triples):
        true[normalise_name(triple.head), triple.relation].add(triple.tail)
        if graph.aliases.aliases_in(triple) is None and triple.relation != COUNT:
            by_relation[triple.relation].append(i)
    true_tails = [true[normalise_name(t.head), t.relation] for t in triples]
    tails = [t.tail for t in triples]
    moved = unchanged = 0
    for places in by_relation.values():
        new = [tails[i] for i in random.permutation(places)]
        if deranged:
            _derange(new, [true_tails[i] for i in places], random)
        for i, tail in zip(places, new, strict=True):
            tails[i] = tail
        moved += len(places)
        unchanged += sum(tails[i] in true_tails[i] for i in places)
    result = KnowledgeGraph(
        (Triple(t.head, t.relation, tail) for t, tail in zip(triples, tails, strict=True)),
        name=f"{graph.name}, {'shuffled' if deranged else 'permuted'}",
        aliases=graph.aliases,
    )
    return Shuffled(result, unchanged / max(1, moved))


def with_constant_tail(
    graph: KnowledgeGraph, options: InjectionOptions | None = None
) -> KnowledgeGraph:
    """Let every triple say the same: the most common pair of relation and tail.

    Triples that give another name, or its count, stay, so that the same names are found;
    switched-off triples are left out. A head keeps one triple, as all of them would be equal.

    Args:
        options: which relations are injected; only their triples stay, all made the same.
    """
    kept, facts = list[Triple](), list[Triple]()
    for triple in graph.active_triples():
        name = graph.aliases.aliases_in(triple) is not None or triple.relation == COUNT
        if name:
            kept.append(triple)
        elif options is None or options.allows(triple.relation):
            facts.append(triple)
    said = Counter((triple.relation, triple.tail) for triple in facts).most_common(1)
    same = (Triple(triple.head, *fact) for fact, _ in said for triple in facts)
    return KnowledgeGraph(
        (*kept, *same), name=f"{graph.name}, constant tail", aliases=graph.aliases
    )


def _derange(new: list[str], true: list[set[str]], random: np.random.Generator) -> None:
    """Swap tails until none is true at its place, or no swap helps."""
    stuck: set[tuple[str, frozenset[str]]] = set()
    for i in random.permutation(len(new)):
        case = (new[i], frozenset(true[i]))
        if new[i] not in true[i] or case in stuck:
            continue
        some = random.integers(len(new), size=min(_PARTNERS, len(new)))
        for j in (*some, *range(len(new))):
            if new[j] not in true[i] and new[i] not in true[j]:
                new[i], new[j] = new[j], new[i]
                break
        else:
            stuck.add(case)


def with_noise(
    graph: KnowledgeGraph,
    entities: Iterable[str],
    count: int,
    *,
    seed: int,
    source: Sequence[Triple] | None = None,
    place: Place = "among",
) -> KnowledgeGraph:
    """Give entities triples that are said of other entities; never their aliases.

    Args:
        entities: the entities that get them, in the form in which names are compared.
        count: how many for each; with a larger count the triples of a smaller one stay.
        seed: fixes which triples are drawn, and their places.
        source: triples whose relations and tails are drawn; None: those of the graph that are on.
        place: "before" the entity's own triples, or "among" them at random places.
    """
    drawn_from = tuple(graph.active_triples()) if source is None else source
    if not count or not drawn_from:
        return graph
    changed: dict[str, tuple[Triple, ...]] = {}
    for entity in dict.fromkeys(entities):
        triples = list(graph.triples_of(entity))
        if not triples:
            continue
        random = np.random.default_rng([seed, *entity.encode()])
        noise = _drawn(triples, drawn_from, graph.aliases, count, random)
        if place == "before":
            triples[:0] = noise
        else:
            for triple in noise:
                triples.insert(int(random.integers(len(triples) + 1)), triple)
        changed[entity] = tuple(triples)
    return graph.updated(changed)


def _drawn(
    triples: Sequence[Triple],
    drawn_from: Sequence[Triple],
    aliases: AliasRelations,
    count: int,
    random: np.random.Generator,
) -> list[Triple]:
    head, known = triples[0].head, set(triples)
    noise: list[Triple] = []
    for _ in range(_DRAWS * count):
        other = drawn_from[int(random.integers(len(drawn_from)))]
        triple = Triple(head, other.relation, other.tail)
        of_itself = normalise_name(other.tail) == normalise_name(head)
        if triple not in known and not of_itself and aliases.aliases_in(triple) is None:
            known.add(triple)
            noise.append(triple)
            if len(noise) == count:
                break
    return noise
