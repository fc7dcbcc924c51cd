"""Exercises of 05_from_bert_to_kbert."""

from collections.abc import Callable

import numpy as np

from _tools import exercise


@exercise(
    "The branch reaches its mention in one layer, and the mention everything else in the next."
)
def check_layers(answer: object) -> str | None:
    """After how many layers the triple of 胃镜 can have reached four tokens."""
    right = {"镜": 1, "查": 2, "[CLS]": 2, "肺's branch": 3}
    if not isinstance(answer, dict):
        return "give a dictionary: each token with a number of layers."
    for token, layers in right.items():
        if token not in answer:
            return f"'{token}' has no answer yet."
        if answer[token] == layers:
            continue
        if token == "镜":
            return "镜 is part of the mention, so it sees the branch in the very first layer."
        if token == "肺's branch":
            return (
                "another mention's branch sees its own mention only. So the way is: branch → 胃镜 → "
                "the other mention → its branch. Count the steps."
            )
        return f"{token} sees 胃镜, not its branch. What 胃镜 has taken in after layer 1, {token} can see in …?"
    return None


@exercise("One product with the visible matrix a layer: what the library's `reach` computes.")
def check_reach(answer: object) -> str | None:
    """A function: visible (N, N), layers → (N, N) bool, whose information can be where."""
    if not isinstance(answer, Callable):
        return "give a function: def can_reach(visible, layers): return ..."
    import torch

    from kbert_lab.explain.influence import reach

    random = np.random.default_rng(0)
    for size, layers in ((4, 0), (5, 1), (8, 2), (8, 3), (10, 4)):
        visible = random.random((size, size)) < 0.25
        np.fill_diagonal(visible, True)
        found = answer(visible.copy(), layers)
        right = reach([torch.tensor(visible)] * 4)[layers].numpy()
        found = np.asarray(found)
        if found.shape != right.shape:
            return f"it gives the shape {found.shape}, expected {right.shape}."
        if np.array_equal(found.astype(bool), right):
            continue
        if np.array_equal(found.astype(bool), right.T):
            return (
                "right but transposed: row i should say what token i can know, not who knows of i."
            )
        if layers == 0:
            return "with no layer at all, a token knows only of itself: the identity matrix."
        if np.array_equal(found.astype(bool), visible):
            return f"that is one layer's step; for {layers} layers the matrix is multiplied {layers} times."
        i, j = np.argwhere(found.astype(bool) != right)[0]
        return (
            f"for {size} tokens and {layers} layers it says that token {i} "
            f"{'can' if found[i, j] else 'can not'} know of token {j}, and it "
            f"{'can' if right[i, j] else 'can not'}."
        )
    return None


@exercise("An empty graph, or a branch that nobody sees: both leave BERT as it is.")
def check_same_as_bert(answer: object) -> str | None:
    """Which readings give just what BERT gives for the text."""
    right = {
        "an empty graph": True,
        "a graph that knows none of the names": True,
        "a triple, read with hard positions": False,
        "a triple whose branch the trunk may not see": True,
        "a triple that says nothing new": False,
    }
    why = {
        "an empty graph": "without branches the tree is the sentence, and all of it is visible.",
        "a graph that knows none of the names": "no mention, no branch: the same as an empty graph.",
        "a triple, read with hard positions": "the words after the branch get other positions.",
        "a triple whose branch the trunk may not see": "the branch is then a text of its own beside it.",
        "a triple that says nothing new": "its tokens are looked at, whatever they say.",
    }
    if not isinstance(answer, dict):
        return "give a dictionary: each reading with True or False."
    for name, same in right.items():
        if name not in answer:
            return f"'{name}' has no answer yet."
        if bool(answer[name]) is not same:
            return f"'{name}': think again; {why[name]}"
    return None
