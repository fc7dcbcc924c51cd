"""Exercises of 02_soft_positions."""

import random
from collections.abc import Callable

from _tools import exercise

LONDON = [1, 2, 3, 2, 3]  # London located_on Thames is rainy
LONDON_HARD = [1, 2, 3, 4, 5]


@exercise(
    "The trunk counts on as if nothing hung from it, and the branch counts on from its mention."
)
def check_positions(answer: object) -> str | None:
    """Soft positions of "London (located_on Thames) is rainy", [CLS] having 0."""
    if not isinstance(answer, (list, tuple)) or len(answer) != len(LONDON):
        return "give five numbers in a list, one for each token of 'London located_on Thames is rainy'."
    found = list(answer)
    if found == LONDON:
        return None
    if found == LONDON_HARD:
        return "these are the hard positions. 'is' follows 'London' in the sentence: what is its number?"
    if found == [p - 1 for p in LONDON]:
        return "nearly: [CLS] has position 0, so London has 1."
    if found[0] != 1:
        return "London is the first token after [CLS], which has position 0."
    if found[3] != 2:
        return "'is' is the second word of the sentence; the branch doesn't count for it."
    if found[4] != found[3] + 1:
        return "'rainy' follows 'is'."
    return "a branch goes on from its mention: its first token has the mention's last position + 1."


@exercise("Every token of every branch pushes the rest of the sentence one place away.")
def check_distance(answer: object) -> str | None:
    """A function: lengths of a mention's branches → hard distance to the next trunk token."""
    if not isinstance(answer, Callable):
        return "give a function: def hard_distance(lengths): return ..."
    dice = random.Random(0)
    for _ in range(50):
        lengths = [dice.randint(1, 5) for _ in range(dice.randint(0, 4))]
        expected, found = 1 + sum(lengths), answer(list(lengths))
        if found == expected:
            continue
        hint = ""
        if found == sum(lengths):
            hint = " Two neighbours without any branch between them are 1 apart, not 0."
        elif found == 1 + len(lengths):
            hint = " A branch has as many tokens as its length says, not one."
        return f"for branches of lengths {lengths} it gives {found}, and it should be {expected}.{hint}"
    return None


@exercise("Every branch counts on from its mention alone; the visible matrix keeps them apart.")
def check_third_branch(of_asia: object, of_now: object) -> str | None:
    """Soft positions of "Asia" and "now" where located_in Asia is Beijing's third branch."""
    if not all(isinstance(n, int) for n in (of_asia, of_now)):
        return "give two whole numbers."
    if (of_asia, of_now) == (7, 6):
        return None
    if (of_asia, of_now) == (13, 14):
        return "these are their hard positions; soft ones count on from Beijing, which has 5."
    if of_now != 6:
        return "'now' is on the trunk, right after Beijing's 5, however many branches hang there."
    if of_asia == 6:
        return "6 is the branch's first token, located_in; Asia is its second."
    return "the third branch hangs from Beijing too, so it counts on from Beijing's 5, as the others do."
