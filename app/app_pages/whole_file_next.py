"""What can be done with a file once it was read: prune the graph."""

import streamlit as st

from app import file_runs, services, state
from app.app_pages.long_run import begin, follow, kept
from app.background import Run
from app.exports import graph_as
from app.file_runs import FileSetup, HowToPrune
from app.state import KEEP
from app.texts import t
from app.view_models import whole_file as view
from app.view_models.html import markdown
from kbert_core import KBertError, KnowledgeGraph
from kbert_core.experiments.whole_file import Pruned, WholeFile

ss = st.session_state
RULES = ("leave one out", "counts")
WHATS = ("triple", "relation")


def prune_view(setup: FileSetup, found: WholeFile) -> None:
    """Choose a rule; see what goes."""
    st.markdown(markdown(t("file.prune_what")))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.selectbox(
            t("file.rule"),
            RULES,
            key="whole_file.rule",
            format_func=lambda name: t(f"file.rule.{name}"),
            help=t("file.rule_help"),
            width=270,
            **KEEP,
        )
        st.selectbox(
            t("file.prune_by"),
            WHATS,
            key="whole_file.prune_what",
            format_func=lambda name: t(f"file.prune_by.{name}"),
            width=190,
            **KEEP,
        )
        st.number_input(t("file.least"), 1, 100, key="whole_file.least", width=210, **KEEP)
        st.button(
            t("file.prune"),
            key="whole_file.prune",
            type="primary",
            icon=":material/content_cut:",
            on_click=begin_pruning,
            args=(setup, found),
        )
    run: Run[Pruned] | None = kept("whole_file.prune_run", ())
    if run is None:
        return
    follow(run, lambda _: None, key="whole_file.prune")
    look = run.look()
    if look.ended and look.results:
        pruned_panel(setup, look.results[-1])


def begin_pruning(setup: FileSetup, found: WholeFile) -> None:
    """Callback: prune in the background."""
    how = HowToPrune(
        ss["whole_file.rule"], ss["whole_file.prune_what"], int(ss["whole_file.least"])
    )
    ss.pop("whole_file.used", None)
    reader = services.pipeline(setup.model, ss["lab.device"])
    begin("whole_file.prune_run", (), lambda: file_runs.pruning(reader, setup, found, how))


def pruned_panel(setup: FileSetup, pruned: Pruned) -> None:
    """What was taken out, and the graph that is left."""
    st.markdown(f"**{markdown(view.say_pruned(pruned, len(setup.graph)))}**")
    if pruned.removed:
        columns = view.removed_table(pruned)
        names = {
            "removed": "file.removed",
            "hurt": "file.column.hurt",
            "helped": "file.column.helped",
            "texts": "file.removed_texts",
            "triples": "file.removed_triples",
        }
        st.dataframe(
            columns,
            key="whole_file.removed",
            hide_index=True,
            width="stretch",
            height=min(420, 38 + 35 * len(pruned.removed)),
            column_config={name: st.column_config.Column(t(names[name])) for name in columns},
        )
        save(pruned)
        st.caption(t("file.prune_honest"))


def save(pruned: Pruned) -> None:
    """Keep the pruned graph: as a file, or in this session."""
    with st.container(horizontal=True, gap="small"):
        st.download_button(
            t("file.download_pruned"),
            lambda: graph_as(pruned.graph, ".spo"),
            file_name=f"{services.safe_name(pruned.graph.name)}.spo",
            mime="text/tab-separated-values",
            key="whole_file.download_pruned",
            icon=":material/download:",
            on_click="ignore",
        )
        st.button(
            t("file.use_pruned"),
            key="whole_file.use_pruned",
            icon=":material/hub:",
            on_click=use_pruned,
            args=(pruned.graph,),
        )
    if "whole_file.used" in ss:
        st.caption(markdown(ss["whole_file.used"]))


def use_pruned(graph: KnowledgeGraph) -> None:
    """Callback, so that the choosers above have it: keep a graph in this session."""
    opened = services.OpenedGraph(graph, source=graph.name, own=True)
    try:
        state.take_graph(opened, choose=False)
        ss["whole_file.used"] = t("file.used_pruned", name=graph.name)
    except KBertError as error:  # there is no room for it
        ss["whole_file.used"] = str(error)
