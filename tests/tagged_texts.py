"""Labelled sentences written in a line of a test; and as if they were read, without a model."""

from kbert_core import Triple
from kbert_lab.data.labelled import Example
from kbert_lab.study.whole_file import Answer, FileRow


def tagged(text, *spans):
    """A sentence of characters; spans are (name, label), at the name's first place."""
    tags = ["O"] * len(text)
    for name, label in spans:
        at = text.index(name)
        tags[at : at + len(name)] = [f"B-{label}"] + [f"I-{label}"] * (len(name) - 1)
    return Example((text,), None, tuple((i, i + 1) for i in range(len(text))), tuple(tags))


def worded(text, tags):
    """A sentence of words, and their tags, both separated by spaces."""
    words, at = [], 0
    for word in text.split(" "):
        words.append((at, at + len(word)))
        at += len(word) + 1
    return Example((text,), None, tuple(words), tuple(tags.split(" ")))


def row(example):
    """A sentence of characters as a line of a file."""
    return " ".join(example.sentences[0]) + "\t" + " ".join(example.tags)


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
