"""What a visitor shares, and what a link or a session file puts on their page."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import streamlit as st

from app import language, services, state
from app.components import keep_address as tell_address
from app.services import OpenedGraph
from kbert_core import InjectionOptions, KBertError, KnowledgeGraph, Triple
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.selection import Strategy
from kbert_core.knowledge.triple import ALIAS_RELATIONS
from kbert_core.tasks import TASKS
from kbert_lab.lab import comparing
from kbert_lab.lab.comparing import BERT, FREE, PINNED
from kbert_lab.lab.examples import MINILM
from kbert_lab.lab.log import heads_of
from kbert_lab.lab.models import is_chinese
from kbert_lab.lab.page.file import Page, Side
from kbert_lab.lab.scene import CHARACTERS, WORDS, GraphRef, Scene
from kbert_lab.lab.session import AUTO, NO_TASK, VIEWS, Session
from kbert_lab.lab.share import PARAMETER, Shared, ShareError, Shown, Waits, from_link, to_link
from kbert_lab.lab.texts import N_, refusal, t
from kbert_lab.lab.views.heads import map_name
from kbert_lab.lab.views.matrix import picked
from kbert_lab.lab.words import COMPARE_NAME, TASK_TEXTS
from kbert_lab.lab.workspaces import WORKSPACE, OpenWorkspace
from kbert_lab.lab.written import folder_name

ADDRESS = "app.address"

ss = st.session_state


# Out


def shared() -> Shared:
    """What this visitor's page shows."""
    own = state.session()
    steps = tuple(len(step.edits) for step in own.history.edited(own.graph) if not own.shared)
    panels = (replace(one, model=one.model and name_of(one.model)) for one in own.panels)
    return Shared(
        _named(state.scene()),
        own.task,
        steps if any(count != 1 for count in steps) else (),
        own.compare,
        _named(own.pinned) if own.pinned is not None and own.compare == PINNED else None,
        own.selection,
        {name: value for name, value in own.views.items() if value != VIEWS[name][0]},
        own.window,
        tuple(panels) if own.compare == FREE else (),
    )


def _named(scene: Scene) -> Scene:
    return replace(scene, model=name_of(scene.model), device="auto")


def name_of(model: str) -> str:
    """What a model is called in a link: never where it lies."""
    return MINILM if model == services.english_encoder() else folder_name(model)


def with_triples(shared: Shared) -> Shared:
    """Have the triples of the graph that the texts need go along.

    Others may lack the graph, or have another version of it. A graph of a workspace stays there.
    Nothing goes along where the texts would be read differently with these triples alone: the
    rarest relations are those of the whole graph.
    """
    base, now, pinned = state.base(), state.scene(), state.session().pinned
    graph_of = state.session().graph_of
    if state.workspace() is not None or base.aliases != ALIAS_RELATIONS:
        return shared
    scenes = [now]
    if shared.pinned is not None and pinned is not None and pinned.graph == now.graph:
        scenes.append(pinned)
    entities: dict[str, None] = {}
    try:
        for own in (variant for scene in scenes for variant in (scene.original(), scene)):
            for mention in services.laid(own, graph_of(own)).reading.mentions:
                entities |= dict.fromkeys(mention.entities)
            entities |= dict.fromkeys(sorted(heads_of(own.edits)))
        triples = tuple(triple for entity in entities for triple in base.triples_of(entity))
        off = tuple(triple for triple in triples if not base.is_on(triple))
        carrying = replace(shared, triples=triples, off=off)
        part = carrying.graph or KnowledgeGraph()
        for own in scenes:
            alone = replace(own, graph=GraphRef.of(part))
            found = services.laid(alone, part.apply(*own.edits))
            if not comparing.same_knowledge(found, services.laid(own, graph_of(own))):
                return shared
    except KBertError:  # it can't be read: the page says why
        return shared
    return carrying


def page() -> Page:
    """Everything on the page; found where it was run before.

    Raises:
        KBertError: a text, option or model that can't be used.
    """
    now = state.scene()
    trace = services.trace(now, state.session().graph_of(now))
    compared, kind, before = state.compared_with(now, trace)
    window = min(state.session().window, len(trace.rows) - 1)
    chosen = state.selection()
    layer, head = chosen.map_of(services.layer_count(now), chosen.head)
    after = t("with the graph as edited" if now.edits else "with the graph")
    graph_of = state.session().graph_of
    here = graph_of(now)

    def side(name: str, scene: Scene, graph: KnowledgeGraph, trace: Any) -> Side:
        def weights() -> np.ndarray:
            return picked(services.attention(scene, graph, window), layer, head)

        return Side(name, scene, graph, trace, weights if scene.has_model else None)

    def without(off: Sequence[Triple]) -> Side:  # where no visit is known
        graph = here.apply(*(Edit("switch_off", triple) for triple in off))
        return side(after, now, graph, services.trace(now, graph))

    was = before and side(t(COMPARE_NAME[kind]), compared, graph_of(compared), before)
    info = services.model_info(now.model) if now.has_model else None
    task, shown = t(TASK_TEXTS[state.session().task]), map_name(layer, head)
    told = (info, task, window, shown, kind != BERT)
    return Page(side(after, now, here, trace), without, was, *told)


