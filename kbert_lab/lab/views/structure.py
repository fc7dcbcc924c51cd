"""The shape of a graph as networkx sees it: its hubs, its parts, and a way between two names."""

from dataclasses import dataclass
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


@dataclass(frozen=True)
class Structure:
    """What networkx finds in a graph."""

    network: nx.MultiDiGraph  # a node for every name, however it is written
    spelled: dict[str, str]  # a name as names are compared → as the graph writes it
    central: list[str]  # the names in most triples
    components: list[set[str]]  # the names that triples join, the largest part first

    @classmethod
    def of(cls, graph: KnowledgeGraph) -> "Structure":
        """Look at the first triples of a graph that are on."""
        spelled: dict[str, str] = {}
        once = lambda name: spelled.setdefault(normalise_name(name), name)  # noqa: E731
        triples = islice(graph.active_triples(), MOST)
        network = nx.MultiDiGraph((once(x.head), once(x.tail), x.relation) for x in triples)
        central = sorted(network, key=network.degree, reverse=True)[:SHOWN]
        components = sorted(nx.weakly_connected_components(network), key=len, reverse=True)
        return cls(network, spelled, central, components)

    def name(self, typed: str) -> str | None:
        """How the graph writes a name, if it has it."""
        return self.spelled.get(normalise_name(typed))

    def hubs(self) -> Columns:
        """The names in most triples, as columns of a table."""
        return {
            t("name"): self.central,
            t("as head"): [self.network.out_degree(name) for name in self.central],
            t("as tail"): [self.network.in_degree(name) for name in self.central],
        }

    def parts(self) -> Columns:
        """Of the largest parts that no triple joins the name in most triples, and their size."""
        largest = self.components[:SHOWN]
        names = [max(part, key=self.network.degree) for part in largest]
        return {t("name"): names, t("names in the part"): list(map(len, largest))}

    def way(self, start: str, end: str) -> list[tuple[str, str, bool]] | None:
        """The shortest way between two names; over a type of both only if there is no other.

        Returns:
            The steps: a name, the relation that leads to it, and whether it is the triple's tail.
        """

        def far(one: str, other: str, relations: Any) -> int:
            return 1 if set(relations) - set(TYPE_RELATIONS) else len(self.network)

        either_way = self.network.to_undirected(as_view=True)
        try:
            names = nx.shortest_path(either_way, start, end, weight=far)
        except nx.NetworkXNoPath:
            return None
        steps = []
        for one, other in pairwise(names):
            onward = self.network.get_edge_data(one, other) or {}
            relations = {*onward, *(self.network.get_edge_data(other, one) or {})}
            relation = min(sorted(relations), key=lambda name: name in TYPE_RELATIONS)
            steps.append((other, relation, relation in onward))
        return steps
