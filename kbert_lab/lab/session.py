"""Session: everything that one visitor chose, typed, opened and did, as one frozen value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from kbert_core.errors import GraphConflict, GraphEditError, GraphFileError
from kbert_core.kbert.interventions import Intervention
from kbert_core.kbert.visible import Ablation
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.selection import SCORED, InjectionOptions
from kbert_core.knowledge.triple import Triple
from kbert_core.pipeline import NO_KNOWLEDGE
from kbert_core.tasks import TASKS
from kbert_lab.graphs.search import GraphSearch
from kbert_lab.lab.history import Changed, Edited, History, Step
from kbert_lab.lab.scene import NO_GRAPH, PANELS, Choice, GraphRef, Scene
from kbert_lab.lab.selection import Selection
from kbert_lab.lab.share import Shown, Waits
from kbert_lab.lab.texts import N_, t
from kbert_lab.lab.workspaces import OpenWorkspace

NO_TASK = "tree"
AUTO = "auto"  # compare with the scene before the last edit
VIEWS: dict[str, tuple[str | bool, ...]] = {  # what panels can show; the first unless chosen
    "matrix_view": ("visible", "attention", "difference"),
    "difference_of": ("visible", "attention"),
    "columns_view": ("visible", "attention"),
    "knowledge_view": ("table", "graph"),
    "all_heads": (False, True),
    "specials": (False, True),  # whether [CLS] and [SEP] are hidden
}
MOST_EDITED = 4  # graphs as they were edited before, of each graph, that stay in memory
TRIPLE_BYTES = 1200  # of memory that a triple takes with its line and its place in the index
Standing = tuple[Intervention, ...]
Texts = tuple[str, ...]


@dataclass(frozen=True)
class OpenedGraph:
    """A graph read from a file."""

    graph: KnowledgeGraph  # its triples
    problems: tuple[str, ...] = ()  # the bad lines that were left out
    repeated: int = 0  # how many lines repeated an earlier triple and were dropped
    source: str = ""  # the file's name, without its folder
    # the line of each triple; empty where there are very many
    lines: Mapping[Triple, int] = field(default_factory=dict)
    stored: GraphSearch | None = None  # of a graph file: itself, at the revision opened
    own: bool = False  # it was uploaded: one visitor's, and in no cache
    doubts: tuple[str, ...] = ()  # lines that were read as triples, and may be headings

    @property
    def size(self) -> int:
        """Bytes of memory it takes, about; of a graph file next to none."""
        return 0 if self.stored else TRIPLE_BYTES * len(self.graph)


class Reads(Protocol):
    """What a session has to know of a model."""

    @property
    def task(self) -> str | None:
        """What it was trained for; None: nothing."""

    @property
    def options(self) -> InjectionOptions:
        """How it was trained to read a graph."""

    @property
    def ablation(self) -> Ablation:
        """How it was trained to read a tree."""

    @property
    def has_trees(self) -> bool:
        """Whether it grows sentence trees."""

    @property
    def has_matrix(self) -> bool:
        """Whether positions and visible matrix can be changed."""

    @property
    def links(self) -> bool:
        """Whether it links entities, above a threshold."""

    def knows(self, text: str) -> bool:
        """Whether most letters of a text are of a script it knows, as far as that is known."""


@dataclass(frozen=True)
class Replaced:
    """A model that made way for one that knows the script of a text, or of a graph's names."""

    model: str  # that came
    by: str  # "text" or "graph"
    before: Mapping[str, Any]  # fields of the session, as they come back


