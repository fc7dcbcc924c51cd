"""Entity vectors made of text, so that an edited triple changes its entity's vector at once."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import torch
from torch import Tensor

from kbert_core.checkpoints.checkpoint import load_model, load_tokenizer
from kbert_core.knowledge.triple import Triple
from kbert_core.scoring import Similarity, verbalised
from kbert_core.text import WordPieces


class TripleVectors:
    """An entity's vector is the mean of those of its triples, said in words.

    Args:
        similarity: reads texts with an encoder that stays as it is, and keeps their vectors.
    """

    def __init__(self, similarity: Similarity) -> None:
        self.similarity = similarity

    @property
    def width(self) -> int:
        """W, the encoder's hidden size."""
        return int(self.similarity.model.config.hidden_size)

    def of(self, entities: Sequence[tuple[Triple, ...]]) -> Tensor:
        """(V, W) float32 unit vectors of entities, each given by its triples."""
        if not entities:
            return torch.zeros(0, self.width)
        facts = [[verbalised(triple) for triple in triples] for triples in entities]
        vectors = self.similarity.vectors((text for own in facts for text in own), facts=True)
        means = np.stack([np.mean([vectors[text] for text in own], axis=0) for own in facts])
        return torch.from_numpy(means / np.linalg.norm(means, axis=1, keepdims=True).clip(1e-12))


@cache
def vectors_by(encoder: str) -> TripleVectors:
    """Load what makes entity vectors, once a process: a folder, ``package:NAME`` or a hub name.

    Raises:
        CheckpointError: it can't be loaded.
    """
    model = load_model(encoder, device="cpu")
    return TripleVectors(Similarity(model, WordPieces(load_tokenizer(encoder))))
