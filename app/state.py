"""The visitor's session, changed by ``dispatch`` alone; and what follows from it."""

import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial, wraps
from typing import Any, ParamSpec

import streamlit as st

from app import services
from app.services import OpenedGraph, RoomError
from kbert_core import KBertError, KnowledgeGraph, Triple
from kbert_core.errors import GraphConflict
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.selection import Strategy
from kbert_core.tasks import TASKS
from kbert_lab.graphs.download import PUBLIC
from kbert_lab.graphs.search import GraphSearch
from kbert_lab.lab import comparing, workspaces
from kbert_lab.lab.commands import (
    ChooseModel,
    CloseGraph,
    Command,
    MakeEdits,
    OpenGraph,
    Write,
    apply,
)
from kbert_lab.lab.comparing import BERT
from kbert_lab.lab.examples import EXAMPLES, Example
from kbert_lab.lab.log import AnyLog, log_of
from kbert_lab.lab.models import NOTHING
from kbert_lab.lab.offer import Offer
from kbert_lab.lab.scene import NO_MODEL, WORDS, Scene
from kbert_lab.lab.selection import Selection
from kbert_lab.lab.session import AUTO, NO_TASK, Reads, Session
from kbert_lab.lab.texts import N_, clauses, language, refusal, sentences, speaking, t
from kbert_lab.lab.views.knowledge import describe
from kbert_lab.lab.workspaces import WORKSPACE, OpenWorkspace

KEY = "workspace"  # of the address, which opens it again
MOST_COPIED = 5_000  # triples of a workspace that are kept in case it goes
KEEP: dict[str, Any] = {"persist_state": "session"}  # of a widget that isn't always on the page
EDITED = ("edited", "history", "interventions", "selection")  # what only parts of a page say

P = ParamSpec("P")
ss = st.session_state


def visitor() -> str:
    """This visit's name in the queue of long runs; it says nothing of who it is."""
    return ss.setdefault("visitor", secrets.token_hex(8))


# The session


def session() -> Session:
    """What this visitor chose, typed, opened and did."""
    found: Session = ss["session"]
    return found


def put(new: Session) -> None:
    """Go on with another session."""
    ss["session"] = new


def dispatch(command: Command) -> bool:
    """Do what a visitor wants, or keep why it can't be done; return whether it was."""
    new, error = apply(session(), command)
    ss["lab.problem"] = said(error) if error else ""
    if isinstance(error, GraphConflict) and isinstance(command, MakeEdits):  # others were first
        what = clauses(map(describe, command.edits))
        ss["lab.problem"] += " " + t("Your edit was not made: {what}.", what=what)
    put(new)
    return error is None


def act(command: Command) -> None:
    """Do what a visitor wants, and draw what it concerns; in a callback only."""
    redrawn(dispatch, command)


def redrawn(do: Callable[..., object], *args: Any) -> None:
    """Do something, and draw the parts that say edits, or all where more than that has changed."""
    before = session()
    do(*args)
    quiet = {name: getattr(before, name) for name in EDITED}
    draw("edits" if replace(session(), **quiet) == before else "all")


# Parts of a page that are drawn anew without the rest


def part(key: str, by: str = "edits") -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Make a function of a page a part of it that can be drawn anew by itself.

    Args:
        key: of the part, unique; begins with the page's name.
        by: what draws it anew: "edits" (and interventions) or "selection".
    """

    def of(function: Callable[P, None]) -> Callable[P, None]:
        @partial(st.fragment, key=key)
        def fragment(*args: P.args, **kwargs: P.kwargs) -> None:
            with speaking(language()):  # looked up once, not for every text
                function(*args, **kwargs)

        @wraps(function)
        def drawn(*args: P.args, **kwargs: P.kwargs) -> None:
            ss["parts"] = {**ss.get("parts", {}), key: by}
            fragment(*args, **kwargs)

        return drawn

    return of


def begin_parts(by: str = "") -> None:
    """Forget the parts of the last run; those of this one tell of themselves."""
    ss["parts"] = {key: own for key, own in ss.get("parts", {}).items() if by not in ("", own)}


def draw(by: str) -> None:
    """Draw parts anew, or the whole page where there are none; in a callback only."""
    st.rerun([key for key, own in ss["parts"].items() if own == by] or "app")


def tell(said: str) -> None:
    """Have the page say once what could not be had here."""
    ss["told"] = (*ss.get("told", ()), said)


def said(error: KBertError) -> str:
    """What an error says to this visitor: of a workspace without its place on this machine."""
    shared = workspace()
    if shared is None:
        return refusal(error)
    return workspaces.without_path(error, workspaces.place_of(shared.key), shared.graph.name)


# What there is to choose


def offer() -> Offer:
    """The models of the models folder, and those opened in this session."""
    return services.offer(session().models)


def reads(model: str) -> Reads:
    """What a session has to know of a model."""
    return NOTHING if model in NO_MODEL else services.model_info(model)


# Beginning


def begin() -> None:
    """Begin a session, and mend what no longer fits."""
    begin_parts()
    if "session" not in ss:
        services.look_anew()
        demos = {name: services.demo_file(name) for name in services.DEMO_GRAPHS}
        put(Session(WORDS, NOTHING, next(iter(demos)), demos))
        named = st.query_params.get("example", "")
        first = offer().first(named)
        if named not in ("", first.key):
            said = N_(
                "The example “{name}” can't be shown here: no model for it is here. You see "
                "another."
            )
            tell(t(said, name=named[:40]))
        put(offer().with_example(session(), first))
    _begin_workspace()
    put(offer().mended(session()))


def with_text(sentences: tuple[str, ...], task: str, model: str, graph: str) -> Session:
    """The session with a text on the page, and what reads it.

    Args:
        sentences: one or two.
        task, model: the model's options become those it was trained with.
        graph: its id.
    """
    read = session().with_model(model, reads(model), task)
    return replace(read, graph=graph).with_text(*sentences)


def put_sentences(sentences: tuple[str, ...]) -> None:
    """Put another text on the page, or two, for the same model and graph."""
    put(session().with_text(*sentences))


def write(texts: tuple[str, ...]) -> None:
    """Put what was typed on the page; a model that doesn't know its script makes way."""
    before = session()
    dispatch(Write(texts))
    put(offer().written(session(), before))


