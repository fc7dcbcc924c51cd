"""The session's state ↔ Scene: what this visitor chose, typed and edited."""

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

import streamlit as st

from app import comparing, intervening, services, workspaces
from app.comparing import Known, Panel
from app.edit_log import EditLog, OpenWorkspace
from app.examples import EXAMPLES, FIRST, MINILM, Example
from app.models import ModelInfo, alike
from app.services import OpenedGraph, RoomError
from app.texts import N_, clauses, language, refusal, sentences, t
from app.view_models.knowledge import describe
from app.view_models.model_facts import option_name
from app.words import SPOKEN
from kbert_core import Ablation, InjectionOptions, KBertError, KBertTrace, KnowledgeGraph, Triple
from kbert_core.errors import GraphConflict, GraphFileError
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.selection import SCORED, Strategy
from kbert_core.knowledge.surface_forms import RULES, NameRules
from kbert_core.roof.roof_bert import RoofTrace
from kbert_core.systems import K_BERT, SYSTEMS
from kbert_core.tasks import TASKS
from kbert_lab.graphs.download import PUBLIC
from kbert_lab.graphs.search import GraphSearch
from kbert_lab.graphs.store.importing import Source
from kbert_lab.lab.scene import CHARACTERS, NO_GRAPH, NO_MODEL, WORDS, Scene
from kbert_lab.lab.selection import Selection

NO_TASK = "tree"
PLAIN_TEXT = "plain-text"
WORKSPACE = "workspace"  # among the graphs: the one whose edits are kept and shared
KEY = "workspace"  # of the address, which opens it again
KEPT = 4  # edited graphs that stay in memory
MOST_LOOKED_AT = 200  # triples of a graph, to see which script it is in
MOST_EDITS = 50_000  # of a visit, those taken back among them
MOST_COPIED = 5_000  # triples of a workspace that are kept in case it goes
KEEP: dict[str, Any] = {"persist_state": "session"}  # of a widget that isn't always on the page
AUTO, BERT, ORIGINAL, PINNED = "auto", "bert", "original", "pinned"
UNTOUCHED = "untouched"  # the scene without interventions
FREE = "free"  # panels side by side that the visitor chooses

ss = st.session_state


def visitor() -> str:
    """This visit's name in the queue of long runs; it says nothing of who it is."""
    return ss.setdefault("visitor", secrets.token_hex(8))


# What there is to choose


def known_models() -> tuple[ModelInfo, ...]:
    """Checkpoints of the models folder and those opened in this session.

    Looked for once in a run of the page: it asks five times, and every file has to be touched.
    """
    opened = tuple(ss.get("lab.opened_models", ()))
    before, found = ss.get("lab.known_models", (None, ()))
    if before != opened:
        listed = services.models()
        paths = {info.path for info in listed}
        others = tuple(services.model_info(p) for p in opened if p not in paths)
        found = (*listed, *others)
        ss["lab.known_models"] = (opened, found)
    return found


def tasks() -> tuple[str, ...]:
    """The tasks there is a model for, and none; the first is the default."""
    known = {info.card.task for info in known_models() if info.problem is None}
    return (*(task for task in TASKS if task in known), NO_TASK)


def models_for(task: str) -> dict[str, str]:
    """The models of a task: path or reader → what to call it."""
    infos = known_models()
    if task != NO_TASK:
        return {i.path: option_name(i) for i in infos if i.card.task == task}
    found = {}
    english = services.english_encoder()
    if english:
        found[english] = t("all-MiniLM-L6-v2 (English encoder)")
    found |= {i.path: option_name(i) for i in infos if i.card.task not in TASKS}
    return {
        **found,
        WORDS: t("No model: words as tokens"),
        CHARACTERS: t("No model: characters as tokens"),
    }


def examples() -> dict[str, Example]:
    """The examples that can run with the models there are, the visitor's language first."""
    infos, own = known_models(), SPOKEN[language()]
    ordered = sorted(EXAMPLES, key=lambda example: example.language != own)
    return {e.name: e for e in ordered if _runs(e, infos)}


