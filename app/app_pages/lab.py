"""The Lab: edit → tree → matrix → attention → prediction, on one screen."""

import numpy as np
import streamlit as st

from app import services, state
from app.app_pages.lab_open import choose_graph, open_graph_popover, open_model_popover, show_opened
from app.app_pages.lab_prediction import prediction_panel
from app.app_pages.undo_buttons import redo_button, undo_button
from app.app_pages.workspace_notices import workspace_notices
from app.components.matrix import draw_matrix
from app.edit_log import EditLog
from app.scene import Scene
from app.state import AUTO, BERT, KEEP, NO_TASK, TWIN
from app.texts import t
from app.view_models import knowledge, matrix, model_facts, neighbourhood, tree
from app.view_models.diff import same_text
from app.view_models.html import markdown
from app.view_models.knowledge import HEAD, ON, RELATION, STATE, TAIL
from app.view_models.names import name_lines
from app.view_models.share_of_edits import shares
from app.view_models.styles import CSS
from kbert_core import FlatTree, KBertError, KnowledgeGraph, Trace
from kbert_core.knowledge.selection import SCORED, Strategy
from kbert_core.knowledge.surface_forms import RULES
from kbert_core.sentence_tree import passed_over
from kbert_core.tasks import TASKS

ss = st.session_state


def page() -> None:
    """Input, work, view, top to bottom."""
    state.begin()
    st.html(CSS)
    choosers()
    show_opened()
    workspace_notices()
    now = state.scene()
    problem = text_problem(now)
    if problem:
        st.info(markdown(problem))
        return
    try:
        graph = state.graph_of(now)
        trace = services.trace(now, graph)
    except KBertError as error:
        st.error(markdown(error))
        return
    compared, kind = state.baseline(now)
    before = trace_before(compared)
    if kind == AUTO and before is not None and before.tree == trace.tree:
        compared, kind = now.without_knowledge(), BERT  # the last edit is about another text
        before = trace_before(compared)
    window = window_chooser(trace)
    twin = state.beside(now)
    with st.container(key="lab_panels"):
        left, right = st.columns([5, 6], gap="large")
        with left:
            knowledge_panel(now, graph, trace, before)
            prediction_panel(now, trace, before, kind)
        with right:
            tree_panel(now, graph, trace, before if kind != BERT else None, window)
            matrix_panel(now, twin or compared, TWIN if twin else kind, window)


# The top: what is read, by what, with which knowledge


def choosers() -> None:
    """Sentence, example, task, model and graph."""
    with st.container(key="lab_top"):
        left, right = st.columns([5, 6], gap="large")
    with left:
        names = sentence_names()
        st.text_area(
            names[0],
            key="lab.text",
            height=68 if len(names) > 1 else 164,
            help=t("lab.sentence_help", most=services.LONGEST_TEXT),
            **KEEP,
        )
        if len(names) > 1:
            st.text_area(names[1], key="lab.text_b", height=68, **KEEP)
    offered, graphs = state.choices(), graph_names()
    with right:
        first, second = st.columns(2)
        with first:
            st.selectbox(
                t("lab.example"),
                list(state.examples()),
                index=None,
                key="lab.example",
                placeholder=t("lab.example_none"),
                on_change=state.choose_example,
                **KEEP,
            )
        with second:
            st.selectbox(
                t("lab.task"),
                offered.tasks,
                key="lab.task",
                format_func=state.task_title,
                on_change=state.choose_task,
                **KEEP,
            )
        first, second = st.columns(2)
        with first, st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
            st.selectbox(
                t("lab.model"),
                list(offered.models),
                key="lab.model",
                format_func=lambda path: offered.models.get(path, path),
                on_change=state.choose_model,
                **KEEP,
            )
            open_model_popover()
        with second, st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
            st.selectbox(
                t("lab.graph"),
                list(graphs),
                key="lab.graph",
                format_func=lambda name: graphs.get(name, name),
                on_change=choose_graph,
                **KEEP,
            )
            open_graph_popover()
        about_model()
    options()
    notes()


def sentence_names() -> tuple[str, ...]:
    """What the chosen task's one text or two are called."""
    task = ss["lab.task"]
    if task == NO_TASK or TASKS[task].sentences == 1:
        return (t("lab.sentence"),)
    kind = "rank" if task == "rank" else "pair"
    return (t(f"lab.first.{kind}"), t(f"lab.second.{kind}"))


