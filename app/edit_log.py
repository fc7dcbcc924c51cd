"""A visitor's own edits to a graph: made, taken back one by one, made again."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from kbert_core import KBertError, KnowledgeGraph, Triple
from kbert_core.errors import GraphConflict, GraphEditError
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.names import normalise_name


@dataclass(frozen=True, slots=True)
class Step:
    """Edits made together, which are taken back together.

    Attributes:
        number: its place in the log, from 1.
        edits: one after the other.
        at: when, UTC, ISO 8601.
        source: of an import: the file's name, or what was pasted.
        lines: of an import: the line of each edit's triple.
    """

    number: int
    edits: tuple[Edit, ...]
    at: str = ""
    source: str = ""
    lines: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class EditLog:
    """Every step ever made; those taken back stay to be seen and made again.

    Attributes:
        steps: oldest first.
        back: numbers of the steps taken back, the last one first.
        again: how many of these, from the first, "redo" leads through; none
            once another edit was made.
    """

    steps: tuple[Step, ...] = ()
    back: tuple[int, ...] = ()
    again: int = 0

    @property
    def standing(self) -> tuple[Step, ...]:
        """The steps that count, oldest first."""
        return tuple(step for step in self.steps if step.number not in self.back)

    @property
    def done(self) -> tuple[Edit, ...]:
        """The edits that count, oldest first."""
        return tuple(edit for step in self.standing for edit in step.edits)

    @property
    def undone(self) -> tuple[Edit, ...]:
        """The edits that redo leads through, the next first."""
        steps = [self.step(number) for number in self.back[: self.again]]
        return tuple(edit for step in steps for edit in step.edits)

    def step(self, number: int) -> Step:
        """Return a step by its number."""
        return self.steps[number - 1]

    def append(
        self, *edits: Edit, at: str = "", source: str = "", lines: tuple[int, ...] = ()
    ) -> "EditLog":
        """Return the log with one more step; redo leads nowhere from there."""
        step = Step(len(self.steps) + 1, edits, at, source, lines)
        return EditLog((*self.steps, step), self.back)

    def undo(self, number: int | None = None) -> "EditLog":
        """Return the log with a step taken back: a given one, or the last."""
        standing = self.standing
        if number is None and standing:
            number = standing[-1].number
        if number is None or not any(step.number == number for step in standing):
            return self
        return EditLog(self.steps, (number, *self.back), self.again + 1)

    def redo(self, number: int | None = None) -> "EditLog":
        """Return the log with a step made again: a given one, or the one taken back last."""
        if number is None and self.again:
            number = self.back[0]
        if number is None or number not in self.back:
            return self
        place = self.back.index(number)
        left = tuple(n for n in self.back if n != number)
        return EditLog(self.steps, left, self.again - (place < self.again))

    def before_last(self) -> "EditLog":
        """Return the log without its last step."""
        return self.undo()


def now_in_words() -> str:
    """The time, UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def made(graph: KnowledgeGraph, edits: Sequence[Edit]) -> KnowledgeGraph:
    """Return a graph with edits made; many additions in a row cost little each.

    Raises:
        GraphEditError: an edit doesn't fit.
    """
    start = 0
    while start < len(edits):
        end = start
        while end < len(edits) and edits[end].action == "add" and edits[end].index is None:
            end += 1
        if end - start > 1:
            graph = _with_added(graph, [edit.triple for edit in edits[start:end]])
        else:
            end = start + 1
            graph = graph.apply(edits[start])
        start = end
    return graph


def checked(graph: KnowledgeGraph, old: EditLog, new: EditLog, number: int) -> KnowledgeGraph:
    """Return the graph of a log in which one step was taken back or made again.

    Args:
        graph: without any edit.
        old, new: the log before and after.
        number: of the step.

    Raises:
        GraphConflict: a later step rests on how it was.
    """
    now = graph
    for step in new.standing:
        try:
            now = made(now, step.edits)
        except KBertError as error:
            how = "made again" if number in old.back else "taken back"
            other = step.number if step.number != number else _touching(old, number)
            raise GraphConflict(
                f"Edit {number} can't be {how}: edit {other} is about the same triple and rests "
                f"on how it is now. Take back edit {other} first, or edit the triple itself."
            ) from error
    if number in new.back:
        _refuse_overtaken(new, old.step(number))
    return now


def entities_of(edits: Iterable[Edit]) -> set[str]:
    """The entities whose triples edits are about."""
    triples = (t for edit in edits for t in (edit.triple, edit.new) if t is not None)
    return {normalise_name(triple.head) for triple in triples}


def _refuse_overtaken(log: EditLog, step: Step) -> None:
    """Refuse where a later step switched or changed a triple that this one put there."""
    touched = {t for edit in step.edits for t in (edit.triple, edit.new) if t is not None}
    for later in log.standing:
        if later.number < step.number:
            continue
        for edit in later.edits:
            if touched & {edit.triple, edit.new}:
                raise GraphConflict(
                    f"Edit {step.number} can't be taken back: edit {later.number} changed the same "
                    f"triple, {edit.triple}, after it. Take back edit {later.number} first, or "
                    "edit the triple itself."
                )


def _touching(log: EditLog, number: int) -> int:
    """The latest other step about the same triples as one."""
    entities = entities_of(log.step(number).edits)
    others = [s.number for s in log.standing if entities & entities_of(s.edits)]
    return max((n for n in others if n != number), default=number)


def _with_added(graph: KnowledgeGraph, triples: Sequence[Triple]) -> KnowledgeGraph:
    """The same as adding them one by one, each last, in one go."""
    changed: dict[str, dict[Triple, None]] = {}
    for triple in triples:
        entity = normalise_name(triple.head)
        found = changed.get(entity)
        if found is None:
            found = changed[entity] = dict.fromkeys(graph.triples_of(triple.head))
        if triple in found or triple.problem() or not entity:
            graph.apply(*(Edit("add", t) for t in triples))  # says which and why
            raise GraphEditError(f"The triple {triple} can't be added.")
        found[triple] = None
    now = {entity: tuple(found) for entity, found in changed.items()}
    return graph.updated(now)
