"""Labelled sentences written in a line of a test."""

from kbert_lab.data.labelled import Example


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
