"""The session's state ↔ Scene: what this visitor chose, typed and edited."""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from app import services
from app.examples import EXAMPLES, MINILM, Example
from app.models import ModelInfo
from app.scene import CHARACTERS, NO_GRAPH, WORDS, EditLog, Scene
from app.texts import t
from app.view_models.diff import Identity
from app.view_models.knowledge import changes_beyond, copy_of, read_changes, rows_after
from app.view_models.model_facts import option_name
from kbert_core import Ablation, InjectionOptions, KBertError, KnowledgeGraph, Triple
from kbert_core.knowledge.graph import Edit
from kbert_core.knowledge.public import PUBLIC
from kbert_core.knowledge.selection import SCORED, Strategy
from kbert_core.tasks import TASKS

NO_TASK = "tree"
KEEP: dict[str, Any] = {"persist_state": "session"}  # of a widget that isn't always on the page
AUTO, BERT, ORIGINAL, PINNED, TWIN = "auto", "bert", "original", "pinned", "twin"

ss = st.session_state


@dataclass(frozen=True, slots=True)
class Choices:
    """What the choosers offer now.

    Attributes:
        tasks: names, the first is the default.
        models: of the chosen task: path or reader → what to call it.
    """

    tasks: tuple[str, ...]
    models: dict[str, str]


# What there is to choose


def known_models() -> tuple[ModelInfo, ...]:
    """Checkpoints of the models folder and those opened in this session."""
    listed = services.models()
    paths = {info.path for info in listed}
    opened = tuple(services.model_info(p) for p in ss.get("lab.opened_models", ()))
    return (*listed, *(info for info in opened if info.path not in paths))


def choices() -> Choices:
    """Offer the tasks there is a model for, and the models of the chosen one."""
    infos = known_models()
    with_task = dict.fromkeys(info.card.task for info in infos if info.card.task in TASKS)
    tasks = (*(task for task in TASKS if task in with_task), NO_TASK)
    return Choices(tasks, _models_for(ss.get("lab.task", tasks[0]), infos))


def _models_for(task: str, infos: tuple[ModelInfo, ...]) -> dict[str, str]:
    if task != NO_TASK:
        return {i.path: option_name(i) for i in infos if i.card.task == task}
    found = {}
    english = services.english_encoder()
    if english:
        found[english] = t("reader.minilm")
    found |= {i.path: option_name(i) for i in infos if i.card.task not in TASKS}
    return {**found, WORDS: t("reader.words"), CHARACTERS: t("reader.characters")}


def task_title(task: str) -> str:
    """What a task is called in the chooser."""
    return t("task.tree") if task == NO_TASK else TASKS[task].title


def examples() -> dict[str, Example]:
    """The examples that can run with the models there are."""
    infos = known_models()
    return {e.name: e for e in EXAMPLES if _runs(e, infos)}


def _runs(example: Example, infos: tuple[ModelInfo, ...]) -> bool:
    if example.task is None:
        return example.model != MINILM or services.english_encoder() is not None
    return any(_reads(info, example) for info in infos)


def _reads(info: ModelInfo, example: Example) -> bool:
    """Whether a model is for an example's task and, as far as is known, its language."""
    return info.card.task == example.task and info.reads(example.language)


# Beginning