def _runs(example: Example, infos: tuple[ModelInfo, ...]) -> bool:
    if example.task is None:
        return example.model != MINILM or services.english_encoder() is not None
    return any(_reads(info, example) for info in infos)


def _reads(info: ModelInfo, example: Example) -> bool:
    """Whether a model is for an example's task and, as far as is known, its language."""
    return info.problem is None and info.card.task == example.task and info.reads(example.language)


# Beginning


def begin() -> None:
    """Fill a new session, and mend what no longer fits."""
    ss.pop("lab.known_models", None)
    if "lab.to_try" in ss:
        put_sentences(ss.pop("lab.to_try"))
    if "lab.graphs" not in ss:
        demos = [services.demo_file(name) for name in services.DEMO_GRAPHS]
        ss["lab.graphs"] = {demo.graph.fingerprint: demo.graph for demo in demos}
        ss["lab.opened_as"] = {demo.graph.fingerprint: demo for demo in demos}
        ss["lab.logs"] = {}
        ss["lab.compare"] = AUTO
        ss["lab.hint"] = True
        use_example(_first_example())
    _begin_workspace()
    if ss.get("lab.task") not in tasks():
        ss["lab.task"] = tasks()[0]
    if ss.get("lab.model") not in (models := models_for(ss["lab.task"])):
        ss["lab.model"] = next(iter(models))
        model_options()
    for key, value in {
        "lab.text": "",
        "lab.text_b": "",
        "lab.relations": [],
        "lab.positions": "soft",
        "lab.visible": "tree",
        "lab.device": "auto",
        "lab.strategy": Strategy.FIRST,
        "lab.one_sense": False,
        "lab.move_up": False,
        "lab.names": list(RULES),
    }.items():
        ss.setdefault(key, value)
    if ss.get("lab.example") and current_example() is None:
        ss["lab.example"] = None
    if ss["lab.graph"] not in ss["lab.graphs"]:
        ss["lab.graph"] = next(iter(ss["lab.graphs"]))
    ss["lab.graph_before"] = ss["lab.graph"]
    if ss.get("lab.compare") == UNTOUCHED and not intervening.log().standing:
        ss["lab.compare"] = AUTO


def _first_example() -> Example:
    """What the address names (``?example=copd``), else one in the visitor's language."""
    offered = {own.key: own for own in examples().values()}
    named = st.query_params.get("example", "")
    if named and named not in offered:
        ss["lab.no_example"] = named[:40]
    wished = (named, FIRST[language()], *FIRST.values(), *offered)
    return next(offered[key] for key in wished if key in offered)


def use_example(example: Example) -> None:
    """Put an example on the page, and a model that reads it where the chosen one doesn't."""
    put_text(
        example.sentences,
        task=example.task or NO_TASK,
        model=_model_for(example),
        graph=services.demo_graph(example.graph).fingerprint,
    )
    ss["lab.example"] = ss["lab.shown_example"] = example.name


def put_text(sentences: tuple[str, ...], *, task: str, model: str, graph: str) -> None:
    """Put a text on the Lab's page, with what reads it.

    Args:
        sentences: one or two.
        task, model: the model's options become those it was trained with.
        graph: its name in this session.
    """
    put_sentences(sentences)
    ss["lab.task"], ss["lab.model"], ss["lab.graph"] = task, model, graph
    model_options()


def put_sentences(sentences: tuple[str, ...]) -> None:
    """Put another text on the Lab's page, or two, for the same model and graph."""
    ss["lab.example"] = ss["lab.shown_example"] = None
    ss["lab.text"], ss["lab.text_b"] = (*sentences, "")[:2]
    ss.pop("lab.waiting", None)
    text_changed()


def text_changed() -> None:
    """Callback of a text's field: what was chosen in the text before stands there no more."""
    ss["lab.selection"] = selection().cleared()


