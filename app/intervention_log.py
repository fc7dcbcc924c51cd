"""A visitor's interventions: made, taken away, undone, redone. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kbert_core import Intervention

Standing = tuple[Intervention, ...]
MOST = 32  # interventions at once
MOST_STEPS = 200  # that can be undone


@dataclass(frozen=True, slots=True)
class InterventionLog:
    """The interventions that stand, and those that stood before each step.

    Attributes:
        standing: in order; they are the scene's.
        earlier: what stood before, oldest first.
        later: what stood after steps that were undone, the next first.
    """

    standing: Standing = ()
    earlier: tuple[Standing, ...] = ()
    later: tuple[Standing, ...] = ()

    def step(self, standing: Standing) -> "InterventionLog":
        """Return the log with other interventions standing; redo leads nowhere from there."""
        if standing == self.standing:
            return self
        return InterventionLog(standing, (*self.earlier, self.standing)[-MOST_STEPS:])

    def undo(self) -> "InterventionLog":
        """Return the log as it was before the last step."""
        if not self.earlier:
            return self
        return InterventionLog(self.earlier[-1], self.earlier[:-1], (self.standing, *self.later))

    def redo(self) -> "InterventionLog":
        """Return the log as it was after the step undone last."""
        if not self.later:
            return self
        return InterventionLog(self.later[0], (*self.earlier, self.standing), self.later[1:])

    def for_another_text(self) -> "InterventionLog":
        """Return a fresh log with the interventions that mean something in any text."""
        return InterventionLog(tuple(one for one in self.standing if not one.tied_to_text))


def with_one_more(
    standing: Standing, new: Intervention, works: Callable[[Sequence[Intervention]], bool]
) -> Standing:
    """Add an intervention; what it takes back goes instead of standing beside it.

    Args:
        standing: so far.
        new: to be added.
        works: whether the last of some interventions changes any cell.
    """
    same = (new.seer, new.seen, new.both, new.layers)
    kept = tuple(one for one in standing if (one.seer, one.seen, one.both, one.layers) != same)
    return (*kept, new) if works((*kept, new)) else kept