def begin() -> None:
    """Fill a new session, and mend what no longer fits."""
    if "lab.graphs" not in ss:
        graphs = [services.demo_graph(name) for name in services.DEMO_GRAPHS]
        ss["lab.graphs"] = {graph.fingerprint: graph for graph in graphs}
        ss["lab.logs"] = {}
        ss["lab.version"] = 0
        ss["lab.compare"] = AUTO
        ss["lab.hint"] = True
        use_example(next(iter(examples().values())))
    offered = choices()
    if ss.get("lab.task") not in offered.tasks:
        ss["lab.task"] = offered.tasks[0]
        offered = choices()
    if ss.get("lab.model") not in offered.models:
        ss["lab.model"] = next(iter(offered.models))
        model_options()
    for key, value in {
        "lab.text": "",
        "lab.text_b": "",
        "lab.relations": [],
        "lab.positions": "soft",
        "lab.visible": "tree",
        "lab.device": "auto",
        "lab.twin": False,
        "lab.strategy": Strategy.FIRST,
        "lab.one_sense": False,
    }.items():
        ss.setdefault(key, value)
    if ss.get("lab.example") and current_example() is None:
        ss["lab.example"] = None
    if ss["lab.graph"] not in ss["lab.graphs"]:
        ss["lab.graph"] = next(iter(ss["lab.graphs"]))
    ss["lab.graph_before"] = ss["lab.graph"]


def use_example(example: Example) -> None:
    """Put an example on the page, and a model that reads it where the chosen one doesn't."""
    ss["lab.example"] = example.name
    ss["lab.shown_example"] = example.name
    ss["lab.text"] = example.sentences[0]
    ss["lab.text_b"] = example.sentences[1] if len(example.sentences) > 1 else ""
    ss["lab.task"] = example.task or NO_TASK
    graph = services.demo_graph(example.graph)
    ss["lab.graph"] = graph.fingerprint
    ss["lab.model"] = _model_for(example)
    model_options()


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


def model_options() -> None:
    """Take the options the chosen model was trained with."""
    options, ablation = InjectionOptions(), Ablation()
    if ss["lab.model"] not in (WORDS, CHARACTERS):
        card = services.model_info(ss["lab.model"]).card
        ablation = card.ablation
        if card.knowledge or card.task is None:
            options = card.options
    ss["lab.positions"], ss["lab.visible"] = ablation.positions, ablation.visible
    ss["lab.max_triples"] = options.max_triples
    ss["lab.tail_only"] = options.tail_only
    ss["lab.relations"] = []
    ss["lab.model_injection"] = options
    ss["lab.strategy"] = options.strategy
    ss["lab.one_sense"] = options.one_sense


def choose_task() -> None:
    """Callback of the task chooser."""
    offered = choices().models
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
    return Scene(
        sentences,
        ss["lab.model"],
        services.ref_of(base),
        log().done,
        _injection(),
        Ablation(ss["lab.positions"], ss["lab.visible"]),
        ss["lab.device"],
    )


def strategies() -> tuple[Strategy, ...]:
    """Offer the strategies that can run: by similarity with a model, learned if it has a scorer."""
    own = ss.get("lab.model_injection", InjectionOptions()).strategy
    with_model = ss["lab.model"] not in (WORDS, CHARACTERS)
    return tuple(
        strategy
        for strategy in Strategy
        if strategy is own
        or (strategy is not Strategy.LEARNED and (with_model or strategy is not Strategy.CONTEXT))
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
        scorer=own.scorer if same else None,
        names=own.names,
    )


def graph_of(of: Scene) -> KnowledgeGraph:
    """The graph of a scene, with its edits made."""
    if of.graph == NO_GRAPH:
        return services.NO_KNOWLEDGE
    return ss["lab.graphs"][of.graph.fingerprint].apply(*of.edits)


def baseline(now: Scene) -> tuple[Scene, str]:
    """The scene to compare with, and what kind it is."""
    kind = ss.get("lab.compare") or AUTO
    if kind == PINNED and ss.get("lab.pinned") is not None:
        return ss["lab.pinned"], PINNED
    if kind == ORIGINAL:
        return now.original(), ORIGINAL
    if kind == BERT or not now.edits:
        return now.without_knowledge(), BERT
    return now.before_last_edit(), AUTO


def twin() -> ModelInfo | None:
    """The chosen model's twin, if there is one."""
    if ss["lab.task"] == NO_TASK:
        return None
    return services.twin(ss["lab.model"])