def reader_of(texts: Sequence[str]) -> str:
    """The chosen model if it knows the script of half of some texts, else the best that does.

    Best is one for the same task, trained with a graph. Where there is none, texts are only cut.
    """

    def knows(model: str) -> bool:
        known = [model in NO_MODEL or services.model_info(model).knows(text) for text in texts]
        return 2 * sum(known) >= len(texts)

    if knows(ss["lab.model"]):
        return str(ss["lab.model"])
    able = [i for i in known_models() if i.problem is None and i.card.task in TASKS]
    able = [info for info in able if knows(info.path)]
    best = lambda info: (info.card.task == ss["lab.task"], bool(info.card.knowledge))  # noqa: E731
    return max(able, key=best).path if able else WORDS


def read_with(model: str) -> None:
    """Callback: choose a model, whatever its task."""
    ss["lab.task"] = NO_TASK if model == WORDS else services.model_info(model).card.task
    ss["lab.model"] = model
    model_options()


def follow(graph: KnowledgeGraph) -> None:
    """Choose a model that reads most of a graph's names, where the chosen one doesn't."""
    before = (ss["lab.model"], (ss["lab.text"], ss.get("lab.text_b") or ""))
    ss.pop("lab.reader_before", None)
    model = reader_of([triple.head for triple in islice(graph, MOST_LOOKED_AT)])
    if model == ss["lab.model"]:
        return
    read_with(model)
    ss["lab.reader_before"] = (model, *before)
    if model != WORDS and not all(map(services.model_info(model).knows, before[1])):
        put_sentences(("",))  # until there is one to try


def read_as_before() -> None:
    """Callback: take the model and the text again that a graph made way for."""
    _, model, sentences = ss.pop("lab.reader_before")
    read_with(model)
    put_sentences(sentences)


def _model_for(example: Example) -> str:
    """The chosen model if it reads the example, else the example's own, else another."""
    if example.task is None:
        return services.english_encoder() or WORDS if example.model == MINILM else WORDS
    able = {info.path: info for info in known_models() if _reads(info, example)}
    chosen = ss.get("lab.model")
    own = next((p for p, info in able.items() if info.folder == example.model), None)
    return chosen if chosen in able else own or next(iter(able))


def choose_example() -> None:
    """Callback of the example chooser."""
    example = examples().get(ss["lab.example"])
    if example:
        use_example(example)


def options_of(model: str) -> tuple[InjectionOptions, Ablation]:
    """How a model reads unless told otherwise: with the options it was trained with, if any."""
    options, ablation = InjectionOptions(), Ablation()
    if model not in (WORDS, CHARACTERS):
        info = services.model_info(model)
        card, ablation = info.card, info.ablation
        if card.knowledge or card.task is None:
            options = card.reading.options
    return options, ablation


def most_triples(model: str) -> int:
    """How many triples a mention may be given: 20, or more where the model was trained so."""
    return max(20, options_of(model)[0].max_triples)


def model_options() -> None:
    """Take the options the chosen model was trained with."""
    put_options(*options_of(ss["lab.model"]))


def put_options(options: InjectionOptions, ablation: Ablation) -> None:
    """Choose options; what the page doesn't ask for stands among the model's own."""
    ss["lab.positions"], ss["lab.visible"] = ablation.positions, ablation.visible
    ss["lab.max_triples"] = options.max_triples
    ss["lab.tail_only"] = options.tail_only
    ss["lab.relations"] = []
    ss["lab.model_injection"] = options
    ss["lab.strategy"] = options.strategy
    ss["lab.one_sense"] = options.one_sense
    ss["lab.names"] = options.names.as_list()


def choose_task() -> None:
    """Callback of the task chooser."""
    offered = models_for(ss["lab.task"])
    if ss["lab.model"] not in offered:
        ss["lab.model"] = next(iter(offered))
    choose_model()


def choose_model() -> None:
    """Callback of the model chooser: its options, and a text it can read.

    An example that isn't for the model's task and language gives way to one
    that is; what the visitor wrote stays.
    """
    model_options()
    shown = next((e for e in EXAMPLES if e.name == ss.get("lab.shown_example")), None)
    if shown is None or ss["lab.task"] == NO_TASK or not _untouched(shown):
        return
    info = services.model_info(ss["lab.model"])
    fitting = [e for e in examples().values() if _reads(info, e)]
    if fitting and shown not in fitting:
        use_example(fitting[0])


