"""The Lab: edit → tree → matrix → attention → prediction, on one screen."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from app import editing, selecting, services, state
from app.app_pages.knowledge_workspace import workspace_notices
from app.app_pages.lab_columns import Column, columns_of, differences, draw_columns
from app.app_pages.lab_interventions import refused_list
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
    compare_chooser,
    gate_panel,
    prediction_details,
    prediction_panel,
)
from app.app_pages.lab_selection import follow_triple, selection_bar
from app.app_pages.lab_share import card, left_page, share_and_keep, something_waits
from app.app_pages.lab_tail import answer_tails
from app.app_pages.lab_try import (
    guide,
    offer_examples,
    reader_changed,
    sentences_to_try,
    try_bar,
    try_button,
)
from app.app_pages.parts import (
    action,
    bind,
    choose_window,
    graph_download,
    redo_button,
    segments,
    told_apart,
    undo_button,
)
from app.components.graph import draw_graph
from app.components.tree import draw_tree
from app.selecting import linked
from app.state import BERT
from kbert_core import KBertError, KBertTrace, KnowledgeGraph
from kbert_core.kbert.sentence_tree import passed_over
from kbert_core.knowledge.selection import SCORED, Strategy
from kbert_core.knowledge.surface_forms import RULES, NameRules
from kbert_core.roof.roof_bert import RoofTrace
from kbert_core.tasks import TASKS
from kbert_lab.lab.commands import Options, Redo, Undo
from kbert_lab.lab.examples import Example
from kbert_lab.lab.history import Edited
from kbert_lab.lab.log import AnyLog, heads_of
from kbert_lab.lab.scene import NO_MODEL, Scene, is_blank
from kbert_lab.lab.session import AUTO, NO_TASK
from kbert_lab.lab.texts import N_, listed, sentences, t
from kbert_lab.lab.views import history, knowledge, model_facts, neighbourhood, tree
from kbert_lab.lab.views.diff import row_of
from kbert_lab.lab.views.html import markdown
from kbert_lab.lab.views.knowledge import DELETE, HEAD, ON, RELATION, STATE, TAIL
from kbert_lab.lab.views.names import name_lines
from kbert_lab.lab.views.selected import marks_of
from kbert_lab.lab.views.styles import CSS
from kbert_lab.lab.views.why import visible_in
from kbert_lab.lab.words import (
    KNOWLEDGE_TEXTS,
    NAME_RULE,
    OPTIONS_STRATEGY,
    OPTIONS_TEXTS,
    RULE_TEXTS,
    TASK_TEXTS,
)

LAB_FIRST = {"pair": N_("First sentence"), "rank": N_("Question"), "qa": N_("Question")}

LAB_SECOND = {"pair": N_("Second sentence"), "rank": N_("Candidate answer"), "qa": N_("Paragraph")}

TEXTS = ("lab.text", "lab.text_b")  # their fields

ss = st.session_state


def page() -> None:
    """Input, work, view, top to bottom."""
    state.begin()
    selecting.begin()
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


def panels() -> None:
    """The sentence as it is read: prediction, tree, knowledge, matrix."""
    now = state.scene()
    problem = text_problem(now)
    if problem:
        st.info(markdown(problem))
        if all(map(is_blank, now.sentences)):
            offer_examples()
        return
    try:
        graph = state.graph_of(now)
        laid = services.laid(now, graph)
    except KBertError as error:
        unread(now, error)
        return
    compared, kind, earlier = state.compared_with(now, laid, services.laid)
    columns = columns_of(now, edited=kind == AUTO)
    if columns:
        draw_columns(columns)
        trace = state.read(now, services.trace) or laid
        knowledge_panel(now, graph, trace, state.read(compared, services.trace), columns)
        differences(columns)
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
            matrix_panel(now, compared, kind, window)
    try:
        trace = services.trace(now, graph)
    except KBertError as error:
        with predicted:
            unread(now, error)
        return
    before = state.read(compared, services.trace)
    with predicted:
        prediction_panel(now, trace, before, kind)
        gate_panel(now, graph, trace)
    with left:
        knowledge_panel(now, graph, trace, before)
        prediction_details(now, trace, before)
    if not trees:
        with right:
            if isinstance(trace, RoofTrace):
                beside_panel(now, graph, trace)
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
        widget = partial(st.text_area, name, help=asked, height=height)
        with place:
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
        compare_chooser()
    notes()
    return drawer


def reader() -> None:
    """Task, model, graph and options."""
    tasks = {name: t(TASK_TEXTS[name]) for name in state.offer().tasks()}
    own = state.session()
    first, second, third = st.columns([4, 5, 5], gap="medium")
    with first:
        box(t("Task"), "lab.task", own.task, tasks, state.choose_task)
    with second:
        models = state.offer().names(own.task)
        box(t("Model"), "lab.model", own.model, models, state.choose_model)
        open_model_button()
    with third:
        box(t("Knowledge graph"), "lab.graph", own.graph, graph_names(), choose_graph)
        with st.container(horizontal=True, gap="xsmall"):
            open_graph_button()
            try_button()
    about_model()
    options()


def box(
    label: str, key: str, chosen: str, names: dict[str, str], change: Callable[[str], object]
) -> None:
    """Choose one of some names."""
    names = told_apart(names)
    named = lambda name: names.get(name, name)  # noqa: E731
    bind(partial(st.selectbox, label, list(names), format_func=named), key, chosen, change)


def write(number: int, text: str) -> None:
    """Put another text into one of the two fields."""
    first, second = state.session().texts
    state.write((first, text) if number else (text, second))


def sentence_names() -> tuple[str, ...]:
    """What the chosen task's one text or two are called."""
    task = state.session().task
    if task == NO_TASK or TASKS[task].sentences == 1:
        return (t("Sentence"),)
    kind = task if task in ("rank", "qa") else "pair"
    return (t(LAB_FIRST[kind]), t(LAB_SECOND[kind]))


