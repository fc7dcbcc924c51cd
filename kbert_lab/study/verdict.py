"""What an audit means, in words, by thresholds that stand here and nowhere else.

The words are templates in ``verdict.yaml``, one per kind of finding, for
whoever says them in another language.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from enum import StrEnum
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any

import yaml
from jinja2 import Environment, Template

from kbert_lab.study.audit_values import Audit, Share, SplitAudit
from kbert_lab.study.expected import point_of

LITTLE_KNOWN = 0.05  # of the gold mentions: with less in the graph, hardly a gain is to be expected
MUCH_KNOWN = 0.2
FEW_ROWS = 100  # in the held-out set: with fewer a share says little
FEW_MENTIONS = 30  # in the held-out set, gold or a dictionary's: with fewer nothing is advised
LITTLE_UNSEEN = 0.1  # of the gold mentions: with fewer new ones, training has shown nearly all
LITTLE_NEW = 0.02  # of the gold mentions: fewer that are new to the model and known to the graph
TAUGHT = 0.1  # of training's mentions: with more in the graph, a branch is expected at a name
FEW_TEXTS = 0.2  # of the texts: with fewer that name a head, most are read as by plain BERT
LEAK = 0.01  # of the rows: with more that stand in another split, the score is too good
BAD_LEAK = 0.05
MADE_FROM_DATA = 0.25  # of the known mentions: more of them of types that are nearly all gold
NOISE = 0.5  # of the matches: with fewer on a mention of their type, most branches are noise
HARM = 0.5  # points of F1: a dictionary that costs a model more is not to be written over it
WORTH = 2  # points of F1: a gate that adds as much is worth having
AMBIGUOUS = 0.1  # of the matches: more with heads whose tails disagree, or with several heads
SHOWN_EXAMPLES = 5  # of what is odd
SHOWN_NAMES = 3  # of those with several heads, and heads of each
CONFLICTS = 0.01  # of the rows: more with a text that is labelled in several ways
UNKNOWN = 0.02  # of the tokens: more that the model's vocabulary lacks
LONG = 0.01  # of the inputs: more over the length limit with their branches
COSTLY = 0.5  # tokens that the branches add: more, and training takes notably longer
# warnings that the headline speaks of
HEADLINE = (
    *("unlabelled", "missing", "leaks", "room", "made_from_data", "coverage", "untaught"),
    *("unknown_new", "looked_up", "advice"),
)


class Level(StrEnum):
    """How a finding bears on what the data and the graph can show."""

    WARNING = "warning"
    NOTE = "note"
    GOOD = "good"


@cache
def english() -> Mapping[str, str]:
    """The words of a verdict: kind of finding → Jinja template."""
    text = files("kbert_lab.study").joinpath("verdict.yaml").read_text(encoding="utf-8")
    templates: dict[str, str] = yaml.safe_load(text)
    return templates


@cache
def _compiled(template: str) -> Template:
    environment = Environment()
    environment.globals |= {"n": "{:,}".format, "points_of": lambda share: f"{100 * share:.1f}"}
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

    answers: tuple[Finding, ...]  # what to expect of K-BERT, a gate, and names written over a model
    headline: Finding  # whether data and graph can show anything, in one or two sentences
    findings: tuple[Finding, ...]  # why; warnings first

    def as_dict(self) -> dict[str, Any]:
        """Answers, headline and findings in English, for JSON."""
        findings = [
            {"kind": f.kind, "level": str(f.level), "text": f.in_words()} for f in self.findings
        ]
        answers = [answer.in_words() for answer in self.answers]
        return {"answers": answers, "headline": self.headline.in_words(), "findings": findings}


@dataclass(frozen=True)
class Report:
    """What was counted, and what it means."""

    counts: Audit
    verdict: Verdict
    every: bool = False  # whether its text has all findings, and the counts

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON; the verdict first."""
        return {"verdict": self.verdict.as_dict(), **asdict(self.counts)}

    def rows(self) -> list[dict[str, Any]]:
        """The counts of the splits: a row each, a column for its name and one per split."""
        splits = {name: dict(_flat(split)) for name, split in self.counts.splits.items()}
        counts = dict.fromkeys(chain(splits[self.counts.held_out], *splits.values()))
        return [{"": count, **{s: splits[s].get(count) for s in splits}} for count in counts]

    def facts(self) -> dict[str, Any]:
        """The other counts, by name."""
        audit = self.counts
        facts: dict[str, Any] = {
            "no data": audit.missing or None,
            "texts that stand in two splits": [dict(_flat(leak)) for leak in audit.leaks] or None,
            "texts labelled in several ways": dict(_flat(audit.conflicts)),
            "heads of several types": dict(_flat(audit.ambiguity)),
            "learnt from train": audit.tail_labels or None,
        }
        if audit.answers is not None:
            known = dict(_flat(replace(audit.answers, groups=())))
            groups = [dict(_flat(group)) for group in audit.answers.groups]
            facts |= {"gold mentions in the graph": known, "types": groups or None}
        return facts


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The counts in a value, each with its name; of those by label what the graph knows."""
    if is_dataclass(value) and not isinstance(value, Share):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        value = dict(value[:SHOWN_EXAMPLES])
    if isinstance(value, Mapping):
        for key, part in value.items():
            key = key.replace("_", " ")
            yield from _flat(part, f"{name}, {key}" if name else key)
    elif value not in (None, ()) and ("by label" not in name or name.endswith("known")):
        if isinstance(value, float):
            value = f"{100 * value:.1f}"
        elif not isinstance(value, int):
            value = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        yield name, value


def verdict_of(audit: Audit) -> Verdict:
    """Say what the counts of an audit mean."""
    split, said = audit.splits[audit.held_out], {"held_out": audit.held_out}
    made = [
        Finding(kind, level, {**said, **values})
        for look in (_of_data, _of_knowledge, _of_graph, _of_branches)
        for kind, level, values in look(audit, split)
    ]
    levels, kinds = list(Level), list(english())
    findings = sorted(made, key=lambda f: (levels.index(f.level), kinds.index(f.kind)))
    warned = {finding.kind for finding in findings if finding.level is Level.WARNING}
    values = {
        **said,
        "matches": split.matches,
        "warned": [kind for kind in HEADLINE if kind in warned] if split.matches else [],
        "may": bool(audit.expected) and audit.expected["dictionary"].high >= 0,
        "ner": audit.task == "ner",
        "model": audit.looked_up.model if audit.looked_up else "",
    }
    answers = tuple(Finding(kind, Level.NOTE, {**said, **v}) for kind, v in _answers(audit, split))
    return Verdict(answers, Finding("headline", Level.NOTE, values), tuple(findings))


def _answers(audit: Audit, split: SplitAudit) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what is expected of each way to use the graph; few mentions say nothing of it.

    Of a way that was measured the findings tell.
    """
    if not audit.expected or split.mentions is None or not split.matches:
        return
    mentions = split.mentions.all.known.total
    if mentions < FEW_MENTIONS:
        yield "few_mentions", {"mentions": mentions, "needed": FEW_MENTIONS}
        return
    measured = audit.looked_up is not None and audit.looked_up.new_names is not None
    for way in ("K-BERT",) if measured else ("K-BERT", "gate", "dictionary"):
        yield "answer", {"way": way, "gain": audit.expected[way]}