def beside(now: Scene) -> Scene | None:
    """The scene that the twin reads, where it is wanted and there is one.

    The twin reads as it was trained: with the same graph and its edits, or
    without any.
    """
    found = twin() if ss.get("lab.twin") else None
    if found is None:
        return None
    scene = now.read_by(found.path, found.card.options, found.card.ablation)
    return scene if found.card.knowledge else scene.without_knowledge()


def pin() -> None:
    """Callback: keep the scene as it is."""
    ss["lab.pinned"] = scene()
    ss["lab.compare"] = PINNED


# Editing


def log() -> EditLog:
    """The edits of the chosen graph."""
    return ss["lab.logs"].get(ss["lab.graph"], EditLog())


def _keep(new: EditLog) -> None:
    ss["lab.logs"][ss["lab.graph"]] = new
    ss["lab.version"] += 1
    ss["lab.hint"] = False
    ss.pop("lab.problem", None)


def commit(*edits: Edit) -> None:
    """Make edits, or say why they can't be made."""
    try:
        graph_of(scene()).apply(*edits)
    except KBertError as error:
        ss["lab.problem"] = str(error)
        ss["lab.version"] += 1
        return
    _keep(log().append(*edits))


def undo() -> None:
    """Callback: take the last edit back."""
    _keep(log().undo())


def redo() -> None:
    """Callback: make the edit taken back last again."""
    _keep(log().redo())


def read_table(key: str, graph: str, rows: tuple[Triple, ...]) -> None:
    """Callback of the table: turn its changes into edits, and give it a new key.

    A quick second change comes from the table as it was before the first, and
    its state then tells of both.

    Args:
        key: of the table that was changed.
        graph: fingerprint of the graph it showed.
        rows: the triples it showed.
    """
    changed = ss.get(key)
    if changed is None or graph != ss["lab.graph"]:
        return
    taken = ss.get("lab.taken")
    changes = dict(changed)
    if taken and taken[0] == key:
        changes, rows = changes_beyond(changed, taken[1]), taken[2]
    read = read_changes(changes, rows, graph_of(scene()))
    ss["lab.taken"] = (key, copy_of(changed), rows_after(rows, read.edits))
    if read.edits:
        commit(*read.edits)
    else:
        ss["lab.problem"] = read.problem
        ss["lab.version"] += 1


def table_key() -> str:
    """The table's key: another after every edit, so that it starts afresh."""
    return f"lab.table.{ss['lab.version']}"


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
        ss["lab.problem"] = str(error)
        return
    before = log()
    commit(Edit("add", triple, index=0))
    if log() != before:
        ss["lab.add_relation"] = ss["lab.add_tail"] = ""


def public_graphs() -> tuple[str, ...]:
    """Public graphs that this session hasn't fetched yet."""
    return tuple(name for name in PUBLIC if name not in ss.get("lab.fetched", {}))


def take_graph(graph: KnowledgeGraph) -> None:
    """Put a graph that was opened into this session, and choose it."""
    ss["lab.graphs"].setdefault(graph.fingerprint, graph)
    ss["lab.graph"] = graph.fingerprint


def take_model(path: str) -> None:
    """Put a model folder into this session, and choose it."""
    if path not in ss.get("lab.opened_models", ()):
        ss["lab.opened_models"] = (*ss.get("lab.opened_models", ()), path)
    info = services.model_info(path)
    ss["lab.task"] = info.card.task if info.card.task in TASKS else NO_TASK
    ss["lab.model"] = path
    choose_model()


# Selection: never re-runs the model


def choose_cell() -> None:
    """Callback of the matrix: remember a cell by what its tokens are."""
    state = ss.get("lab.matrix")
    names: tuple[Identity, ...] = ss.get("lab.matrix_names", ())
    cell = getattr(state, "cell", None) if state is not None else None
    if cell and 0 <= cell[0] < len(names) and 0 <= cell[1] < len(names):
        ss["lab.cell"] = (names[int(cell[0])], names[int(cell[1])])