def file_name(scene: Scene, what: str, ending: str) -> str:
    """A name for a file: the text's beginning, and what it is of."""
    return f"{services.safe_name(scene.sentences[0][:24])}-{what}{ending}"


# The address


@state.part("app.address_part")
def keep_address() -> None:
    """Have the address tell what the page shows, and the tab remember it over a reload."""
    ss["app.runs"] = ss.get("app.runs", 0) + 1
    tell_address(query(), link_back(), ss["app.runs"], key=ADDRESS, on_found=_found_in_tab)


def query() -> dict[str, str]:
    """The address's parameters: of what it asked for, only what the page still shows."""
    spoken = {language.PARAMETER: ss["app.language"]} if "app.language" in ss else {}
    asked, found = st.query_params.to_dict(), {}
    if "session" not in ss:
        return spoken
    if isinstance(opened := state.session().workspace, OpenWorkspace):
        found[state.KEY] = opened.key
    if PARAMETER in asked and state.session().arrival is not None:
        found[PARAMETER] = asked[PARAMETER]
    example = state.current_example()
    if example and example.key == asked.get("example") and not state.log().done:
        found["example"] = example.key
    return found | spoken


def link_back() -> str | None:
    """A link to what the page shows; None where the visitor has done nothing yet.

    Empty once what the tab remembered isn't wanted.
    """
    if ss.get("lab.left") == "":
        return str(ss.pop("lab.left"))
    begun = "session" in ss and not isinstance(state.session().arrival, Waits)
    if begun and (state.log().done or state.current_example() is None):
        with suppress(ShareError):  # it is too long, or half a character
            return to_link(with_triples(shared()))
    return None


def _found_in_tab() -> None:
    """Callback: the tab remembers a page, from before it was loaded again."""
    ss["lab.left"] = getattr(ss.get(ADDRESS), "found", None)
    state.draw("all")


def go_on() -> None:
    """Callback: put back what the tab remembers."""
    attempt(lambda: take(from_link(ss.pop("lab.left"))))


def begin_anew() -> None:
    """Callback: forget what the tab remembers."""
    ss["lab.left"] = ""


# Back


def arrive() -> None:
    """Take what the address brings, once; and what waits, as soon as its graph is here."""
    value = st.query_params.get(PARAMETER)
    if value is not None and value != ss.get("lab.link_taken"):
        ss["lab.link_taken"] = value
        attempt(lambda: take(from_link(value), card=True))
    elif isinstance(now := state.session().arrival, Waits):
        attempt(lambda: take(now.shared))


def attempt(take_it: Callable[[], None]) -> None:
    """Take something, or keep why it can't be."""
    try:
        take_it()
    except KBertError as error:
        leave()
        state.tell(refusal(error))


def take(shared: Shared, graph: KnowledgeGraph | None = None, *, card: bool = False) -> None:
    """Put a scene on the page; where its graph isn't here, have it wait for that.

    Args:
        shared: what is to be restored.
        graph: of the scene, where it is at hand; else what goes along.
        card: whether it is first seen as a card.

    Raises:
        ShareError: its edits don't fit its graph.
        RoomError: this visit has no room for its graph.
    """
    graph, whole = graph or shared.graph, shared.scene.graph
    notes = []
    name = graph_named(shared.scene)
    if name is None and graph is not None:
        if graph.fingerprint != whole.fingerprint:
            text = N_(
                "The graph “{graph}” isn't here with the same triples. You see those that this "
                "text needs, as they were shared. To read another text with it, open that graph."
            )
            notes.append(t(text, graph=whole.name))
            shared = shared.on(graph)
            graph = KnowledgeGraph(
                graph, name=t("part of {graph}", graph=whole.name), off=graph.off
            )
        opened = OpenedGraph(graph, source=graph.name, own=True)
        name = state.take_graph(opened, choose=False)
    if name is None:
        _arrived(Waits(shared))
    else:
        notes += _put(shared, name)
        _arrived(Shown(state.scene(), tuple(notes), card))


def _arrived(what: Waits | Shown | None) -> None:
    state.put(replace(state.session(), arrived=what))


def leave() -> None:
    """Callback: wait no longer; the page is as it was before."""
    _arrived(None)