def read_with(model: str) -> None:
    """Choose a model, whatever its task."""
    dispatch(ChooseModel(model, reads(model)))


def read_as_before() -> None:
    """Callback: take back what made way for another model."""
    put(session().as_before())


def choose_example(name: str | None) -> None:
    """Put the example of a name on the page; None: stay."""
    if example := offer().examples().get(name or ""):
        put(offer().with_example(session(), example))


def choose_task(task: str) -> None:
    """Choose a task, and its first model where the chosen one is for another."""
    put(offer().with_task(session(), task))


def choose_model(model: str, task: str | None = None) -> None:
    """Choose a model: its options, and an example it can read, if one is shown."""
    put(offer().with_model(session(), model, task))


def current_example() -> Example | None:
    """The example shown, as long as its sentence, task and graph are."""
    now = session()
    example = next((e for e in EXAMPLES if e.name == now.example), None)
    same = example and (now.task, now.graph) == (example.task or NO_TASK, example.graph)
    return example if same else None


# The scene


def scene() -> Scene:
    """What this visitor looks at now."""
    return session().scene()


def strategies() -> tuple[Strategy, ...]:
    """Offer the strategies that can run: by similarity only with a model."""
    now = session()
    own, with_model = now.reads.options.strategy, now.model not in NO_MODEL
    return tuple(
        strategy
        for strategy in Strategy
        if strategy is own or with_model or strategy is not Strategy.CONTEXT
    )


def compared_with(
    now: Scene, seen: Any, how: Callable[[Scene, KnowledgeGraph], Any] = services.trace
) -> tuple[Scene, str, Any]:
    """The scene to compare with, what kind it is, and what is seen of it where it can be read.

    Args:
        seen: of it; where the last edit left its tree as it was, that edit
            is about another text, and nothing would differ.
        how: that is seen, ``services.trace`` or ``services.laid``.
    """
    compared, kind = comparing.earlier(session(), offer())
    before = read(compared, how)
    if kind == AUTO and before is not None and comparing.same_knowledge(before, seen):
        compared, kind = now.without_knowledge(), BERT
        before = read(compared, how)
    return compared, kind, before


def read(scene: Scene, how: Callable[[Scene, KnowledgeGraph], Any]) -> Any:
    """What is seen of a scene; None where it can't be read."""
    try:
        return how(scene, session().graph_of(scene))
    except KBertError:
        return None


# Editing


def log() -> AnyLog:
    """The edits of the chosen graph: in this visit, or in the workspace."""
    return log_of(session())


def base() -> KnowledgeGraph:
    """The chosen graph without any edits; of a workspace, as it is."""
    return session().base


def graph() -> KnowledgeGraph:
    """The chosen graph as edited."""
    return session().graph_now()


def commit(*edits: Edit) -> bool:
    """Make edits as one step, or say why they can't be made; return whether they were."""
    return dispatch(MakeEdits(edits))


# Workspaces


def workspace() -> OpenWorkspace | None:
    """The open workspace, where it is the chosen graph."""
    now = ss.get("session")
    return now.workspace if now is not None and now.graph == WORKSPACE else None


def _begin_workspace() -> None:
    """Open the workspace that the address names; see the open one as it is now."""
    key = st.query_params.get(KEY)
    if key and key != ss.get("lab.key_taken"):
        ss["lab.key_taken"] = key  # the browser tells of it again, whatever is opened later
        open_workspace(key)
    shared = session().workspace
    if not isinstance(shared, OpenWorkspace):
        return
    try:
        shared.refresh()
    except KBertError as error:
        text = N_("The workspace {title} can no longer be reached, and was closed: {reason}")
        reason = workspaces.without_path(error, workspaces.place_of(shared.key), shared.graph.name)
        why = t(text, title=shared.graph.name, reason=reason)
        if _keep_copy(shared.graph):
            why = sentences([why, t("Its graph stays open here as a copy, for you alone.")])
        tell(why)
        close_workspace()
        _try_later(shared.key, error)
        return
    put(session().seen_together(session().history))
    with suppress(KBertError):
        _copy(shared.graph)  # nothing can be read of it any more once it is gone


