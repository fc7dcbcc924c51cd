"""What a visitor shares, and what a link or a session file puts on their page."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import streamlit as st

from app import language, services, state
from app.components import document
from app.export import Page, Side
from app.services import OpenedGraph
from app.state import BERT, FREE, PINNED
from kbert_core import Ablation, InjectionOptions, KBertError, KnowledgeGraph
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.selection import Strategy
from kbert_core.tasks import TASKS
from kbert_lab.lab.comparing import Choice
from kbert_lab.lab.examples import MINILM
from kbert_lab.lab.log import WORKSPACE, OpenWorkspace
from kbert_lab.lab.models import is_chinese
from kbert_lab.lab.scene import CHARACTERS, WORDS, GraphRef, Scene, is_blank
from kbert_lab.lab.session import AUTO, NO_TASK, Session
from kbert_lab.lab.share import (
    PARAMETER,
    VIEWS,
    Shared,
    ShareError,
    folder_name,
    from_link,
    to_link,
)
from kbert_lab.lab.texts import N_, refusal, t
from kbert_lab.lab.views.matrix import picked
from kbert_lab.lab.words import COMPARE_NAME, TASK_TEXTS

ADDRESS = "app.address"

ss = st.session_state
Note = tuple[str, Mapping[str, str]]


# Out


def shared() -> Shared:
    """What this visitor's page shows."""
    own = state.session()
    steps = tuple(len(step.edits) for step in own.history.edited(own.graph) if not own.shared)
    compare = own.compare
    pinned = own.pinned if compare == PINNED else None
    return Shared(
        _named(state.scene()),
        own.task,
        steps if any(count != 1 for count in steps) else (),
        compare if compare != PINNED or pinned is not None else AUTO,
        _named(pinned) if pinned is not None else None,
        state.selection(),
        tuple(
            (name, value)
            for name, shown in VIEWS.items()
            if (value := ss.get(f"lab.{name}", shown[0])) in shown[1:]
        ),
        ss.get("lab.window") or 0,
        _free() if compare == FREE else (),
    )


def _free() -> tuple[Choice, ...]:
    """What was chosen to stand side by side, each by its model's name."""
    keys = (f"lab.free.{number}" for number in range(ss.get("lab.free_count") or 0))
    return tuple(
        Choice(
            name_of(ss[f"{key}.model"]),
            None,
            ss[f"{key}.graph"],
            Ablation(ss[f"{key}.positions"], ss[f"{key}.visible"]),
            ss[f"{key}.system"],
        )
        for key in keys
        if f"{key}.visible" in ss  # else it was never drawn
    )


def page() -> Page:
    """Everything on the page; found where it was run before.

    Raises:
        KBertError: a text, option or model that can't be used.
    """
    now = state.scene()
    if not all(len(x) <= services.LONGEST_TEXT and not is_blank(x) for x in now.sentences):
        raise ShareError(t("Write a text that can be read; then there is something to share."))
    trace = services.trace(now, state.graph_of(now))
    compared, kind, before = state.compared_with(now, trace)
    window = min(ss.get("lab.window") or 0, len(trace.rows) - 1)
    chosen = state.selection()
    layer, head = chosen.map_of(services.layer_count(now), chosen.head)
    mean = t("mean")

    def side(name: str, scene: Scene, trace: Any) -> Side:
        graph = state.graph_of(scene)

        def weights() -> np.ndarray:
            return picked(services.attention(scene, graph, window), layer, head)

        return Side(name, scene, graph, trace, weights if scene.has_model else None)

    after = t("with the graph as edited" if now.edits else "with the graph")
    return Page(
        side(after, now, trace),
        side(t(COMPARE_NAME[kind]), compared, before) if before is not None else None,
        services.model_info(now.model) if now.has_model else None,
        t(TASK_TEXTS[state.session().task]),
        window,
        f"{t('Layer')} {layer or mean} · {t('Head')} {head or mean}",
        kind != BERT,
    )


def file_name(scene: Scene, what: str, ending: str) -> str:
    """A name for a file: the text's beginning, and what it is of."""
    return f"{services.safe_name(scene.sentences[0][:24])}-{what}{ending}"