# Findings: of each its kind, its level and the values of its template

Findings = Iterator[tuple[str, Level, dict[str, Any]]]


def _level(*, warn: bool = False, note: bool = False) -> Level:
    return Level.WARNING if warn else Level.NOTE if note else Level.GOOD


def costs(change: float) -> bool:
    """Whether a dictionary that changes F1 by so much isn't to be written over a model."""
    return 100 * change < -HARM


def pays(change: float) -> bool:
    """Whether a gate that changes F1 by so much is worth having."""
    return 100 * change >= WORTH


def _worth_adding(audit: Audit, dev: Mapping[str, Any] | None) -> str | None:
    """How to look names up, if it is worth it: "gate", or "dictionary" where dev has none wrong."""
    way = "dictionary" if dev and dev["predicted"] == dev["right"] else "gate"
    fits = dev is None or dev["right"]  # nothing right in dev, and no gate can be fitted
    return way if fits and pays(audit.expected[way].mean) else None


def _of_data(audit: Audit, split: SplitAudit) -> Findings:
    """Yield findings about the data: splits, size, leaks, conflicting labels."""
    if audit.missing:
        first, second = (*audit.missing, "")[:2]
        level = _level(warn=audit.held_out == "train", note=True)
        yield "missing", level, {"first": first, "second": second}
    if split.examples < FEW_ROWS:
        yield "size", Level.NOTE, {"rows": split.examples}
    unknown = split.injection.unknown
    if unknown is not None and unknown.share > UNKNOWN:
        yield "unknown", Level.WARNING, {"share": unknown}
    if audit.leaks:
        worst = max(audit.leaks, key=lambda leak: leak.texts.share)
        leaks = [leak for leak in audit.leaks if leak.texts.share >= LEAK]
        level = _level(warn=worst.texts.share >= BAD_LEAK, note=bool(leaks))
        yield "leaks", level, {"worst": worst, "leaks": leaks}
    if split.majority is not None:
        yield "majority", Level.NOTE, {"share": split.majority}
    if count := audit.conflicts.texts.count:
        every = sum(split.examples for split in audit.splits.values())
        rows = Share(audit.conflicts.rows, every)
        level = _level(note=rows.share >= CONFLICTS)
        yield "conflicts", level, {"count": count, "rows": rows}


