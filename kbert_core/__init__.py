"""K-BERT in small readable steps: text and graph in, prediction and every stage out.

The data model, in the order of the paper (Liu et al., AAAI 2020)::

    KnowledgeGraph   triples (head, relation, tail) by entity, edited as a value
      k_query        finds the entities a text names, and their triples   (Eq. 1)
    SentenceTree     the text with those triples hung on as branches      (Eq. 2)
      flatten        reading order, soft positions, branch codes
    FlatTree, Batch  N tokens; two small integers a token say who sees whom
      visible_matrix (B, N, N) bool, True = may attend                    (Eq. 3)
    MaskTransformer  any Hugging Face encoder, run with both              (Eq. 4-6)
    Pipeline         all of it; a call returns a Trace with every stage

    >>> from kbert_core import KnowledgeGraph, Triple, Words, flatten, grow_trees
    >>> graph = KnowledgeGraph([Triple("Tim Cook", "CEO", "Apple")])
    >>> (flat,) = flatten(grow_trees(["Tim Cook is visiting"], graph), Words())
    >>> list(zip(flat.tokens, flat.soft_positions))
    [('Tim', 0), ('Cook', 1), ('CEO', 2), ('Apple', 3), ('is', 2), ('visiting', 3)]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kbert_core.errors import KBertError
from kbert_core.kbert.batch import Batch, Packed, PackedBatch, collate, pack_trees
from kbert_core.kbert.flat_tree import FlatTree, FlatTrees
from kbert_core.kbert.flattening import flatten
from kbert_core.kbert.interventions import Intervention, Tokens
from kbert_core.kbert.sentence_tree import (
    Node,
    SentenceTree,
    Trees,
    grow_trees,
    k_inject,
    k_query,
)
from kbert_core.knowledge import join_graphs, load_graph
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.io import read_triples, write_triples
from kbert_core.knowledge.mentions import Mention, find_mentions
from kbert_core.knowledge.selection import InjectionOptions, LeftOut, Rule
from kbert_core.knowledge.triple import Triple
from kbert_core.systems import SYSTEMS
from kbert_core.text import Characters, WordPieces, Words

if TYPE_CHECKING:
    from kbert_core.checkpoints.checkpoint import Card, load_model
    from kbert_core.kbert.ablation import Ablation, ReadConfig
    from kbert_core.kbert.mask_transformer import MaskTransformer
    from kbert_core.kbert.probe import probe
    from kbert_core.kbert.reader import KBertTrace
    from kbert_core.kbert.visible import Seeing, seeing, visible_everywhere, visible_matrix
    from kbert_core.pipeline import NO_KNOWLEDGE, Pipeline
    from kbert_core.reader import Piece, Reader, Reading, Trace

_NEED_TORCH = {  # imported when they are asked for: PyTorch takes seconds to start
    "kbert_core.kbert.ablation": ("Ablation", "ReadConfig"),
    "kbert_core.checkpoints.checkpoint": ("Card", "load_model"),
    "kbert_core.kbert.mask_transformer": ("MaskTransformer",),
    "kbert_core.kbert.probe": ("probe",),
    "kbert_core.kbert.reader": ("KBertTrace",),
    "kbert_core.pipeline": ("NO_KNOWLEDGE", "Pipeline"),
    "kbert_core.reader": ("Piece", "Reader", "Reading", "Trace"),
    "kbert_core.kbert.visible": ("Seeing", "seeing", "visible_everywhere", "visible_matrix"),
}
_HOMES = {name: module for module, names in _NEED_TORCH.items() for name in names}

__all__ = [
    "NO_KNOWLEDGE",
    "SYSTEMS",
    "Ablation",
    "Batch",
    "Card",
    "Characters",
    "Edit",
    "FlatTree",
    "FlatTrees",
    "InjectionOptions",
    "Intervention",
    "KBertError",
    "KBertTrace",
    "KnowledgeGraph",
    "LeftOut",
    "MaskTransformer",
    "Mention",
    "Node",
    "Packed",
    "PackedBatch",
    "Piece",
    "Pipeline",
    "ReadConfig",
    "Reader",
    "Reading",
    "Rule",
    "Seeing",
    "SentenceTree",
    "Tokens",
    "Trace",
    "Trees",
    "Triple",
    "WordPieces",
    "Words",
    "collate",
    "find_mentions",
    "flatten",
    "grow_trees",
    "join_graphs",
    "k_inject",
    "k_query",
    "load_graph",
    "load_model",
    "pack_trees",
    "probe",
    "read_triples",
    "seeing",
    "visible_everywhere",
    "visible_matrix",
    "write_triples",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
