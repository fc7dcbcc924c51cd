"""What the learned scorer looks at in a triple, as numbers."""

import hashlib
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.selection import Candidates, tail_in_text
from kbert_core.knowledge.triple import Triple
from kbert_core.scoring.similarity import Similarity

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


def features(asked: Sequence[Candidates], similarity: Similarity) -> list[NDArray[np.float32]]:
    """Describe the triples of many mentions.

    Returns:
        Per mention (T, F) for its T triples: ``NAMES``, then one of
        ``RELATIONS`` and one of ``TAILS`` that is 1.
    """
    scores = similarity.score(asked)
    fits = _fits(asked, similarity)
    return [
        np.stack([_of_triple(one, place, own, fit) for place in range(len(one.triples))])
        if one.triples
        else np.zeros((0, len(NAMES) + RELATIONS + TAILS), np.float32)
        for one, own, fit in zip(asked, scores, fits, strict=True)
    ]


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


def _fits(asked: Sequence[Candidates], similarity: Similarity) -> list[list[float]]:
    """How well the head and what is said of it go together."""
    triples = [triple for one in asked for triple in one.triples]
    parts = [(t.head,) for t in triples] + [(f"{t.relation} {t.tail}",) for t in triples]
    found = similarity.vectors(parts, facts=True)
    return [
        [float(found[(t.head,)] @ found[(f"{t.relation} {t.tail}",)]) for t in one.triples]
        for one in asked
    ]


def _of_triple(
    one: Candidates, place: int, scores: Sequence[float], fits: Sequence[float]
) -> NDArray[np.float32]:
    triple = one.triples[place]
    tail, head = normalise_name(triple.tail), normalise_name(triple.head)
    rest = _without_mention(one)
    made = np.zeros(len(NAMES) + RELATIONS + TAILS, np.float32)
    made[: len(NAMES)] = (
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
    made[list(buckets(triple))] = 1
    return made


def _without_mention(one: Candidates) -> str:
    texts = list(one.sentences)
    mention = one.mention
    text = texts[mention.sentence]
    texts[mention.sentence] = f"{text[: mention.start]} {text[mention.end :]}"
    return normalise_name(" ".join(texts))


def _share(characters: str, text: str) -> float:
    own = [c for c in characters if not c.isspace()]
    return sum(c in text for c in own) / len(own) if own else 0.0


def _hashed(text: str, count: int) -> int:
    digest = hashlib.blake2b(normalise_name(text).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % count