def about_model() -> None:
    """What the chosen model's card says of it."""
    if not state.scene().has_model:
        return
    info = services.model_info(state.session().model)
    if info.problem is not None:
        return  # running it says so
    if info.card.task is None:
        st.caption(t("An encoder without a task head: tree, matrix and attention, no prediction."))
        return
    st.caption(markdown(model_facts.facts(info)))


def graph_names() -> dict[str, str]:
    """What the graphs are called in the chooser, those to be fetched last."""
    named = {name: state.graph_label(name) for name in state.session().graphs}
    named |= {
        name: t("{name}: download, or open a file", name=services.public_title(name))
        for name in state.public_graphs()
    }
    return told_apart(named)


def options() -> None:
    """Injection options and ablations."""
    now, own = state.scene(), state.session()
    chosen = own.options
    trees = services.has_trees(now)
    chooses = trees or services.model_info(now.model).reads_beside
    one, two, three = st.columns([3, 4, 3], gap="medium")
    with one:
        most = own.most_triples
        bind(
            partial(st.number_input, t("Triples per mention"), 0, most),
            "lab.max_triples",
            min(chosen.max_triples, most),
            _option("max_triples"),
            help=t("The most triples injected at one mention. 0: no knowledge."),
        )
        if trees:
            label = t("Tail only, without the relation")
            change = _option("tail_only")
            bind(partial(st.checkbox, label), "lab.tail_only", chosen.tail_only, change)
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
    with two:
        if chooses:
            bind(
                partial(st.selectbox, t("Which triples"), state.strategies()),
                "lab.strategy",
                chosen.strategy,
                _option("strategy"),
                format_func=lambda name: t(OPTIONS_STRATEGY[name]),
                help=t(
                    "Which triples are injected when a mention has too many. The table says of "
                    "each triple why it was injected or left out."
                ),
            )
        if chooses and chosen.strategy in SCORED:
            bind(
                partial(st.checkbox, t("One meaning per name")),
                "lab.one_sense",
                chosen.one_sense,
                _option("one_sense"),
                help=t("Use only triples of the entity whose best triple scores highest."),
            )
        limited = chosen.relations if chosen.relations != own.reads.options.relations else ()
        offered = dict.fromkeys((*state.relations(), *(limited or ())))
        bind(
            partial(st.multiselect, t("Only these relations"), list(offered)),
            "lab.relations",
            list(limited or ()),
            _option("relations"),
            placeholder=t("All relations"),
        )
        bind(
            partial(st.multiselect, t("Names may differ in"), list(RULES)),
            "lab.names",
            chosen.names.as_list(),
            lambda rules: state.dispatch(Options({"names": NameRules.of(rules)})),
            format_func=lambda name: t(NAME_RULE[name.upper()]),
            help=t("How the spelling of a name in the text may differ from the graph."),
            placeholder=t("nothing: exactly as in the graph"),
        )
        trained_as()
    with three:
        if services.has_matrix(now):
            ablations()
        devices = services.devices()
        if len(devices) > 2:
            label = t("Device")
            bind(partial(st.selectbox, label, devices), "lab.device", own.device, _option("device"))


