"""A light scorer that learned which triples lower a model's loss: the strategy "learned".

A linear function of a few features, so that it can say why: the score is what
the loss is expected to fall by, in nats.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from kbert_core.errors import CheckpointError, OptionError
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.strategies import Candidates, tail_in_text
from kbert_core.knowledge.triple import Triple
from kbert_core.scoring.similarity import Similarity

WEIGHTS_FILE, CARD_FILE = "scorer.safetensors", "scorer.json"
VERSION = 1
NAMES = (
    "similarity to the text",
    "similarity less the best of the mention's triples",
    "similarity of head and the rest of the triple",
    "that less the best of the mention's triples",
    "tail occurs in the text",
    "share of the tail's characters in the rest of the text",
    "share of the tail's characters in the head",
    "first in graph order",
    "place in graph order, 1 / place",
    "only triple of the mention",
    "length of the tail, log of characters",
    "length of the head, log of characters",
)
RELATIONS, TAILS = 64, 128  # buckets that relations and tails are hashed into
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
            raise OptionError("The learned scorer needs an encoder. Give its similarity.")
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


def features(asked: Sequence[Candidates], similarity: Similarity) -> list[Floats]:
    """Describe the triples of many mentions.

    Returns:
        Per mention (T, F) for its T triples: ``NAMES``, then one of
        ``RELATIONS`` and one of ``TAILS`` that is 1.
    """
    scores = similarity.score(asked)
    triples = [triple for one in asked for triple in one.triples]
    parts = {t: ((t.head,), (f"{t.relation} {t.tail}",)) for t in triples}
    texts = [both[which] for which in (0, 1) for both in parts.values()]
    vectors = similarity.vectors(texts, facts=True)
    fits = {t: float(vectors[head] @ vectors[rest]) for t, (head, rest) in parts.items()}
    return [
        _of_mention(one, own, [fits[triple] for triple in one.triples])
        for one, own in zip(asked, scores, strict=True)
    ]


def _of_mention(one: Candidates, scores: Sequence[float], fits: Sequence[float]) -> Floats:
    found = np.zeros((len(one.triples), SIZE), np.float32)
    texts, mention = list(one.sentences), one.mention
    text = texts[mention.sentence]
    texts[mention.sentence] = f"{text[: mention.start]} {text[mention.end :]}"
    rest = normalise_name(" ".join(texts))
    for place, triple in enumerate(one.triples):
        tail, head = normalise_name(triple.tail), normalise_name(triple.head)
        found[place, : len(NAMES)] = (
            scores[place],
            scores[place] - max(scores),
            fits[place],
            fits[place] - max(fits),
            tail_in_text(triple, one),
            _share(tail, rest),
            _share(tail, head),
            place == 0,
            1 / (1 + place),
            len(one.triples) == 1,
            math.log1p(len(tail)),
            math.log1p(len(head)),
        )
        found[place, list(buckets(triple))] = 1
    return found


def name_of(feature: int) -> str:
    """What a feature is called."""
    if feature < len(NAMES):
        return NAMES[feature]
    bucket = feature - len(NAMES)
    if bucket < RELATIONS:
        return f"relation in bucket {bucket}"
    return f"tail in bucket {bucket - RELATIONS}"


def buckets(triple: Triple) -> tuple[int, int]:
    """The numbers of the features that stand for a triple's relation and tail."""
    relation, tail = _hashed(triple.relation, RELATIONS), _hashed(triple.tail, TAILS)
    return len(NAMES) + relation, len(NAMES) + RELATIONS + tail


def _share(characters: str, text: str) -> float:
    own = [c for c in characters if not c.isspace()]
    return sum(c in text for c in own) / len(own) if own else 0.0


def _hashed(text: str, count: int) -> int:
    digest = hashlib.blake2b(normalise_name(text).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % count