def about_model() -> None:
    """What the chosen model's card says of it."""
    if not state.scene().has_model:
        return
    info = services.model_info(ss["lab.model"])
    if info.problem is not None:
        return  # running it says so
    if info.card.task is None:
        st.caption(t("facts.encoder"))
        return
    st.caption(markdown(model_facts.facts(info)))
    if not info.knows(" ".join(state.scene().sentences)):
        said = t("facts.other_script", language=info.language)
        st.warning(markdown(said), icon=":material/translate:")


def graph_names() -> dict[str, str]:
    """What the graphs are called in the chooser, those to be fetched last."""
    named = {name: state.graph_label(name) for name in ss["lab.graphs"]}
    return named | {
        name: t("graph.public", name=services.public_title(name)) for name in state.public_graphs()
    }


def options() -> None:
    """Injection options and ablations, tucked away."""
    with st.expander(t("options.title")):
        one, two, three = st.columns([3, 4, 3], gap="medium")
        with one:
            st.number_input(
                t("options.max_triples"),
                0,
                20,
                key="lab.max_triples",
                help=t("options.max_triples_help"),
                **KEEP,
            )
            st.checkbox(t("options.tail_only"), key="lab.tail_only", **KEEP)
        with two:
            st.selectbox(
                t("options.strategy"),
                state.strategies(),
                key="lab.strategy",
                format_func=lambda name: t("options.strategy_" + name),
                help=t("options.strategy_help"),
                **KEEP,
            )
            if ss["lab.strategy"] in SCORED:
                st.checkbox(
                    t("options.one_sense"),
                    key="lab.one_sense",
                    help=t("options.one_sense_help"),
                    **KEEP,
                )
            known = state.relations()
            offered = [*known, *(r for r in ss["lab.relations"] if r not in known)]
            st.multiselect(
                t("options.relations"),
                offered,
                key="lab.relations",
                placeholder=t("options.relations_all"),
                **KEEP,
            )
            st.multiselect(
                t("options.names"),
                list(RULES),
                key="lab.names",
                format_func=lambda name: t("name_rule." + name.upper()),
                help=t("options.names_help"),
                placeholder=t("options.names_none"),
                **KEEP,
            )
            trained_as()
        with three:
            st.segmented_control(
                t("options.positions"),
                ["soft", "hard"],
                key="lab.positions",
                format_func=lambda name: t("options." + name),
                required=True,
                **KEEP,
            )
            st.segmented_control(
                t("options.visible"),
                ["tree", "all"],
                key="lab.visible",
                format_func=lambda name: t("options." + name),
                required=True,
                **KEEP,
            )
            devices = services.devices()
            if len(devices) > 2:
                st.selectbox(t("options.device"), devices, key="lab.device", **KEEP)


def trained_as() -> None:
    """Say with which options the model was trained."""
    if not state.scene().has_model:
        return
    info = services.model_info(ss["lab.model"])
    if info.card.task is None or not info.card.knowledge:
        return
    options = info.card.options
    how = t("options.tail") if options.tail_only else t("options.relation_and_tail")
    what = t("options.what", n=options.max_triples, how=how)
    st.caption(markdown(t("options.model_default", model=info.name, what=what)))


def notes() -> None:
    """The hint of the first visit, and how far the example may be trusted."""
    example = state.current_example()
    if example and example.rests_on_triple and ss["lab.model"] and state.scene().has_model:
        info = services.model_info(ss["lab.model"])
        if info.card.knowledge:
            parts = shares(info.card.notes)
            key = "rests" if parts else "rests.unknown"
            st.caption(markdown(t(key, model=info.name, parts=parts)))
    if ss.get("lab.hint") and example and example.task:
        st.info(t("hint.first"), icon=":material/lightbulb:")


def text_problem(now: Scene) -> str | None:
    """Say why a text is not read at all."""
    blank = [not sentence.strip() for sentence in now.sentences]
    if all(blank):
        return t("error.empty")
    if any(blank):
        return t("error.one_empty", missing=sentence_names()[blank.index(True)])
    longest = max(map(len, now.sentences))
    if longest > services.LONGEST_TEXT:
        return t("error.too_long", count=longest, most=services.LONGEST_TEXT)
    return None