def _option(name: str) -> Callable[[Any], object]:
    return lambda value: state.dispatch(Options({name: value}))


def ablations() -> None:
    """Positions and visible matrix, which are K-BERT's."""
    own = state.session().ablation
    for what, names in (("positions", ["soft", "hard"]), ("visible", ["tree", "all"])):
        widget = partial(segments, t(OPTIONS_TEXTS[what]), names, names=OPTIONS_TEXTS, hidden=False)
        bind(widget, f"lab.{what}", getattr(own, what), _option(what))


def trained_as() -> None:
    """Say with which options the model was trained."""
    info = services.model_info(state.session().model) if state.scene().has_model else None
    if info is not None and info.card.task is not None and info.card.knowledge:
        options = info.card.reading.options
        how = t("tail only" if options.tail_only else "relation and tail")
        what = t("{n} triples per mention, {how}", n=options.max_triples, how=how)
        st.caption(markdown(t("As {model} was trained: {what}.", model=info.name, what=what)))


def notes() -> None:
    """What the visitor may try, a model of another language, an example that isn't here."""
    if (missing := ss.pop("lab.no_example", None)) is not None:
        said = t(
            "The example “{name}” can't be shown here: no model for it is here. You see another.",
            name=missing,
        )
        st.warning(markdown(said), icon=":material/link_off:")
    info = services.model_info(state.session().model) if state.scene().has_model else None
    if info and info.card.task and not info.knows(" ".join(state.scene().sentences)):
        said = t(
            "This model reads {language}, and most of this text is in another script. Do not rely "
            "on the prediction.",
            language=t(info.language or ""),
        )
        st.warning(markdown(said), icon=":material/translate:")
        other = state.offer().reader(state.session(), state.scene().sentences)
        if other not in NO_MODEL:
            name = services.model_info(other).name
            label = t("Read it with {model}", model=markdown(name))
            action(label, "lab.read_with", state.read_with, other, icon="translate")
    example = state.current_example()
    said = "&nbsp;"  # of one height, so that nothing jumps when the hint goes
    if not state.session().history.steps and example and example.turn and read_by(example):
        triple, tail = example.turn
        named = ", ".join((triple.head, triple.relation, triple.tail))
        text = (
            N_("Switch ({triple}) off on its branch, and watch the prediction change.")
            if tail is None
            else N_(
                "Change the tail of ({triple}) to “{tail}” with the ✎ on its branch, and watch the "
                "prediction change."
            )
        )
        if not services.has_trees(state.scene()):  # of these hints each changes a tail
            text = N_(
                "Change the tail of ({triple}) to “{tail}” in the table, and watch the prediction "
                "change."
            )
        hint = t(text, triple=named, tail=tail)
        said = f":material/lightbulb: {markdown(hint)}"
    st.markdown(said)


