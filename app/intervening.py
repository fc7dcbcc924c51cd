"""The session's interventions, and what changes them.

They belong to the text they were made for. Another text begins with those
that name no place in a text, such as the presets; going back finds the old
ones again.
"""

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from kbert_core import Intervention
from kbert_core.kbert.interventions import Intervened

Standing = tuple[Intervention, ...]
After = Callable[[Standing], Intervened]  # what interventions make of the visible matrix
MOST = 32  # interventions at once
MOST_STEPS = 200  # that can be undone


@dataclass(frozen=True, slots=True)
class InterventionLog:
    """The interventions that stand, and those that stood before each step."""

    standing: Standing = ()  # in order; they are the scene's
    earlier: tuple[Standing, ...] = ()  # what stood before, oldest first
    later: tuple[Standing, ...] = ()  # what stood after steps that were undone, the next first

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


def with_one_more(standing: Standing, new: Intervention, after: After) -> Standing:
    """Add an intervention; what it takes back goes instead of standing beside it.

    Args:
        standing: so far.
        new: to be added, unless it changes no cell.
        after: what interventions make of the visible matrix.
    """
    same = (new.seer, new.seen, new.both, new.layers)
    kept = tuple(one for one in standing if (one.seer, one.seen, one.both, one.layers) != same)
    return (*kept, new) if after((*kept, new)).changed[-1] else kept


KEPT_TEXTS = 16  # whose interventions are remembered
LOGS, TEXT = "lab.intervention_logs", "lab.intervention_text"

ss = st.session_state


def standing(sentences: tuple[str, ...]) -> Standing:
    """The interventions of a text, which becomes the one they are made for from now on."""
    logs: dict[tuple[str, ...], InterventionLog] = ss.setdefault(LOGS, {})
    if sentences not in logs:
        logs[sentences] = log().for_another_text()
        for old in list(logs)[:-KEPT_TEXTS]:
            del logs[old]
    ss[TEXT] = sentences
    return logs[sentences].standing


def put(sentences: tuple[str, ...], made: Standing) -> None:
    """Let a text have the interventions that came with it, and nothing to undo."""
    ss.setdefault(LOGS, {})[sentences], ss[TEXT] = InterventionLog(made), sentences
    ss["lab.intervened_last"] = True


def log() -> InterventionLog:
    """The interventions of the present text, with what can be undone and redone."""
    return ss.get(LOGS, {}).get(ss.get(TEXT), InterventionLog())


def last_change() -> bool:
    """Whether an intervention was the last thing changed, and not the graph."""
    return bool(ss.get("lab.intervened_last", True)) and bool(log().standing)


# Callbacks: they change the scene, so the whole page is run again


def stand(new: Standing) -> None:
    """Put other interventions in the place of those that stand."""
    _keep(log().step(new[:MOST]))


def remove(number: int, one: Intervention) -> None:
    """Take one away, unless a quick second click came from before another went.

    Args:
        number: its place, from 0.
        one: what stood there.
    """
    now = log().standing
    if now[number : number + 1] == (one,):
        stand((*now[:number], *now[number + 1 :]))


def clear() -> None:
    """Take all away."""
    stand(())


def undo() -> None:
    """Take the last step back."""
    _keep(log().undo())


def redo() -> None:
    """Make the step undone last again."""
    _keep(log().redo())


def _keep(new: InterventionLog) -> None:
    ss.setdefault(LOGS, {})[ss.get(TEXT)] = new
    ss["lab.intervened_last"] = True
    st.rerun()  # from a fragment, too