def _of_knowledge(audit: Audit, split: SplitAudit) -> Findings:
    """Yield findings about what the graph knows of the texts, and the room for a gain."""
    train = audit.splits["train"]
    if split.matches and not train.matches:
        yield "untaught", Level.WARNING, {}
    if (gold := split.mentions) is None:
        texts = split.with_match
        level = _level(warn=texts.share < FEW_TEXTS)
        yield "coverage", level, {"texts": texts, "per": split.matches / split.examples}
        if split.answers_known is not None:
            yield "answers_known", Level.NOTE, {"share": split.answers_known}
        return
    known, reached = gold.all.known, gold.all.reached
    if not known.total:
        yield "unlabelled", Level.WARNING, {}
        return
    values: dict[str, Any] = {"known": known}
    labels = sorted(gold.by_label.items(), key=lambda item: item[1].known.share)
    if len(labels) > 1 and known.count:
        (least, low), (most, high) = labels[0], labels[-1]
        if high.known.share > low.known.share:
            values |= {"most": most, "high": high.known, "least": least, "low": low.known}
    if known.count - reached.count > 0.01 * known.total:
        values["reached"] = reached
    yield "coverage", _level(warn=known.share < LITTLE_KNOWN, note=known.share < MUCH_KNOWN), values
    if gold.unseen is not None:
        total, unseen = known.total, gold.unseen.known
        share, new = Share(unseen.total, total), Share(unseen.count, total)
        few = unseen.count < LITTLE_NEW * total
        level = _level(warn=share.share < LITTLE_UNSEEN, note=few)
        yield "room", level, {"share": share, "known": unseen, "new": new}
        assert train.mentions is not None
        taught = train.mentions.all.known
        if few and level is not Level.WARNING and taught.share >= TAUGHT:
            yield "unknown_new", Level.WARNING, {"taught": taught, "known": unseen}