def _untouched(example: Example) -> bool:
    """Whether an example's text stands on the page as it was put there."""
    texts = (ss.get("lab.text"), ss.get("lab.text_b") or "")
    return texts == (*example.sentences, "")[:2]


def current_example() -> Example | None:
    """The example shown, as long as its sentence, task and graph are."""
    example = next((e for e in EXAMPLES if e.name == ss.get("lab.shown_example")), None)
    if example is None or not _untouched(example):
        return None
    if ss["lab.task"] != (example.task or NO_TASK):
        return None
    return example if ss["lab.graph"] == services.demo_graph(example.graph).fingerprint else None


# The scene


def scene() -> Scene:
    """What this visitor looks at now."""
    task = ss["lab.task"]
    sentences: tuple[str, ...] = (ss["lab.text"],)
    if task != NO_TASK and TASKS[task].sentences == 2:
        sentences = (ss["lab.text"], ss["lab.text_b"])
    base = ss["lab.graphs"][ss["lab.graph"]]
    _keep_for_scenes(base)
    scene = Scene(
        sentences,
        ss["lab.model"],
        services.ref_of(base),
        log().done,
        _injection(),
        Ablation(ss["lab.positions"], ss["lab.visible"]),
        ss["lab.device"],
        intervening.standing(sentences),
        threshold=ss.get("lab.threshold") if services.links_entities(ss["lab.model"]) else None,
    )
    return scene if services.has_matrix(scene) else scene.without_interventions()


def strategies() -> tuple[Strategy, ...]:
    """Offer the strategies that can run: by similarity only with a model."""
    own = ss.get("lab.model_injection", InjectionOptions()).strategy
    with_model = ss["lab.model"] not in (WORDS, CHARACTERS)
    return tuple(
        strategy
        for strategy in Strategy
        if strategy is own or with_model or strategy is not Strategy.CONTEXT
    )


def _injection() -> InjectionOptions:
    """The options chosen; what the page doesn't ask for is as the model was trained."""
    own: InjectionOptions = ss.get("lab.model_injection", InjectionOptions())
    strategy = Strategy(ss.get("lab.strategy", own.strategy))
    same = strategy is own.strategy
    return InjectionOptions(
        int(ss["lab.max_triples"]),
        bool(ss["lab.tail_only"]),
        tuple(ss["lab.relations"]) or own.relations,
        not_relations=own.not_relations,
        first_relations=own.first_relations,
        strategy=strategy,
        threshold=own.threshold if same else None,
        one_sense=strategy in SCORED and bool(ss.get("lab.one_sense")),
        keep_places=not ss.get("lab.move_up"),
        scorer=own.scorer if same else None,
        names=NameRules.of(ss.get("lab.names", own.names.as_list())),
    )


def graph_of(of: Scene) -> KnowledgeGraph:
    """The graph of a scene, with its edits made."""
    if of.graph == NO_GRAPH:
        return services.NO_KNOWLEDGE
    here = (*ss["lab.graphs"].values(), *ss.get("lab.kept", {}).values())
    base = next((graph for graph in here if graph.fingerprint == of.graph.fingerprint), None)
    if base is None:
        raise GraphFileError(
            t("The graph “{name}” was closed. Open it again to see this.", name=of.graph.name)
        )
    return edited(base, of.edits)


def edited(base: KnowledgeGraph, edits: tuple[Edit, ...]) -> KnowledgeGraph:
    """A graph with edits made, found again where they were made before."""
    if not edits:
        return base
    found: list[tuple[KnowledgeGraph, tuple[Edit, ...], KnowledgeGraph]]
    found = ss.setdefault("lab.edited", [])
    start, begun = base, 0
    for kept, done, graph in found:
        if kept is base and begun < len(done) <= len(edits) and edits[: len(done)] == done:
            start, begun = graph, len(done)
    if begun == len(edits):
        return start
    own: EditLog | None = ss["lab.logs"].get(base.fingerprint)
    now = own is not None and own.graph is base and own.done == edits
    graph = own.store.graph() if own is not None and now else start.apply(*edits[begun:])
    ss["lab.edited"] = [*found, (base, edits, graph)][-KEPT:]
    return graph


