"""Knowledge graphs: triples, their names in a text, and the files they are kept in."""

from kbert_core.knowledge.graph import join_graphs
from kbert_core.knowledge.load import load_graph

__all__ = ["join_graphs", "load_graph"]