def read_otherwise(shared: Shared) -> None:
    """Callback: read the text that waits with the graph that is chosen here, without edits."""
    here = GraphRef.of(state.base())
    scene = replace(shared.scene, graph=here, edits=state.scene().edits)
    take(Shared(scene, shared.task))


def open_card(card: Shown) -> None:
    """Callback: go on from the card to the Lab."""
    _arrived(replace(card, card=False))


_EMPTY = KnowledgeGraph().fingerprint


def graph_named(scene: Scene) -> str | None:
    """What the graph of a scene is called in this session; None where it isn't here.

    A workspace takes no edits that aren't its own.
    """
    wanted = scene.graph.fingerprint
    for name, own in state.session().graphs.items():
        if own.graph.fingerprint == wanted and (name != WORKSPACE or not scene.edits):
            return name
    if wanted == _EMPTY:
        return state.take_graph(OpenedGraph(KnowledgeGraph(name=scene.graph.name)), choose=False)
    return None


def _path_of(model: str, task: str) -> str | None:
    """The model of a name that is for a task."""
    if task not in state.offer().tasks():
        return None
    return next((path for path in state.offer().names(task) if name_of(path) == model), None)


def _put(shared: Shared, graph: str) -> Sequence[str]:
    """Put a scene on the page, and return what of it can't be had here.

    Raises:
        ShareError: its edits don't fit its graph; nothing is changed.
    """
    scene, base = shared.scene, state.session().graphs[graph].graph
    try:
        base.apply(*scene.edits)
    except KBertError as error:
        text = N_("Its edits don't fit the graph “{graph}”, so nothing was opened: {reason}")
        raise ShareError(t(text, graph=base.name, reason=refusal(error))) from error
    notes = []
    task, path = shared.task, _path_of(scene.model, shared.task)
    if path is None or (task in TASKS and TASKS[task].sentences != len(scene.sentences)):
        text = N_(
            "This was made with the model {model}, which isn't here: you see everything but the "
            "prediction, of two texts the first. Put the model's folder into the models folder, "
            "and open it again."
        )
        notes.append(t(text, model=scene.model))
        task, path = NO_TASK, CHARACTERS if is_chinese(scene.sentences[0]) else WORDS
    now = state.with_text(scene.sentences, task, path, graph)
    options = _options(scene.options, now)
    if options is None:
        text = N_(
            "The triples were chosen by a model that isn't here; here the first in graph order are "
            "taken."
        )
        notes.append(t(text))
        free: dict[str, Any] = {"threshold": None, "one_sense": False, "scorer": None}
        options = replace(scene.options, strategy=Strategy.FIRST, **free)
    pinned = _here(shared.pinned, shared.task) if shared.pinned is not None else None
    compare = shared.compare if pinned is not None or shared.compare != PINNED else AUTO
    now = replace(
        now,
        options=replace(options, max_triples=min(options.max_triples, now.most_triples)),
        ablation=scene.ablation,
        threshold=scene.threshold,
        interventions={**now.interventions, now.sentences: ()},
        selection=shared.selection,
        # the page reads as the model was trained, and otherwise beside it
        compare="systems" if scene.system else compare,
        pinned=pinned if pinned is not None else now.pinned,
    )
    before = state.session()
    now = before.put(now, graph) if before.history.steps else now
    left = iter(scene.edits)
    for count in (*shared.steps, *[1] * len(scene.edits)):  # each can be undone
        if edits := tuple(islice(left, count)):
            now = now.edit(*edits)
    views = {name: own for name, own in shared.views.items() if own in VIEWS.get(name, ())}
    panels = (replace(one, model=_path_of(one.model, task) or "") for one in shared.panels)
    now = replace(now, views=views, window=shared.window, panels=tuple(panels) or now.panels)
    state.put(now.intervene(scene.interventions))
    return notes


def _options(options: InjectionOptions, now: Session) -> InjectionOptions | None:
    """Options with a session's own scorer; None: what chose the triples isn't here."""
    own = now.reads.options.scorer
    if options.scorer is not None:
        same = own is not None and folder_name(own) == options.scorer
        return replace(options, scorer=own) if same else None
    return None if options.needs_model and now.model in (WORDS, CHARACTERS) else options


def _here(pinned: Scene, task: str) -> Scene | None:
    """A pinned scene, if its graph and its model are here."""
    name = graph_named(pinned)
    path = _path_of(pinned.model, task) or _path_of(pinned.model, NO_TASK)
    if name is None or name == WORKSPACE or path is None or pinned.options.scorer is not None:
        return None
    graph = state.session().graphs[name].graph
    with suppress(KBertError):
        graph.apply(*pinned.edits)
        return replace(pinned, model=path, device=state.session().device)
    return None