def baseline(now: Scene) -> tuple[Scene, str]:
    """The scene to compare with, and what kind it is."""
    kind = ss.get("lab.compare") or AUTO
    pinned = ss.get("lab.pinned")
    if kind == PINNED and pinned and services.has_trees(pinned) == services.has_trees(now):
        return pinned, PINNED
    if now.interventions and (kind == UNTOUCHED or (kind == AUTO and intervening.last_change())):
        return now.without_interventions(), UNTOUCHED
    edits = log()
    if kind == ORIGINAL:
        return _earlier(now, edits.first), ORIGINAL
    if kind == BERT or edits.before is None:
        return now.without_knowledge(), BERT
    return _earlier(now, *edits.before), AUTO


def before_last(of: Scene) -> Scene | None:
    """The scene before the last edit; None: there was none, or the scene reads without it."""
    edits = log()
    if edits.before is None or (of.graph, of.edits) != (services.ref_of(base()), edits.done):
        return None
    return _earlier(of, *edits.before)


def same_knowledge(before: Any, now: Any) -> bool:
    """Whether two traces of one system read the same text with the same knowledge."""
    if isinstance(now, KBertTrace):
        return bool(before.tree == now.tree)
    texts = before.reading.sentences == now.reading.sentences
    part = "nodes" if isinstance(now, RoofTrace) else "spans"
    return texts and bool(getattr(before.reading, part) == getattr(now.reading, part))


def compared_with(
    now: Scene, seen: Any, how: Callable[[Scene, KnowledgeGraph], Any] = services.trace
) -> tuple[Scene, str, Any]:
    """The scene to compare with, what kind it is, and what is seen of it where it can be read.

    Args:
        seen: of it; where the last edit left its tree as it was, that edit
            is about another text, and nothing would differ.
        how: that is seen, ``services.trace`` or ``services.laid``.
    """
    compared, kind = baseline(now)
    before = read(compared, how)
    if kind == AUTO and before is not None and same_knowledge(before, seen):
        compared, kind = now.without_knowledge(), BERT
        before = read(compared, how)
    return compared, kind, before


def read(scene: Scene, how: Callable[[Scene, KnowledgeGraph], Any]) -> Any:
    """What is seen of a scene; None where it can't be read."""
    try:
        return how(scene, graph_of(scene))
    except KBertError:
        return None


def loaded(now: Scene) -> Scene | None:
    """The scene with the graph as it was loaded, or the workspace as it began; None: unedited."""
    edits = log()
    if not edits.done and edits.first.fingerprint == edits.graph.fingerprint:
        return None
    return _earlier(now, edits.first)


def _earlier(now: Scene, graph: KnowledgeGraph, edits: tuple[Edit, ...] = ()) -> Scene:
    """A scene with its graph as it was before."""
    _keep_for_scenes(graph)
    return replace(now, graph=services.ref_of(graph), edits=edits)


def _keep_for_scenes(graph: KnowledgeGraph) -> None:
    """Have a graph of the open workspace at hand for the scenes that name it; forget old ones."""
    if workspace() is None:
        return
    kept = ss.setdefault("lab.kept", {})
    kept.pop(graph.fingerprint, None)
    kept[graph.fingerprint] = graph
    pinned = ss.get("lab.pinned")
    names = [name for name in kept if pinned is None or name != pinned.graph.fingerprint]
    for name in names[:-KEPT]:
        del kept[name]


def twin_scene(now: Scene) -> Scene | None:
    """The scene that the twin reads, where there is one.

    The twin reads as it was trained: with the same graph and its edits, or
    without any.
    """
    found = services.twin(now.model) if ss["lab.task"] != NO_TASK else None
    if found is None:
        return None
    scene = _read_by(now, found)
    return scene if found.card.knowledge else scene.without_knowledge()


