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

import sys
from typing import Any

if sys.version_info < (3, 11):  # noqa: UP036 (of a clone on PYTHONPATH, which no pip has checked)
    raise ImportError(
        "K-BERT Lab needs Python 3.11 to 3.14. Make an environment with one of them: "
        "docs/install.md says how."
    )

from lazy_loader import attach_stub

# The names stand in __init__.pyi. Each is imported when asked for: PyTorch takes seconds to start.
_named, __dir__, __all__ = attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("kbert-lab")
    return _named(name)
