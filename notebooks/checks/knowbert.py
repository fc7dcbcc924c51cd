"""Exercises of 11_knowbert."""

from math import isclose

from _tools import exercise

PRIORS = {"bank.n.01": 13 / 31, "bank.n.02": 15 / 31, "bank.v.01": 3 / 31}
EDITS = {
    "a new gloss for river.n.01": True,
    "a new gloss for crane.n.01": False,
    "the count of bank.n.02 set to 90": True,
    "a new sense bank.n.03 with a gloss and the synonym bank": True,
    "a new entity bank.n.03 with a gloss and no synonym": False,
}


@exercise("A sense that was never counted still has a chance: that is what the one is for.")
def check_priors(answer: object) -> str | None:
    """The priors of three senses by their counts."""
    if not isinstance(answer, dict) or set(answer) != set(PRIORS):
        return "give a dictionary with the three senses."
    if all(isclose(answer[sense], right, abs_tol=0.005) for sense, right in PRIORS.items()):
        return None
    if isclose(answer["bank.n.01"], 12 / 28, abs_tol=0.001):
        return "these are shares of the counts. Each count gets one more before."
    if not isclose(sum(answer.values()), 1, abs_tol=0.02):
        return f"priors sum to 1, these to {sum(answer.values()):.2f}."
    return "add one to each count, and divide by the sum of the three."


@exercise("Spans attend to each other: what river says is heard where bank is judged.")
def check_edits(answer: object) -> str | None:
    """Which edits change a reading, and which can't."""
    if not isinstance(answer, dict):
        return "give a dictionary: each edit with True or False."
    for edit, right in EDITS.items():
        if edit not in answer:
            return f"'{edit}' has no answer yet."
        if bool(answer[edit]) is right:
            continue
        if edit.startswith("a new gloss for river"):
            return "river is in the text: its vector enters, and the spans attend to each other."
        if "crane" in edit:
            return "no name in the text may mean crane.n.01, so it isn't there at all."
        if "count" in edit:
            return "the prior is one of the two numbers that a candidate is scored by."
        if "no synonym" in edit:
            return "nothing leads from the word bank to an entity without that name."
        return "bank may then mean one thing more: a fourth candidate takes its share."
    return None
