"""What reading a whole file has shown: in numbers, text by text, by group; and what follows."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from app import services, state
from app.app_pages.whole_file_next import prune_view
from app.file_runs import FileSetup
from app.session_graphs import graph_as_edited
from app.state import KEEP
from app.texts import listed, sentences, t
from app.view_models import whole_file as view
from app.view_models.html import markdown
from kbert_core import KBertError
from kbert_core.experiments.file_rows import FileRow
from kbert_core.experiments.whole_file import KINDS, WholeFile
from kbert_core.explain.result import name_of

ss = st.session_state
VIEWS = {
    "rows": ":material/format_list_bulleted:",
    "groups": ":material/bar_chart:",
    "prune": ":material/content_cut:",
}
PLOTLY = {"displayModeBar": False}
METRIC = 118  # pixels a number takes with its name


def show_found(setup: FileSetup, rows: Sequence[FileRow]) -> None:
    """Everything, once the file was read."""
    found = collected(setup, rows)
    if len(rows) < found.total:
        said = t("file.partly", done=f"{len(rows):,}", total=f"{found.total:,}")
        st.warning(said, icon=":material/stop_circle:")
    summary(setup, found)
    chosen = st.segmented_control(
        t("file.view"),
        list(VIEWS),
        key="whole_file.view",
        default="rows",
        required=True,
        label_visibility="collapsed",
        format_func=lambda name: f"{VIEWS[name]} {t('file.view_' + name)}",
    )
    if chosen == "groups":
        groups_view(found)
    elif chosen == "prune":
        prune_view(setup, found)
    else:
        rows_view(setup, found)


def collected(setup: FileSetup, rows: Sequence[FileRow]) -> WholeFile:
    """The rows put together, once."""
    kept: WholeFile | None = ss.get("whole_file.found")
    if kept is None or len(kept.rows) != len(rows):
        kept = WholeFile(setup.data.task, setup.graph.name, tuple(rows), len(setup.examples))
        ss["whole_file.found"] = kept
    return kept


def summary(setup: FileSetup, found: WholeFile) -> None:
    """The numbers that answer most, and what they say."""
    with st.container(border=True, key="whole_file_summary"):
        st.html(f'<div class="kb-headline">{view.escape(view.say_whole(found))}</div>')
        counts = {
            "texts": len(found.rows),
            "with_knowledge": len(found.with_knowledge),
            "changed": len(found.changed),
            "helped": found.whole.helped,
            "hurt": found.whole.hurt,
        }
        left, right = st.columns([7, 4], gap="large", vertical_alignment="center")
        with left, st.container(horizontal=True, gap="medium"):
            for name, count in counts.items():
                note = None if name == "texts" else t(f"file.{name}_help")
                st.metric(t(f"file.{name}"), f"{count:,}", help=note, width=METRIC)
        with right:
            st.html(view.scores_html(found.scores))
        said = t(
            "file.of",
            data=setup.data.name,
            split=t("file.split_yours") if setup.uploaded else t(f"audit.split.{setup.split}"),
            count=f"{len(found.rows):,}",
            model=services.model_info(setup.model).name,
            graph=found.graph,
        )
        note = t("file.interval_note", metric=view.metric_name(found.scores))
        st.caption(markdown(sentences([said, note])))


# Text by text


def rows_view(setup: FileSetup, found: WholeFile) -> None:
    """The texts that changed, and the chosen one of them."""
    which = st.segmented_control(
        t("file.which"),
        view.WHICH,
        key="whole_file.which",
        default=view.ALL,
        required=True,
        label_visibility="collapsed",
        on_change=forget_row,
        format_func=lambda name: t(
            "file.which_count",
            name=t(f"file.which_{name}"),
            count=f"{len(view.shown(found, name)):,}",
        ),
    )
    rows = view.shown(found, which or view.ALL)
    if rows:
        rows_grid(setup, rows, which or view.ALL)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.download_button(
            t("file.csv"),
            lambda: view.rows_csv(found.rows),
            file_name=f"{services.safe_name(setup.data.name)}-{setup.split}.csv",
            mime="text/csv",
            key="whole_file.csv",
            icon=":material/download:",
            on_click="ignore",
        )
        st.caption(t("file.choose" if rows else "file.no_rows"))
    row = next((row for row in rows if row.number == ss.get("whole_file.row")), None)
    if row is not None:
        row_panel(setup, row)


def rows_grid(setup: FileSetup, rows: Sequence[FileRow], which: str) -> None:
    """The texts as a table that can be sorted; the one chosen in it is remembered."""
    info = services.model_info(setup.model)
    columns = view.rows_table(rows, info)
    key = f"whole_file.table.{which}"
    st.dataframe(
        columns,
        key=key,
        on_select=lambda: choose_row(key, rows),
        selection_mode="single-row",
        hide_index=True,
        width="stretch",
        height=min(460, 38 + 35 * len(rows)),
        column_config={
            **{name: st.column_config.TextColumn(t(f"file.column.{name}")) for name in columns},
            "text": st.column_config.TextColumn(t("file.column.text"), width="large"),
            "gain": st.column_config.NumberColumn(
                t("file.column.gain"), format="%+.3f", help=t("file.gain_help")
            ),
        },
    )


def forget_row() -> None:
    """Callback: no row is chosen."""
    ss.pop("whole_file.row", None)


def choose_row(key: str, rows: Sequence[FileRow]) -> None:
    """Callback of the table: remember the text by its number."""
    selected = ss[key].selection.rows if key in ss else []
    forget_row()
    if selected and selected[0] < len(rows):
        ss["whole_file.row"] = rows[selected[0]].number


def row_panel(setup: FileSetup, row: FileRow) -> None:
    """One text: what is right, what was said, which triples; and the way to the Lab."""
    info = services.model_info(setup.model)
    with st.container(border=True, key="whole_file_row"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            verdict = t(f"file.verdict.{row.verdict}")
            number = t("file.row", number=f"{row.number + 1:,}")
            st.markdown(f"**{markdown(number)}** · {markdown(verdict)}", width="stretch")
            to_lab = st.button(
                t("file.open"),
                key="whole_file.open",
                icon=":material/account_tree:",
                help=t("file.open_help"),
                type="primary",
            )
        for sentence in row.example.sentences:
            st.markdown(markdown(sentence))
        st.html(view.row_html(row, info))
        names = listed(map(name_of, row.triples))
        said = t("file.row_triples", triples=names) if names else t("file.row_no_triples")
        st.caption(markdown(said))
        if graph_as_edited_now(setup) != setup.graph.fingerprint:
            st.caption(t("file.opened_edited"))
    if to_lab:
        try:
            open_in_lab(setup, row)
        except KBertError as error:  # its graph was closed, and there is no room for it
            st.error(markdown(error))


def graph_as_edited_now(setup: FileSetup) -> str:
    """The fingerprint that the graph has by now; its own where it is gone."""
    if setup.graph_name not in ss["lab.graphs"]:
        return ""
    return graph_as_edited(setup.graph_name).fingerprint


def open_in_lab(setup: FileSetup, row: FileRow) -> None:
    """Put a text on the Lab's page, as it was read here."""
    name = setup.graph_name
    if name not in ss["lab.graphs"]:
        name = state.take_graph(services.OpenedGraph(setup.graph, own=True), choose=False)
    state.put_text(row.example.sentences, task=setup.data.task, model=setup.model, graph=name)
    ss["lab.max_triples"] = setup.options.max_triples
    ss["lab.tail_only"] = setup.options.tail_only
    ss["lab.hint"] = False
    st.switch_page("app_pages/lab.py")