def trace_before(compared: Scene) -> Trace | None:
    """Run the scene compared with; None where it can't be run."""
    try:
        return services.trace(compared, state.graph_of(compared))
    except KBertError:
        return None


def window_chooser(trace: Trace) -> int:
    """Choose a window of a long text."""
    count = len(trace.rows)
    if count == 1:
        return 0
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = st.selectbox(
            t("tree.window"),
            range(count),
            key="lab.window",
            format_func=lambda i: t("tree.window_name", number=i + 1, count=count),
            width=140,
        )
        st.caption(t("tree.windows", count=count))
    return min(chosen or 0, count - 1)


def row_of(trace: Trace | None, window: int, like: FlatTree) -> FlatTree | None:
    """The row of another trace that can be laid over one, if there is one."""
    if trace is None or window >= len(trace.rows):
        return None
    row = trace.rows[window]
    return row if same_text(row, like) else None


# Knowledge


def knowledge_panel(now: Scene, graph: KnowledgeGraph, trace: Trace, before: Trace | None) -> None:
    """The sentence's triples, to switch, change, add and delete."""
    rows = knowledge.triple_rows(trace, graph, before)
    log = state.log()
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="lab_head_knowledge"
    ):
        title = "knowledge.title" if len(now.sentences) == 1 else "knowledge.title_pair"
        st.subheader(t(title), anchor=False, width="stretch")
        view = st.segmented_control(
            t("knowledge.view"),
            ["table", "graph"],
            key="lab.knowledge_view",
            default="table",
            required=True,
            label_visibility="collapsed",
            format_func=lambda name: t("knowledge." + name),
        )
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        edit_buttons(log, graph)
    if not trace.tree.nodes:
        nothing_found(now, graph)
    elif view == "graph":
        dark = st.context.theme.type == "dark"
        st.iframe(neighbourhood.neighbourhood_html(rows, dark=dark), height=390, alt=t("graph.alt"))
        st.caption(neighbourhood.caption(rows))
    else:
        triple_table(rows)
    problem = ss.pop("lab.problem", None)
    if problem:
        st.error(markdown(problem))
    last_edit(log, rows, trace, before)
    add_form(trace)
    state_of_knowledge(now, graph, rows)


def edit_buttons(log: EditLog, graph: KnowledgeGraph) -> None:
    """Undo, redo, download."""
    undo_button("lab", state.undo_last, knowledge.describe(log.done[-1]) if log.done else None)
    again = knowledge.describe(log.undone[0]) if log.undone else None
    redo_button("lab", state.redo_last, ready=bool(log.undone), what=again)
    st.download_button(
        t("knowledge.download"),
        lambda: services.spo_of(graph),
        file_name=f"{services.safe_name(graph.name)}.spo",
        mime="text/tab-separated-values",
        key="lab.download",
        icon=":material/download:",
        on_click="ignore",
        help=t("knowledge.download_help"),
    )


def last_edit(
    log: EditLog,
    rows: tuple[knowledge.TripleRow, ...],
    trace: Trace,
    before: Trace | None,
) -> None:
    """Say what the last edit did, and what moved up because of it."""
    if not log.done:
        return
    said = [t("knowledge.last", what=knowledge.describe(log.done[-1]))]
    moved = knowledge.moved_up(rows)
    if moved:
        said.append(t("knowledge.moved", triples=", ".join(map(str, moved))))
    heads = {node.mention.entity for node in trace.tree.nodes}
    if before is not None:
        heads |= {node.mention.entity for node in before.tree.nodes}
    edit = log.done[-1]
    touched = {edit.triple.head, edit.new.head if edit.new else edit.triple.head}
    if not heads & {knowledge.entity_of(head) for head in touched}:
        said.append(t("knowledge.elsewhere"))
    st.caption(markdown(" ".join(said)))


