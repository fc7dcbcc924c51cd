"""What an audit means, in words, by thresholds that stand here and nowhere else."""

from dataclasses import dataclass
from enum import StrEnum

from kbert_core.training.audit_values import Audit, Coverage, Leak, Share, SplitAudit

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
AMBIGUOUS = 0.1  # of the matches: more with heads whose tails disagree
CONFLICTS = 0.01  # of the rows: more with a text that is labelled in several ways
LONG = 0.01  # of the inputs: more over the length limit with their branches
COSTLY = 0.5  # tokens that the branches add: more, and training takes notably longer


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
        text: a sentence or two with the numbers that led to it.
    """

    kind: str
    level: Level
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an audit means.

    Attributes:
        headline: the answer in one or two sentences.
        findings: why; warnings first.
    """

    headline: str
    findings: tuple[Finding, ...]


def verdict_of(audit: Audit) -> Verdict:
    """Say what the counts of an audit mean."""
    split = audit.splits[audit.held_out]
    found = [
        _missing(audit),
        _size(audit, split),
        _coverage(audit, split),
        _room(audit, split),
        _leaks(audit),
        _made_from_data(audit),
        _dictionary(audit, split),
        _majority(audit, split),
        _noise(audit, split),
        _ambiguity(audit, split),
        _conflicts(audit),
        _length(audit, split),
    ]
    order = list(Level)
    findings = sorted((f for f in found if f is not None), key=lambda f: order.index(f.level))
    return Verdict(_headline(audit, split, findings), tuple(findings))


def _headline(audit: Audit, split: SplitAudit, findings: list[Finding]) -> str:
    warned = {finding.kind for finding in findings if finding.level is Level.WARNING}
    if not split.matches:
        return (
            f"The graph names nothing in the {audit.held_out} set: a K-BERT with it would read "
            "these texts as plain BERT does."
        )
    said = []
    if "leaks" in warned and "room" in warned:
        said.append(
            "This split can hardly show what knowledge adds: it leaks, and training shows nearly "
            "every name."
        )
    elif "leaks" in warned:
        said.append("Scores on this split are too good: the splits leak.")
    elif "room" in warned:
        said.append("This split leaves knowledge little to add: training shows nearly every name.")
    if "made_from_data" in warned:
        said.append(
            "Gains with this graph would show that the model reads it, not that independent "
            "knowledge helps: the graph looks as if it had been made from these annotations."
        )
    if "coverage" in warned:
        said.append("The graph knows too little of these texts to expect much of it.")
    if said:
        return " ".join(said)
    dictionary = ", beside a plain dictionary" if audit.task == "ner" else ""
    return (
        "Nothing counted here stands against the experiment: compare a model trained with the "
        f"graph, one without it and one with a shuffled graph{dictionary}."
    )


def _missing(audit: Audit) -> Finding | None:
    if not audit.missing:
        return None
    names = " and no ".join(audit.missing)
    level = Level.WARNING if audit.held_out == "train" else Level.NOTE
    rests = f"What follows is about the {audit.held_out} set."
    return Finding("missing", level, f"There is no {names} set here. {rests}")


def _size(audit: Audit, split: SplitAudit) -> Finding | None:
    if split.examples >= FEW_ROWS:
        return None
    return Finding(
        "size",
        Level.NOTE,
        f"The {audit.held_out} set has {split.examples} row{'s' * (split.examples > 1)}: take the "
        "shares as rough.",
    )


