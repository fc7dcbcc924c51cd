"""Entity vectors made of text, so that an edited triple changes its entity's vector at once."""

from collections.abc import Sequence
from functools import cache
from pkgutil import resolve_name
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kbert_core.checkpoints.adapters import weights_hash
from kbert_core.checkpoints.checkpoint import load_model, load_tokenizer
from kbert_core.files import cache_folder
from kbert_core.knowledge.triple import Triple
from kbert_core.scoring import Similarity
from kbert_core.text import WordPieces

TEXT = "{head} {relation} {tail}"
AT_ONCE = 2048  # texts
MANY = 256  # texts that are worth keeping on disk
KEPT_ARRAYS = "kbert_lab.kept_arrays:KeptArrays"  # of the lab, found by name


def kept_arrays(name: str) -> Any:
    """Return arrays by their keys, kept in the cache for the next process."""
    return resolve_name(KEPT_ARRAYS)(cache_folder() / f"{name}.sqlite")


class EntityVectors:
    """Makes entity vectors: the mean of the vectors of an entity's triples, written as words.

    Vectors are kept in memory, and on disk if many are made at once: the encoder never changes, so
    a text's vector never does. They are rounded to 16 bits, from wherever they come.

    Args:
        similarity: reads texts with an encoder that never changes.
        text: how a triple is written.
        kept: vectors that were made before; None: none.
    """

    def __init__(self, similarity: Similarity, text: str = TEXT, kept: Any = None) -> None:
        self.similarity, self.text, self.kept = similarity, text, kept
        self._making = Lock()  # the app's visitors share the vectors
        self._made: dict[str, Any] = {}  # by text

    @property
    def width(self) -> int:
        """W, the encoder's hidden size."""
        return int(self.similarity.model.config.hidden_size)

    def said(self, triple: Triple) -> str:
        """A triple in words."""
        return self.text.format(head=triple.head, relation=triple.relation, tail=triple.tail)

    def of(self, entities: Sequence[tuple[Triple, ...]]) -> Tensor:
        """Return unit vectors (V, W) float32 of entities; each is given by its triples."""
        if not entities:
            return torch.zeros(0, self.width)
        texts = [self.said(triple) for triples in entities for triple in triples]
        with self._making:
            self._make(texts)
        rows = np.stack([self._made[text] for text in texts])
        sizes = np.array([len(triples) for triples in entities])
        if (sizes == 1).all():
            return torch.from_numpy(rows)
        sums = np.add.reduceat(rows, np.r_[0, sizes.cumsum()[:-1]])
        return torch.from_numpy(sums / np.linalg.norm(sums, axis=1, keepdims=True).clip(1e-12))

    def _make(self, texts: Sequence[str]) -> None:
        missing = [text for text in dict.fromkeys(texts) if text not in self._made]
        for start in range(0, len(missing), AT_ONCE):
            some = missing[start : start + AT_ONCE]
            found = self.kept.get(some) if self.kept else {}
            new = [text for text in some if text not in found]
            made = self.similarity.vectors(((text,) for text in new), facts=True)
            found |= {text: made[(text,)].astype(np.float16) for text in new}
            if self.kept and len(new) >= MANY:
                self.kept.put({text: found[text] for text in new})
            self._made |= {text: found[text].astype(np.float32) for text in some}


@cache
def vectors_by(encoder: str, layer: int | None = None, text: str = "") -> EntityVectors:
    """Load the maker of entity vectors; only once in a process.

    Args:
        encoder: a folder, ``package:NAME`` or a hub name.
        layer: the layer of the states; None: the middle one, minus the mean of everyday facts.
        text: how a triple is written; empty: its three parts.

    Raises:
        CheckpointError: the encoder can't be loaded.
    """
    model = load_model(encoder, device="cpu")
    name = f"{weights_hash(model, [])[:16]}-{layer}"
    tokenizer = WordPieces(load_tokenizer(encoder))
    return EntityVectors(
        Similarity(model, tokenizer, layer=layer, centred=layer is None),
        text or TEXT,
        kept_arrays(f"vectors/{name}"),
    )
