"""Decoding guided by a graph: a model's scores of tags, and a dictionary's spans with a bonus.

A dictionary written over a model overrules it everywhere. Here each of its
spans adds a bonus to the log-probability of the tags that hold it, and
:func:`~kbert_core.tasks.ner.best_tags` weighs both; how great the bonus is
gets chosen on dev. A bonus of 0 is the model alone, a very great one the
dictionary written over it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch

from kbert_core.errors import DataError
from kbert_core.experiments.dictionary import Spans
from kbert_core.labels import bio_spans
from kbert_core.tasks.ner import Favoured, NerPrediction, best_tags
from kbert_core.training.scores import SpanKey, span_scores

WEIGHTS = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 48.0, 1e4)  # nats


@dataclass(frozen=True)
class TagScores:
    """What a model thinks of every tag of every token, over many texts.

    Attributes:
        names: the K tags.
        sizes: (S,) tokens of each of S texts.
        starts, ends: (T,) in characters of their text; T is the sum of sizes.
        scores: (T, K) log-probabilities, half precision.
    """

    names: tuple[str, ...]
    sizes: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    scores: np.ndarray

    @classmethod
    def of(cls, predictions: Sequence[NerPrediction]) -> "TagScores":
        """Collect them from predictions of one model."""
        tokens = [token for prediction in predictions for token in prediction.tokens]
        names = tuple(tokens[0].probabilities) if tokens else ()
        chances = np.array([[t.probabilities[name] for name in names] for t in tokens])
        return cls(
            names,
            np.array([len(p.tokens) for p in predictions]),
            np.array([t.start for t in tokens]),
            np.array([t.end for t in tokens]),
            np.log(np.maximum(chances, 1e-7)).astype(np.float16),
        )


def save_scores(file: IO[bytes], splits: Mapping[str, TagScores]) -> None:
    """Write scores of several splits as one ``.npz`` archive."""
    arrays: dict[str, Any] = {}
    for split, scores in splits.items():
        for name in ("names", "sizes", "starts", "ends", "scores"):
            arrays[f"{split}.{name}"] = np.asarray(getattr(scores, name))
    np.savez_compressed(file, **arrays)


def load_scores(path: Path) -> dict[str, TagScores]:
    """Read what :func:`save_scores` wrote.

    Raises:
        DataError: it can't be read.
    """
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {
                split: TagScores(
                    tuple(arrays[f"{split}.names"].tolist()),
                    *(arrays[f"{split}.{name}"] for name in ("sizes", "starts", "ends", "scores")),
                )
                for split in dict.fromkeys(key.partition(".")[0] for key in arrays.files)
            }
    except Exception as error:  # a damaged archive raises whatever its parts do
        raise DataError(
            f"{path}: can't be read ({error}). Delete it and run the same command again: it names "
            "the run that makes the file."
        ) from error


def guided_spans(
    scores: TagScores, dictionary: Sequence[Sequence[SpanKey]], weight: float
) -> list[Spans]:
    """Decode anew, each of the dictionary's spans favoured.

    Args:
        dictionary: (start, end, label) spans of each text. One whose borders
            aren't tokens', or whose label the model doesn't know, is left out.
        weight: the bonus of a span, in nats, at least 0.

    Returns:
        Per text its (start, end, label) spans in characters, in reading order.
    """
    decoded: list[Spans] = []
    stop = 0
    for size, spans in zip(scores.sizes.tolist(), dictionary, strict=True):
        begin, stop = stop, stop + size
        starts, ends = scores.starts[begin:stop].tolist(), scores.ends[begin:stop].tolist()
        first = {start: number for number, start in reversed(list(enumerate(starts)))}
        after = {end: number + 1 for number, end in enumerate(ends)}
        favoured = [
            Favoured(first[start], after[end], label, weight)
            for start, end, label in spans
            if start in first and end in after and f"I-{label}" in scores.names
        ]
        rows = torch.from_numpy(scores.scores[begin:stop].astype(np.float64))
        tags = [scores.names[tag] for tag in best_tags(rows, scores.names, favoured)]
        decoded.append([(starts[a], ends[b - 1], label) for a, b, label in bio_spans(tags)])
    return decoded


def choose_weight(
    scores: TagScores,
    dictionary: Sequence[Sequence[SpanKey]],
    gold: Sequence[Sequence[SpanKey]],
) -> tuple[float, dict[str, float]]:
    """Try every weight on a dev set.

    Returns:
        The weight with the best F1, of equal ones the smallest; and the F1 of
        each of ``WEIGHTS``.
    """
    tried = {w: span_scores(gold, guided_spans(scores, dictionary, w))["f1"] for w in WEIGHTS}
    best = max(WEIGHTS, key=lambda weight: tried[weight])
    return best, {f"{weight:g}": round(f1, 4) for weight, f1 in tried.items()}
