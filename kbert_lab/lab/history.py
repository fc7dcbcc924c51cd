"""History: all that a visitor did, step by step; any step can be taken back and made again."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from kbert_core.errors import GraphEditError
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_lab.graphs.store.importing import Source


@dataclass(frozen=True)
class Edited:
    """Edits to a graph, made together."""

    graph: str  # its id in the session
    edits: tuple[Edit, ...]
    source: Source | None = None  # the file that they were read from
    revision: int | None = None  # of the entry in a workspace's log; None: a graph of one's own


@dataclass(frozen=True)
class Changed:
    """Other fields of the session: interventions, or a whole scene."""

    before: Mapping[str, Any]  # what they were
    after: Mapping[str, Any]  # what they became
    aside: tuple[int, ...] = ()  # the steps that a scene took back to begin with its graph
    graph: str = ""  # of those


@dataclass(frozen=True)
class Step:
    """One thing that was done."""

    number: int  # from 1
    what: Edited | Changed
    undone: bool = False
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))


@dataclass(frozen=True)
class History:
    """The steps, oldest first; nothing is ever dropped."""

    steps: tuple[Step, ...] = ()
    redoes: tuple[int, ...] = ()  # numbers of what was undone since the last new step

    def did(self, what: Edited | Changed) -> "History":
        """Return the history with another step."""
        steps = (*self.steps, Step(len(self.steps) + 1, what))
        aside = what.aside if isinstance(what, Changed) else ()
        return History(_marked(steps, aside, undone=True))

    def of(self, graph: str) -> tuple[Step, ...]:
        """Return the edits to a graph that stand, oldest first."""
        return tuple(
            step
            for step in self.steps
            if isinstance(step.what, Edited) and step.what.graph == graph and not step.undone
        )

    def edited(self, graph: str) -> tuple[Edited, ...]:
        """Return what they are."""
        return tuple(step.what for step in self.of(graph) if isinstance(step.what, Edited))

    def edits(self, graph: str) -> tuple[Edit, ...]:
        """Return the same one after the other."""
        return tuple(edit for step in self.of(graph) for edit in edits_of(step))

    def __getitem__(self, number: int) -> Step:
        if not 0 < number <= len(self.steps):
            raise GraphEditError(f"There is no entry {number}.")
        return self.steps[number - 1]

    def with_undone(self, number: int, undone: bool) -> "History":
        """Return the history with a step taken back, or made again.

        Raises:
            GraphEditError: it is so already.
        """
        step = self[number]
        if step.undone == undone:
            already = f"Entry {number} is already undone."
            raise GraphEditError(already if undone else f"Entry {number} is not undone.")
        steps = _marked(self.steps, (number,), undone=undone)
        if isinstance(step.what, Changed):
            steps = _marked(steps, step.what.aside, undone=not undone)
        rest = tuple(n for n in self.redoes if n != number)
        return History(steps, (*rest, number) if undone else rest)

    def without(self, graph: str) -> "History":
        """Return the history with all edits of a graph that is closed taken back for good."""
        own = (s for s in self.steps if isinstance(s.what, Edited) and s.what.graph == graph)
        numbers = {step.number for step in own}
        rest = tuple(n for n in self.redoes if n not in numbers)
        return History(_marked(self.steps, numbers, undone=True), rest)

    def graph(self, graph: str, base: KnowledgeGraph) -> KnowledgeGraph:
        """Return a graph with the edits that stand.

        Raises:
            GraphEditError: they don't fit one after the other.
        """
        return base.apply(*self.edits(graph))


def edits_of(step: Step) -> tuple[Edit, ...]:
    """Return the edits of a step that stand over the graph as it was opened."""
    what = step.what
    return what.edits if isinstance(what, Edited) and what.revision is None else ()


def _marked(steps: tuple[Step, ...], numbers: Iterable[int], *, undone: bool) -> tuple[Step, ...]:
    chosen = {*numbers}
    return tuple(replace(s, undone=undone) if s.number in chosen else s for s in steps)
