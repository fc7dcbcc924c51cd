"""Log: the edits to one graph of a session, read as the log of a graph file is."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice

from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import Triple
from kbert_lab.graphs.store.log import Change, Entry, Origin, effective
from kbert_lab.lab.history import Changed, Edited, Step, edits_of
from kbert_lab.lab.session import Session

PUT, INTERVENED = "put", "interventions"  # what entries did that are no edits


@dataclass(frozen=True)
class Log:
    """See the module; an entry's revision is the number of its step."""

    session: Session
    id: str  # of the graph
    base = 0  # the entry that the log begins with, which stays

    @property
    def graph(self) -> KnowledgeGraph:
        """The graph before the edits."""
        return self.session.graphs[self.id].graph

    first = graph  # as this visitor opened it

    @property
    def done(self) -> tuple[Edit, ...]:
        """The edits that stand, one after the other."""
        return self.session.history.edits(self.id)

    @property
    def before(self) -> tuple[KnowledgeGraph, tuple[Edit, ...]] | None:
        """The graph and its edits before the last one; None: there was none."""
        steps = self.session.history.of(self.id)
        edits = (edit for step in steps[:-1] for edit in edits_of(step))
        return (self.graph, tuple(edits)) if steps else None

    def entries(self) -> list[Entry]:
        """Return what was done to the graph, the latest first."""
        steps = reversed(self.session.history.steps)
        return [entry_of(step) for step in steps if step.what.graph == self.id]

    def last(self) -> Entry | None:
        """The last edit that counts."""
        step = self.session.last_step(self.id)
        return entry_of(step) if step else None

    def next(self) -> Entry | None:
        """The edit that would be made again next."""
        step = self.session.next_step(self.id)
        return entry_of(step) if step else None

    def of_entry(
        self, revision: int, *, entity: str | None = None, most: int = 1000
    ) -> list[Change]:
        """Return what an entry did, triple by triple; to an entity, or to all of them."""
        changes = changes_of(edits_of(self.session.history[revision]))
        folded = normalise_name(entity) if entity is not None else None
        return list(islice((c for c in changes if folded in (None, *_heads(c))), most))

    def changes(self) -> list[Change]:
        """How the graph differs from what it began with."""
        return effective(changes_of(self.done))

    def origin(self, triple: Triple) -> Origin | None:
        """Say which edit brought a triple, and from which file; None: it was there before."""
        for step in reversed(self.session.history.of(self.id)):
            if any(
                triple in (e.new, e.triple if e.action == "add" else None) for e in edits_of(step)
            ):
                source = step.what.source if isinstance(step.what, Edited) else None
                lines = {Triple(*row): line for line, *row in source.rows} if source else {}
                return Origin(source.name if source else None, lines.get(triple), step.number)
        return None


def entry_of(step: Step) -> Entry:
    """A step of a session as an entry of a log."""
    if isinstance(step.what, Changed):
        action, count = (PUT if step.what.aside else INTERVENED), len(step.what.aside)
    else:
        edits = step.what.edits
        action = "import" if step.what.source else edits[0].action if len(edits) == 1 else "edits"
        count = len(edits)
    return Entry(step.number, step.at, "", action, count, undone=step.undone)


def changes_of(edits: Iterable[Edit]) -> list[Change]:
    """What edits do to triples, each followed through all of them."""
    changes: list[Change] = []
    place: dict[Triple, int] = {}  # of the change that ends with a triple
    for edit in edits:
        number = place.pop(edit.triple, None)
        if number is None:
            number = len(changes)
            was = None if edit.action == "add" else edit.triple
            changes.append(Change(number, was, was, was_on=edit.action != "switch_on"))
        change = changes[number]
        match edit.action:
            case "remove":
                change = replace(change, after=None)
            case "replace":
                change = replace(change, after=edit.new)
            case "add":
                change = replace(change, after=edit.triple, is_on=True)
            case "switch_on" | "switch_off":
                change = replace(change, is_on=edit.action == "switch_on")
        changes[number] = change
        if change.after is not None:
            place[change.after] = number
    return changes


def _heads(change: Change) -> set[str]:
    triples = (change.before, change.after)
    return {normalise_name(triple.head) for triple in triples if triple is not None}