# By group


def groups_view(found: WholeFile) -> None:
    """Helped and hurt by label, entity, relation and triple."""
    by = st.segmented_control(
        t("file.by"),
        KINDS,
        key="whole_file.by",
        default="relation",
        required=True,
        label_visibility="collapsed",
        format_func=lambda name: t(f"file.by.{name}"),
        **KEEP,
    )
    groups = found.groups(by or "relation")
    kind = "texts"
    if by == "label":
        kind = "entities" if found.task == "ner" else "labels"
    st.caption(t(f"file.groups_{kind}"))
    said = view.say_hurting(found, by or "relation")
    if said:
        st.markdown(markdown(said))
    chance = view.say_chance(found, by or "relation")
    if chance:
        st.caption(markdown(chance))
    chart = view.groups_chart(groups)
    left, right = st.columns([4, 7], gap="large")
    with left:
        if chart is not None:
            st.plotly_chart(chart, key=f"whole_file.chart.{by}", config=PLOTLY)
        else:
            st.caption(t("file.no_rows"))
    with right:
        columns = view.groups_table(groups)
        number = partial(st.column_config.NumberColumn, format="%+.3f")
        helps = {
            "helped_share": t("file.wilson_help"),
            "hurt_share": t("file.wilson_help"),
            "gain_interval": t("file.bootstrap_help"),
            "mean_gain": t("file.gain_help"),
            "said": t("file.said_help"),
        }
        st.dataframe(
            columns,
            key=f"whole_file.groups.{by}",
            hide_index=True,
            width="stretch",
            height=min(560, 38 + 35 * max(1, len(groups))),
            column_config={
                name: (number if name == "mean_gain" else st.column_config.Column)(
                    t(f"file.column.{name}"),
                    help=helps.get(name),
                    width="medium" if name == "gain_interval" else None,
                )
                for name in columns
            },
        )
        st.download_button(
            t("file.groups_csv"),
            lambda: view.groups_csv(groups),
            file_name=f"{by}.csv",
            mime="text/csv",
            key="whole_file.groups_csv",
            icon=":material/download:",
            on_click="ignore",
        )
