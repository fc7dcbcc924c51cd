"""Labelled texts as they were read: made up, without a model."""

from kbert_core import Triple
from kbert_lab.data.labelled import Example
from kbert_lab.study.whole_file import Answer, FileRow


def classed(number, gold, known, plain, triples=(), gain=0.0):
    """A text with a class: what is right, what is said with knowledge and without."""
    example = Example((f"text {number}",), gold)
    answers = [
        Answer(said, score, int(said != gold)) for said, score in ((known, gain), (plain, 0.0))
    ]
    return FileRow(number, example, tuple(triples), *answers)


def entities(number, gold, known, plain, triples=()):
    """A text of ten characters with entities: (start, end, label) each."""
    words = tuple((i, i + 1) for i in range(10))
    tags = ["O"] * 10
    for start, end, label in gold:
        tags[start:end] = [f"B-{label}"] + [f"I-{label}"] * (end - start - 1)
    example = Example(("abcdefghij",), None, words, tuple(tags))
    answers = [Answer(tuple(said), 0.0, len(set(said) ^ set(gold))) for said in (known, plain)]
    return FileRow(number, example, tuple(triples), *answers)


def triple(said):
    return Triple(*said.split())