@dataclass(frozen=True)
class Session:
    """What a page is a function of.

    Graphs are named by ids, of which each is one graph that was opened: two may hold the same.
    """

    model: str  # a checkpoint's folder, or one of scene.NO_MODEL
    reads: Reads  # of that model
    graph: str  # id of the chosen graph
    graphs: Mapping[str, OpenedGraph]  # as they were opened
    models: tuple[str, ...] = ()  # folders that were opened
    task: str = NO_TASK
    texts: tuple[str, str] = ("", "")  # the second for tasks on two
    # switched off, a triple leaves its place empty, unless the visitor has the next move up
    options: InjectionOptions = InjectionOptions(keep_places=True)
    ablation: Ablation = Ablation()
    device: str = "auto"
    threshold: float | None = None  # δ of a KnowBert's linker; None: as the model was trained
    interventions: Mapping[Texts, Standing] = field(default_factory=dict)  # by text
    edited: Mapping[str, KnowledgeGraph] = field(default_factory=dict)  # graphs with edits made
    history: History = History()
    selection: Selection = Selection()  # what is looked at closely; never runs a model again
    compare: str = AUTO  # what the scene is compared with
    pinned: Scene | None = None
    pinned_on: KnowledgeGraph | None = None  # the graph of that, which a workspace leaves behind
    panels: tuple[Choice, ...] = PANELS[:2]  # of a free choice of what stands side by side
    views: Mapping[str, str | bool] = field(default_factory=dict)  # of VIEWS, what was chosen
    window: int = 0  # of a text that is read in several
    example: str | None = None  # the example last put on the page
    replaced: Replaced | None = None  # what read before, where another model came by itself
    arrived: Waits | Shown | None = None  # of a link or a session file
    workspace: OpenWorkspace | None = None  # the open one; the only part that others change

    # What is read

    @property
    def sentences(self) -> Texts:
        """The one text or two that the chosen task reads."""
        two = self.task != NO_TASK and TASKS[self.task].sentences == 2
        return self.texts if two else self.texts[:1]

    @property
    def most_triples(self) -> int:
        """How many triples a mention may be given: 20, or more where the model was trained so."""
        return max(20, self.reads.options.max_triples)

    @property
    def base(self) -> KnowledgeGraph:
        """The chosen graph without edits; of a workspace, as it is."""
        return self.graphs[self.graph].graph

    @property
    def shared(self) -> OpenWorkspace | None:
        """The open workspace, where it is the chosen graph."""
        return self.workspace if self.workspace and self.workspace.id == self.graph else None

    def graph_now(self, name: str | None = None) -> KnowledgeGraph:
        """Return a graph with this visitor's edits, the chosen one unless told otherwise."""
        name = name or self.graph
        return self.edited.get(name, self.graphs[name].graph)

    def view(self, name: str) -> str | bool:
        """What a panel shows, by its name in ``VIEWS``."""
        return self.views.get(name, VIEWS[name][0])

    @property
    def standing(self) -> Standing:
        """The interventions that stand for the chosen text."""
        return self.interventions.get(self.sentences, ())

    def scene(self) -> Scene:
        """What is looked at now."""
        return Scene(
            self.sentences,
            self.model,
            GraphRef.of(self.base),
            self.history.edits(self.graph),
            self.options,
            self.ablation if self.reads.has_matrix else Ablation(),
            self.device,
            self.standing if self.reads.has_matrix else (),
            threshold=self.threshold if self.reads.links else None,
        )

    @property
    def arrival(self) -> Waits | Shown | None:
        """What of a link or a file the page shows, as long as it does."""
        gone = isinstance(self.arrived, Shown) and self.arrived.scene != self.scene()
        return None if gone else self.arrived

    def graph_of(self, scene: Scene) -> KnowledgeGraph:
        """Return the graph of a scene, with its edits made.

        Raises:
            GraphFileError: it was closed.
        """
        if scene.graph == NO_GRAPH:
            return NO_KNOWLEDGE
        here = [self.base, *(opened.graph for opened in self.graphs.values())]
        here += [self.pinned_on] if self.pinned_on is not None else []
        if self.workspace is not None:
            here += [self.workspace.first, *(self.workspace.before or ())[:1]]
        base = next((one for one in here if one.fingerprint == scene.graph.fingerprint), None)
        if base is None:
            said = N_("The graph “{name}” was closed. Open it again to see this.")
            raise GraphFileError(t(said, name=scene.graph.name))
        if base is self.base and scene.edits == self.history.edits(self.graph):
            return self.graph_now()
        made = base.kept("edited", dict[tuple[Edit, ...], KnowledgeGraph], most=MOST_EDITED)
        if scene.edits not in made:
            made[scene.edits] = base.apply(*scene.edits)
        return made[scene.edits]

    def id_of(
        self, graph: KnowledgeGraph, *, unedited: bool = False, name: str | None = None
    ) -> str | None:
        """Return the id of a graph with the same triples; None: there is none.

        Args:
            unedited: it is as it was opened.
            name: it is called so.
        """
        for own, opened in self.graphs.items():
            same = opened.graph.fingerprint == graph.fingerprint
            as_opened = self.graph_now(own) is opened.graph
            if same and name in (None, opened.graph.name) and (as_opened or not unedited):
                return own
        return None

    def last_step(self, graph: str | None = None) -> Step | None:
        """What would be taken back: of a graph, or of the page, which shows the chosen one."""
        return next((s for s in reversed(self.history.steps) if self._here(s, graph, False)), None)

    def next_step(self, graph: str | None = None) -> Step | None:
        """What would be made again."""
        numbers = reversed(self.history.redoes)
        return next((s for n in numbers if self._here(s := self.history[n], graph, True)), None)

    def _here(self, step: Step, graph: str | None, undone: bool) -> bool:
        of_a_graph = graph is not None or isinstance(step.what, Edited)
        here = step.what.graph == (graph or self.graph) if of_a_graph else True
        return here and step.undone == undone

    # What is changed: each returns another session

    def with_text(self, *texts: str, example: str | None = None) -> "Session":
        """Return the session with another text, or two.

        What was chosen in the text before isn't there any more; interventions that name no place in
        a text go along, unless it has its own.
        """
        first, second = (*texts, "")[:2]
        new = replace(self, texts=(first, second), example=example)
        kept = {new.sentences: tuple(one for one in self.standing if not one.tied_to_text)}
        return replace(
            new,
            interventions={**kept, **self.interventions},
            selection=self.selection.cleared(),
            window=0,
            arrived=None,
        )

    def with_model(self, model: str, reads: Reads, task: str | None = None) -> "Session":
        """Return the session with another model, which reads as it was trained.

        Whether triples move up into a place that is free stays as the visitor chose.
        """
        options = replace(reads.options, keep_places=self.options.keep_places)
        return replace(
            self,
            task=task or (reads.task if reads.task in TASKS else None) or NO_TASK,
            model=model,
            reads=reads,
            options=options,
            ablation=reads.ablation,
        )

    def as_before(self) -> "Session":
        """Return the session with what read before another model came by itself."""
        return replace(self, **(self.replaced.before if self.replaced else {}), replaced=None)

    def with_options(self, **changes: Any) -> "Session":
        """Return the session with other injection options; what belongs to a strategy goes with it.

        Args:
            changes: fields of :class:`InjectionOptions`; no ``relations`` are the model's own.
        """
        own = self.reads.options
        if "relations" in changes:
            changes["relations"] = tuple(changes["relations"]) or own.relations
        strategy = changes.get("strategy", self.options.strategy)
        if strategy is not self.options.strategy:
            same = strategy is own.strategy
            changes["threshold"] = own.threshold if same else None
            changes["scorer"] = own.scorer if same else None
        if strategy not in SCORED:
            changes["one_sense"] = False
        return replace(self, options=replace(self.options, **changes))

    def with_graph(self, name: str, opened: OpenedGraph) -> "Session":
        """Return the session with another graph among its graphs, and not chosen."""
        return replace(self, graphs={**self.graphs, name: opened})

    def without_graph(self, name: str) -> "Session":
        """Return the session without a graph; its edits stay in the history, and are undone."""
        gone = self.graphs[name].graph.fingerprint
        graphs = {n: kept for n, kept in self.graphs.items() if n != name}
        pinned = self.pinned
        return replace(
            self,
            graphs=graphs,
            edited={n: kept for n, kept in self.edited.items() if n != name},
            history=self.history.without(name),
            graph=self.graph if self.graph != name else next(iter(graphs)),
            pinned=None if pinned is not None and pinned.graph.fingerprint == gone else pinned,
        )

    # What is done: each is a step of the history

    def edit(self, *edits: Edit, **more: Any) -> "Session":
        """Return the session with edits made to the chosen graph, as one step.

        Args:
            more: of the step, see :class:`Edited`.

        Raises:
            GraphEditError: one doesn't fit.
        """
        graph = self.graph_now().apply(*edits)
        step = Edited(self.graph, edits, **more)
        return replace(
            self,
            edited={**self.edited, self.graph: graph},
            history=self.history.did(step),
        )

    def together(self, revision: int, edits: tuple[Edit, ...] = ()) -> "Session":
        """Return the session after an entry of this visitor in the open workspace's log."""
        step = Edited(self.graph, edits, revision=revision)
        return self.seen_together(self.history.did(step))

    def seen_together(self, history: History) -> "Session":
        """Return the session with the open workspace's graph as it was last seen."""
        assert self.workspace is not None
        new = replace(self, history=history)
        return new.with_graph(self.workspace.id, OpenedGraph(self.workspace.graph))

    def intervene(self, standing: Sequence[Intervention]) -> "Session":
        """Return the session with other interventions in the place of those that stand."""
        standing = tuple(standing)
        if standing == self.standing:
            return self
        return self.step(interventions={**self.interventions, self.sentences: standing})

    def step(self, *, aside: tuple[int, ...] = (), of: str = "", **fields: Any) -> "Session":
        """Return the session with fields changed as one step of the history.

        Args:
            aside, of: the edits of a graph that are taken back with it.
            fields: what they become.
        """
        before = {name: getattr(self, name) for name in fields}
        history = self.history.did(Changed(before, fields, aside, of))
        return replace(self, history=history, **fields).made_again(of)

    def put(self, scene: "Session", graph: str) -> "Session":
        """Return the session with what another one shows, as one step: a scene is put on the page.

        Args:
            scene: this session with other fields of ``SHOWN``.
            graph: id of the scene's graph, which begins as it was opened.
        """
        fields = {name: getattr(scene, name) for name in SHOWN} | {"graph": graph}
        aside = tuple(step.number for step in self.history.of(graph))
        return replace(self, graphs=scene.graphs).step(aside=aside, of=graph, **fields)

    def undo(self, step: Step) -> "Session":
        """Return the session with a step taken back.

        Raises:
            GraphEditError: it is undone already, or later edits need it.
        """
        return self._turned(step, undone=True)

    def redo(self, step: Step) -> "Session":
        """Return the session with a step made again that was taken back.

        Raises:
            GraphEditError: it isn't undone, or it no longer fits.
        """
        return self._turned(step, undone=False)

    def _turned(self, step: Step, *, undone: bool) -> "Session":
        if self.workspace is not None and isinstance(step.what, Edited) and step.what.revision:
            turn = self.workspace.undo if undone else self.workspace.redo
            turn(step.what.revision)
            return self.seen_together(self.history.with_undone(step.number, undone))
        turned = replace(self, history=self.history.with_undone(step.number, undone))
        if isinstance(step.what, Changed):
            fields = step.what.before if undone else step.what.after
            turned = replace(turned, **fields)
        try:
            return turned.made_again(step.what.graph)
        except GraphEditError as error:
            name, how = (
                self.graphs[step.what.graph].graph.name,
                "taken back" if undone else "made again",
            )
            raise GraphConflict(
                f"{name}: entry {step.number} can't be {how}, what it edited was edited after it. "
                "Undo what came later first, or edit the triples themselves."
            ) from error

    def made_again(self, graph: str) -> "Session":
        """Return the session with a graph made of its base and the edits that stand."""
        if graph not in self.graphs:
            return self
        made = self.history.graph(graph, self.graphs[graph].graph)
        return replace(self, edited={**self.edited, graph: made})


SHOWN = (  # fields that a scene puts on the page
    *("texts", "task", "model", "reads", "options", "ablation", "threshold", "interventions"),
    *("selection", "compare", "pinned", "example"),
)
