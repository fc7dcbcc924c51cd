"""What an audit means, in words, by thresholds that stand here and nowhere else.

The words are templates in ``verdict.yaml``, one per kind of finding, for
whoever says them in another language.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

import yaml
from jinja2 import Environment, Template

from kbert_core.experiments.audit_values import Audit, Share, SplitAudit

LITTLE_KNOWN = 0.05  # of the gold mentions: with less in the graph, hardly a gain is to be expected
MUCH_KNOWN = 0.2
FEW_ROWS = 100  # in the held-out set: with fewer a share says little
LITTLE_UNSEEN = 0.1  # of the gold mentions: with fewer new ones, training has shown nearly all
LITTLE_NEW = 0.02  # of the gold mentions: fewer that are new to the model and known to the graph
FEW_TEXTS = 0.2  # of the texts: with fewer that name a head, most are read as by plain BERT
LEAK = 0.01  # of the rows: with more that stand in another split, the score is too good
BAD_LEAK = 0.05
MADE_FROM_DATA = 0.25  # of the known mentions: more of them of types that are nearly all gold
NOISE = 0.5  # of the matches: with fewer that are mentions, most branches hang beside them
AMBIGUOUS = 0.1  # of the matches: more with heads whose tails disagree, or with several heads
SHOWN_NAMES = 3  # of those with several heads, and heads of each
CONFLICTS = 0.01  # of the rows: more with a text that is labelled in several ways
LONG = 0.01  # of the inputs: more over the length limit with their branches
COSTLY = 0.5  # tokens that the branches add: more, and training takes notably longer
HEADLINE = ("leaks", "room", "made_from_data", "coverage")  # warnings that it speaks of


class Level(StrEnum):
    """How a finding bears on what the data and the graph can show."""

    WARNING = "warning"
    NOTE = "note"
    GOOD = "good"


@cache
def english() -> Mapping[str, str]:
    """The words of a verdict: kind of finding → Jinja template."""
    text = files("kbert_core.experiments").joinpath("verdict.yaml").read_text(encoding="utf-8")
    templates: dict[str, str] = yaml.safe_load(text)
    return templates


@cache
def _compiled(template: str) -> Template:
    environment = Environment()
    environment.globals["n"] = "{:,}".format
    return environment.from_string(template)


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason for the verdict, or its headline."""

    kind: str  # what it is about, such as "coverage"
    level: Level
    values: Mapping[str, Any]  # the numbers that led to it, by the names of its template

    def in_words(
        self, texts: Mapping[str, str] | None = None, called: Callable[[str], str] = str
    ) -> str:
        """What it says.

        Args:
            texts: templates by kind, as those of :func:`english`; None: these.
            called: what a split is called in their language.
        """
        template = _compiled((texts or english())[self.kind])
        words = template.render(self.values, level=self.level, called=called).strip().split(" ")
        return " ".join(word for word in words if word)  # no space twice


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an audit means."""

    values: Mapping[str, Any]  # of the headline
    findings: tuple[Finding, ...]  # why; warnings first

    def headline(
        self, texts: Mapping[str, str] | None = None, called: Callable[[str], str] = str
    ) -> str:
        """The answer in one or two sentences; see ``Finding.in_words``."""
        return Finding("headline", Level.NOTE, self.values).in_words(texts, called)

    def as_dict(self) -> dict[str, Any]:
        """Headline and findings in English, for JSON."""
        findings = [
            {"kind": f.kind, "level": str(f.level), "text": f.in_words()} for f in self.findings
        ]
        return {"headline": self.headline(), "findings": findings}


def verdict_of(audit: Audit) -> Verdict:
    """Say what the counts of an audit mean."""
    split, said = audit.splits[audit.held_out], {"held_out": audit.held_out}
    findings = [
        Finding(kind, made[0], {**said, **made[1]})
        for kind, find in FINDINGS.items()
        if (made := find(audit, split)) is not None
    ]
    warned = {finding.kind for finding in findings if finding.level is Level.WARNING}
    values = {
        **said,
        "matches": split.matches,
        "warned": [kind for kind in HEADLINE if kind in warned] if split.matches else [],
        "ner": audit.task == "ner",
    }
    order = list(Level)
    return Verdict(values, tuple(sorted(findings, key=lambda f: order.index(f.level))))


# Findings: each a level and the values of its template, or None if there is nothing to say

Found = tuple[Level, dict[str, Any]] | None


def _missing(audit: Audit, _: SplitAudit) -> Found:
    if not audit.missing:
        return None
    level = Level.WARNING if audit.held_out == "train" else Level.NOTE
    return level, {"first": audit.missing[0], "second": "".join(audit.missing[1:2])}


def _size(audit: Audit, split: SplitAudit) -> Found:
    return (Level.NOTE, {"rows": split.examples}) if split.examples < FEW_ROWS else None


def _coverage(audit: Audit, split: SplitAudit) -> Found:
    if split.mentions is None:
        texts = split.with_match
        level = Level.WARNING if texts.share < FEW_TEXTS else Level.GOOD
        return level, {"texts": texts, "per": split.matches / split.examples}
    known, reached = split.mentions.all.known, split.mentions.all.reached
    level = Level.GOOD if known.share >= MUCH_KNOWN else Level.NOTE
    level = Level.WARNING if known.share < LITTLE_KNOWN else level
    values: dict[str, Any] = {"known": known}
    labels = sorted(split.mentions.by_label.items(), key=lambda item: item[1].known.share)
    if len(labels) > 1 and known.count:
        (least, low), (most, high) = labels[0], labels[-1]
        values |= {"most": most, "high": high.known, "least": least, "low": low.known}
    if known.count - reached.count > 0.01 * known.total:
        values["reached"] = reached
    return level, values


def _room(audit: Audit, split: SplitAudit) -> Found:
    if split.mentions is None or split.mentions.unseen is None:
        return None
    known, total = split.mentions.unseen.known, split.mentions.all.known.total
    share, new = Share(known.total, total), Share(known.count, total)
    level = Level.NOTE if known.count < LITTLE_NEW * total else Level.GOOD
    level = Level.WARNING if share.share < LITTLE_UNSEEN else level
    return level, {"share": share, "known": known, "new": new}


def _leaks(audit: Audit, _: SplitAudit) -> Found:
    if not audit.leaks:
        return None
    worst = max(audit.leaks, key=lambda leak: leak.texts.share)
    leaks = [leak for leak in audit.leaks if leak.texts.share >= LEAK]
    level = Level.WARNING if worst.texts.share >= BAD_LEAK else Level.NOTE
    return level if leaks else Level.GOOD, {"worst": worst, "leaks": leaks}


def _made_from_data(audit: Audit, _: SplitAudit) -> Found:
    answers = audit.answers
    if answers is None or not answers.from_gold.total:
        return None
    alone = {split: answers.known_names.get(f"{split} only") for split in audit.splits}
    values = {
        "names": {split: known for split, known in alone.items() if known is not None},
        "groups": [group for group in answers.groups if group.from_gold],
        "mentions": answers.from_gold,
        "heads": answers.gold_heads,
    }
    return Level.WARNING if answers.from_gold.share >= MADE_FROM_DATA else Level.GOOD, values


def _dictionary(audit: Audit, split: SplitAudit) -> Found:
    if (scores := split.dictionary) is None:
        return None
    shown = {name: scores[name] for name in ("f1", "precision", "recall")}
    shown["unseen"] = scores["unseen"]["recall"]
    shown = {name: f"{100 * score:.1f}" for name, score in shown.items()}
    return Level.NOTE, {"predicted": scores["predicted"], **shown}


def _majority(audit: Audit, split: SplitAudit) -> Found:
    return (Level.NOTE, {"share": split.majority}) if split.majority is not None else None


def _noise(audit: Audit, split: SplitAudit) -> Found:
    share = split.gold_matches
    if share is None or not share.total:
        return None
    return Level.NOTE if share.share < NOISE else Level.GOOD, {"share": share}


def _ambiguity(audit: Audit, split: SplitAudit) -> Found:
    heads, matched = audit.ambiguity, split.ambiguous_matches
    if not matched.total or not (heads.several.count or matched.count):
        return None
    values = {"matched": matched, "several": heads.several, "relation": heads.relation}
    return Level.NOTE if matched.share >= AMBIGUOUS else Level.GOOD, values


def _homonyms(audit: Audit, split: SplitAudit) -> Found:
    homonyms = split.homonyms
    if not homonyms.matches.count:
        return None
    names = [
        (name, [*heads[:SHOWN_NAMES], *["…"] * (len(heads) > SHOWN_NAMES)])
        for name, heads in homonyms.examples[:SHOWN_NAMES]
    ]
    values = {"matched": homonyms.matches, "rows": homonyms.rows, "names": names}
    level = Level.GOOD if homonyms.matches.share < AMBIGUOUS else Level.NOTE
    return level, {**values, "one_sense": audit.options.one_sense}


def _conflicts(audit: Audit, _: SplitAudit) -> Found:
    conflicts = audit.conflicts
    if not conflicts.texts.count:
        return None
    rows = Share(conflicts.rows, sum(split.examples for split in audit.splits.values()))
    level = Level.NOTE if rows.share >= CONFLICTS else Level.GOOD
    return level, {"count": conflicts.texts.count, "rows": rows}


def _length(audit: Audit, split: SplitAudit) -> Found:
    injection = split.injection
    if not injection.added.count:
        return None
    over = injection.long_trees.share >= LONG
    values = {
        "mean": f"{injection.added.count / split.examples:.1f}",
        "tokens": f"{injection.tokens / split.examples:.1f}",
        "added": injection.added,
        "over": over,
        "long": injection.long_trees,
        "limit": injection.limit,
        "no_room": injection.added_over,
    }
    return Level.NOTE if over or injection.added.share >= COSTLY else Level.GOOD, values


FINDINGS: dict[str, Callable[[Audit, SplitAudit], Found]] = {  # by kind
    find.__name__.removeprefix("_"): find
    for find in (
        *(_missing, _size, _coverage, _room, _leaks, _made_from_data, _dictionary, _majority),
        *(_noise, _ambiguity, _homonyms, _conflicts, _length),
    )
}
