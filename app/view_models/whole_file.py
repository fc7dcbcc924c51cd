"""A labelled file with knowledge and without: sentences and tables. Pure."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from app.models import ModelInfo
from app.texts import N_, listed, t
from app.words import FILE_VERDICT
from kbert_core.explain.result import name_of
from kbert_lab.study.file_rows import FileRow, Verdict
from kbert_lab.study.statistics import LEVEL
from kbert_lab.study.whole_file import By, FileScores, Group, WholeFile

FILE_HURTING = {
    "label": N_("labels"),
    "entity": N_("entities"),
    "relation": N_("relations"),
    "triple": N_("triples"),
}

FILE_METRIC = {"F1": N_("F1"), "accuracy": N_("accuracy"), "MRR": N_("MRR")}

FILE_SAID = {"hurt": N_("hurts"), "helped": N_("helps"), "neutral": N_("unclear")}

FILE_WAY = {"without a graph": N_("without a graph"), "with the graph": N_("with the graph")}

ALL = "all"
WHICH = (ALL, *(str(verdict) for verdict in Verdict))
NAMED = 3  # groups that are named in a sentence
Columns = dict[str, list[Any]]


# In a few sentences


def going(rows: Sequence[FileRow]) -> str:
    """What is known so far; plain text."""
    verdicts = [row.verdict for row in rows]
    return t(
        "{done} texts so far, knowledge changes {changed}: {helped} helped, {hurt} hurt.",
        done=f"{len(rows):,}",
        changed=f"{sum(row.changed for row in rows):,}",
        helped=f"{verdicts.count(Verdict.HELPED):,}",
        hurt=f"{verdicts.count(Verdict.HURT):,}",
    )


def say_whole(found: WholeFile) -> str:
    """Whether the graph helps, and how sure that is; plain text."""
    if not found.with_knowledge:
        return t("None of these texts contains a triple of the graph, so nothing can change.")
    if not found.changed:
        return t("The graph changes no prediction here.")
    difference = found.scores.difference
    if difference is None:
        return ""
    mean, low, high = difference.mean, difference.low, difference.high
    if high < 0:  # said as a loss
        mean, low, high = -mean, -high, -low
    values = {"difference": points(mean), "low": points(low), "high": points(high)}
    values["metric"] = t(FILE_METRIC[found.scores.metric])
    text = N_(
        "It is unclear from {count} texts whether the graph helps: {metric} differs by "
        "{difference} points ({low} to {high})."
    )
    if difference.low > 0:
        text = N_(
            "The graph helps here: {metric} is {difference} points higher with it than without "
            "({low} to {high})."
        )
    if difference.high < 0:
        text = N_(
            "The graph hurts here: {metric} is {difference} points lower with it than without "
            "({low} to {high})."
        )
    return t(text, count=f"{len(found.rows):,}", **values)


def say_hurting(found: WholeFile, by: By) -> str:
    """Name the groups that hurt, or those that come nearest; plain text."""
    groups = found.groups(by)
    sure = [group for group in groups if group.verdict is Verdict.HURT]
    if sure:
        named = listed(map(_hurting, sure[:NAMED]))
        return t("These {by} hurt: {names}.", by=t(FILE_HURTING[by]), names=named)
    maybe = [group for group in groups if group.hurt > group.helped]
    text = N_("None is certain to hurt; the most texts are hurt with {names}.")
    return t(text, names=listed(map(_hurting, maybe[:NAMED]))) if maybe else ""


def say_chance(found: WholeFile, by: By) -> str:
    """Say how many groups are marked, and how many would be by chance; plain text."""
    groups = [group for group in found.groups(by) if group.helped or group.hurt]
    marked = sum(group.verdict is not Verdict.NEUTRAL for group in groups)
    if not marked or len(groups) == 1:
        return ""
    expected = sum(by_chance(group.helped + group.hurt) for group in groups)
    return t(
        "{marked} of the {count} groups with a change are said to help or to hurt. About "
        "{expected} would be by chance, if every change fell either way as a coin does.",
        marked=f"{marked:,}",
        count=f"{len(groups):,}",
        expected=f"{expected:.1f}",
    )


@lru_cache(4096)
def by_chance(changed: int) -> float:
    """Return how likely a group has a verdict other than neutral though knowledge did nothing.

    Wilson's interval of the share of hurt leaves out a half where hurt and
    helped are more than z √n apart; each of the n changed fell as a coin does.
    """
    from scipy.stats import binom, norm  # slow to start

    most = math.ceil((changed - norm.ppf((1 + LEVEL) / 2) * math.sqrt(changed)) / 2) - 1
    return 2 * float(binom.cdf(most, changed, 0.5))


def points(share: float) -> str:
    """A score from 0 to 1, of 100."""
    return f"{100 * share:.1f}".replace("-", "−")


# The rows


def shown(found: WholeFile, which: str) -> tuple[FileRow, ...]:
    """The texts whose prediction changed, all of them or by what knowledge did."""
    return tuple(row for row in found.changed if which == ALL or str(row.verdict) == which)


def rows_table(rows: Sequence[FileRow], info: ModelInfo) -> Columns:
    """The rows as columns of a table; cells are plain text and numbers.

    Args:
        info: of the model, for the names of its labels.
    """
    return {
        t("knowledge"): [t(FILE_VERDICT[row.verdict]) for row in rows],
        t("text"): [" ‖ ".join(row.example.sentences) for row in rows],
        t("correct"): [said(row, row.gold, info) for row in rows],
        t("with the graph"): [said(row, row.known.said, info) for row in rows],
        t("without"): [said(row, row.plain.said, info) for row in rows],
        t("triples"): [listed(map(name_of, row.triples)) for row in rows],
    }


def said(row: FileRow, value: Any, info: ModelInfo) -> str:
    """An answer in a line; plain text."""
    if isinstance(value, str):
        return info.label(value)
    return row.text(value) or t("–")


# The groups


def groups_table(groups: Sequence[Group]) -> Columns:
    """The groups as columns of a table."""
    return {
        t("name"): [group.name for group in groups],
        t("of"): [group.count for group in groups],
        t("helped"): [group.helped for group in groups],
        t("hurt"): [group.hurt for group in groups],
        t("helped, 95 %"): [_share(g.helped, g.count, g.helped_interval) for g in groups],
        t("hurt, 95 %"): [_share(g.hurt, g.count, g.hurt_interval) for g in groups],
        t("verdict"): [t(FILE_SAID[group.verdict]) for group in groups],
    }


def groups_help() -> dict[str, str]:
    """What some columns of the groups count, where their heads don't say all."""
    interval = t(
        "The share, and where it may lie for other texts of the same kind: Wilson's interval."
    )
    verdict = t(
        "“Hurts” or “helps” where 95 % of the share of hurt among what is helped or hurt lies on "
        "one side of a half."
    )
    return {t("helped, 95 %"): interval, t("hurt, 95 %"): interval, t("verdict"): verdict}


# Scores


def scores(scores: FileScores) -> Columns:
    """Every way of reading with its score and interval, as columns."""
    return {
        t("how it was read"): [t(FILE_WAY[way]) for way in scores.main],
        t("score"): [f"{points(own.mean)} %" for own in scores.main.values()],
        t("95 %"): [f"{points(own.low)} – {points(own.high)}" for own in scores.main.values()],
    }


def _hurting(group: Group) -> str:
    counts = {"hurt": f"{group.hurt:,}", "helped": f"{group.helped:,}"}
    return t("{name} ({hurt} hurt, {helped} helped)", name=group.name, **counts)


def _share(count: int, total: int, interval: tuple[float, float]) -> str:
    low, high = interval
    share = 100 * count / total if total else 0
    return f"{share:.0f} % ({100 * low:.0f} – {100 * high:.0f})"
