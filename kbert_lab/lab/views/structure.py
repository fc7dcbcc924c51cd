"""The shape of a graph as networkx sees it: its hubs, its parts, and a way between two names."""

from itertools import islice, pairwise
from typing import Any

import networkx as nx

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import TYPE_RELATIONS
from kbert_lab.lab.texts import t

MOST = 50_000  # triples that are looked at
SHOWN = 12
Columns = dict[str, list[Any]]


def network_of(graph: KnowledgeGraph) -> nx.MultiDiGraph:
    """A node for every name, however it is written; of the first triples that are on."""
    spelled: dict[str, str] = {}
    once = lambda name: spelled.setdefault(normalise_name(name), name)  # noqa: E731
    triples = islice(graph.active_triples(), MOST)
    return nx.MultiDiGraph((once(x.head), once(x.tail), x.relation) for x in triples)


def hubs(network: nx.MultiDiGraph) -> Columns:
    """The names in most triples, as columns of a table."""
    names = sorted(network, key=network.degree, reverse=True)[:SHOWN]
    return {
        t("name"): names,
        t("as head"): [network.out_degree(name) for name in names],
        t("as tail"): [network.in_degree(name) for name in names],
    }


def parts(network: nx.MultiDiGraph) -> tuple[int, Columns]:
    """How many parts no triple joins; of the largest the name in most triples, and their size."""
    found = sorted(nx.weakly_connected_components(network), key=len, reverse=True)
    largest = found[:SHOWN]
    names = [max(part, key=network.degree) for part in largest]
    return len(found), {t("name"): names, t("names in the part"): list(map(len, largest))}


def name_in(network: nx.MultiDiGraph, typed: str) -> str | None:
    """How a graph writes a name, if it has it."""
    wanted = normalise_name(typed)
    return next((node for node in network if normalise_name(node) == wanted), None)


def way(network: nx.MultiDiGraph, start: str, end: str) -> list[tuple[str, str, bool]] | None:
    """The shortest way between two names, over a type that both have only if there is no other.

    Returns:
        The steps: a name, the relation that leads to it, and whether it is the triple's tail.
    """

    def far(one: str, other: str, relations: Any) -> int:
        return 1 if set(relations) - set(TYPE_RELATIONS) else len(network)

    try:
        names = nx.shortest_path(network.to_undirected(as_view=True), start, end, weight=far)
    except nx.NetworkXNoPath:
        return None
    steps = []
    for one, other in pairwise(names):
        onward = network.get_edge_data(one, other) or {}
        relations = sorted({**onward, **(network.get_edge_data(other, one) or {})})
        relation = min(relations, key=lambda name: name in TYPE_RELATIONS)
        steps.append((other, relation, relation in onward))
    return steps
