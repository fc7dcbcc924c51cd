"""The Lab: edit → tree → matrix → attention → prediction, on one screen."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from app import drawn, services, state
from app.app_pages.knowledge_workspace import workspace_notices
from app.app_pages.lab_columns import columns_of, compared, draw_columns
from app.app_pages.lab_interventions import refused_list
from app.app_pages.lab_knowledge import knowledge_panel
from app.app_pages.lab_linked import beside_panel, linked_panel
from app.app_pages.lab_matrix import matrix_panel
from app.app_pages.lab_open import (
    choose_graph,
    open_dialog,
    open_graph_button,
    open_model_button,
    show_opened,
)
from app.app_pages.lab_prediction import (
    comparable,
    compare_chooser,
    prediction_panel,
    result_strip,
    turned,
)
from app.app_pages.lab_share import card, left_page, share_and_keep, something_waits
from app.app_pages.lab_tree import tree_panel
from app.app_pages.lab_try import guide, offer_examples, reader_changed, try_bar, try_button
from app.app_pages.parts import action, bind, refused, segments, told_apart
from kbert_core import KBertError, KBertTrace
from kbert_core.knowledge.selection import SCORED
from kbert_core.knowledge.surface_forms import RULES, NameRules
from kbert_core.roof.roof_bert import RoofTrace
from kbert_core.tasks import TASKS
from kbert_lab.lab import comparing
from kbert_lab.lab.commands import Options
from kbert_lab.lab.comparing import BERT
from kbert_lab.lab.scene import NO_MODEL, Scene, ablatable, is_blank
from kbert_lab.lab.session import AUTO, NO_TASK
from kbert_lab.lab.texts import N_, t
from kbert_lab.lab.views import model_facts
from kbert_lab.lab.views.html import CSS, markdown
from kbert_lab.lab.views.tree import reads_as
from kbert_lab.lab.words import NAME_RULE, OPTIONS_STRATEGY, OPTIONS_TEXTS, TASK_TEXTS

NAMES = {  # of a task's two texts
    "pair": (N_("First sentence"), N_("Second sentence")),
    "rank": (N_("Question"), N_("Candidate answer")),
    "qa": (N_("Question"), N_("Paragraph")),
}
HINTS = {  # what to do first, and why
    "turned off": N_(
        "Without the triple “{triple}” the model predicts something else. Switch it off on its "
        "branch."
    ),
    "changed": N_("The prediction follows the triple “{triple}”. Change its tail to “{tail}”."),
    "any": N_(
        "The model reads the sentence together with the triples of its names. Switch one off, and "
        "see what it predicts without."
    ),
}
TEXTS = ("lab.text", "lab.text_b")  # their fields

ss = st.session_state


def page() -> None:
    """Input, work, view, top to bottom."""
    state.begin()
    st.html(CSS)
    if something_waits():
        return
    open_dialog()
    if card():
        return
    left_page()
    drawer = choosers()
    show_opened()
    reader_changed()
    try_bar()
    workspace_notices()
    panels()
    guide()
    if drawer.open:  # last, as nobody waits for it
        with drawer:
            reader()


@state.part("lab.panels")
def panels() -> None:
    """The sentence as it is read: prediction, tree, knowledge, matrix."""
    state.begin_parts("selection")
    now = state.scene()
    if problem := text_problem(now):
        st.info(markdown(problem))
        if all(map(is_blank, now.sentences)):
            offer_examples()
        return
    notes(now)
    try:
        graph = state.session().graph_of(now)
        laid = services.laid(now, graph)
    except KBertError as error:
        unread(now, error)
        return
    was, kind, earlier = state.compared_with(now, laid, services.laid)
    strip = st.container(key="lab_strip")  # in sight, wherever something is done
    with strip:
        refused()
    several = comparing.beside(state.session(), state.offer())
    columns = columns_of(several, edited=kind == AUTO) if several else []
    if columns:
        with strip:
            result_strip(compared(columns))
        draw_columns(columns)
        trace = state.read(now, services.trace) or laid
        knowledge_panel(now, graph, trace, state.read(was, services.trace), columns)
        return
    trees = isinstance(laid, KBertTrace)
    window = window_chooser(laid) if trees else 0
    with st.container(key="lab_panels"):
        left, right = st.columns([6, 5], gap="large")
    predicted = left.container(key="lab_prediction_box")
    if trees:  # what is known before the model has run is drawn before
        with left:
            tree_panel(now, graph, laid, earlier if kind != BERT else None, window)
        with right:
            matrix_panel(now, was, kind, window)
    try:
        trace = services.trace(now, graph)
    except KBertError as error:
        with predicted:
            unread(now, error)
        return
    before = state.read(was, services.trace)
    with predicted:
        told = comparable(trace, before)
        prediction_panel(now, trace, told, kind)
    with strip:
        result_strip(turned(now, trace, told) if trace.prediction else "")
    with left:
        knowledge_panel(now, graph, trace, before)
    if not trees:
        with right:
            if isinstance(trace, RoofTrace):
                beside_panel(graph, trace)
            else:
                linked_panel(now, trace)


def unread(now: Scene, error: KBertError) -> None:
    """Say why a scene can't be read, and what may be undone for it."""
    st.error(markdown(error))
    refused_list(now)