def with_triples(shared: Shared) -> Shared:
    """Have the triples of the graph that the texts need go along.

    Others may lack the graph, or have another version of it. A graph of a workspace stays there.
    Nothing goes along where the texts would be read differently with these triples alone: the
    rarest relations are those of the whole graph.
    """
    base, now = state.base(), state.scene()
    whole = KnowledgeGraph().aliases
    empty = now.graph.fingerprint == _EMPTY
    if state.workspace() is not None or empty or base.aliases != whole:
        return shared
    pinned = state.session().pinned if shared.pinned is not None else None
    scenes = [own for own in (now, pinned) if own is not None and own.graph == now.graph]
    entities: dict[str, None] = {}
    try:
        for own in (variant for scene in scenes for variant in (scene.original(), scene)):
            for mention in services.trace(own, state.graph_of(own)).reading.mentions:
                entities |= dict.fromkeys(mention.entities)
            for edit in own.edits:
                heads = [triple.head for triple in (edit.triple, edit.new) if triple is not None]
                entities |= dict.fromkeys(map(normalise_name, heads))
        triples = [triple for entity in entities for triple in base.triples_of(entity)]
        off = tuple(triple for triple in triples if not base.is_on(triple))
        carrying = replace(shared, part=tuple(triples), off=off)
        _, graph = carrying.on_part()
        for own in scenes:
            alone = replace(own, graph=services.ref_of(graph))
            found = services.trace(alone, state.edited(graph, own.edits))
            if not state.same_knowledge(found, services.trace(own, state.graph_of(own))):
                return shared
    except KBertError:  # it can't be run: the page says why
        return shared
    return carrying


def graph_is_known(ref: GraphRef) -> bool:
    """Whether every visitor has the graph of a scene."""
    demos = (services.demo_graph(name) for name in services.DEMO_GRAPHS)
    return ref.fingerprint in {_EMPTY, *(graph.fingerprint for graph in demos)}


def _named(scene: Scene) -> Scene:
    return replace(scene, model=name_of(scene.model))


def name_of(model: str) -> str:
    """What a model is called in a link: never where it lies."""
    return MINILM if model == services.english_encoder() else folder_name(model)


# The address


def keep_address() -> None:
    """Have the address tell what the page shows, and the tab remember it over a reload."""
    ss["app.runs"] = ss.get("app.runs", 0) + 1
    document.keep_address(query(), link_back(), ss["app.runs"], key=ADDRESS, on_found=_found_in_tab)


def query() -> dict[str, str]:
    """The address's parameters: of what it asked for, only what the page still shows."""
    spoken = {language.PARAMETER: ss["app.language"]} if "app.language" in ss else {}
    asked, found = st.query_params.to_dict(), {}
    if "session" not in ss:
        return spoken
    if isinstance(opened := state.session().workspace, OpenWorkspace):
        found[state.KEY] = opened.key
    if PARAMETER in asked and ("lab.waiting" in ss or as_arrived()):
        found[PARAMETER] = asked[PARAMETER]
    example = state.current_example()
    if example and example.key == asked.get("example") and not state.log().done:
        found["example"] = example.key
    return found | spoken


def link_back() -> str | None:
    """A link to what the page shows; None where the visitor has done nothing yet.

    Empty once what the tab remembered isn't wanted.
    """
    if ss.pop("lab.forget", False):
        return ""
    begun = "session" in ss and "lab.waiting" not in ss
    if not begun or not (state.log().done or state.current_example() is None):
        return None
    now = shared()
    with suppress(ShareError):  # it is too long, or half a character
        return to_link(now if graph_is_known(now.scene.graph) else with_triples(now))
    return None


def _found_in_tab() -> None:
    """Callback: the tab remembers a page, from before it was loaded again."""
    ss["lab.left"] = getattr(ss.get(ADDRESS), "found", None)


def go_on() -> None:
    """Callback: put back what the tab remembers."""
    try:
        take(from_link(ss.pop("lab.left")))
    except KBertError as error:
        ss["lab.share_problem"] = refusal(error)


