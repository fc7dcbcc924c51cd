"""Exercises of 03_visible_matrix."""

import random
from collections.abc import Callable
from itertools import pairwise

from _tools import exercise

CELLS = {  # row, column → visible, why
    ("Tim", "Apple"): (True, "Apple is on a branch of the mention that Tim belongs to"),
    ("visiting", "China"): (False, "China is on a branch of Beijing, and visiting isn't Beijing"),
    ("capital", "City"): (
        False,
        "they are on two branches; that both hang from Beijing is no link",
    ),
    ("China", "[CLS]"): (False, "from a branch only the branch itself and its mention are seen"),
    ("now", "Tim"): (True, "both stand on the trunk"),
    ("City", "Beijing"): (True, "a branch sees the mention it hangs from"),
}


@exercise("A branch is a private note to its mention: nobody else reads it.")
def check_cells(answer: object) -> str | None:
    """Which of six cells of Figure 2's matrix are visible."""
    if not isinstance(answer, dict):
        return "give a dictionary: each pair of tokens with True or False."
    for pair, (visible, why) in CELLS.items():
        if pair not in answer:
            return f"the pair {pair} has no answer yet."
        if bool(answer[pair]) is not visible:
            return f"{pair[0]} {'may' if visible else 'may not'} look at {pair[1]}: {why}."
    return None


@exercise("Another rule is another function of the same two integers; no model has to change.")
def check_sees(answer: object) -> str | None:
    """A function of four codes: Eq. 3, and branches of one mention see each other."""
    from kbert_core import Visibility, why_visible

    if not isinstance(answer, Callable):
        return "give a function: def sees(branch_a, anchor_a, branch_b, anchor_b): return ..."
    dice = random.Random(0)
    for _ in range(400):
        codes = []
        for _ in range(2):
            branch = dice.randint(0, 3)
            codes += [branch, dice.randint(1, 2) if branch else dice.randint(0, 2)]
        if codes[0] == codes[2] > 0:  # one branch hangs from one mention
            codes[3] = codes[1]
        clause = why_visible(*codes)
        expected = clause.visible or clause is Visibility.SIBLINGS
        found = answer(*codes)
        if bool(found) is not expected:
            names = ("branch_a", "anchor_a", "branch_b", "anchor_b")
            given = ", ".join(f"{name}={code}" for name, code in zip(names, codes, strict=True))
            hint = ""
            if clause is Visibility.SIBLINGS:
                hint = " In K-BERT they are hidden; here they see each other."
            return (
                f"for {given} it says {bool(found)}, and it should be {expected}: {clause}.{hint}"
            )
    return None


@exercise("From the branch to the mention, from the mention to the trunk: two steps.")
def check_way(answer: object) -> str | None:
    """A way from Apple to [CLS], each token visible to the next."""
    from kbert_core import Words, flatten, grow_trees, load_graph, visible_matrix

    if not isinstance(answer, (list, tuple)) or not all(isinstance(a, str) for a in answer):
        return 'give a list of tokens, such as ["Apple", ..., "[CLS]"].'
    graph = load_graph("demo_kgs/figure2.spo")
    flat = flatten(grow_trees(["Tim Cook is visiting Beijing now"], graph), Words(special=True))[0]
    stray = next((token for token in answer if token not in flat.tokens), None)
    if stray is not None:
        return f"'{stray}' is no token of Figure 2."
    if len(answer) < 2 or answer[0] != "Apple" or answer[-1] != "[CLS]":
        return "begin at Apple and end at [CLS]."
    from kbert_core import collate

    batch = collate([flat])
    visible = visible_matrix(batch.branch_ids, batch.anchor_ids)[0]
    for source, goal in pairwise(answer):
        if not visible[flat.tokens.index(goal), flat.tokens.index(source)]:
            return f"{goal} may not look at {source}, so nothing gets from {source} to {goal} directly."
    if len(answer) > 3:
        return f"that is a way, in {len(answer) - 1} steps; there is one with fewer."
    return None