def triple_table(rows: tuple[knowledge.TripleRow, ...]) -> None:
    """The editable table; its changes are read in the callback."""
    st.data_editor(
        knowledge.table(rows),
        key=state.table_key(),
        on_change=state.read_table,
        args=(state.table_key(), ss["lab.graph"], tuple(row.triple for row in rows)),
        num_rows="delete",
        hide_index=True,
        width="stretch",
        height="auto" if len(rows) <= 10 else 372,
        column_config={
            ON: st.column_config.CheckboxColumn(t("knowledge.on"), width=44),
            HEAD: st.column_config.TextColumn(t("knowledge.head"), required=True),
            RELATION: st.column_config.TextColumn(t("knowledge.relation"), required=True),
            TAIL: st.column_config.TextColumn(t("knowledge.tail"), required=True),
            STATE: st.column_config.TextColumn(
                t("knowledge.state"), disabled=True, help=t("knowledge.help")
            ),
        },
    )


def add_form(trace: Trace) -> None:
    """Add a triple; it stands first under its head."""
    heads = list(
        dict.fromkeys(
            trace.tree.sentences[n.mention.sentence][n.mention.start : n.mention.end]
            for n in trace.tree.nodes
        )
    )
    state.suggest_head(heads[0] if heads else "")
    with (
        st.form("lab.add", border=False),
        st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"),
    ):
        for name in (HEAD, RELATION, TAIL):
            st.text_input(
                t("knowledge.add") + ": " + t("knowledge." + name)
                if name == HEAD
                else t("knowledge." + name),
                key=f"lab.add_{name}",
                max_chars=200,
                width="stretch",
            )
        st.form_submit_button(
            t("knowledge.add_button"), on_click=state.add_triple, help=t("knowledge.added_first")
        )


def nothing_found(now: Scene, graph: KnowledgeGraph) -> None:
    """The sentence names no entity: the trunk alone, and what comes near."""
    st.info(t("knowledge.none"), icon=":material/search_off:")
    near = services.names_near(now.sentences, graph)
    if near:
        names = " · ".join(f"**{markdown(name)}**" for name in near)
        st.markdown(f"{t('knowledge.near')} {names}")
    else:
        st.markdown(t("knowledge.near_none"))
    st.caption(t("knowledge.add_first"))


def state_of_knowledge(
    now: Scene,
    graph: KnowledgeGraph,
    rows: tuple[knowledge.TripleRow, ...],
) -> None:
    """Say what was left out and by which rule; and where nothing is injected."""
    used = sum(1 for row in rows if row.used)
    if rows:
        left = knowledge.left_out(rows)
        parts = [t("knowledge.count", used=used, total=len(rows))]
        if left:
            what = ", ".join(tree.left_out_lines(left.items()))
            parts.append(t("knowledge.left", what=what))
        some = sum(1 for row in rows if 0 < row.used < row.mentions)
        if some:
            parts.append(t("knowledge.some", count=some))
        if now.options.strategy is Strategy.FIRST:
            parts.append(t("knowledge.added_first"))
        st.caption(markdown(". ".join(part.rstrip(".") for part in parts) + "."))
    if rows and not used:
        said = t("knowledge.all_off")
        if now.has_model:
            delta = services.difference_from_bert(now, graph)
            said += " " + t("knowledge.all_off_delta", delta=f"{delta:g}")
        st.info(said, icon=":material/equal:")


# Tree


def tree_panel(
    now: Scene, graph: KnowledgeGraph, trace: Trace, before: Trace | None, window: int
) -> None:
    """The sentence tree, and how the names in it were read."""
    flat = trace.rows[window]
    with st.container(horizontal=True, vertical_alignment="center", key="lab_head_tree"):
        st.subheader(t("tree.title"), anchor=False)
    earlier = row_of(before, window, flat)
    st.html(tree.tree_html(tree.tree_view(trace, window, earlier)))
    st.caption(markdown(tree.summary(flat, trace.ablation)))
    over = passed_over(trace.tree, graph, now.options.names)
    for line in name_lines(trace.tree, over):
        st.caption(markdown(line))
    for cut in flat.trunk_cuts:
        said = t("tree.text_cut", sentence=cut.sentence + 1, kept=cut.kept, total=cut.total)
        st.warning(said, icon=":material/content_cut:")


# Matrix