def read_by(example: Example) -> bool:
    """Whether the model chosen is the one that an example was chosen for."""
    return state.scene().has_model and Path(state.session().model).name == example.model


def text_problem(now: Scene) -> str | None:
    """Say why a text is not read at all."""
    blank = list(map(is_blank, now.sentences))
    if all(blank):
        return t("Write a sentence above.")
    if any(blank):
        return t(
            "Write both texts above: “{missing}” is empty.",
            missing=sentence_names()[blank.index(True)],
        )
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
    ss["lab.window"] = min(ss.get("lab.window") or 0, count - 1)  # of a link: of any text
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = choose_window(count, "lab.window", width=140)
        st.caption(
            t(
                "The text is longer than the model can read at once, so it is read in {count} "
                "overlapping windows. Every token gets a label.",
                count=count,
            )
        )
    return chosen


# Knowledge


def knowledge_panel(
    now: Scene, graph: KnowledgeGraph, trace: Any, before: Any, columns: Sequence[Column] = ()
) -> None:
    """The sentence's triples, to switch, change, add and delete; what each column makes of them."""
    rows = knowledge.triple_rows(trace, graph, before)
    log = state.log()
    title = N_("Knowledge for this sentence")
    title = title if len(now.sentences) == 1 else N_("Knowledge for these texts")
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="lab_head_knowledge"
    ):
        st.subheader(t(title), anchor=False, width="stretch")
        view = segments(
            t("View"), ["table", "graph"], "lab.knowledge_view", KNOWLEDGE_TEXTS, default="table"
        )
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        edit_buttons(log, graph)
    if not (rows or trace.reading.mentions):
        nothing_found(now, graph)
    elif view == "graph":
        graph_view(rows, trace)
    else:
        triple_table(rows, columns)
    if rows and services.has_trees(now):
        follow_triple(rows)
    refused("lab.tree_problem")  # where no tree is drawn
    refused("lab.problem")
    last_edit(log, rows, trace, before)
    add_form(trace)
    state_of_knowledge(now, graph, rows)


def refused(key: str) -> None:
    """Say why an edit wasn't made."""
    problem = ss.pop(key, None)
    if problem:
        st.error(markdown(problem))


@linked("lab.graph_view")
def graph_view(rows: tuple[knowledge.TripleRow, ...], trace: Any) -> None:
    """The triples drawn as a graph; a click chooses one, to be changed there."""
    flat = trace.rows[0] if isinstance(trace, KBertTrace) else None
    data = neighbourhood.neighbourhood(
        rows,
        dark=st.context.theme.type == "dark",
        chosen=state.selection().triple,
        before=ss.get("lab.places", {}),
        names=neighbourhood.names_of(flat) if flat else {},
    )
    ss["lab.places"] = neighbourhood.places_of(data)
    tokens = neighbourhood.tokens_of(flat) if flat else {}
    ss["lab.drawn"] = (tuple(row.triple for row in rows), tokens)
    draw_graph(
        data,
        key="lab.drawing",
        on_node=selecting.click_name,
        on_edge=selecting.click_edge,
        on_edit=editing.edit_drawn,
    )
    st.caption(neighbourhood.caption(rows))


def edit_buttons(log: AnyLog, graph: KnowledgeGraph) -> None:
    """Undo, redo, download."""
    own = state.session()
    undo_button("lab", partial(state.dispatch, Undo()), history.step(log, own.last_step()))
    redo_button("lab", partial(state.dispatch, Redo()), history.step(log, own.next_step()))
    graph_download(
        graph,
        N_("Download .spo"),
        key="lab.download",
        file_name=f"{services.safe_name(graph.name)}.spo",
        help=t(
            "The whole graph with your edits. Triples that are switched off are left out, because "
            "a file cannot mark them."
        ),
    )


