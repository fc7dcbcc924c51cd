"""What is wrong with an answer that gives each question one of a few words."""

from collections.abc import Callable, Collection, Mapping


def wrong_choice(
    answer: object,
    right: Mapping[str, str],
    choices: Collection[str],
    hint: Callable[[str], str],
    *,
    each: str,
    no: str,
) -> str | None:
    """Say what is wrong with the first wrong choice; None where all are right.

    Args:
        answer: a dictionary: question → choice.
        right: the same, as it should be.
        choices: what may be chosen: ``each`` gets one, another is ``no`` such.
        hint: question → what leads to its choice.
    """
    if not isinstance(answer, dict):
        return f"give a dictionary: each {each}."
    for question, choice in right.items():
        given = answer.get(question)
        if given is None:
            return f"'{question}' has no answer yet."
        if given not in choices:
            return f"'{given}' is {no}. There are: {', '.join(choices)}."
        if given != choice:
            return f"'{question}' Not {given}. {hint(question)}"
    return None