def _copy(graph: KnowledgeGraph) -> KnowledgeGraph | None:
    """A workspace's graph in memory, made once; None of a large one."""
    make = lambda: KnowledgeGraph(graph, name=graph.name, off=graph.off)  # noqa: E731
    return graph.kept("copy", make) if len(graph) <= MOST_COPIED else None


def _keep_copy(graph: KnowledgeGraph) -> bool:
    """Go on with a copy of a workspace's graph, where it was looked at and is in memory."""
    if session().graph != WORKSPACE:
        return False
    with suppress(KBertError):
        copy = _copy(graph)
        if copy is not None:
            take_graph(OpenedGraph(copy, source=graph.name, own=True))
            return True
    return False


def open_workspace(key: str) -> bool:
    """Open a workspace by its key and choose it; say so where none has it."""
    try:
        shared = OpenWorkspace(key, who=ss.get("knowledge.who", "").strip())
    except KBertError as error:
        tell(refusal(error))
        _try_later(key, error)
        return False
    ss.pop("lab.workspace_away", None)
    now = replace(session(), workspace=shared, graph=WORKSPACE)
    put(now.seen_together(now.history))
    return True


def _try_later(key: str, error: KBertError) -> None:
    """Keep the key of a workspace whose server is away."""
    if workspaces.is_away(error):
        ss["lab.workspace_away"] = key


def close_workspace() -> None:
    """Go on without the workspace; it stays where it is."""
    put(replace(session().without_graph(WORKSPACE), workspace=None))


def graph_label(name: str) -> str:
    """What a graph of this session is called in a chooser."""
    found, text = session().graphs[name].graph, N_("{name}, {count} triples")
    if name == WORKSPACE:
        text = N_("Workspace: {name}, {count} triples")
    return t(text, name=found.name, count=f"{len(found):,}")


def _index() -> GraphSearch | None:
    """The chosen graph's, before this visit's edits, where it is in a file; None: in memory."""
    shared = workspace()
    if shared is not None:
        return GraphSearch(shared.searched.path, shared.opened_at)
    return session().graphs[session().graph].stored


def relations() -> tuple[str, ...]:
    """The relations of the chosen graph, the most frequent first."""
    index = _index()
    return tuple(services.facets_of(index).relations) if index else services.relations(base())


def tails(relation: str, most: int = 200) -> tuple[str, ...]:
    """The tails of a relation in the chosen graph, the most frequent first."""
    index = _index()
    found = index.tails(relation, "", most) if index else services.tails(graph(), relation, most)
    return tuple(found)


def add_triple(head: str) -> None:
    """Callback of the form: a triple first under its head, or under one that is suggested."""
    head = ss["lab.add_head"].strip() or head
    try:
        triple = Triple.checked(head, ss["lab.add_relation"], ss["lab.add_tail"])
    except KBertError as error:
        ss["lab.problem"] = refusal(error)
        return
    if commit(Edit("add", triple, index=0)):
        ss["lab.add_relation"] = ss["lab.add_tail"] = ""


def public_graphs() -> tuple[str, ...]:
    """Public graphs that this session hasn't fetched yet."""
    return tuple(name for name in PUBLIC if name not in session().graphs)


def take_graph(opened: OpenedGraph, *, choose: bool = True, name: str = "") -> str:
    """Put a graph that was opened into this session, and choose it; return its id there.

    Raises:
        RoomError: it was uploaded, and there is no room for it.
    """
    if opened.own:
        taken = sum(other.size for other in session().graphs.values() if other.own)
        if taken + opened.size > services.MOST_OF_VISIT:
            sizes = (opened.size, taken, services.MOST_OF_VISIT)
            size, own, most = (f"{max(1, round(size / 2**20)):,}" for size in sizes)
            text = N_(
                "{name} takes about {size} MB of memory. Graphs opened in this visit take {own} MB "
                "already, and may take {most} MB. Close one of them, or make a graph file of it "
                "(kbert kg import), which is read from disk."
            )
            raise RoomError(t(text, name=opened.source, size=size, own=own, most=most))
    command = OpenGraph(opened, name or secrets.token_hex(4), choose)
    put(command(session()))
    return command.id_in(session())


def may_close(name: str) -> bool:
    """Whether a graph was opened by this visitor, and isn't a workspace."""
    return name != WORKSPACE and name not in services.DEMO_GRAPHS


def close_graph(name: str) -> None:
    """Callback: let go of a graph that was opened, and of the edits made to it."""
    dispatch(CloseGraph(name))


def take_model(path: str) -> None:
    """Put a model folder into this session, and choose it."""
    now = session()
    if path not in now.models:
        put(replace(now, models=(*now.models, path)))
    task = services.model_info(path).card.task
    choose_model(path, task if task in TASKS else NO_TASK)


def selection() -> Selection:
    """What this visitor looks at closely; it never runs a model again."""
    return session().selection