@st.fragment
def matrix_panel(now: Scene, compared: Scene, kind: str, window: int) -> None:
    """Visible, attention, difference; choosing here re-runs this panel only."""
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="lab_head_matrix"
    ):
        st.subheader(t("matrix.title"), anchor=False, width="stretch")
        view_name = st.segmented_control(
            t("matrix.view"),
            ["visible", "attention", "difference"],
            key="lab.matrix_view",
            default="visible",
            required=True,
            label_visibility="collapsed",
            format_func=lambda name: t("matrix." + name),
        )
    try:
        draw_panel(view_name or "visible", now, compared, kind, window)
    except KBertError as error:
        st.error(markdown(error))


def draw_panel(view_name: str, now: Scene, compared: Scene, kind: str, window: int) -> None:
    """Draw the chosen panel and what is said of the chosen cell."""
    graph = state.graph_of(now)
    trace = services.trace(now, graph)
    after = trace.rows[window]
    before, weights, old_weights = None, None, None
    of = view_name
    if view_name == "difference":
        old_trace = services.trace(compared, state.graph_of(compared))
        before = row_of(old_trace, window, after)
        if before is None:
            st.caption(t("matrix.no_pair"))
            return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        if view_name == "difference" and now.has_model and compared.has_model:
            of = st.segmented_control(
                t("matrix.of"),
                ["visible", "attention"],
                key="lab.difference_of",
                default="visible",
                required=True,
                format_func=lambda name: t("matrix." + name),
            )
        elif view_name == "difference":
            of = "visible"
        if of == "attention":
            if not now.has_model:
                st.caption(t("matrix.no_model"))
                return
            maps = services.attention(now, graph, window)
            old = None
            if view_name == "difference":
                old = services.attention(compared, state.graph_of(compared), window)
                if old.shape[:2] != maps.shape[:2]:
                    st.caption(t("matrix.no_same_size"))
                    return
            weights, old_weights = pick_head(maps, old)
    ablations = (compared.ablation, now.ablation)
    if before is None:
        view = (
            matrix.visible_view(after, now.ablation)
            if weights is None
            else matrix.attention_view(after, weights, now.ablation)
        )
    elif weights is None or old_weights is None:
        view = matrix.visible_difference(before, after, ablations)
    else:
        view = matrix.attention_difference(before, after, (old_weights, weights), ablations)
    if view_name == "difference":
        st.caption(markdown(t("matrix.against", name=t("compare.name_" + kind))))
        if matrix.largest_change(view) == 0:
            st.caption(t("matrix.equal"))
    if ss.get("lab.specials"):
        view = matrix.without_specials(view)
    ss["lab.matrix_names"] = view.identities
    st.html(matrix.legend_html(view))
    draw_matrix(view, ss.get("lab.cell"), key="lab.matrix", on_cell=state.choose_cell)
    st.checkbox(t("matrix.specials"), key="lab.specials", **KEEP)
    say_cell(view, before, after, now, weights)


def pick_head(maps: np.ndarray, old: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Choose a layer and an attention head, or the mean."""
    layers, heads = maps.shape[:2]
    layer = st.selectbox(
        t("matrix.layer"),
        [*range(1, layers + 1), 0],
        index=layers - 1,
        key="lab.layer",
        format_func=lambda i: str(i) if i else t("matrix.mean"),
        width=92,
    )
    head = st.selectbox(
        t("matrix.head"),
        range(heads + 1),
        key="lab.head",
        format_func=lambda i: str(i) if i else t("matrix.mean"),
        width=92,
    )
    return matrix.picked(maps, layer, head), (
        matrix.picked(old, layer, head) if old is not None else None
    )


def say_cell(
    view: matrix.MatrixView,
    before: FlatTree | None,
    after: FlatTree,
    now: Scene,
    weights: np.ndarray | None,
) -> None:
    """The chosen cell in words."""
    chosen = ss.get("lab.cell")
    said = None
    if chosen:
        said = matrix.cell_text(view, chosen, before, after, now.ablation, weights)
    if chosen is None or said is None:
        st.caption(t("matrix.click"))
        return
    with st.container(border=True, key="lab_cell"):
        st.markdown(markdown(" ".join(part for part in (said.sentence, said.value) if part)))
        if said.row:
            what = ", ".join(f"“{name}” {share}".strip() for name, share in said.row)
            key = "matrix.looks" if weights is not None else "matrix.sees_branches"
            a = next(tok.text for tok in view.tokens if tok.identity == chosen[0])
            st.caption(markdown(t(key, a=a, what=what)))


page()