def systems(now: Scene) -> dict[str, Scene]:
    """The scene as each system reads it, by its name, as far as there are models of one training.

    Triples as plain text are read by the model of K-BERT, which wasn't trained so.
    """
    if not now.has_model or ss["lab.task"] == NO_TASK:
        return {}
    own = services.model_info(now.model)
    scenes: dict[str, Scene] = {}
    for info in (own, *known_models()):
        able = info.problem is None and info.card.task == own.card.task and info.card.knowledge
        if able and info.language == own.language and alike(info, own):
            scenes.setdefault(info.card.system, now if info is own else _read_by(now, info))
    if K_BERT in scenes:
        scenes[PLAIN_TEXT] = replace(
            scenes[K_BERT].without_interventions(), ablation=Ablation(), system=PLAIN_TEXT
        )
    last = scenes.pop(PLAIN_TEXT, None)
    ordered = {system: scenes[system] for system in SYSTEMS if system in scenes}
    return ordered | ({PLAIN_TEXT: last} if last else {})


def _read_by(now: Scene, info: ModelInfo) -> Scene:
    options = replace(info.card.reading.options, keep_places=now.options.keep_places)
    return now.read_by(info.path, options, info.ablation)


def side_by_side(now: Scene) -> dict[str, tuple[Panel, ...]]:
    """What can stand side by side without choosing anything, by name."""
    return comparing.presets(now, known(now), matrix=services.has_matrix(now))


def known(now: Scene) -> Known:
    """The scenes there are besides the one on the page."""
    return Known(twin_scene(now), loaded(now), systems(now))


def pin() -> None:
    """Callback: keep the scene as it is."""
    ss["lab.pinned"] = scene()
    ss["lab.compare"] = PINNED


# Editing


def log() -> EditLog:
    """The edits of the chosen graph: in this visit, or in the workspace."""
    shared = workspace()
    if shared is not None:
        return shared
    logs, name = ss["lab.logs"], ss["lab.graph"]
    if name not in logs:
        logs[name] = EditLog(ss["lab.graphs"][name])
    own: EditLog = logs[name]
    return own


def base() -> KnowledgeGraph:
    """The chosen graph without any edits; of a workspace, as it is."""
    return ss["lab.graphs"][ss["lab.graph"]]


def graph() -> KnowledgeGraph:
    """The chosen graph as edited."""
    return edited(base(), log().done)


def _edited() -> None:
    ss["lab.hint"] = False
    ss["lab.intervened_last"] = False
    ss.pop("lab.problem", None)


def commit(*edits: Edit) -> bool:
    """Make edits as one step, or say why they can't be made; return whether they were."""

    def make() -> None:
        _check_room(len(edits))
        log().commit(*edits)

    return attempt(make, t("Your edit was not made: {what}.", what=clauses(map(describe, edits))))


def add(source: Source, count: int) -> bool:
    """Add the triples of a file as one step, or say why that can't be."""

    def make() -> None:
        _check_room(count)
        log().add(source)

    return attempt(make)


def _check_room(more: int) -> None:
    """Refuse more edits than a visit keeps.

    Raises:
        RoomError: there are as many.
    """
    kept = sum(own.size for own in ss["lab.logs"].values())
    if workspace() is None and kept + more > MOST_EDITS:
        text = N_("A visit keeps at most {most} edits. Save the graph to a workspace to go on.")
        raise RoomError(t(text, most=f"{MOST_EDITS:,}"))


def attempt(do: Callable[[], object], refused: str = "") -> bool:
    """Do something to the chosen graph, or say why it can't be done.

    Args:
        do: may raise ``KBertError``.
        refused: said after the reason where others were first.

    Returns:
        Whether it was done.
    """
    edits = log()
    try:
        do()
    except KBertError as error:
        said = edits.said(error)
        if refused and isinstance(error, GraphConflict):
            said = f"{said} {refused}"
        ss["lab.problem"] = said
        return False
    ss["lab.graphs"][ss["lab.graph"]] = edits.graph
    _edited()
    return True


def undo(number: int | None = None) -> bool:
    """Take an edit back, the last or another by its entry; return whether it was done."""
    return attempt(lambda: log().undo(number))


def redo(number: int | None = None) -> bool:
    """Make an edit again that was taken back, the last or another by its entry."""
    return attempt(lambda: log().redo(number))


# Workspaces


