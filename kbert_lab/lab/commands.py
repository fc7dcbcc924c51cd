"""Commands: what a visitor means, by the names of things and not by their places; and apply."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from kbert_core.errors import GraphEditError, KBertError
from kbert_core.kbert.interventions import Intervention
from kbert_core.kbert.visible import Ablation
from kbert_core.knowledge.edit import Action, Edit
from kbert_core.knowledge.triple import Triple
from kbert_core.options import option_fields
from kbert_lab.graphs.store.importing import Source
from kbert_lab.lab.history import Edited
from kbert_lab.lab.scene import MOST_INTERVENTIONS, PANELS
from kbert_lab.lab.selection import identity_of
from kbert_lab.lab.session import VIEWS, OpenedGraph, Reads, Session, Standing
from kbert_lab.lab.written import Identity

MOST_EDITS = 50_000  # of a visit, those taken back among them


class Command(Protocol):
    """Something that a visitor wants; called with a session it returns another."""

    def __call__(self, session: Session) -> Session:
        """Return the session with it done; one in which it is so already stays as it is.

        Raises:
            KBertError: it can't be done.
        """


def apply(session: Session, command: Command) -> tuple[Session, KBertError | None]:
    """Return the session with a command done, or as it was with the reason why it can't be."""
    try:
        return command(session), None
    except KBertError as error:
        return session, error


# The graph


@dataclass(frozen=True)
class MakeEdits:
    """Edit the chosen graph, in one step."""

    edits: tuple[Edit, ...]
    source: Source | None = None  # the file that they were read from

    def __call__(self, session: Session) -> Session:
        if not self.edits:
            return session
        if session.shared is not None:
            return session.together(session.shared.commit(*self.edits).revision, self.edits)
        kept = sum(len(s.what.edits) for s in session.history.steps if isinstance(s.what, Edited))
        if kept + len(self.edits) > MOST_EDITS:
            raise GraphEditError(
                f"A visit keeps at most {MOST_EDITS:,} edits. Save the graph to a workspace to go "
                "on."
            )
        return session.edit(*self.edits, source=self.source)


@dataclass(frozen=True)
class Import:
    """Add the triples of a file to the chosen graph, in one step."""

    source: Source

    def __call__(self, session: Session) -> Session:
        if session.shared is None:
            triples = dict.fromkeys(Triple(*row) for _, *row in self.source.rows)
            return MakeEdits(tuple(Edit("add", one) for one in triples), self.source)(session)
        return session.together(session.shared.add(self.source).revision)


@dataclass(frozen=True)
class Switch:
    """Switch triples on or off."""

    triples: tuple[Triple, ...]
    on: bool

    def __call__(self, session: Session) -> Session:
        graph = session.graph_now()
        action: Action = "switch_on" if self.on else "switch_off"
        wanted = (x for x in self.triples if x not in graph or graph.is_on(x) != self.on)
        return MakeEdits(tuple(Edit(action, triple) for triple in wanted))(session)


@dataclass(frozen=True)
class ReplaceTail:
    """Give a triple another tail; the selection goes along."""

    triple: Triple
    tail: str

    def __call__(self, session: Session) -> Session:
        if self.triple not in session.graph_now():
            return session
        new = Triple.checked(self.triple.head, self.triple.relation, self.tail)
        if new == self.triple:
            return session
        done = MakeEdits((Edit("replace", self.triple, new),))(session)
        if session.selection.triple == self.triple:
            done = replace(done, selection=done.selection.with_triple(new))
        return done


@dataclass(frozen=True)
class Undo:
    """Take back the last step of all that was done to the page, or an entry of the graph's log."""

    entry: int | None = None  # of the chosen graph's log, whoever made it
    graph: str | None = None  # the last edit of this graph alone

    def __call__(self, session: Session) -> Session:
        return _turn(session, self, undo=True)


