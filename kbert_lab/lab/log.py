"""Logs: what was done to a graph, in one visit or in a workspace that others edit too.

Both are read alike, as the log of a graph file is: ``entries``, what one of them did
(``of_entry``), how the graph differs from what it began with (``changes``), and where a triple
comes from (``origin``). Edits are made by commands, see ``kbert_lab.lab.commands``.
"""

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from itertools import islice

from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import Triple
from kbert_lab.graphs.store.anywhere import open_store
from kbert_lab.graphs.store.log import Change, Entry, Origin, effective
from kbert_lab.lab.history import Changed, Edited, Step, edits_of
from kbert_lab.lab.session import Session
from kbert_lab.lab.texts import t
from kbert_lab.lab.workspaces import OpenWorkspace, origin_in

PUT, INTERVENED = "put", "interventions"  # what entries did that are no edits
MAKING = ("add", "replace")  # edits that make a triple


@dataclass(frozen=True)
class Log:
    """The log of a graph of a session; an entry's revision is the number of its step."""

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
    def edited(self) -> Set[str]:
        """The entities that they are about."""
        return heads_of(self.done)

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

    def of_entry(self, revision: int, *, most: int = 1000) -> list[Change]:
        """Return what an entry did, triple by triple."""
        edits = edits_of(self.session.history[revision])
        return changes_of(islice(edits, most))

    def source(self, revision: int) -> str | None:
        """Name the file that an entry imported; None: it is no import."""
        what = self.session.history[revision].what
        return what.source.name if isinstance(what, Edited) and what.source else None

    def changes(self) -> list[Change]:
        """How the graph differs from what it began with."""
        return effective(changes_of(self.done))

    def origin(self, triple: Triple) -> tuple[Origin, Entry | None]:
        """Say where a triple comes from, and which entry of a log made it, if one did.

        Raises:
            GraphFileError: the graph's file is gone.
        """
        for step in reversed(self.session.history.of(self.id)):
            if any(triple == (e.new or e.triple) and e.action in MAKING for e in edits_of(step)):
                source = step.what.source if isinstance(step.what, Edited) else None
                lines = {Triple(*row): line for line, *row in source.rows} if source else {}
                entry = replace(entry_of(step), who=t("you"))
                return Origin(
                    source.name if source else None, lines.get(triple), step.number
                ), entry
        opened = self.session.graphs[self.id]
        if opened.stored is not None:
            with open_store(opened.stored.path) as file:
                return origin_in(file, triple)
        return Origin(opened.source or self.graph.name, opened.lines.get(triple), 0), None


def heads_of(edits: Iterable[Edit]) -> set[str]:
    """The entities whose triples edits are about."""
    triples = (t for edit in edits for t in (edit.triple, edit.new) if t is not None)
    return {normalise_name(triple.head) for triple in triples}


def entry_of(step: Step) -> Entry:
    """A step of a session as an entry of a log."""
    if isinstance(step.what, Changed):
        action, count = (PUT if step.what.aside else INTERVENED), len(step.what.aside)
    else:
        action, count = "import" if step.what.source else "edits", len(step.what.edits)
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


AnyLog = Log | OpenWorkspace


def log_of(session: Session) -> AnyLog:
    """The edits of the chosen graph: in this visit, or in the workspace."""
    return session.shared or Log(session, session.graph)
