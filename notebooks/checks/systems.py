"""Exercises on other systems and encoders: 11 KnowBert, 12 Roof-BERT, 13 three ways, 14 yours."""

from collections.abc import Callable
from math import isclose

import numpy as np

from _tools import choices, exercise

PRIORS = {"bank.n.01": 13 / 31, "bank.n.02": 15 / 31, "bank.v.01": 3 / 31}


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


check_edits = choices("edits")


@exercise("Expand 2 would say 它 in place of the second 胃镜, and spare a [SEP].")
def check_string(answer: object) -> str | None:
    """Two triples as the knowledge encoder reads them."""
    if not isinstance(answer, str):
        return "give a text."
    plain = "".join(answer.split())
    if plain == "[CLS]胃镜的类别是检查[SEP]胃镜的部位是胃[SEP]":
        return None
    if "它" in plain:
        return "a pronoun is Expand 2; here each triple names its head."
    if not plain.startswith("[CLS]"):
        return "an encoder's row begins with [CLS]."
    if plain.count("[SEP]") != 2:
        return "each triple is closed by [SEP]."
    return "a triple reads: head 的 relation 是 tail."


check_sides = choices("sides")
check_room = choices("room")
check_reach = choices("reach")
check_probe = choices("probe")


class _Encoder:
    """States made of the tokens that a token sees; a share of all tokens leaks into each."""

    def __init__(self, leaks: float) -> None:
        self.table = np.random.default_rng(0).normal(size=(10, 4))
        self.leaks, self.calls = leaks, []

    def __call__(self, ids: object, visible: object) -> np.ndarray:
        ids, visible = np.array(ids, dtype=int), np.array(visible, dtype=bool)
        if ids.shape != (8,) or visible.shape != (8, 8):
            raise ValueError(
                f"run takes shapes (8,) and (8, 8), and got {ids.shape}, {visible.shape}"
            )
        self.calls.append((ids, visible))
        rows = self.table[ids] * np.arange(1, 9)[:, None]  # the order of tokens counts
        seen = visible @ rows / np.maximum(1, visible.sum(1, keepdims=True))
        return seen + self.leaks * rows.mean(0)


@exercise("Exactly 0 is asked for: a leak of a millionth is a leak, and grows from layer to layer.")
def check_leak(answer: object) -> str | None:
    """A function: run(ids, visible) → how much the first half moves with the hidden second."""
    if not isinstance(answer, Callable):
        return "give a function: def leak(run): return ..."
    tight, leaky = _Encoder(0.0), _Encoder(0.5)
    found = answer(tight)
    if np.ndim(found) != 0:
        return "return one number: the greatest change of the first four tokens' states."
    if len(tight.calls) < 2:
        return "run the encoder twice, before and after the change, and compare."
    (one, visible), (other, visible_after) = tight.calls[0], tight.calls[-1]
    if visible[:4, 4:].any() or visible_after[:4, 4:].any():
        return "your matrix lets the first half see the second. Close these cells."
    if not (visible.any(axis=1).all() and visible_after.any(axis=1).all()):
        return (
            "a row of your matrix sees nothing, so its softmax is 0 / 0. Let each half see itself."
        )
    if (one[:4] != other[:4]).any():
        return "you changed tokens of the first half too: of course they move."
    if (one == other).all():
        return "both runs have the same tokens: change the last four in the second."
    if found != 0:
        return (
            f"this encoder doesn't leak, and you measure {found:.3g}. Compare the first four states "
            "alone: those of the last four move with their own tokens."
        )
    if not answer(leaky) > 0:
        return "this encoder leaks, and you measure 0 or less. Changes go up or down: take absolute values."
    return None


@exercise(
    "Over a whole BERT-base that is some millions to train and to keep, in place of a hundred."
)
def check_rank(numbers: object, per_cent: object) -> str | None:
    """What a LoRA of rank 8 trains for a (3072, 768) matrix, and its share."""
    if any(isinstance(n, bool) or not isinstance(n, (int, float)) for n in (numbers, per_cent)):
        return "give two numbers."
    right = 8 * (768 + 3072)
    if numbers != right:
        return {
            8 * 768 * 3072: "that is eight whole matrices. B is (3072, 8) and A is (8, 768).",
            8 * 768: "that is A alone; B is (3072, 8).",
            8 * 3072: "that is B alone; A is (8, 768).",
            768 * 3072: "that is the matrix itself, which stays frozen.",
            8 * 8: "rank 8 doesn't mean 8 × 8: B is (3072, 8), A is (8, 768).",
        }.get(int(numbers), "count the numbers of A, (8, 768), and of B, (3072, 8).")
    share = 100 * right / (768 * 3072)
    if abs(per_cent - share) < 0.05:
        return None
    if abs(per_cent - share / 100) < 0.0005:
        return "the first number is right; the second is a fraction. Multiply it by 100."
    return "the first number is right. Divide it by the numbers of the matrix, 3072 × 768."