def last_edit(
    log: AnyLog,
    rows: tuple[knowledge.TripleRow, ...],
    trace: Any,
    before: Any,
) -> None:
    """Say what the last edit did, and what moved up because of it."""
    step = state.session().last_step(state.session().graph)
    if step is None or not isinstance(step.what, Edited):
        return
    said = [t("Last edit: {what}.", what=history.step(log, step))]
    moved = knowledge.moved_up(rows)
    if moved:
        said.append(t("{triples} took the free place.", triples=listed(moved)))
    heads = knowledge.entities_of(trace)
    if before is not None:
        heads |= knowledge.entities_of(before)
    if step.what.edits and heads.isdisjoint(heads_of(step.what.edits)):
        said.append(t("It does not concern this sentence."))
    st.caption(markdown(sentences(said)))


def triple_table(rows: tuple[knowledge.TripleRow, ...], columns: Sequence[Column]) -> None:
    """The editable table; its changes are read in the callbacks."""
    key, given = editing.begun(tuple((row.triple, row.on) for row in rows))
    states = {one.title: knowledge.states(rows, one.trace, one.graph) for one in columns}
    linked = any(row.in_vectors for row in rows)
    # A gloss is long, and would push the columns after it out of sight.
    head, relation, tail, state_width = (100, 80, 160, 96) if linked else (None,) * 4
    asked = N_("in a vector?") if linked else N_("in the tree?")
    asked = N_("read?") if any(row.beside for row in rows) else asked
    st.data_editor(
        knowledge.table(rows, given, states),
        key=key,
        on_change=editing.read_table,
        args=(key,),
        hide_index=True,
        width="stretch",
        height="auto" if len(rows) <= 10 else 372,
        column_config={
            ON: st.column_config.CheckboxColumn(t("on"), width=60),
            HEAD: st.column_config.TextColumn(t("head"), required=True, width=head),
            RELATION: st.column_config.TextColumn(t("relation"), required=True, width=relation),
            TAIL: st.column_config.TextColumn(t("tail"), required=True, width=tail),
            **{
                name: st.column_config.TextColumn(
                    t(asked) if name == STATE else name,
                    disabled=True,
                    help=t(
                        "Tick a triple to switch it on, untick it to switch it off. Double-click "
                        "a field to change it. The bin at the end of a row deletes it."
                    ),
                    width=state_width,
                )
                for name in (states or [STATE])
            },
            DELETE: st.column_config.ButtonColumn(
                "",
                width=44,
                type="tertiary",
                key=editing.delete_key(key),
                on_click=editing.delete_row,
                args=(key,),
            ),
        },
    )


def add_form(trace: Any) -> None:
    """Add a triple; it stands first under its head."""
    heads = knowledge.names_in(trace)
    state.suggest_head(heads[0] if heads else "")
    with (
        st.form("lab.add", border=False),
        st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"),
    ):
        for name in (HEAD, RELATION, TAIL):
            st.text_input(
                t("Add a triple: {field}", field=t(KNOWLEDGE_TEXTS[name]))
                if name == HEAD
                else t(KNOWLEDGE_TEXTS[name]),
                key=f"lab.add_{name}",
                max_chars=200,
                width="stretch",
            )
        st.form_submit_button(
            t("Add"),
            on_click=state.add_triple,
            help=t(
                "A new triple comes first among the triples of its head, so it is injected before "
                "them."
            ),
        )


def nothing_found(now: Scene, graph: KnowledgeGraph) -> None:
    """The sentence names no entity: the trunk alone, and what comes near."""
    trees = services.has_trees(now)
    said = N_(
        "The sentence names no entity of this graph, so it is read as plain BERT would read it."
    )
    if not trees and services.model_info(now.model).reads_beside:
        said = N_(
            "The text contains no name of this graph, so no triple is read. The roof's layers "
            "still run, beside an empty string."
        )
    elif not trees:
        said = N_(
            "The text contains no name of this graph, so no entity is linked. The knowledge layer "
            "still runs, on one empty span."
        )
    st.info(t(said), icon=":material/search_off:")
    near = services.names_near(now.sentences, graph)
    if near:
        names = " · ".join(f"**{markdown(name)}**" for name in near)
        st.markdown(f"{t('Similar names in the graph:')} {names}")
    else:
        st.markdown(t("No name in the graph is similar."))
    if ss.get("lab.try") != state.session().graph:  # else they are offered above
        sentences_to_try(graph, "lab.nothing")
    if trees:
        st.caption(t("Add a triple whose head is in the sentence, and it gets a branch."))


