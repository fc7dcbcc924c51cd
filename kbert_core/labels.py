"""Labels of labelled data: tags of named entities, and whether an answer is right."""

from collections.abc import Sequence
from functools import cached_property

OUTSIDE = "O"
RIGHT, WRONG = "1", "0"  # labels of a question with a candidate answer
IGNORED = -100  # the target that PyTorch's cross entropy leaves out
MASK_TOKENS = ("[MASK]", "<mask>")


class Labels(dict[int, str]):
    """Names of K logits: classes, tags, or for fill-mask the vocabulary's tokens."""

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Name → number."""
        return {name: number for number, name in self.items()}

    @cached_property
    def names(self) -> list[str]:
        """The K names in order."""
        return [self[number] for number in range(len(self))]

    @property
    def mask_id(self) -> int | None:
        """Number of the mask token, where the labels are a vocabulary."""
        return next((self.numbers[t] for t in MASK_TOKENS if t in self.numbers), None)


def bio_spans(tags: Sequence[str]) -> list[tuple[int, int, str]]:
    """Read typed spans off BIO tags.

    An I- tag without a B- or I- of its type before it begins nothing (the
    strict scheme of CoNLL's evaluation by seqeval).

    Returns:
        (first token, last token + 1, label), in order.
    """
    spans = []
    start: int | None = None
    label = inside = ""
    for index, tag in enumerate([*tags, OUTSIDE]):
        if start is not None and tag != inside:
            spans.append((start, index, label))
            start = None
        if tag[:2] == "B-":
            start, label = index, tag[2:]
            inside = f"I-{label}"
    return spans


def begins(tag: str) -> bool:
    """Say whether a tag begins an entity: B-, or S- where a checkpoint has such tags."""
    return tag.startswith(("B-", "S-"))


def order(probabilities: Sequence[float]) -> list[int]:
    """Numbers of candidates, the most probable first; equal ones as they came."""
    return sorted(range(len(probabilities)), key=lambda i: -probabilities[i])
