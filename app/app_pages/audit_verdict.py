"""The verdict of an audit, on every page that has one."""

import json
from dataclasses import asdict

import streamlit as st

from app import services
from app.audits import Report
from app.texts import t
from app.view_models import audit as view
from app.view_models.html import escape, markdown


def verdict_panel(report: Report, page: str) -> None:
    """What the counts mean, and the numbers that answer most.

    Args:
        report: of the audit.
        page: with which the keys of the widgets begin.
    """
    audit = report.audit
    with st.container(border=True, key=f"{page}_verdict"):
        st.html(f'<div class="kb-headline">{escape(view.headline(report.verdict))}</div>')
        for column, fact in zip(st.columns(len(view.facts(audit))), view.facts(audit), strict=True):
            column.metric(fact.name, fact.value, help=fact.help)
        with st.container(gap="xsmall"):
            for reason in view.reasons(report.verdict):
                level = f":{reason.colour}[{reason.icon} **{reason.level}**]"
                st.markdown(f"{level}\u2002{markdown(reason.text)}")
        said = t(
            "audit.of",
            data=audit.data,
            task=t(f"audit.task.{audit.task}"),
            graph=audit.graph,
            triples=f"{audit.triples:,}",
            heads=f"{audit.heads:,}",
        )
        st.caption(markdown(said))
        st.download_button(
            t("audit.download"),
            lambda: json.dumps(
                {"verdict": report.verdict.as_dict(), **asdict(audit)},
                ensure_ascii=False,
                indent=1,
            ).encode(),
            file_name=f"audit-{services.safe_name(audit.data)}.json",
            mime="application/json",
            key=f"{page}.download",
            icon=":material/download:",
            on_click="ignore",
        )
