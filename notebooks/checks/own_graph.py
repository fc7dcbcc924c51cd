"""Exercises of 10_your_own_graph."""

from _tools import exercise

NO_USE = {
    "no text names a head of the graph": True,
    "half of the test texts stand in training, too": True,
    "the graph was made from the labels of the test set": True,
    "one text in five names a head of the graph": False,
    "trees are a third longer than the texts": False,
}


@exercise("Three fields and two tabs; spaces may stand within a field.")
def check_line(answer: object) -> str | None:
    """A line that says that a violin is made of maple."""
    from kbert_core import KBertError
    from kbert_core.knowledge.io import in_memory, rows_of

    if not isinstance(answer, str):
        return "give a line as a string, such as 'head\\trelation\\ttail'."
    try:
        (triple,) = in_memory(rows_of(answer.encode(), "mine.tsv")).triples
    except KBertError as error:
        return str(error)
    except ValueError:
        return "one line, please."
    if triple.head.casefold() != "violin":
        return f"the head is '{triple.head}'; it is the violin of which something is said."
    if triple.tail.casefold() != "maple":
        return f"the tail is '{triple.tail}', expected maple."
    if triple.relation in ("is_a", "kind"):
        return f"'{triple.relation}' says that a violin is a maple. What is it to maple?"
    return None


@exercise("First ask whether a gain is possible, then whether it would mean anything, then train.")
def check_audit(answer: object) -> str | None:
    """Which findings of an audit mean that a comparison is of no use."""
    why = {
        "no text": "nothing would be injected, so both models read the same.",
        "half": "the model can have learnt those texts by heart, whatever the graph says.",
        "the graph was": "then the graph is the answer sheet.",
        "one text": "it can help with that fifth. Count those texts apart.",
        "trees are": "that costs time; it matters where texts are cut for it.",
    }
    if not isinstance(answer, dict):
        return "give a dictionary: each finding with True or False."
    for finding, no_use in NO_USE.items():
        if finding not in answer:
            return f"'{finding}' has no answer yet."
        if bool(answer[finding]) is not no_use:
            return next(f"'{finding}': {w}" for k, w in why.items() if finding.startswith(k))
    return None
