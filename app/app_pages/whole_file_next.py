"""What can be done with a file once it was read: prune the graph, put attention beside effect."""

from collections.abc import Callable
from typing import Any, TypeVar

import streamlit as st

from app import file_runs, services, state
from app.app_pages.kept_runs import begin, kept
from app.app_pages.long_run import follow
from app.background import Run
from app.exports import graph_as
from app.file_runs import FileSetup, HowToPrune, Three
from app.state import KEEP
from app.texts import t
from app.view_models import whole_file as view
from app.view_models.html import markdown
from kbert_core import KBertError, KnowledgeGraph
from kbert_core.experiments.whole_file_groups import WholeFile
from kbert_core.experiments.whole_file_ways import Pruned, score_three
from kbert_core.explain.attention import AttentionEffect, Looker, rank_correlation

ss = st.session_state
RULES = ("leave one out", "counts")
WHATS = ("triple", "relation")
LOOKERS: tuple[Looker, ...] = ("trunk", "target")
PLOTLY = {"displayModeBar": False}
T = TypeVar("T")


# Pruning


def prune_view(setup: FileSetup, found: WholeFile) -> None:
    """Choose a rule; see what goes, and how the rest does on the test set."""
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
    run: Run[Pruned | Three] | None = kept("whole_file.prune_run", ())
    if run is None:
        return
    follow(run, lambda _: None, key="whole_file.prune")
    look = run.look()
    if look.ended and look.results:
        pruned_panel(setup, found, run)


def begin_pruning(setup: FileSetup, found: WholeFile) -> None:
    """Callback: prune in the background, and read the test set."""
    how = HowToPrune(
        ss["whole_file.rule"], ss["whole_file.prune_what"], int(ss["whole_file.least"])
    )
    ss.pop("whole_file.used", None)
    reader = services.pipeline(setup.model, ss["lab.device"])
    begin("whole_file.prune_run", (), lambda: file_runs.pruning(reader, setup, found, how))


def once(name: str, run: Run[Any], make: Callable[[], T]) -> T:
    """What is computed of a run that has ended: once, and kept under a name."""
    kept: tuple[Run[Any], T] | None = ss.get(name)
    if kept is None or kept[0] is not run:
        kept = ss[name] = (run, make())
    return kept[1]


def pruned_panel(setup: FileSetup, found: WholeFile, run: Run[Pruned | Three]) -> None:
    """What was taken out, what that does elsewhere, and the graph that is left."""
    pruned, *read = run.look().results
    assert isinstance(pruned, Pruned)
    answers = [one for one in read if not isinstance(one, Pruned)]
    left, right = st.columns([6, 5], gap="large")
    with left:
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
    with right:
        if answers:
            test_panel(setup, found, run, answers)
        elif not setup.test:
            st.info(markdown(t("file.no_test")), icon=":material/rule:")
        st.caption(t("file.prune_honest"))


def test_panel(
    setup: FileSetup, found: WholeFile, run: Run[Pruned | Three], answers: list[Three]
) -> None:
    """The test set without a graph, with the full one, and with the pruned one."""
    count = f"{len(answers):,}"
    whole = len(answers) == len(setup.test)
    st.markdown(f"**{markdown(t('file.test' if whole else 'file.test_partly', count=count))}**")
    scores = once(
        "whole_file.test_scores",
        run,
        lambda: score_three(found.task, found.labels, setup.test, answers),
    )
    st.html(view.scores_html(scores))
    said = view.say_test(scores)
    if said:
        st.markdown(markdown(said))


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


# Attention


def attention_view(setup: FileSetup, found: WholeFile) -> None:
    """Whether the triples that are looked at are those that matter."""
    st.markdown(markdown(t("file.attention_what")))
    st.button(
        t("file.attention"),
        key="whole_file.attention",
        type="primary",
        icon=":material/visibility:",
        on_click=begin_attention,
        args=(setup, found),
        disabled=not found.with_knowledge,
    )
    run: Run[AttentionEffect] | None = kept("whole_file.attention_run", ())
    if run is None:
        return
    follow(run, lambda _: None, key="whole_file.attention")
    look = run.look()
    if not look.ended:
        return
    if not look.results:
        st.caption(t("file.attention_none"))
        return
    trunk, target = once(
        "whole_file.correlations",
        run,
        lambda: [rank_correlation(look.results, looker=looker) for looker in LOOKERS],
    )
    left, right = st.columns([5, 6], gap="large")
    with left:
        for said in view.say_attention(trunk, target):
            st.markdown(markdown(said))
    with right:
        st.plotly_chart(
            view.attention_chart(look.results), key="whole_file.attention_chart", config=PLOTLY
        )


def begin_attention(setup: FileSetup, found: WholeFile) -> None:
    """Callback: measure in the background."""
    reader = services.pipeline(setup.model, ss["lab.device"])
    begin("whole_file.attention_run", (), lambda: file_runs.attentions(reader, setup, found))