def workspace() -> OpenWorkspace | None:
    """The open workspace, where it is the chosen graph."""
    return ss.get("lab.workspace") if ss.get("lab.graph") == WORKSPACE else None


def _begin_workspace() -> None:
    """Open the workspace that the address names; see the open one as it is now."""
    key = st.query_params.get(KEY)
    shared: OpenWorkspace | None = ss.get("lab.workspace")
    if key and key != ss.get("lab.key_taken"):
        ss["lab.key_taken"] = key  # the browser tells of it again, whatever is opened later
        open_workspace(key)
        shared = ss.get("lab.workspace")
    if shared is None:
        return
    try:
        shared.refresh()
    except KBertError as error:
        text = N_("The workspace {title} can no longer be reached, and was closed: {reason}")
        said = t(text, title=shared.graph.name, reason=shared.said(error))
        if _keep_copy(shared.graph):
            said = sentences([said, t("Its graph stays open here as a copy, for you alone.")])
        ss["lab.workspace_problem"] = said
        close_workspace()
        _try_later(shared.key, error)
        return
    ss["lab.graphs"][WORKSPACE] = shared.graph
    with suppress(KBertError):
        _copy(shared.graph)  # nothing can be read of it any more once it is gone


def _copy(graph: KnowledgeGraph) -> KnowledgeGraph | None:
    """A workspace's graph in memory, made once; None of a large one."""

    def make() -> KnowledgeGraph:
        return KnowledgeGraph(graph, name=graph.name, off=graph.off)

    return graph.kept("copy", make) if len(graph) <= MOST_COPIED else None


def _keep_copy(graph: KnowledgeGraph) -> bool:
    """Go on with a copy of a workspace's graph, where it was looked at and is in memory."""
    if ss["lab.graph"] != WORKSPACE:
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
        ss["lab.workspace_problem"] = refusal(error)
        _try_later(key, error)
        return False
    ss.pop("lab.workspace_away", None)
    ss["lab.workspace"] = shared
    ss["lab.graphs"][WORKSPACE] = shared.graph
    ss["lab.graph"] = WORKSPACE
    return True


def _try_later(key: str, error: KBertError) -> None:
    """Keep the key of a workspace whose server is away."""
    if workspaces.is_away(error):
        ss["lab.workspace_away"] = key


def close_workspace() -> None:
    """Go on without the workspace; it stays where it is."""
    ss.pop("lab.workspace", None)
    ss["lab.graphs"].pop(WORKSPACE, None)
    if ss["lab.graph"] == WORKSPACE:
        ss["lab.graph"] = next(iter(ss["lab.graphs"]))


def graph_label(name: str) -> str:
    """What a graph of this session is called in a chooser."""
    found: KnowledgeGraph = ss["lab.graphs"][name]
    key = (
        N_("Workspace: {name}, {count} triples")
        if name == WORKSPACE
        else N_("{name}, {count} triples")
    )
    return t(key, name=found.name, count=f"{len(found):,}")


def graph_name(name: str) -> str:
    """The same, with what this visitor edited in it."""
    graph = graph_as_edited(name)
    if graph is ss["lab.graphs"][name]:
        return graph_label(name)
    return t("{name}, {count} triples, edited", name=graph.name, count=f"{len(graph):,}")


def graph_as_edited(name: str) -> KnowledgeGraph:
    """A graph of this session with this visitor's edits."""
    own: EditLog | None = ss["lab.logs"].get(name)
    return edited(ss["lab.graphs"][name], own.done if own is not None else ())


def _index() -> GraphSearch | None:
    """The chosen graph's, before this visit's edits, where it is in a file; None: in memory."""
    shared = workspace()
    if shared is not None:
        return GraphSearch(shared.searched.path, shared.opened_at)
    opened = ss["lab.opened_as"].get(ss["lab.graph"])
    return opened.stored if opened is not None else None


def relations() -> tuple[str, ...]:
    """The relations of the chosen graph, the most frequent first."""
    index = _index()
    if index is not None:
        return tuple(services.facets_of(index).relations)
    return services.relations(base())


