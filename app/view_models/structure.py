"""The shape of a graph as networkx sees it: hubs, parts, names of several types, ways between."""

from collections import Counter
from dataclasses import dataclass
from itertools import islice, pairwise

import networkx as nx

from kbert_core import KnowledgeGraph, Triple
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import TYPE_RELATIONS

MOST = 50_000  # triples that are looked at
SHOWN = 12


@dataclass(frozen=True)
class Structure:
    """What was found."""

    network: nx.MultiDiGraph  # a node for every name, in whatever case and width it is written
    looked_at: int  # so many triples, those that are switched on
    hubs: tuple[tuple[str, int, int], ...]  # the names in most triples: (name, as head, as tail)
    parts: int  # so many, with no triple between them
    largest: tuple[tuple[int, str], ...]  # of these: (names, the one in most triples)
    several: tuple[tuple[str, tuple[str, ...]], ...]  # entities of two or more types: (name, types)

    def name(self, typed: str) -> str | None:
        """How the graph writes a name, if it has it."""
        wanted = normalise_name(typed)
        return next((node for node in self.network if normalise_name(node) == wanted), None)

    def way(self, start: str, end: str, *, types: bool) -> tuple[Triple, ...] | None:
        """The shortest way from one name to another, along triples in either direction.

        Args:
            start, end: as the graph writes them.
            types: whether it may lead over a type that both have.
        """
        allowed = nx.subgraph_view(
            self.network, filter_edge=lambda u, v, key: types or key not in TYPE_RELATIONS
        )
        try:
            names = nx.shortest_path(allowed.to_undirected(as_view=True), start, end)
        except nx.NetworkXNoPath:
            return None
        return tuple(self._triple(*pair, types) for pair in pairwise(names))

    def _triple(self, one: str, other: str, types: bool) -> Triple:
        for head, tail in ((one, other), (other, one)):
            for relation in self.network.get_edge_data(head, tail) or ():
                if types or relation not in TYPE_RELATIONS:
                    return Triple(head, relation, tail)
        raise AssertionError("a way has an edge for every step")


def structure(graph: KnowledgeGraph) -> Structure:
    """Look at the first ``MOST`` triples of a graph that are on."""
    spelled: dict[str, str] = {}

    def once(name: str) -> str:
        return spelled.setdefault(normalise_name(name), name)

    triples = [
        Triple(once(triple.head), triple.relation, once(triple.tail))
        for triple in islice(graph.active_triples(), MOST)
    ]
    network = nx.MultiDiGraph((t.head, t.tail, t.relation) for t in KnowledgeGraph(triples))
    degrees = Counter(dict(network.degree()))
    parts = sorted(nx.weakly_connected_components(network), key=len, reverse=True)
    types: dict[str, dict[str, None]] = {}
    for triple in triples:
        if triple.relation in TYPE_RELATIONS:
            types.setdefault(triple.head, {})[triple.tail] = None
    return Structure(
        network,
        len(triples),
        tuple(
            (name, network.out_degree(name), network.in_degree(name))
            for name, _ in degrees.most_common(SHOWN)
        ),
        len(parts),
        tuple((len(part), max(part, key=lambda name: degrees[name])) for part in parts[:SHOWN]),
        tuple((name, tuple(found)) for name, found in types.items() if len(found) > 1),
    )
