"""A labelled file with knowledge and without: sentences and tables. Pure."""

from collections.abc import Sequence
from typing import Any

from kbert_core.explain.result import name_of
from kbert_lab.lab.models import ModelInfo
from kbert_lab.lab.texts import N_, listed, sentences, t
from kbert_lab.lab.words import AUDIT_SPLIT
from kbert_lab.study.verdict import Finding, english
from kbert_lab.study.whole_file import FileRow, Verdict, WholeFile

FILE_METRIC = {"F1": N_("F1"), "accuracy": N_("accuracy"), "MRR": N_("MRR")}
FILE_DID = {
    Verdict.HURT: N_("✗ hurt"),
    Verdict.HELPED: N_("✓ helped"),
    Verdict.NEUTRAL: N_("· neither"),
}


def in_words(finding: Finding) -> str:
    """A finding of an audit in the language of whoever looks; plain text."""
    named = {kind: t(text) for kind, text in english().items()}
    return finding.in_words(named, lambda split: t(AUDIT_SPLIT[split]))


def say_whole(found: WholeFile) -> str:
    """Whether the graph helps, and how sure that is; plain text."""
    scores, difference = found.scores.main, found.scores.difference
    if not found.with_knowledge:
        return t("None of these texts contains a triple of the graph, so nothing can change.")
    if not found.changed or difference is None:
        return t("The graph changes no prediction here.")
    verdict = N_("It is unclear from {count} texts whether the graph helps.")
    if difference.low > 0:
        verdict = N_("The graph helps here.")
    elif difference.high < 0:
        verdict = N_("The graph hurts here.")
    shares = {
        "plain": scores["without a graph"].mean,
        "known": scores["with the graph"].mean,
        "low": difference.low,
        "high": difference.high,
    }
    numbers = t(
        "{metric} is {plain} without it and {known} with it; 95 % of the difference: {low} to "
        "{high}.",
        metric=t(FILE_METRIC[found.scores.metric]),
        **{name: f"{100 * share:.1f}".replace("-", "−") for name, share in shares.items()},
    )
    return sentences([t(verdict, count=f"{len(found.rows):,}"), numbers])


def changed(found: WholeFile) -> list[FileRow]:
    """The texts whose prediction the graph changes: the hurt ones first, then the helped."""
    order = list(FILE_DID)
    return sorted(found.changed, key=lambda row: (order.index(row.verdict), -abs(row.gain)))


def rows_table(rows: Sequence[FileRow], info: ModelInfo) -> dict[str, list[Any]]:
    """Texts as columns of a table of plain text; ``info`` names the model's labels."""

    def said(row: FileRow, value: Any) -> str:
        return info.label(value) if isinstance(value, str) else row.text(value) or t("–")

    return {
        t("the graph"): [t(FILE_DID[row.verdict]) for row in rows],
        t("text"): [" ‖ ".join(row.example.sentences) for row in rows],
        t("correct"): [said(row, row.gold) for row in rows],
        t("without"): [said(row, row.plain.said) for row in rows],
        t("with the graph"): [said(row, row.known.said) for row in rows],
        t("triples"): [listed(map(name_of, row.triples)) for row in rows],
    }
