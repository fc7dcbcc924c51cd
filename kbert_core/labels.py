"""Labels of labelled data: tags of named entities, and whether an answer is right."""

from collections.abc import Sequence
from functools import cached_property

from kbert_core.errors import CheckpointError

OUTSIDE = "O"
BEGIN, GO_ON = ("B-", "S-", "U-"), ("I-", "M-", "E-", "L-")  # in BIO, BIOES, BMES and BILOU
RUN = "R-"  # of a type without a label to begin with: its tokens side by side are one entity
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

    @cached_property
    def bio(self) -> list[str]:
        """The K names of a model of named entities as BIO, or with ``RUN`` before a type.

        Raises:
            CheckpointError: none of them is for tokens outside entities.
        """
        if OUTSIDE not in self.names:
            raise CheckpointError(
                f"The model's labels are {', '.join(self.names)}. None of them is {OUTSIDE}, for "
                "tokens outside entities. Write into id2label of its config.json, in the order of "
                "its training, O, and for each type of entity B-TYPE and I-TYPE, or TYPE alone."
            )
        begun = {name[2:] for name in self.names if name.startswith(BEGIN)}
        forms = []
        for name in self.names:
            type_ = name[2:] if name.startswith((*BEGIN, *GO_ON)) else name
            border = "B-" if name.startswith(BEGIN) else "I-" if type_ in begun else RUN
            forms.append(name if name == OUTSIDE else border + type_)
        return forms

    def tags_of(self, label: str, count: int) -> list[str]:
        """The labels of an entity of so many tokens."""
        if RUN + label in self.bio:
            return [self.names[self.bio.index(RUN + label)]] * count
        return [f"B-{label}"] + [f"I-{label}"] * (count - 1)

    @property
    def known_tags(self) -> list[str]:
        """The names, and the BIO tags by which labelled data says the same."""
        runs = [form[2:] for form in self.bio if form.startswith(RUN)]
        tags = (f"{border}-{type_}" for type_ in runs for border in "BI")
        return [*dict.fromkeys([*self.names, *tags])]

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
        if tag[:2] == "B-" or (tag[:2] == RUN and start is None):
            start, label = index, tag[2:]
            inside = tag if tag[:2] == RUN else f"I-{label}"
    return spans


def begins(tag: str) -> bool:
    """Say whether a tag begins an entity: B-, or S- where a checkpoint has such tags."""
    return tag.startswith(BEGIN)


def order(probabilities: Sequence[float]) -> list[int]:
    """Numbers of candidates, the most probable first; equal ones as they came."""
    return sorted(range(len(probabilities)), key=lambda i: -probabilities[i])
