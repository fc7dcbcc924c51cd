"""Exercises that give a model knowledge: 00 start here, 06 fine-tuning, 10 your own graph."""

from collections.abc import Callable
from typing import Any

from _tools import choices, exercise

SENTENCE, NAME, WANTED = "After zorvex the patient slept.", "zorvex", "Disease"


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


check_changes = choices("changes")
check_leaks = choices("leaks")


@exercise("It says drug to every question, and one question in six is about a drug.")
def check_all_drugs(answer: object) -> str | None:
    """K-BERT's accuracy with a graph that calls every name a drug."""
    if not isinstance(answer, (int, float)) or isinstance(answer, bool):
        return "give a number from 0 to 1."
    if abs(answer - 1 / 6) < 0.02:
        return None
    if answer == 0:
        return "not 0: some of the questions are about drugs, and there this graph is right."
    if answer > 0.5:
        return "the names are new, so the model has only this graph to go by. What will it say of London?"
    return "how many of the six kinds is it right about, if it always answers 'drug'?"


@exercise("One triple, no training: that is what injected knowledge is for.")
def check_new_name(kbert: Any, graph: Any, answer: object) -> str | None:
    """A triple that makes the model call Zanzibar a city."""
    from kbert_core import KBertError, KnowledgeGraph, Triple

    if not isinstance(answer, (list, tuple)) or len(answer) != 3:
        return "give a triple: (head, relation, tail)."
    if not all(isinstance(part, str) for part in answer):
        return "head, relation and tail are texts."
    triple = Triple(*answer)
    try:
        trace = kbert(
            "tell me about Zanzibar and forget aspirin", graph=KnowledgeGraph([*graph, triple])
        )
    except KBertError as error:
        return str(error)
    if "zanzibar" not in [node.mention.entity for node in trace.tree.nodes]:
        return (
            f"the head must be the name in the text, Zanzibar; with '{triple.head}' it isn't found."
        )
    if triple not in trace.used:
        read = ", ".join(kbert.card.reading.options.relations)
        return (
            f"the triple isn't injected: this model reads '{read}' alone, not '{triple.relation}'."
        )
    if trace.prediction.label != "city":
        return f"the model now says {trace.prediction.label}, as your triple's tail tells it."
    return None


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


check_audit = choices("audit")