def state_of_knowledge(
    now: Scene,
    graph: KnowledgeGraph,
    rows: tuple[knowledge.TripleRow, ...],
) -> None:
    """Say what was left out and by which rule; and where nothing is injected."""
    used = sum(1 for row in rows if row.used)
    if not services.has_trees(now):
        if rows:
            where = (
                N_("{used} of {total} triples are read beside the text.")
                if rows[0].beside
                else N_("{used} of {total} triples are part of the candidates' vectors.")
            )
            st.caption(t(where, used=used, total=len(rows)))
        return
    if rows:
        left = knowledge.left_out(rows)
        parts = [t("{used} of {total} triples injected.", used=used, total=len(rows))]
        if left:
            text = N_("{count} {rule}")
            named = (t(text, count=n, rule=t(RULE_TEXTS[rule.name])) for rule, n in left.items())
            what = listed(named)
            parts.append(t("Left out: {what}.", what=what))
        some = sum(1 for row in rows if 0 < row.used < row.mentions)
        if some:
            parts.append(t("{count} injected at some of their mentions only.", count=some))
        if now.options.strategy is Strategy.FIRST:
            parts.append(
                t(
                    "A new triple comes first among the triples of its head, so it is injected "
                    "before them."
                )
            )
        st.caption(markdown(sentences(parts)))
    if rows and not used:
        said = [t("No triple is injected: this is the same as BERT without a graph.")]
        if now.has_model:
            delta = services.difference_from_bert(now, graph)
            said.append(
                t("Checked against the run with an empty graph: Δ = {delta}.", delta=f"{delta:g}")
            )
        st.info(sentences(said), icon=":material/equal:")


# Tree


@linked("lab.tree_panel")
def tree_panel(
    now: Scene, graph: KnowledgeGraph, trace: KBertTrace, before: KBertTrace | None, window: int
) -> None:
    """The sentence tree, and how the names in it were read."""
    flat = trace.rows[window]
    with st.container(horizontal=True, vertical_alignment="center", key="lab_head_tree"):
        st.subheader(t("Sentence tree"), anchor=False)
        selection_bar(flat)
    refused("lab.tree_problem")
    earlier = row_of(before, window, flat)
    ss["lab.tree_names"] = flat.identities
    marks = marks_of(flat.identities, state.selection(), visible_in(trace, window))
    view = tree.tree_view(trace, window, earlier)
    ss["lab.tree_triples"] = view.triples
    off = {
        triple for triple in view.triples.values() if triple in graph and not graph.is_on(triple)
    }
    with st.container(key="lab_tree_box"):  # with room to grow, so that nothing below jumps
        draw_tree(
            tree.tree_html(view, marks, off, edits=True),
            switched=ss.get("lab.switched", 0),
            key="lab.tree",
            on_token=partial(selecting.click_token, "lab.tree"),
            on_branch=editing.switch_branch,
            on_edit=editing.edit_branch,
            on_ask=editing.ask_tails,
        )
        answer_tails(now, graph)
        st.caption(markdown(tree.summary(flat, trace.ablation)))
        over = passed_over(trace.tree, graph, now.options.names)
        for line in name_lines(trace.tree, over):
            st.caption(markdown(line))
    for cut in flat.trunk_cuts:
        said = t(
            "Too long: of sentence {sentence}, only the first {kept} of {total} tokens were read.",
            sentence=cut.sentence + 1,
            kept=cut.kept,
            total=cut.total,
        )
        st.warning(said, icon=":material/content_cut:")


page()
