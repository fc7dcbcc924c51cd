"""Exercises of 00_start_here."""

from collections.abc import Callable
from typing import Any

from _tools import exercise

SENTENCE, NAME, WANTED = "After zorvex the patient slept.", "zorvex", "Disease"
CHANGES = {
    "the triple (shingles, is_a, disease) is deleted": (
        False,
        "the next triples move up, and they speak of a rash and of the skin: still a disease.",
    ),
    "all triples of shingles are deleted": (
        True,
        "then nothing hangs on the name, as in the reading without knowledge.",
    ),
    "all triples of aspirin are deleted": (
        False,
        "only names that stand in the sentence are looked up.",
    ),
}


@exercise("You taught the model a word, and nothing was trained.")
def check_triple(answer: object, model: Callable[..., Any], graph: Any) -> str | None:
    """A triple that makes the model take an invented word for a disease."""
    from kbert_core import Triple

    if not isinstance(answer, (tuple, list)) or len(answer) != 3:
        return 'give three texts in brackets: ("head", "relation", "tail").'
    if not all(isinstance(part, str) and part.strip() for part in answer):
        return "each of the three is a text in quotes, and none is empty."
    head, relation, tail = (part.strip() for part in answer)
    if NAME in tail.casefold() and NAME not in head.casefold():
        return f"turned round: the head is the name in the sentence, {NAME}."
    trace = model(SENTENCE, graph=graph.add(Triple(head, relation, tail)))
    if not any(triple.head == head for triple in trace.used):
        return f"'{head}' isn't found in the sentence. The head is the word as it stands there."
    labels = [span.label for span in trace.prediction.spans if span.text == NAME]
    if WANTED in labels:
        return None
    said = f"a {labels[0].lower()}" if labels else "no name at all"
    return (
        f"with ({head}, {relation}, {tail}) the model takes {NAME} for {said}. Say what kind of "
        "thing it is, in the words of the graph."
    )


@exercise("What counts is what hangs on the names of this sentence.")
def check_changes(answer: object) -> str | None:
    """A dictionary: edit → whether it changes the answer."""
    if not isinstance(answer, dict):
        return "give a dictionary: each line with True or False."
    for edit, (changes, why) in CHANGES.items():
        if edit not in answer:
            return f"'{edit}' has no answer yet."
        if not isinstance(answer[edit], bool):
            return f"'{edit}': write True or False, without quotes."
        if answer[edit] is not changes:
            return f"'{edit}': {why}"
    return None
