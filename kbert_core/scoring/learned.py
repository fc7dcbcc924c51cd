"""A light scorer that learned which triples lower a model's loss: the strategy "learned".

A linear function of a few features, so that it can say why: the score is what
the loss is expected to fall by, in nats.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from kbert_core.errors import CheckpointError, OptionError
from kbert_core.knowledge.selection import Candidates
from kbert_core.scoring.features import NAMES, RELATIONS, TAILS, features, name_of
from kbert_core.scoring.similarity import Similarity

WEIGHTS_FILE, CARD_FILE = "scorer.safetensors", "scorer.json"
VERSION = 1
SIZE = len(NAMES) + RELATIONS + TAILS
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class LearnedScorer:
    """Scores triples by a weighted sum of their features.

    Attributes:
        weights: (F,) of the features as they are.
        bias: what is added.
        encoder: whose similarity is one of the features: "model" for the one
            that reads, or the name of another.
        notes: data, command, counts and scores of its training.
        similarity: under that encoder; None until it is known.
    """

    weights: Floats
    bias: float
    encoder: str = "model"
    notes: Mapping[str, Any] = field(default_factory=dict)
    similarity: Similarity | None = None

    def with_similarity(self, similarity: Similarity) -> "LearnedScorer":
        """Return the scorer with the encoder it needs."""
        return LearnedScorer(self.weights, self.bias, self.encoder, self.notes, similarity)

    def score(self, asked: Sequence[Candidates]) -> list[list[float]]:
        """Score the triples of many mentions: by how many nats the loss should fall."""
        return [(of @ self.weights + self.bias).tolist() for of in self._features(asked)]

    def explain(self, one: Candidates) -> list[dict[str, float]]:
        """Say what each triple's score is made of: feature → its part, the largest first."""
        explained = []
        for of in self._features([one])[0]:
            parts = of * self.weights
            order = [int(i) for i in np.argsort(-np.abs(parts)) if parts[i]]
            explained.append({**{name_of(i): float(parts[i]) for i in order}, "bias": self.bias})
        return explained

    def about(self) -> dict[str, float]:
        """Return the weights of the features that have names."""
        return {name: float(w) for name, w in zip(NAMES, self.weights, strict=False)}

    def _features(self, asked: Sequence[Candidates]) -> list[Floats]:
        if self.similarity is None:
            raise OptionError("The learned scorer needs an encoder. Give it with_similarity.")
        return features(asked, self.similarity)

    def save(self, folder: str | Path) -> None:
        """Write the scorer to a folder: numbers as safetensors, the rest as JSON.

        Raises:
            CheckpointError: it can't be written.
        """
        folder = Path(folder)
        card = {
            "version": VERSION,
            "encoder": self.encoder,
            "bias": self.bias,
            "features": list(NAMES),
            "relation_buckets": RELATIONS,
            "tail_buckets": TAILS,
            "weights": self.about(),
            "notes": dict(self.notes),
        }
        try:
            folder.mkdir(parents=True, exist_ok=True)
            save_file({"weights": np.ascontiguousarray(self.weights)}, folder / WEIGHTS_FILE)
            text = json.dumps(card, ensure_ascii=False, indent=1)
            (folder / CARD_FILE).write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise CheckpointError(
                f"{folder}: the scorer can't be written ({error.strerror}). Name another folder."
            ) from error

    @classmethod
    def load(cls, folder: str | Path) -> "LearnedScorer":
        """Read a scorer from its folder.

        Raises:
            CheckpointError: there is none, it is broken, or of another version.
        """
        folder = Path(folder)
        if not (folder / CARD_FILE).is_file():
            raise CheckpointError(
                f"{folder}: no {CARD_FILE}, so no scorer. Make one with `kbert select-train`."
            )
        try:
            card = json.loads((folder / CARD_FILE).read_text(encoding="utf-8"))
            weights = load_file(folder / WEIGHTS_FILE)["weights"].astype(np.float32)
            bias, encoder = float(card["bias"]), str(card["encoder"])
            same = (card["version"], card["features"]) == (VERSION, list(NAMES))
            notes = dict(card["notes"])
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            raise CheckpointError(
                f"{folder}: the scorer can't be read ({error}). Copy it again, or make it anew "
                "with `kbert select-train`."
            ) from error
        if not same or weights.shape != (SIZE,) or not np.isfinite(weights).all():
            raise CheckpointError(
                f"{folder}: the scorer looks at other features than this version does. "
                "Make it anew with `kbert select-train`."
            )
        return cls(weights, bias, encoder, notes)