# The top: what is read, by what, with which knowledge


def choosers() -> Any:
    """Sentence and example; the drawer for what reads them, still empty."""
    names, own = sentence_names(), state.session()
    with st.container(key="lab_top"):
        *texts, last = st.columns([*[6 / len(names)] * len(names), 5], gap="medium")
    for number, (place, name) in enumerate(zip(texts, names, strict=True)):
        text = N_("Press Ctrl+Enter, or click elsewhere, to run. At most {most} characters.")
        asked = None if number else t(text, most=services.LONGEST_TEXT)
        height = 140 if number and own.task == "qa" else 68  # a paragraph, or a sentence
        widget = partial(place.text_area, name, help=asked, height=height)
        bind(widget, TEXTS[number], own.texts[number], partial(write, number))
    with last, st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        bind(
            partial(st.selectbox, t("Examples"), list(state.offer().examples()), index=None),
            "lab.example",
            example.name if (example := state.current_example()) else None,
            state.choose_example,
            format_func=t,
            placeholder=t("Choose an example"),
        )
        share_and_keep()
    with st.container(horizontal=True, vertical_alignment="top", gap="small", key="lab_what"):
        models, graphs = state.offer().names(own.task), graph_names()
        named = [t(TASK_TEXTS[own.task]), models.get(own.model, own.model), graphs[own.graph]]
        said, key = markdown(" · ".join(named)), "lab.drawer"
        ss[key] = bool(ss.get(key))  # said again, as another line makes another drawer
        drawer = st.expander(said, key=key, icon=":material/tune:", on_change="rerun")
        with st.container(width=390):
            compare_chooser()
    return drawer


def write(number: int, text: str) -> None:
    """Put another text into one of the two fields."""
    first, second = state.session().texts
    state.write((first, text) if number else (text, second))


def sentence_names() -> tuple[str, ...]:
    """What the chosen task's one text or two are called."""
    task = state.session().task
    if task == NO_TASK or TASKS[task].sentences == 1:
        return (t("Sentence"),)
    first, second = NAMES.get(task, NAMES["pair"])
    return (t(first), t(second))


def graph_names() -> dict[str, str]:
    """What the graphs are called in the chooser, those to be fetched last."""
    named = {name: state.graph_label(name) for name in state.session().graphs}
    named |= {
        name: t("{name}: download, or open a file", name=services.public_title(name))
        for name in state.public_graphs()
    }
    return told_apart(named)


def notes(now: Scene) -> None:
    """A model of another language; what to do first, and why."""
    info = services.model_info(now.model) if now.has_model else None
    if info and info.card.task and not info.knows(" ".join(now.sentences)):
        said = t(
            "This model reads {language}, and most of this text is in another script. Do not rely "
            "on the prediction.",
            language=t(info.language or ""),
        )
        st.warning(markdown(said), icon=":material/translate:")
        other = state.offer().reader(state.session(), now.sentences)
        if other not in NO_MODEL:
            name = services.model_info(other).name
            label = t("Read it with {model}", model=markdown(name))
            action(label, "lab.read_with", state.redrawn, state.read_with, other, icon="translate")
    hint, names = "any", {}
    example = state.current_example()
    if not state.session().history.steps and example and example.turn:
        triple, tail = example.turn
        if now.has_model and Path(now.model).name == example.model:  # it was chosen for this one
            hint = "turned off" if tail is None else "changed"
            names = {"triple": reads_as(triple), "tail": tail}
    st.markdown(f":material/lightbulb: {markdown(t(HINTS[hint], **names))}")


def text_problem(now: Scene) -> str | None:
    """Say why a text is not read at all."""
    blank = list(map(is_blank, now.sentences))
    if all(blank):
        return t("Write a sentence above.")
    if any(blank):
        missing = sentence_names()[blank.index(True)]
        return t("Write both texts above: “{missing}” is empty.", missing=missing)
    longest = max(map(len, now.sentences))
    if longest > services.LONGEST_TEXT:
        return t(
            "The text has {count} characters, and at most {most} can be read here. Shorten it, or "
            "use `kbert predict` for long texts.",
            count=longest,
            most=services.LONGEST_TEXT,
        )
    return None


def window_chooser(trace: KBertTrace) -> int:
    """Choose a window of a long text."""
    count = len(trace.rows)
    if count == 1:
        return 0
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = drawn.choose_window(count)
        st.caption(
            t(
                "The text is longer than the model can read at once, so it is read in {count} "
                "overlapping windows. Every token gets a label.",
                count=count,
            )
        )
    return chosen


