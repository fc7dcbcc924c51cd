"""A graph as a ``networkx.MultiDiGraph``, and back: for its algorithms, pictures and formats."""

from typing import Any

import networkx as nx

from kbert_core.errors import GraphEditError, GraphFileError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.triple import Triple

RELATION, ON, ORDER = "relation", "on", "order"  # what an edge says of its triple


def to_networkx(graph: KnowledgeGraph) -> nx.MultiDiGraph:
    """Return a graph with a node for every name and an edge for every triple.

    A node is the name itself, as the triple writes it; an edge goes from head to tail, its key is
    the relation, and its attributes are ``relation``, the same; ``on``, False if switched off; and
    ``order``, the triple's number in the graph, as networkx puts parallel edges together.
    """
    result = nx.MultiDiGraph(name=graph.name)
    for number, triple in enumerate(graph):
        about = {RELATION: triple.relation, ON: graph.is_on(triple), ORDER: number}
        result.add_edge(triple.head, triple.tail, key=triple.relation, **about)
    return result


def from_networkx(
    graph: nx.Graph, *, relation: str = RELATION, label: str | None = None
) -> KnowledgeGraph:
    """Return the triples that a directed graph's edges say.

    Edges with a number ``order`` come first, in its order, and then the
    others as networkx lists them; one with ``on=False`` is switched off.
    ``from_networkx(to_networkx(graph))`` holds what the graph holds.

    Args:
        graph: a ``DiGraph`` or ``MultiDiGraph``; nodes without an edge are
            in no triple.
        relation: the attribute that names an edge's relation; where an edge
            of a multigraph lacks it and has a text as its key, that is it.
        label: the attribute that names a node; None: the node itself does.

    Raises:
        GraphFileError: the graph is not directed, or an edge is no triple.
    """
    shown = f"graph '{graph.name}'" if graph.name else "the graph"
    if not graph.is_directed():
        raise GraphFileError(
            f"{shown}: its edges have no direction, so head and tail can't be told. Build it as a "
            "networkx.DiGraph or MultiDiGraph."
        )
    found: dict[Triple, None] = {}
    off: set[Triple] = set()
    keys = {"keys": True} if graph.is_multigraph() else {}
    for head, tail, *key, about in sorted(graph.edges(data=True, **keys), key=_order):
        edge = f"{shown}, edge {head!r} → {tail!r}"
        named = about.get(relation, key[0] if key and isinstance(key[0], str) else None)
        if not isinstance(named, str):
            raise GraphFileError(
                f"{edge}: found the relation {named!r}, expected a text in the attribute "
                f"'{relation}'. Set it, or say which attribute names the relation: relation=…"
            )
        ends = [_name(graph, node, label, edge) for node in (head, tail)]
        try:
            triple = Triple.checked(ends[0], named, ends[1])
        except GraphEditError as error:
            raise GraphFileError(f"{edge}: {error}") from error
        if triple not in found and not about.get(ON, True):
            off.add(triple)
        found[triple] = None
    return KnowledgeGraph(found, name=graph.name, off=off)


def _order(edge: tuple[Any, ...]) -> float:
    order = edge[-1].get(ORDER)
    return order if isinstance(order, int | float) else float("inf")


def _name(graph: nx.Graph, node: Any, label: str | None, edge: str) -> str:
    name = node if label is None else graph.nodes[node].get(label)
    if isinstance(name, str):
        return name
    if label is None:
        raise GraphFileError(
            f"{edge}: the node {node!r} is no text and names nothing. Say which attribute of the "
            "nodes names them, label=…, or rename them with networkx.relabel_nodes."
        )
    raise GraphFileError(
        f"{edge}: found {name!r} as the attribute '{label}' of the node {node!r}, expected a "
        "text. Set it, or name another attribute."
    )