@dataclass(frozen=True)
class Redo:
    """Make a step again that was taken back; see :class:`Undo`."""

    entry: int | None = None
    graph: str | None = None

    def __call__(self, session: Session) -> Session:
        return _turn(session, self, undo=False)


def _turn(session: Session, command: Undo | Redo, *, undo: bool) -> Session:
    entry, shared, history = command.entry, session.shared, session.history
    turn = session.undo if undo else session.redo
    if entry is None:
        step = (session.last_step if undo else session.next_step)(command.graph)
        if step is None:
            raise GraphEditError("There is nothing to undo or redo.")
        return turn(step)
    if shared is None:
        return turn(history[entry])
    own = (s for s in history.steps if isinstance(s.what, Edited) and s.what.revision == entry)
    for step in own:
        if (not step.undone) if undo else (step.number in history.redoes):
            return turn(step)
    (shared.undo if undo else shared.redo)(entry)  # somebody else's
    return session.seen_together(history)


# The visible matrix


@dataclass(frozen=True)
class Intervene:
    """Let other interventions stand, in order."""

    standing: Standing

    def __call__(self, session: Session) -> Session:
        return session.intervene(self.standing[:MOST_INTERVENTIONS])


@dataclass(frozen=True)
class RemoveIntervention:
    """Take one away."""

    one: Intervention

    def __call__(self, session: Session) -> Session:
        return session.intervene([own for own in session.standing if own != self.one])


# What is read, and by what


@dataclass(frozen=True)
class Write:
    """Put another text on the page, or two."""

    texts: tuple[str, ...]

    def __call__(self, session: Session) -> Session:
        if (*self.texts, "")[:2] == session.texts:
            return session
        return session.with_text(*self.texts)


@dataclass(frozen=True)
class ChooseModel:
    """Read with another model, as it was trained."""

    model: str
    reads: Reads
    task: str | None = None  # None: the model's own

    def __call__(self, session: Session) -> Session:
        return session.with_model(self.model, self.reads, self.task)


@dataclass(frozen=True)
class Options:
    """Read otherwise: fields of the injection options and the ablation, device, threshold."""

    changes: dict[str, Any] = field(default_factory=dict)

    def __call__(self, session: Session) -> Session:
        changes = dict(self.changes)
        parts = {name: changes.pop(name) for name in option_fields(Ablation) if name in changes}
        own = {name: changes.pop(name) for name in ("device", "threshold") if name in changes}
        new = session.with_options(**changes) if changes else session
        return replace(new, ablation=replace(new.ablation, **parts), **own)


@dataclass(frozen=True)
class OpenGraph:
    """Put a graph among the session's; one that is chosen stands beside others of its content.

    The same graph again, not edited since, is the one that is there.
    """

    opened: OpenedGraph
    id: str
    choose: bool = True

    def __call__(self, session: Session) -> Session:
        name = self.id_in(session)
        new = session if name in session.graphs else session.with_graph(name, self.opened)
        return replace(new, graph=name) if self.choose else new

    def id_in(self, session: Session) -> str:
        """Return what its id is in a session."""
        graph = self.opened.graph
        return session.id_of(graph, unedited=self.choose, name=graph.name) or self.id


@dataclass(frozen=True)
class ChooseGraph:
    """Choose one of the session's graphs."""

    id: str

    def __call__(self, session: Session) -> Session:
        return replace(session, graph=self.id) if self.id in session.graphs else session


@dataclass(frozen=True)
class CloseGraph:
    """Let go of a graph, and of the edits made to it."""

    id: str

    def __call__(self, session: Session) -> Session:
        return session.without_graph(self.id) if self.id in session.graphs else session


# The selection: nothing is run again


@dataclass(frozen=True)
class SelectToken:
    """Look at a token; once more lets it go."""

    token: Identity | None
    toggle: bool = True

    def __call__(self, session: Session) -> Session:
        chosen = session.selection
        again = self.toggle and self.token == chosen.token and chosen.cell is None
        return replace(session, selection=chosen.with_token(None if again else self.token))