def _coverage(audit: Audit, split: SplitAudit) -> Finding:
    if split.mentions is None:
        share = split.with_match
        level = Level.WARNING if share.share < FEW_TEXTS else Level.GOOD
        per = split.matches / split.examples
        return Finding(
            "coverage",
            level,
            f"{_percent(share)} of the {audit.held_out} texts name a head of the graph, "
            f"{per:.1f} names a text. Whether what is said of them bears on the label can't be "
            "counted here.",
        )
    known = split.mentions.all.known
    if known.share < LITTLE_KNOWN:
        level = Level.WARNING
    else:
        level = Level.GOOD if known.share >= MUCH_KNOWN else Level.NOTE
    text = f"The graph knows {_of(known)} {audit.held_out} mentions by name"
    labels = sorted(split.mentions.by_label.items(), key=lambda item: item[1].known.share)
    if len(labels) > 1 and known.count:
        (least, low), (most, high) = labels[0], labels[-1]
        text += f", most of {most} ({_percent(high.known)}), least of {least} "
        text += f"({_percent(low.known)})"
    reached = split.mentions.all.reached
    if known.count - reached.count > 0.01 * known.total:
        text += f"; {_percent(reached)} are found whole, the others inside a longer match"
    return Finding("coverage", level, text + ".")


def _room(audit: Audit, split: SplitAudit) -> Finding | None:
    if split.mentions is None or split.mentions.unseen is None:
        return None
    unseen: Coverage = split.mentions.unseen
    count, total = unseen.known.total, split.mentions.all.known.total
    share = Share(count, total)
    text = f"{_of(share)} {audit.held_out} mentions have a name that training doesn't show"
    if count:
        text += f", and the graph knows {_percent(unseen.known)} of those: at most "
        text += f"{_percent(Share(unseen.known.count, total))} of all mentions are new to the "
        text += "model and known to the graph"
    if share.share < LITTLE_UNSEEN:
        return Finding(
            "room",
            Level.WARNING,
            f"{text}. Split entity-disjoint (`kbert split`) to see what knowledge adds.",
        )
    if unseen.known.count < LITTLE_NEW * total:
        return Finding("room", Level.NOTE, f"{text}. Where training is silent, so is the graph.")
    return Finding("room", Level.GOOD, text + ".")


def _leaks(audit: Audit) -> Finding | None:
    if not audit.leaks:
        return None
    worst: Leak = max(audit.leaks, key=lambda leak: leak.texts.share)
    parts = [
        f"{_percent(leak.texts)} of {leak.of} stand in {leak.into}"
        for leak in audit.leaks
        if leak.texts.share >= LEAK
    ]
    if not worst.texts.count:
        return Finding("leaks", Level.GOOD, "The splits share no text.")
    if not parts:
        return Finding(
            "leaks",
            Level.GOOD,
            f"The splits hardly share a text: at most {_of(worst.texts)} {worst.of} rows stand in "
            f"{worst.into}.",
        )
    level = Level.WARNING if worst.texts.share >= BAD_LEAK else Level.NOTE
    return Finding(
        "leaks",
        level,
        f"The splits share texts: {', '.join(parts)}. Report a deduplicated split as well "
        "(`kbert split --by deduplicated`).",
    )


def _made_from_data(audit: Audit) -> Finding | None:
    answers = audit.answers
    if answers is None or not answers.from_gold.total:
        return None
    parts = [
        f"{_percent(answers.known_names[f'{split} only'])} of those of {split}"
        for split in audit.splits
        if f"{split} only" in answers.known_names
    ]
    evidence = ""
    if len(parts) > 1:
        evidence = f" (of the names that stand in one split only it knows {', '.join(parts)})"
    suspects = [group for group in answers.groups if group.from_gold]
    if answers.from_gold.share >= MADE_FROM_DATA:
        whose = ", ".join(f"{group.name} {_percent(group.gold)}" for group in suspects)
        return Finding(
            "made_from_data",
            Level.WARNING,
            f"Nearly all heads of some types are gold mentions of this data, word for word: "
            f"{whose}; {_of(answers.from_gold)} known {audit.held_out} mentions are of such a "
            f"type. The graph may have been made from the annotations{evidence}: use one made by "
            "others as well.",
        )
    return Finding(
        "made_from_data",
        Level.GOOD,
        f"Nothing says that the graph was made from this data: {_of(answers.gold_heads)} heads "
        f"are gold mentions{evidence}.",
    )


