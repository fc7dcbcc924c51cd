"""Exercises of 08_knowledge_noise."""

import random
from collections.abc import Callable
from typing import Any

from _tools import exercise

REACHED = {
    "镜, K-BERT": True,
    "查, K-BERT": False,
    "查, everything visible": True,
    "查, hard positions": True,
}
TEXT = "行胃镜检查，见胃体黏膜充血。"


@exercise("0 for twins, 1 for strangers; it is the largest difference any set of tags can show.")
def check_variation(answer: object) -> str | None:
    """A function: two lists of probabilities → their total variation."""
    if not isinstance(answer, Callable):
        return "give a function: def variation(p, q): return ..."
    dice = random.Random(0)
    for count in (2, 3, 3, 5):
        p, q = ([dice.random() for _ in range(count)] for _ in range(2))
        p, q = ([x / sum(some) for x in some] for some in (p, q))
        found = answer(list(p), list(q))
        right = sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2
        found = float(found)
        if abs(found - right) < 1e-9:
            continue
        if abs(found - 2 * right) < 1e-9:
            return "twice too much: what one tag loses another gains, so each change counts twice."
        if abs(found) < 1e-9:
            return "0: gains and losses cancel out. Take their sizes, abs(…)."
        if abs(found - 2 * right / count) < 1e-9:
            return "that is the mean over the tags; the formula has their sum, and a half."
        return f"for {count} tags it gives {found:.3f}, and it should be {right:.3f}."
    return None


@exercise("Noise comes by being seen, or by pushing the words apart.")
def check_reached(answer: object) -> str | None:
    """Which tokens' states a wrong triple of 胃镜 can change in the first layer."""
    why = {
        "镜, K-BERT": "镜 is part of the mention, and sees what hangs from it.",
        "查, K-BERT": "查 sees 镜, not the branch, and 镜 hasn't read the branch before the first layer.",
        "查, everything visible": "nothing hides the branch from 查 then.",
        "查, hard positions": "the branch isn't seen, but 查 is counted further away from 胃镜.",
    }
    if not isinstance(answer, dict):
        return "give a dictionary: each token with True or False."
    for token, changes in REACHED.items():
        if token not in answer:
            return f"'{token}' has no answer yet."
        if bool(answer[token]) is not changes:
            return f"{token}: {why[token]}"
    return None


@exercise("What a graph of another domain says is kept out by its relations, without any model.")
def check_options(kbert: Any, clean: Any, noisy: Any, answer: object) -> str | None:
    """Options with which no poured triple is injected, and true ones are."""
    from kbert_core import InjectionOptions

    if not isinstance(answer, InjectionOptions):
        return "give InjectionOptions(…); help(InjectionOptions) lists what there is."
    used = kbert(TEXT, graph=noisy, options=answer).used
    if not used:
        return "nothing at all is injected; that keeps the noise out, and the knowledge too."
    poured = [triple for triple in used if triple not in clean]
    if poured:
        return (
            f"{len(poured)} of {len(used)} injected triples are poured ones, such as {poured[0]}."
        )
    return None