def begin_anew() -> None:
    """Callback: forget what the tab remembers."""
    ss.pop("lab.left")
    ss["lab.forget"] = True


# Back


def arrive() -> None:
    """Take the scene that the address brings, once.

    Raises:
        ShareError: it can't be opened, in one plain sentence.
        RoomError: this visit has no room for the triples that it carries.
    """
    value = st.query_params.get(PARAMETER)
    if value is not None and value != ss.get("lab.scene_taken"):
        ss["lab.scene_taken"] = value
        take(from_link(value))
        ss["lab.card"] = "lab.waiting" not in ss


def take(shared: Shared, graph: KnowledgeGraph | None = None) -> None:
    """Put a scene on the page; where its graph isn't here, have it wait for that.

    Args:
        shared: what is to be restored.
        graph: of the scene, where a session file carries it.

    Raises:
        ShareError: its edits don't fit its graph.
        RoomError: this visit has no room for its graph.
    """
    if graph is not None:
        state.take_graph(OpenedGraph(graph, source=graph.name, own=True), choose=False)
    said: list[Note] = []
    name = graph_named(shared.scene)
    if name is None and shared.part:
        whole = shared.scene.graph.name
        shared, part = shared.on_part(t("part of {graph}", graph=whole))
        name = state.take_graph(OpenedGraph(part, source=part.name, own=True), choose=False)
        missing = N_(
            "The graph “{graph}” isn't here. What was shared carries only the triples that this "
            "text needs. To read another text with it, open the graph."
        )
        if any(own.graph.name == whole for own in state.session().graphs.values()):
            missing = N_(
                "This was made with another version of the graph “{graph}”. You see the triples "
                "of that version that this text needs."
            )
        said.append((missing, {"graph": whole}))
    # a single text needs no model for its tree
    if name is None or (len(shared.scene.sentences) > 1 and not has_model(shared)):
        ss["lab.waiting"] = shared
    else:
        _put(shared, name, said)


def waiting() -> Shared | None:
    """What can't be shown in full yet; it is, as soon as what it needs is here.

    Raises:
        ShareError: its edits don't fit its graph.
    """
    shared: Shared | None = ss.pop("lab.waiting", None)
    if shared is not None:
        take(shared)
    return ss.get("lab.waiting")


def leave() -> None:
    """Wait no longer: the page is as it was before."""
    ss.pop("lab.waiting", None)


def read_otherwise() -> None:
    """Callback: read the text that waits with the graph that is chosen here, without edits."""
    shared: Shared = ss["lab.waiting"]
    leave()
    name = state.session().graph
    here = services.ref_of(state.base())
    scene = replace(shared.scene, graph=here, edits=state.scene().edits)
    _put(Shared(scene, shared.task), name)


def has_model(shared: Shared) -> bool:
    """Whether a model of this name is here, for the same task."""
    return _path_of(shared.scene.model, shared.task) is not None


def as_arrived() -> bool:
    """Whether the page still shows what the last link or file put there."""
    return "lab.arrived" in ss and bool(ss["lab.arrived"][0] == state.scene())


def open_card() -> None:
    """Callback: go on from the card to the Lab."""
    ss["lab.card"] = False


def notes() -> tuple[str, ...]:
    """What of the last link or file could not be had here, while the page shows it."""
    said: Sequence[Note] = ss["lab.arrived"][1] if as_arrived() else ()
    return tuple(t(key, **values) for key, values in said)


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
    if task != NO_TASK and task not in state.offer().tasks():
        return None
    return next((path for path in state.offer().names(task) if name_of(path) == model), None)