def tails(relation: str, most: int = 200) -> tuple[str, ...]:
    """The tails of a relation in the chosen graph, the most frequent first."""
    index = _index()
    if index is not None:
        return tuple(index.tails(relation, "", most))
    return services.tails(graph(), relation, most)


def suggest_head(head: str) -> None:
    """Offer a head in the form, unless the visitor wrote another one there.

    Every suggestion is remembered: where a run is cut short by the next, the
    page may still send an older one.
    """
    suggested = ss.setdefault("lab.suggested_heads", {""})
    if ss.get("lab.add_head", "") in suggested:
        ss["lab.add_head"] = head
    suggested.add(head)


def add_triple() -> None:
    """Callback of the form: a triple first under its head."""
    try:
        triple = Triple.checked(ss["lab.add_head"], ss["lab.add_relation"], ss["lab.add_tail"])
    except KBertError as error:
        ss["lab.problem"] = refusal(error)
        return
    if commit(Edit("add", triple, index=0)):
        ss["lab.add_relation"] = ss["lab.add_tail"] = ""


def public_graphs() -> tuple[str, ...]:
    """Public graphs that this session hasn't fetched yet."""
    return tuple(name for name in PUBLIC if name not in ss.get("lab.fetched", {}))


def take_graph(opened: OpenedGraph, *, choose: bool = True) -> str:
    """Put a graph that was opened into this session, and choose it; return its name there.

    One that is chosen and holds what another does, which has another title or was edited, stands
    beside that.

    Raises:
        RoomError: it was uploaded, and there is no room for it.
    """
    name, graphs = opened.graph.fingerprint, ss["lab.graphs"]
    while choose and name in graphs:
        if graphs[name].name == opened.graph.name and graph_as_edited(name) is graphs[name]:
            break
        name += "+"
    if opened.own and name not in ss["lab.graphs"]:
        taken = sum(other.size for other in ss["lab.opened_as"].values() if other.own)
        if taken + opened.size > services.MOST_OF_VISIT:
            sizes = (opened.size, taken, services.MOST_OF_VISIT)
            size, own, most = (f"{max(1, round(size / 2**20)):,}" for size in sizes)
            text = N_(
                "{name} takes about {size} MB of memory. Graphs opened in this visit take {own} MB "
                "already, and may take {most} MB. Close one of them, or make a graph file of it "
                "(kbert kg import), which is read from disk."
            )
            raise RoomError(t(text, name=opened.source, size=size, own=own, most=most))
    ss["lab.graphs"].setdefault(name, opened.graph)
    ss["lab.opened_as"].setdefault(name, opened)
    if choose:
        ss["lab.graph"] = name
    return name


def may_close(name: str) -> bool:
    """Whether a graph was opened by this visitor, and isn't a workspace."""
    demos = {services.demo_graph(demo).fingerprint for demo in services.DEMO_GRAPHS}
    return name != WORKSPACE and name not in demos


def close_graph(name: str) -> None:
    """Callback: let go of a graph that was opened, and of the edits made to it."""
    closed = ss["lab.graphs"].pop(name, None)
    ss["lab.opened_as"].pop(name, None)
    ss["lab.logs"].pop(name, None)
    ss["lab.fetched"] = {k: kept for k, kept in ss.get("lab.fetched", {}).items() if kept != name}
    ss["lab.edited"] = []
    pinned = ss.get("lab.pinned")
    if closed is not None and pinned is not None and pinned.graph.fingerprint == closed.fingerprint:
        ss["lab.pinned"] = None
    if ss["lab.graph"] == name:
        ss["lab.graph"] = next(iter(ss["lab.graphs"]))
    _edited()


def take_model(path: str) -> None:
    """Put a model folder into this session, and choose it."""
    if path not in ss.get("lab.opened_models", ()):
        ss["lab.opened_models"] = (*ss.get("lab.opened_models", ()), path)
    info = services.model_info(path)
    ss["lab.task"] = info.card.task if info.card.task in TASKS else NO_TASK
    ss["lab.model"] = path
    choose_model()


# Selection: never re-runs the model; app/selecting.py changes it


def selection() -> Selection:
    """What this visitor looks at closely."""
    return ss.get("lab.selection", Selection())