# The drawer


def reader() -> None:
    """Task, model, graph and options."""
    own = state.session()
    first, second, third = st.columns([4, 5, 5], gap="medium")
    tasks = {name: t(TASK_TEXTS[name]) for name in state.offer().tasks()}
    with first:
        box(t("Task"), "lab.task", own.task, tasks, state.choose_task)
    with second:
        box(t("Model"), "lab.model", own.model, state.offer().names(own.task), state.choose_model)
        open_model_button()
    with third:
        box(t("Knowledge graph"), "lab.graph", own.graph, graph_names(), choose_graph)
        with st.container(horizontal=True, gap="xsmall"):
            open_graph_button()
            try_button()
    if own.scene().has_model and services.model_info(own.model).problem is None:
        st.caption(markdown(model_facts.facts(services.model_info(own.model))))
    one, two, three = st.columns([3, 4, 3], gap="medium")
    with one:
        how_many()
    with two:
        which()
    with three:
        ablations()


def box(
    label: str, key: str, chosen: str, names: dict[str, str], change: Callable[[str], object]
) -> None:
    """Choose one of some names."""
    names = told_apart(names)
    named = lambda name: names.get(name, name)  # noqa: E731
    bind(partial(st.selectbox, label, list(names), format_func=named), key, chosen, change)


def option(widget: Callable[..., Any], name: str, value: Any, **how: Any) -> None:
    """A widget for one of the options."""
    bind(widget, f"lab.{name}", value, lambda new: state.dispatch(Options({name: new})), **how)


def how_many() -> None:
    """How many triples are injected, and how much of each."""
    own = state.session()
    chosen, most = own.options, own.most_triples
    option(
        partial(st.number_input, t("Triples per mention"), 0, most),
        "max_triples",
        min(chosen.max_triples, most),
        help=t("The most triples injected at one mention. 0: no knowledge."),
    )
    if services.has_trees(own.scene()):
        label = t("Tail only, without the relation")
        option(partial(st.checkbox, label), "tail_only", chosen.tail_only)
    bind(
        partial(st.checkbox, t("Let the next triple move up")),
        "lab.move_up",
        not chosen.keep_places,
        lambda up: state.dispatch(Options({"keep_places": not up})),
        help=t(
            "When a triple is switched off, the next one of the same name takes its place. "
            "Otherwise nothing else changes."
        ),
    )


def which() -> None:
    """Which triples are injected, and how names are found."""
    now, own = state.scene(), state.session()
    chosen = own.options
    if services.has_trees(now) or services.model_info(now.model).reads_beside:
        option(
            partial(st.selectbox, t("Which triples"), state.strategies()),
            "strategy",
            chosen.strategy,
            format_func=lambda name: t(OPTIONS_STRATEGY[name]),
            help=t(
                "Which triples are injected when a mention has too many. The table says of "
                "each triple why it was injected or left out."
            ),
        )
        if chosen.strategy in SCORED:
            option(
                partial(st.checkbox, t("One meaning per name")),
                "one_sense",
                chosen.one_sense,
                help=t("Use only triples of the entity whose best triple scores highest."),
            )
    limited = list(chosen.relations or ())
    limited = limited if chosen.relations != own.reads.options.relations else []
    offered = list(dict.fromkeys((*state.relations(), *limited)))
    label = t("Only these relations")
    every = t("All relations")
    option(partial(st.multiselect, label, offered), "relations", limited, placeholder=every)
    bind(
        partial(st.multiselect, t("Names may differ in"), list(RULES)),
        "lab.names",
        chosen.names.as_list(),
        lambda rules: state.dispatch(Options({"names": NameRules.of(rules)})),
        format_func=lambda name: t(NAME_RULE[name.upper()]),
        help=t("How the spelling of a name in the text may differ from the graph."),
        placeholder=t("nothing: exactly as in the graph"),
    )
    info = services.model_info(now.model) if now.has_model else None
    if info is not None and info.card.task is not None and info.card.knowledge:
        trained = info.card.reading.options
        how = t("tail only" if trained.tail_only else "relation and tail")
        what = t("{n} triples per mention, {how}", n=trained.max_triples, how=how)
        st.caption(markdown(t("As {model} was trained: {what}.", model=info.name, what=what)))


def ablations() -> None:
    """Positions and visible matrix, which are K-BERT's; and what computes."""
    own = state.session()
    if services.has_matrix(state.scene()):
        for what, names in ablatable(own.sentences).items():
            label = t(OPTIONS_TEXTS[what])
            widget = partial(segments, label, names, names=OPTIONS_TEXTS, hidden=False)
            option(widget, what, getattr(own.ablation, what))
    devices = services.devices()
    if len(devices) > 2:
        option(partial(st.selectbox, t("Device"), devices), "device", own.device)


page()