def _put(shared: Shared, graph: str, notes: Sequence[Note] = ()) -> None:
    """Put a scene on the page; nothing is changed where its edits don't fit its graph."""
    scene, base = shared.scene, state.session().graphs[graph].graph
    said = [*notes]
    try:
        state.edited(base, scene.edits)
    except KBertError as error:
        text = N_("Its edits don't fit the graph “{graph}”, so nothing was opened: {reason}")
        raise ShareError(t(text, graph=base.name, reason=refusal(error))) from error
    task, path, options = shared.task, _path_of(scene.model, shared.task), scene.options
    texts = 1 if task == NO_TASK else TASKS[task].sentences
    if path is None or texts != len(scene.sentences):
        missing = N_(
            "This was made with the model {model}, which isn't here: you see everything but the "
            "prediction. Put the model's folder into the models folder, and open the link again."
        )
        said.append((missing, {"model": scene.model}))
        task, path = NO_TASK, CHARACTERS if is_chinese(scene.sentences[0]) else WORDS
        if options.needs_model:
            options = _first(options)
            missing = N_(
                "The triples were chosen by a model; here the first in graph order are taken."
            )
            said.append((missing, {}))
    pinned = _here(shared.pinned, shared.task) if shared.pinned is not None else None
    compare = shared.compare
    if shared.pinned is not None and pinned is None:
        compare = AUTO
        said.append((N_("The pinned scene that this was compared with can't be shown here."), {}))
    if scene.system:  # the page reads as the model was trained, and so beside it
        compare = "systems"
    now = state.with_text(scene.sentences, task, path, graph)
    options, more = _options(options, now)
    now = replace(
        now,
        options=options,
        ablation=scene.ablation,
        threshold=scene.threshold,
        interventions={**now.interventions, now.sentences: ()},
        selection=shared.selection,
        compare=compare,
        pinned=pinned if pinned is not None else now.pinned,
    )
    before = state.session()
    now = before.put(now, graph) if before.history.steps else now
    left = iter(scene.edits if graph != WORKSPACE else ())
    for count in shared.steps or (1,) * len(scene.edits):  # each can be undone
        if edits := tuple(islice(left, count)):
            now = now.edit(*edits)
    state.put(now.intervene(scene.interventions))
    ss["lab.window"] = shared.window
    ss.update({f"lab.{name}": shown[0] for name, shown in VIEWS.items()})
    ss.update({f"lab.{name}": value for name, value in shared.views})
    _put_panels(shared)
    ss.pop("lab.problem", None)
    ss["lab.arrived"] = state.scene(), [*said, *more]


def _put_panels(shared: Shared) -> None:
    """Choose again what stood side by side; a model that isn't here leaves the Lab's."""
    if not shared.panels:
        return
    ss["lab.free_count"] = len(shared.panels)
    for number, own in enumerate(shared.panels):
        key = f"lab.free.{number}"
        ss[f"{key}.model"] = _path_of(own.model, state.session().task) or state.session().model
        ss[f"{key}.graph"], ss[f"{key}.system"] = own.graph, own.system
        ss[f"{key}.positions"], ss[f"{key}.visible"] = own.ablation.positions, own.ablation.visible


def _first(options: InjectionOptions) -> InjectionOptions:
    return replace(options, strategy=Strategy.FIRST, threshold=None, one_sense=False, scorer=None)


def _options(options: InjectionOptions, now: Session) -> tuple[InjectionOptions, list[Note]]:
    """Options as far as they can be had with a session's model, and what can't."""
    own = now.reads.options.scorer
    said: list[Note] = []
    if options.scorer is not None and own is not None and options.scorer == folder_name(own):
        options = replace(options, scorer=own)
    elif options.scorer is not None:
        missing = N_(
            "The triples were chosen by the scorer {scorer}, which isn't here; here the first in "
            "graph order are taken."
        )
        said.append((missing, {"scorer": options.scorer}))
        options = _first(options)
    return replace(options, max_triples=min(options.max_triples, now.most_triples)), said


def _here(pinned: Scene, task: str) -> Scene | None:
    """A pinned scene, if its graph and its model are here."""
    name = graph_named(pinned)
    path = _path_of(pinned.model, task) or _path_of(pinned.model, NO_TASK)
    if name is None or name == WORKSPACE or path is None or pinned.options.scorer is not None:
        return None
    own = state.session()
    try:
        state.edited(own.graphs[name].graph, pinned.edits)
    except KBertError:
        return None
    ref = services.ref_of(own.graphs[name].graph)
    return replace(pinned, model=path, graph=ref, device=own.device)
