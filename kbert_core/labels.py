"""Labels of labelled data: tags of named entities, and whether an answer is right."""

from collections.abc import Sequence

OUTSIDE = "O"
RIGHT, WRONG = "1", "0"  # labels of a question with a candidate answer


def bio_spans(tags: Sequence[str]) -> list[tuple[int, int, str]]:
    """Read typed spans off BIO tags.

    An I- tag without a B- or I- of its type before it begins nothing (the
    strict scheme of CoNLL's evaluation by seqeval).

    Returns:
        (first token, last token + 1, label), in order.
    """
    spans = []
    start: int | None = None
    label = ""
    for index, tag in enumerate([*tags, OUTSIDE]):
        if start is not None and tag != f"I-{label}":
            spans.append((start, index, label))
            start = None
        if tag.startswith("B-"):
            start, label = index, tag[2:]
    return spans


def begins(tag: str) -> bool:
    """Say whether a tag begins an entity: B-, or S- where a checkpoint has such tags."""
    return tag.startswith(("B-", "S-"))


def order(probabilities: Sequence[float]) -> list[int]:
    """Numbers of candidates, the most probable first; equal ones as they came."""
    return sorted(range(len(probabilities)), key=lambda i: -probabilities[i])