def _of_graph(audit: Audit, split: SplitAudit) -> Findings:
    """Yield findings about the graph: made from the labels? is it good as a dictionary?"""
    answers, scores = audit.answers, split.dictionary
    if answers is not None and answers.from_gold.total:
        alone = {split: answers.known_names.get(f"{split} only") for split in audit.splits}
        values = {
            "names": {split: known for split, known in alone.items() if known is not None},
            "groups": [group for group in answers.groups if group.from_gold],
            "mentions": answers.from_gold,
            "heads": answers.gold_heads,
        }
        level = _level(warn=answers.from_gold.share >= MADE_FROM_DATA)
        yield "made_from_data", level, values
    if scores is not None:
        yield "dictionary", Level.NOTE, {"scores": scores}
    enough = scores is not None and min(scores["gold"], scores["predicted"]) >= FEW_MENTIONS
    if audit.expected and scores is not None and split.matches:
        found = audit.looked_up.new_names if audit.looked_up is not None else None
        told = audit.expected if found is None else {"K-BERT": audit.expected["K-BERT"]}
        point = point_of(split)
        assert point is not None
        values = {
            "point": point,
            "measured": found is not None,
            "found": found if scores["unseen"]["gold"] else None,
            "bert": audit.found,
            "linear": audit.linear,
            "outside": any(gain.outside for gain in told.values()),
            "unsure": point.new >= LITTLE_NEW,
        }
        if scores["gold"] >= FEW_MENTIONS:
            yield "expected", Level.NOTE, values
        dev = audit.splits["dev"].dictionary if "dev" in audit.splits else None
        advised = {
            "dev": dev is not None,
            "right": dev["right"] if dev else 0,
            "costs": costs(audit.expected["dictionary"].mean),
            "adds": _worth_adding(audit, dev),
            "gains": audit.expected,
            "outside": audit.expected["dictionary"].outside,
        }
        # where a model was read they are measured
        if audit.looked_up is None and enough and (advised["costs"] or advised["adds"]):
            yield "advice", _level(warn=bool(advised["costs"]), note=True), advised
    looked = audit.looked_up
    if looked is not None and looked.gains:  # else nothing is labelled or found
        values = {"model": looked.model, "alone": f"{100 * looked.alone:.1f}"}
        values["held_out"] = looked.split
        values["reads"] = looked.new_names is None
        values["gains"] = {
            way: f"{100 * mean:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"
            for way, (mean, low, high) in looked.gains.items()
        }
        values["no_dev"] = not {"dev", "test"} <= {*audit.splits}
        yield "looked_up", _level(warn=costs(looked.gains["dictionary"][0]), note=True), values
    if (kinds := split.kinds) is not None and kinds.exact.total:
        noise = kinds.other.share + kinds.outside.share
        yield "noise", _level(note=noise > 1 - NOISE), {"kinds": kinds}


def _of_branches(audit: Audit, split: SplitAudit) -> Findings:
    """Yield findings about what is injected: names with several meanings, and length."""
    values: dict[str, Any]
    heads, matched = audit.ambiguity, split.ambiguous_matches
    if matched.total and (heads.several.count or matched.count):
        values = {"matched": matched, "several": heads.several, "relation": heads.relation}
        yield "ambiguity", _level(note=matched.share >= AMBIGUOUS), values
    homonyms, injection = split.homonyms, split.injection
    if homonyms.matches.count:
        names = [
            (name, [*of[:SHOWN_NAMES], *["…"] * (len(of) > SHOWN_NAMES)])
            for name, of in homonyms.examples[:SHOWN_NAMES]
        ]
        values = {"matched": homonyms.matches, "rows": homonyms.rows, "names": names}
        level = _level(note=homonyms.matches.share >= AMBIGUOUS)
        yield "homonyms", level, {**values, "one_sense": audit.options.one_sense}
    if injection.added.count:
        over = injection.long_trees.share >= LONG
        values = {"injection": injection, "rows": split.examples, "over": over}
        yield "length", _level(note=over or injection.added.share >= COSTLY), values
