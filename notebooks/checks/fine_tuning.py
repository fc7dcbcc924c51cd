"""Exercises of 06_fine_tuning."""

from typing import Any

from _tools import exercise

LEAKS = {
    "all cities of the test set end in -ville, and so do those of training": True,
    "the test set has other sentences about names of training": True,
    "the graph knows the names of the test set": False,
    "the sentences of the test set are built like those of training": False,
}


@exercise("A fair test of knowledge: new names that nothing but the graph says anything about.")
def check_leaks(answer: object) -> str | None:
    """What would let BERT, without a graph, answer above chance."""
    why = {
        "all cities of": "a part of the name that training showed gives the kind away.",
        "the test set has": "the names were seen with their labels, so they can be remembered.",
        "the graph knows": "BERT has no graph, so what stands in it can't help it.",
        "the sentences of": "they say which name is asked for, not of what kind it is.",
    }
    if not isinstance(answer, dict):
        return "give a dictionary: each statement with True or False."
    for statement, helps in LEAKS.items():
        if statement not in answer:
            return f"'{statement}' has no answer yet."
        if bool(answer[statement]) is not helps:
            return next(f"'{statement}': {w}" for k, w in why.items() if statement.startswith(k))
    return None


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
    text = "tell me about Zanzibar and forget aspirin"
    triple = Triple(*answer)
    try:
        trace = kbert(text, graph=KnowledgeGraph([*graph, triple]))
    except KBertError as error:
        return str(error)
    named = [node.mention.entity for node in trace.tree.nodes]
    if "zanzibar" not in named:
        return (
            f"the head must be the name in the text, Zanzibar; with '{triple.head}' it isn't found."
        )
    if triple not in trace.used:
        return (
            f"the triple isn't injected: this model reads '{', '.join(kbert.card.reading.options.relations)}' "
            f"alone, not '{triple.relation}'."
        )
    if trace.prediction.label != "city":
        return f"the model now says {trace.prediction.label}, as your triple's tail tells it."
    return None
