"""What counting and reading a data set have shown: the verdict, texts, groups, tables."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

import streamlit as st

from app import services, state
from app.app_pages.parts import chart, download, segments, table
from app.audits import FileSetup, Report
from app.state import KEEP, graph_as_edited
from app.texts import N_, sentences, t
from app.view_models import audit as audit_view
from app.view_models import whole_file as view
from app.view_models.html import escape, markdown
from app.words import AUDIT_SPLIT, AUDIT_TASK, FILE_VERDICT
from kbert_core import KBertError
from kbert_lab.study.file_rows import FileRow
from kbert_lab.study.verdict import Finding, Level
from kbert_lab.study.whole_file import KINDS, By, WholeFile

FILE_VIEW = {
    "rows": (":material/format_list_bulleted:", N_("Texts that changed")),
    "groups": (":material/bar_chart:", N_("Helped and hurt")),
    "audit": (":material/fact_check:", N_("Data and graph")),
}

FILE_BY = {
    "label": N_("label"),
    "entity": N_("entity"),
    "relation": N_("relation"),
    "triple": N_("triple"),
}

FILE_GROUPS = {
    "texts": N_(
        "Counted are the texts in which such a triple stands; the triples of one text share what "
        "happens to it. Those hurt most come first."
    ),
    "labels": N_("Counted are texts, by the label that is right."),
    "entities": N_(
        "Counted are the entities that are right to find: helped is found only with the graph, "
        "hurt only without it."
    ),
}

LEVELS = {
    Level.WARNING: (":material/warning:", "orange", N_("Warning")),
    Level.NOTE: (":material/info:", "blue", N_("Note")),
    Level.GOOD: (":material/check_circle:", "green", N_("Fine")),
}

ss = st.session_state
ROWS, GROUPS, AUDIT = "rows", "groups", "audit"


# Before any model


def verdict_panel(report: Report) -> None:
    """What the counts mean, and the numbers that answer most."""
    audit, facts = report.audit, audit_view.facts(report.audit)
    with st.container(border=True, key="data_verdict"):
        headline = escape(audit_view.in_words(report.verdict.headline))
        headline = re.sub("`([^`]+)`", r"<code>\1</code>", headline)
        st.html(f'<div class="kb-headline">{headline}</div>')
        for column, fact in zip(st.columns(len(facts)), facts, strict=True):
            column.metric(fact.name, fact.value, help=fact.help)
        if figure := audit_view.expected_chart(audit):
            chart(figure, "data.expected")
        findings = report.verdict.findings
        first = [own for own in findings if own.level is Level.WARNING or own.kind == "advice"]
        say_findings(first)
        others = [own for own in findings if own not in first]
        if others:
            with st.expander(t("{count} more findings", count=len(others))):
                say_findings(others)
        said = t(
            "{data} ({task}) with {graph}: {triples} triples, {heads} heads. Tokens are counted "
            "as characters, or as words where spaces part them.",
            data=audit.data,
            task=t(AUDIT_TASK[audit.task]),
            graph=audit.graph,
            triples=f"{audit.triples:,}",
            heads=f"{audit.heads:,}",
        )
        st.caption(markdown(said))
        values = {"verdict": report.verdict.as_dict(), **asdict(audit)}
        download(
            "data.json",
            t("Download JSON"),
            lambda: json.dumps(values, ensure_ascii=False, indent=1).encode(),
            f"audit-{services.safe_name(audit.data)}.json",
            "application/json",
        )


def say_findings(findings: Sequence[Finding]) -> None:
    """Findings of the verdict, one a line; a word beside the icon tells what its colour does."""
    with st.container(gap="xsmall"):
        for finding in findings:
            icon, colour, level = LEVELS[finding.level]
            said = markdown(audit_view.in_words(finding))
            st.markdown(f":{colour}[{icon} **{t(level)}**]\u2002{said}")


def show_audit(report: Report) -> None:
    """What led to the verdict: tables and notes, part by part."""
    columns = st.columns([5, 6], gap="large")
    for column, parts in zip(columns, audit_view.parts(report.audit), strict=True):
        with column:
            for part in parts:
                st.markdown(f"#### {part.title}")
                for made in filter(None, part.tables):
                    table(made)
                for said in part.notes:
                    st.caption(markdown(said))


# With the model


def show_found(setup: FileSetup, rows: Sequence[FileRow], report: Report | None) -> None:
    """Everything, once the file was read."""
    found: WholeFile | None = ss.get("data.found")
    if found is None or len(found.rows) != len(rows):
        found = WholeFile(setup.data.task, setup.graph.name, tuple(rows), len(setup.examples))
        ss["data.found"] = found
    if len(rows) < found.total:
        text = N_("The reading was stopped: {done} of {total} texts.")
        said = t(text, done=f"{len(rows):,}", total=f"{found.total:,}")
        st.warning(said, icon=":material/stop_circle:")
    summary(setup, found)
    chosen = segments(
        t("Show"),
        [ROWS, GROUPS, *([AUDIT] if report else [])],
        "data.view",
        lambda name: f"{FILE_VIEW[name][0]} {t(FILE_VIEW[name][1])}",
        default=ROWS,
    )
    if chosen == GROUPS:
        groups_view(found)
    elif chosen == AUDIT and report is not None:
        show_audit(report)
    else:
        rows_view(setup, found)


def summary(setup: FileSetup, found: WholeFile) -> None:
    """The numbers that answer most, and what they say."""
    with st.container(border=True, key="data_summary"):
        st.html(f'<div class="kb-headline">{escape(view.say_whole(found))}</div>')
        counts = {  # and what is counted
            t("Texts"): (len(found.rows), None),
            t("With a triple"): (
                len(found.with_knowledge),
                N_(
                    "Texts that contain a triple of the graph. All others are read the same with "
                    "and without the graph."
                ),
            ),
            t("Prediction changed"): (
                len(found.changed),
                N_("Texts whose prediction with the graph differs from that without."),
            ),
            t("Helped"): (
                found.whole.helped,
                N_(
                    "Fewer errors with the graph. Of entities, both missed and wrongly predicted "
                    "ones count."
                ),
            ),
            t("Hurt"): (found.whole.hurt, N_("More errors with the graph.")),
        }
        left, right = st.columns([7, 4], gap="large", vertical_alignment="center")
        with left, st.container(horizontal=True, gap="medium"):
            for name, (count, note) in counts.items():
                st.metric(name, f"{count:,}", help=t(note) if note else None, width="content")
        with right:
            table(view.scores(found.scores), "data.scores")
        said = t(
            "{data}, {split}: {count} texts read by {model} with {graph}.",
            data=setup.data.name,
            split=t(AUDIT_SPLIT[setup.split]),
            count=f"{len(found.rows):,}",
            model=services.model_info(setup.model).name,
            graph=found.graph,
        )
        note = t(
            "In parentheses: 95 % of {metric}'s differences where the texts are drawn anew, with "
            "repeats.",
            metric=t(view.FILE_METRIC[found.scores.metric]),
        )
        st.caption(markdown(sentences([said, note])))


def rows_view(setup: FileSetup, found: WholeFile) -> None:
    """The texts that changed, and the chosen one of them."""
    which = segments(
        t("Which"),
        view.WHICH,
        "data.which",
        lambda name: t(
            "{name} ({count})",
            name=t("all") if name == view.ALL else t(FILE_VERDICT[name]),
            count=f"{len(view.shown(found, name)):,}",
        ),
        default=view.ALL,
        on_change=lambda: ss.pop("data.row", None),
    )
    rows = view.shown(found, which or view.ALL)
    if rows:
        table(
            view.rows_table(rows, services.model_info(setup.model)),
            f"data.table.{which}",
            choose=partial(choose_row, rows),
        )
    st.caption(
        t("Choose a row to see it in detail. Click a column's head to sort." if rows else "None.")
    )
    row = next((row for row in rows if row.number == ss.get("data.row")), None)
    if row is not None:
        row_panel(setup, row)


def choose_row(rows: Sequence[FileRow], chosen: int | None) -> None:
    """Callback of the table: remember the text by its number."""
    ss.pop("data.row", None)
    if chosen is not None and chosen < len(rows):
        ss["data.row"] = rows[chosen].number


def row_panel(setup: FileSetup, row: FileRow) -> None:
    """One text, and the way to the Lab, which shows all of it."""
    with st.container(border=True, key="data_row"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            number = t("Text {number}", number=f"{row.number + 1:,}")
            verdict = t(FILE_VERDICT[row.verdict])
            st.markdown(f"**{markdown(number)}** · {markdown(verdict)}", width="stretch")
            to_lab = st.button(
                t("Open in the Lab"),
                key="data.open_row",
                icon=":material/account_tree:",
                help=t("Puts the text, the model and the graph on the Lab's page."),
                type="primary",
            )
        st.markdown("  \n".join(map(markdown, row.example.sentences)))
        now = ss["lab.graphs"].get(setup.graph_name)
        if now is None or graph_as_edited(setup.graph_name).fingerprint != setup.graph.fingerprint:
            st.caption(t("The graph has been edited since the file was read."))
    if to_lab:
        try:
            open_in_lab(setup, row)
        except KBertError as error:  # its graph was closed, and there is no room for it
            st.error(markdown(error))


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


def groups_view(found: WholeFile) -> None:
    """Helped and hurt by label, entity, relation and triple."""
    by: By = segments(t("By"), KINDS, "data.by", FILE_BY, default="relation", **KEEP)
    groups = found.groups(by)
    kind = "texts"
    if by == "label":
        kind = "entities" if found.task == "ner" else "labels"
    st.caption(t(FILE_GROUPS[kind]))
    if hurting := view.say_hurting(found, by):
        st.markdown(markdown(hurting))
    if chance := view.say_chance(found, by):
        st.caption(markdown(chance))
    config = {head: st.column_config.Column(help=x) for head, x in view.groups_help().items()}
    most = max((max(own.helped, own.hurt) for own in groups), default=0) or 1
    for head in (t("helped"), t("hurt")):
        config[head] = st.column_config.ProgressColumn(format="%d", max_value=most)
    table(view.groups_table(groups), f"data.groups.{by}", config=config)
