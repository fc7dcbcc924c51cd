"""What an audit means, in words, by thresholds that stand here and nowhere else.

The words are in ``verdict.yaml``, by keys, for whoever says them in another
language.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from kbert_core.experiments.audit_values import Audit, Coverage, Leak, Share, SplitAudit

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
SPLIT_NAMES = frozenset({"held_out", "first", "second", "of", "into", "split"})


@cache
def english() -> Mapping[str, str]:
    """The words of a verdict: key → text with placeholders."""
    text = files("kbert_core.experiments").joinpath("verdict.yaml").read_text(encoding="utf-8")
    found: dict[str, str] = yaml.safe_load(text)
    return found


@dataclass(frozen=True, slots=True)
class Message:
    """A piece of a text: which one, and with what in it.

    Attributes:
        key: of :func:`english`.
        values: by placeholder; those named in ``SPLIT_NAMES`` are names of
            splits, a tuple of pieces is a list.
    """

    key: str
    values: Mapping[str, Any] = field(default_factory=dict)


def message(key: str, **values: Any) -> Message:
    """Say one piece."""
    return Message(key, values)


GAP, END = message("gap"), message("end")


def in_words(
    pieces: tuple[Message, ...],
    texts: Mapping[str, str] | None = None,
    split_name: Callable[[str], str] = str,
) -> str:
    """Write pieces out, one after the other.

    Args:
        pieces: in order; they bring their own spaces and stops.
        texts: by the keys of :func:`english`, with the same placeholders; None: these.
        split_name: what a split is called in the language of ``texts``.
    """

    words = texts or english()

    def shown(name: str, value: Any) -> Any:
        if name in SPLIT_NAMES:
            return split_name(value)
        if isinstance(value, Message):
            return write(value)
        if isinstance(value, tuple):
            return words["list"].join(write(piece) for piece in value)
        return value

    def write(piece: Message) -> str:
        values = {name: shown(name, value) for name, value in piece.values.items()}
        return words[piece.key].format(**values)

    return "".join(write(piece) for piece in pieces)


class Level(StrEnum):
    """How a finding bears on what the data and the graph can show."""

    WARNING = "warning"
    NOTE = "note"
    GOOD = "good"


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason for the verdict.

    Attributes:
        kind: what it is about, such as "coverage".
        level: how it bears.
        messages: a sentence or two with the numbers that led to it, in pieces.
    """

    kind: str
    level: Level
    messages: tuple[Message, ...]

    @property
    def text(self) -> str:
        """What it says, in English."""
        return in_words(self.messages)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an audit means.

    Attributes:
        messages: the answer in one or two sentences, in pieces.
        findings: why; warnings first.
    """

    messages: tuple[Message, ...]
    findings: tuple[Finding, ...]

    @property
    def headline(self) -> str:
        """The answer, in English."""
        return in_words(self.messages)

    def as_dict(self) -> dict[str, Any]:
        """Headline and findings in English, for JSON."""
        found = [{"kind": f.kind, "level": str(f.level), "text": f.text} for f in self.findings]
        return {"headline": self.headline, "findings": found}


def verdict_of(audit: Audit) -> Verdict:
    """Say what the counts of an audit mean."""
    split = audit.splits[audit.held_out]
    made = [find(audit, split) for find in FINDINGS]
    order = list(Level)
    findings = sorted((f for f in made if f is not None), key=lambda f: order.index(f.level))
    return Verdict(_headline(audit, split, findings), tuple(findings))


def _headline(audit: Audit, split: SplitAudit, findings: list[Finding]) -> tuple[Message, ...]:
    warned = {finding.kind for finding in findings if finding.level is Level.WARNING}
    if not split.matches:
        return (message("headline.nothing", held_out=audit.held_out),)
    of_split = "_".join(kind for kind in ("leaks", "room") if kind in warned)
    kinds = [of_split] if of_split else []
    kinds += [kind for kind in ("made_from_data", "coverage") if kind in warned]
    good = "good_ner" if audit.task == "ner" else "good"
    first, *others = (message(f"headline.{kind}") for kind in kinds or [good])
    return (first, *(piece for other in others for piece in (GAP, other)))


def _missing(audit: Audit, _: SplitAudit) -> Finding | None:
    if not audit.missing:
        return None
    first, *others = audit.missing
    level = Level.WARNING if audit.held_out == "train" else Level.NOTE
    piece = message("missing.one", first=first, held_out=audit.held_out)
    if others:
        piece = message("missing.two", first=first, second=others[0], held_out=audit.held_out)
    return Finding("missing", level, (piece,))


def _size(audit: Audit, split: SplitAudit) -> Finding | None:
    if split.examples >= FEW_ROWS:
        return None
    key = "size.one" if split.examples == 1 else "size"
    return Finding(
        "size", Level.NOTE, (message(key, held_out=audit.held_out, rows=split.examples),)
    )


def _coverage(audit: Audit, split: SplitAudit) -> Finding:
    if split.mentions is None:
        share = split.with_match
        level = Level.WARNING if share.share < FEW_TEXTS else Level.GOOD
        per = split.matches / split.examples
        piece = message("coverage.texts", share=share, held_out=audit.held_out, per=per)
        return Finding("coverage", level, (piece,))
    known = split.mentions.all.known
    if known.share < LITTLE_KNOWN:
        level = Level.WARNING
    else:
        level = Level.GOOD if known.share >= MUCH_KNOWN else Level.NOTE
    pieces = [message("coverage", known=known, held_out=audit.held_out)]
    labels = sorted(split.mentions.by_label.items(), key=lambda item: item[1].known.share)
    if len(labels) > 1 and known.count:
        (least, low), (most, high) = labels[0], labels[-1]
        values = {"most": most, "high": high.known, "least": least, "low": low.known}
        pieces.append(message("coverage.labels", **values))
    reached = split.mentions.all.reached
    if known.count - reached.count > 0.01 * known.total:
        pieces.append(message("coverage.reached", reached=reached))
    return Finding("coverage", level, (*pieces, END))


def _room(audit: Audit, split: SplitAudit) -> Finding | None:
    if split.mentions is None or split.mentions.unseen is None:
        return None
    unseen: Coverage = split.mentions.unseen
    count, total = unseen.known.total, split.mentions.all.known.total
    share = Share(count, total)
    pieces = [message("room", share=share, held_out=audit.held_out)]
    if count:
        new = Share(unseen.known.count, total)
        pieces.append(message("room.known", known=unseen.known, new=new))
    pieces.append(END)
    if share.share < LITTLE_UNSEEN:
        return Finding("room", Level.WARNING, (*pieces, GAP, message("room.little")))
    if unseen.known.count < LITTLE_NEW * total:
        return Finding("room", Level.NOTE, (*pieces, GAP, message("room.silent")))
    return Finding("room", Level.GOOD, tuple(pieces))


def _leaks(audit: Audit, _: SplitAudit) -> Finding | None:
    if not audit.leaks:
        return None
    worst: Leak = max(audit.leaks, key=lambda leak: leak.texts.share)
    shares = tuple(
        message("leaks.share", texts=leak.texts, of=leak.of, into=leak.into)
        for leak in audit.leaks
        if leak.texts.share >= LEAK
    )
    if not worst.texts.count:
        return Finding("leaks", Level.GOOD, (message("leaks.none"),))
    if not shares:
        piece = message("leaks.hardly", texts=worst.texts, of=worst.of, into=worst.into)
        return Finding("leaks", Level.GOOD, (piece,))
    level = Level.WARNING if worst.texts.share >= BAD_LEAK else Level.NOTE
    return Finding("leaks", level, (message("leaks", shares=shares),))


def _made_from_data(audit: Audit, _: SplitAudit) -> Finding | None:
    answers = audit.answers
    if answers is None or not answers.from_gold.total:
        return None
    names = tuple(
        message("made.names", known=answers.known_names[f"{split} only"], split=split)
        for split in audit.splits
        if f"{split} only" in answers.known_names
    )
    evidence = (message("made.evidence", names=names),) if len(names) > 1 else ()
    suspects = [group for group in answers.groups if group.from_gold]
    if answers.from_gold.share >= MADE_FROM_DATA:
        piece = message(
            "made",
            groups=tuple(message("made.group", name=g.name, gold=g.gold) for g in suspects),
            mentions=answers.from_gold,
            held_out=audit.held_out,
            evidence=evidence,
        )
        return Finding("made_from_data", Level.WARNING, (piece,))
    piece = message("made.not", heads=answers.gold_heads, evidence=evidence)
    return Finding("made_from_data", Level.GOOD, (piece,))


def _dictionary(audit: Audit, split: SplitAudit) -> Finding | None:
    scores = split.dictionary
    if scores is None:
        return None
    if not scores["predicted"]:
        return Finding("dictionary", Level.NOTE, (message("dictionary.nothing"),))
    piece = message(
        "dictionary",
        held_out=audit.held_out,
        f1=100 * scores["f1"],
        precision=100 * scores["precision"],
        recall=100 * scores["recall"],
        unseen=100 * scores["unseen"]["recall"],
    )
    return Finding("dictionary", Level.NOTE, (piece,))


def _majority(audit: Audit, split: SplitAudit) -> Finding | None:
    if split.majority is None:
        return None
    piece = message("majority", share=split.majority, held_out=audit.held_out)
    return Finding("majority", Level.NOTE, (piece,))


def _noise(audit: Audit, split: SplitAudit) -> Finding | None:
    share = split.gold_matches
    if share is None or not share.total:
        return None
    piece = message("noise", share=share, held_out=audit.held_out)
    if share.share < NOISE:
        return Finding("noise", Level.NOTE, (piece, GAP, message("noise.others")))
    return Finding("noise", Level.GOOD, (piece,))


def _ambiguity(audit: Audit, split: SplitAudit) -> Finding | None:
    several, matched = audit.ambiguity.several, split.ambiguous_matches
    if not matched.total or not (several.count or matched.count):
        return None
    pieces = [message("ambiguity", matched=matched, held_out=audit.held_out)]
    if audit.ambiguity.relation is not None:
        relation = audit.ambiguity.relation
        pieces.append(message("ambiguity.relation", several=several, relation=relation))
    level = Level.NOTE if matched.share >= AMBIGUOUS else Level.GOOD
    return Finding("ambiguity", level, (*pieces, END))


def _homonyms(audit: Audit, split: SplitAudit) -> Finding | None:
    homonyms = split.homonyms
    if not homonyms.matches.count:
        return None
    names = tuple(
        message("homonyms.name", name=name, heads=_some_heads(heads))
        for name, heads in homonyms.examples[:SHOWN_NAMES]
    )
    values = {"matched": homonyms.matches, "rows": homonyms.rows, "names": names}
    pieces: tuple[Message, ...] = (message("homonyms", held_out=audit.held_out, **values), END)
    if homonyms.matches.share < AMBIGUOUS:
        return Finding("homonyms", Level.GOOD, pieces)
    if not audit.options.one_sense:
        pieces = (*pieces, GAP, message("homonyms.all"))
    return Finding("homonyms", Level.NOTE, pieces)


def _some_heads(heads: tuple[str, ...]) -> tuple[Message, ...]:
    some = tuple(message("homonyms.head", head=head) for head in heads[:SHOWN_NAMES])
    return (*some, message("homonyms.more")) if len(heads) > SHOWN_NAMES else some


def _conflicts(audit: Audit, _: SplitAudit) -> Finding | None:
    conflicts = audit.conflicts
    count = conflicts.texts.count
    if not count:
        return None
    rows = Share(conflicts.rows, sum(split.examples for split in audit.splits.values()))
    level = Level.NOTE if rows.share >= CONFLICTS else Level.GOOD
    key = "conflicts" if count > 1 else "conflicts.one"
    return Finding("conflicts", level, (message(key, count=count, rows=rows),))


def _length(audit: Audit, split: SplitAudit) -> Finding | None:
    injection = split.injection
    if not injection.added.count:
        return None
    first = message(
        "length",
        mean=injection.added.count / split.examples,
        tokens=injection.tokens / split.examples,
        held_out=audit.held_out,
        added=injection.added,
    )
    level = Level.GOOD
    if injection.added.share >= COSTLY:
        level = Level.NOTE
    limit = injection.limit
    if injection.long_trees.share >= LONG:
        level = Level.NOTE
        long, no_room = injection.long_trees, injection.added_over
        return Finding(
            "length",
            level,
            (first, message("length.over", long=long, limit=limit, no_room=no_room), END),
        )
    cut = injection.long_trees.count
    key = {0: "length.cuts_none", 1: "length.cuts_one"}.get(cut, "length.cuts")
    return Finding("length", level, (first, message(key, limit=limit, count=cut), END))


FINDINGS: tuple[Callable[[Audit, SplitAudit], Finding | None], ...] = (
    *(_missing, _size, _coverage, _room, _leaks, _made_from_data, _dictionary, _majority),
    *(_noise, _ambiguity, _homonyms, _conflicts, _length),
)