def _dictionary(audit: Audit, split: SplitAudit) -> Finding | None:
    scores = split.dictionary
    if scores is None:
        return None
    if not scores["predicted"]:
        return Finding("dictionary", Level.NOTE, "A plain dictionary of the graph tags nothing.")
    return Finding(
        "dictionary",
        Level.NOTE,
        f"A plain dictionary of the graph alone reaches F1 {100 * scores['f1']:.1f} on "
        f"{audit.held_out} (precision {100 * scores['precision']:.1f}, recall "
        f"{100 * scores['recall']:.1f}; {100 * scores['unseen']['recall']:.1f} on unseen names). "
        "A model that reads the graph has to beat it, and BERT with the dictionary written over.",
    )


def _majority(audit: Audit, split: SplitAudit) -> Finding | None:
    if split.majority is None:
        return None
    return Finding(
        "majority",
        Level.NOTE,
        f"Always saying the training set's most frequent label is right for "
        f"{_of(split.majority)} {audit.held_out} rows.",
    )


def _noise(audit: Audit, split: SplitAudit) -> Finding | None:
    share = split.gold_matches
    if share is None or not share.total:
        return None
    level = Level.NOTE if share.share < NOISE else Level.GOOD
    more = " The others are knowledge noise for this task." if level is Level.NOTE else ""
    return Finding(
        "noise", level, f"{_of(share)} matches in {audit.held_out} are gold mentions.{more}"
    )


def _ambiguity(audit: Audit, split: SplitAudit) -> Finding | None:
    several, matched = audit.ambiguity.several, split.ambiguous_matches
    if not matched.total or not (several.count or matched.count):
        return None
    text = f"{_of(matched)} matches in {audit.held_out} are of heads whose tails disagree"
    if audit.ambiguity.relation is not None:
        text += f"; {_of(several)} heads have several tails under “{audit.ambiguity.relation}”"
    level = Level.NOTE if matched.share >= AMBIGUOUS else Level.GOOD
    return Finding("ambiguity", level, text + ".")


def _conflicts(audit: Audit) -> Finding | None:
    conflicts = audit.conflicts
    if not conflicts.texts.count:
        return None
    rows = Share(conflicts.rows, sum(split.examples for split in audit.splits.values()))
    level = Level.NOTE if rows.share >= CONFLICTS else Level.GOOD
    count = conflicts.texts.count
    texts = f"{count:,} texts are" if count > 1 else "One text is"
    return Finding(
        "conflicts",
        level,
        f"{texts} labelled in more than one way, in {_of(rows)} rows: no model can be right on "
        "all of them.",
    )


def _length(audit: Audit, split: SplitAudit) -> Finding | None:
    injection = split.injection
    if not injection.added.count:
        return None
    mean = injection.added.count / split.examples
    text = (
        f"Injection adds {mean:.1f} tokens to the {injection.tokens / split.examples:.1f} of a "
        f"{audit.held_out} input ({_percent(injection.added)})"
    )
    level = Level.GOOD
    if injection.added.share >= COSTLY:
        level = Level.NOTE
    if injection.long_trees.share >= LONG:
        level = Level.NOTE
        text += (
            f"; {_percent(injection.long_trees)} of the inputs are over {injection.limit} tokens, "
            f"and {_percent(injection.added_over)} of the branches' tokens find no room"
        )
    else:
        cut = injection.long_trees.count
        text += f"; a limit of {injection.limit} cuts {cut or 'no'} input{'s' * (cut > 1)}"
    return Finding("length", level, text + ".")


def _percent(share: Share) -> str:
    return f"{100 * share.share:.1f} %"


def _of(share: Share) -> str:
    """Such as '21.1 % of the 2,721'."""
    return f"{_percent(share)} of the {share.total:,}"
