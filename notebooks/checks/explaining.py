"""Exercises of 09_explain_a_prediction."""

import random
from collections.abc import Callable

from _tools import choices, exercise


@exercise("Two runs of the model, and no assumption about it.")
def check_effect(answer: object) -> str | None:
    """A function: score, all triples, one of them → the effect of leaving it out."""
    if not isinstance(answer, Callable):
        return "give a function: def effect(score, all_of_them, one): return ..."
    dice = random.Random(0)
    for _ in range(5):
        everything = frozenset("abcd")
        scores: dict[frozenset[str], float] = {}

        def score(kept: object, scores: dict[frozenset[str], float] = scores) -> float:
            return scores.setdefault(frozenset(kept), dice.random())

        one = dice.choice("abcd")
        right = score(everything) - score(everything - {one})
        alone = score({one}) - score(())
        found = answer(score, everything, one)
        if abs(found - right) < 1e-9:
            continue
        for value, said in (
            (-right, "the sign is turned: a triple that raises the score has a positive effect."),
            (alone, "that is what the triple does alone; here all the others stay in."),
            (
                score(everything - {one}),
                "that is the score without it. The effect is by how much it is lower than with all.",
            ),
        ):
            if abs(found - value) < 1e-9:
                return said
        return f"it gives {found:.3f}, and it should be {right:.3f}."
    return None


@exercise(
    "Each could go without loss, so each has no effect; together they are worth 1, half each."
)
def check_twins(effect: object, value: object) -> str | None:
    """Effect and Shapley value of two triples that say the same."""
    if not all(isinstance(n, (int, float)) for n in (effect, value)):
        return "give two numbers."
    if effect != 0:
        return (
            f"effect {effect}: leave one out. The other still says it, so what is the score then?"
        )
    if value == 1:
        return "value 1: then both together had 2. Who comes second adds nothing: take the mean."
    if value != 0.5:
        return f"value {value}: there are two orders. In one it comes first and adds 1; in the other …?"
    return None


check_statements = choices("statements")
