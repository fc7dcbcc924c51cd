"""A game in a case's place: any number for any set of pieces, and no model."""

from dataclasses import dataclass, field

import torch

from kbert_core import Triple
from kbert_core.explain.case import Outcome, Piece, Scored, Target


def scored(score):
    return Scored(Outcome(score, ""), None, torch.zeros(0, 0))


@dataclass
class Game:
    """Scores of sets of pieces, as a case would give them.

    Attributes:
        values: set of piece numbers → score.
        count: how many pieces there are.
        asked: every set that was run, in order.
    """

    values: dict
    count: int
    asked: list = field(default_factory=list)
    sentences: tuple = ("a text",)
    target: Target = Target("good")

    @property
    def pieces(self):
        return tuple(Piece(Triple("h", "r", str(n))) for n in range(self.count))

    def at_once(self):
        return 32

    def with_only(self, pieces):
        return frozenset(int(piece.triple.tail) for piece in pieces)

    def run(self, variants):
        for members in variants:
            self.asked.append(members)
            yield scored(self.values[members])