@dataclass(frozen=True)
class ClearSelection:
    """Look at nothing; the attention map stays."""

    def __call__(self, session: Session) -> Session:
        return replace(session, selection=session.selection.cleared())


@dataclass(frozen=True)
class SelectTriple:
    """Follow a triple; once more lets it go."""

    triple: Triple | None
    toggle: bool = True

    def __call__(self, session: Session) -> Session:
        again = self.toggle and self.triple == session.selection.triple
        triple = None if again else self.triple
        return replace(session, selection=session.selection.with_triple(triple))


@dataclass(frozen=True)
class SelectCell:
    """Look at a cell of the matrix: who looks, and at whom."""

    looks: Identity
    at: Identity

    def __call__(self, session: Session) -> Session:
        return replace(session, selection=session.selection.with_cell(self.looks, self.at))


@dataclass(frozen=True)
class SelectMap:
    """Look at one attention map: a layer and a head, from 1; 0 is the mean."""

    layer: int
    head: int

    def __call__(self, session: Session) -> Session:
        return replace(session, selection=session.selection.with_map(self.layer, self.head))


@dataclass(frozen=True)
class Pin:
    """Keep the scene as it is, to compare with."""

    def __call__(self, session: Session) -> Session:
        now, graph = session.scene(), session.base
        return replace(session, pinned=now, pinned_on=graph, compare="pinned")


@dataclass(frozen=True)
class Compare:
    """Compare with something else."""

    kind: str

    def __call__(self, session: Session) -> Session:
        return replace(session, compare=self.kind)


@dataclass(frozen=True)
class ChoosePanels:
    """Choose freely how many readings stand side by side."""

    count: int

    def __call__(self, session: Session) -> Session:
        every = (*session.panels, *PANELS[len(session.panels) :])
        return replace(session, panels=every[: self.count])


@dataclass(frozen=True)
class ChangePanel:
    """Choose something else for one of them: fields of a choice, and of its ablation."""

    number: int  # from 0
    changes: dict[str, Any]

    def __call__(self, session: Session) -> Session:
        panels, changes = [*session.panels], dict(self.changes)
        own = panels[self.number]
        parts = {name: changes.pop(name) for name in option_fields(Ablation) if name in changes}
        panels[self.number] = replace(own, ablation=replace(own.ablation, **parts), **changes)
        return replace(session, panels=tuple(panels))


@dataclass(frozen=True)
class Show:
    """Have a panel show something else, by its name in ``VIEWS``; what it can't show is idle."""

    name: str
    value: str | bool

    def __call__(self, session: Session) -> Session:
        if self.value not in VIEWS.get(self.name, ()):
            return session
        return replace(session, views={**session.views, self.name: self.value})


@dataclass(frozen=True)
class ShowWindow:
    """Look at another window of a long text, from 0."""

    window: int

    def __call__(self, session: Session) -> Session:
        return replace(session, window=self.window)


# What a drawing sends


def command_of(sent: Mapping[str, Any]) -> Command:
    """What a visitor means by what a drawing sends."""
    match sent:
        case {"do": "switch", "triple": triple, "on": on}:
            return Switch((Triple(*triple),), bool(on))
        case {"do": "tail", "triple": triple, "tail": tail}:
            return ReplaceTail(Triple(*triple), str(tail))
        case {"do": "name", "token": None, "triple": triple} | {"do": "triple", "triple": triple}:
            return SelectTriple(Triple(*triple))
        case {"do": "token", "token": None}:
            return ClearSelection()
        case {"do": "token" | "name", "token": token}:
            return SelectToken(identity_of(token))
        case {"do": "cell", "looks": looks, "at": at}:
            return SelectCell(identity_of(looks), identity_of(at))
        case {"do": "map", "layer": layer, "head": head}:
            return SelectMap(int(layer), int(head))
    raise ValueError(f"Got {sent!r:.80}, expected what a drawing sends.")
