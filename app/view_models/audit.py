"""An audit on the page: what stands first, and small tables. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from app.texts import N_, listed, t
from app.view_models.html import shorten
from app.view_models.styles import TRUNK
from app.view_models.whole_file import points
from app.words import AUDIT_SPLIT
from kbert_lab.study.audit_values import Audit, Coverage, Share
from kbert_lab.study.verdict import Finding, english

AUDIT_FACT = {  # its name, and what exactly is counted
    "known": (
        N_("Mentions known"),
        N_("Gold mentions of {split} whose name is a head of the graph."),
    ),
    "new": (
        N_("New, and known"),
        N_(
            "Gold mentions of {split} whose name training doesn't show and the graph knows: where "
            "knowledge can help most."
        ),
    ),
    "texts": (N_("Texts with a head"), N_("Texts of {split} that name a head of the graph.")),
    "leak": (
        N_("Worst leak"),
        N_("The largest share of one split's rows whose text stands in another."),
    ),
    "dictionary": (
        N_("Dictionary F1"),
        N_("F1 on {split} of a plain dictionary of the graph, without any model."),
    ),
    "majority": (
        N_("Always the same"),
        N_("Accuracy on {split} of always saying training's most frequent label."),
    ),
    "added": (
        N_("Tokens added"),
        N_("Tokens of the branches, as a share of those of the texts of {split}."),
    ),
}


EXPECTED_WAY = {
    "K-BERT": N_("K-BERT reads the graph"),
    "gate": N_("dictionary through a gate"),
    "dictionary": N_("dictionary written over BERT"),
}

MOST_GROUPS = 12
LONGEST_TEXT = 61  # characters of a text quoted


@dataclass(frozen=True, slots=True)
class Fact:
    """One number to see first."""

    name: str  # what, and how much, as they are shown
    value: str
    help: str  # what exactly is counted


Table = dict[str, list[str]]  # the columns, by their heads; a part of a row is set in


@dataclass(frozen=True, slots=True)
class Part:
    """A part of what led to the verdict: its tables and notes, each if there is one."""

    title: str
    tables: tuple[Table | None, ...] = ()
    notes: tuple[str, ...] = ()  # plain text


def parts(audit: Audit) -> tuple[list[Part], list[Part]]:
    """All parts, in two columns; one with neither a table nor a note is left out."""
    mixed = t(
        "Labelled in more than one way: {share} of the texts.",
        share=share_text(audit.conflicts.texts),
    )
    learnt = listed(f"{tail} → {label}" for tail, label in audit.tail_labels.items())
    left = [
        Part(t("What the graph knows"), (mentions_table(audit),)),
        Part(
            t("Between the splits"),
            (splits_table(audit), leaks_table(audit)),
            (mixed, *(shorten(text, LONGEST_TEXT) for text in audit.conflicts.examples)),
        ),
    ]
    right = [
        Part(
            t("Was the graph made from the answers?"),
            (names_table(audit), groups_table(audit)),
            (
                *gold_heads(audit),
                t(
                    "A graph made by others knows rare names less than common ones, and few of its "
                    "heads are mentions. Where nearly all are (●), a gain shows reading, not "
                    "independent knowledge."
                ),
            ),
        ),
        Part(
            t("A dictionary instead of a model"),
            (dictionary_table(audit),),
            (
                t(
                    "The longest match; the first tail of a head that stands for a label decides. "
                    "Learnt from train: {tails}.",
                    tails=learnt or t("nothing"),
                ),
            ),
        ),
    ]
    some = [[part for part in column if any(part.tables)] for column in (left, right)]
    return some[0], some[1]


def expected_chart(audit: Audit) -> go.Figure | None:
    """What to expect of each way over BERT, in points of F1; None where it isn't known."""
    if not audit.expected or not audit.splits[audit.held_out].matches:
        return None
    gains = [audit.expected[way] for way in EXPECTED_WAY]
    figure = go.Figure()
    figure.add_scatter(
        x=[100 * gain.mean for gain in gains],
        y=[t(name) for name in EXPECTED_WAY.values()],
        error_x={
            "array": [100 * (gain.high - gain.mean) for gain in gains],
            "arrayminus": [100 * (gain.mean - gain.low) for gain in gains],
        },
        customdata=[(100 * gain.low, 100 * gain.high) for gain in gains],
        mode="markers+text",
        text=[f"{100 * gain.mean:+.0f}" for gain in gains],
        textposition="top right",
        marker={"color": TRUNK, "size": 9},
        hovertemplate="%{x:+.1f} [%{customdata[0]:+.1f}, %{customdata[1]:+.1f}]<extra>%{y}</extra>",
    )
    figure.add_vline(x=0, line={"dash": "dot", "width": 1, "color": "#8a8f94"})
    figure.update_layout(height=190, margin={"l": 8, "r": 8, "t": 8, "b": 8})
    said = t(
        "points of F1 to expect over BERT: only a guess, as no data that it was fitted to are "
        "like these"
        if any(gain.outside for gain in gains)
        else "points of F1 to expect over BERT; a line is where one more data set may lie"
    )
    figure.update_xaxes(title=said, zeroline=False)
    figure.update_yaxes(range=[len(gains) - 0.5, -0.8])
    return figure


def gold_heads(audit: Audit) -> list[str]:
    """How many of the graph's heads are gold mentions, and of the test set only."""
    answers, said = audit.answers, []
    if answers is not None:
        text = N_("Heads of the graph that are gold mentions: {share}.")
        said.append(t(text, share=share_text(answers.gold_heads)))
    if answers and answers.test_only is not None and answers.test_only_of_gold is not None:
        text = N_(
            "Heads that are gold mentions of the test set only: {share}; {of_gold} of those that "
            "are gold mentions."
        )
        of_gold = percent(answers.test_only_of_gold)
        said.append(t(text, share=share_text(answers.test_only), of_gold=of_gold))
    return said


def groups_table(audit: Audit) -> Table | None:
    """Share of each type's heads that are gold mentions, word for word; ●: made of the answers."""
    groups = audit.answers.groups[:MOST_GROUPS] if audit.answers else ()
    rows = [
        (f"{own.name} ●" if own.from_gold else own.name, f"{own.gold.total:,}", percent(own.gold))
        for own in sorted(groups, key=lambda own: -own.gold.share)
    ]
    what = t("type" if audit.ambiguity.relation else "relation")
    return _table((what, t("heads"), t("are mentions")), rows)


def facts(audit: Audit) -> tuple[Fact, ...]:
    """The three or four numbers that answer most."""
    split = audit.splits[audit.held_out]
    found = []
    if split.mentions is not None:
        gold = split.mentions
        found.append(("known", percent(gold.all.known)))
        if gold.unseen is not None:
            new = Share(gold.unseen.known.count, gold.all.known.total)
            found.append(("new", percent(new)))
    else:
        found.append(("texts", percent(split.with_match)))
    if audit.leaks:
        worst = max(audit.leaks, key=lambda leak: leak.texts.share)
        found.append(("leak", percent(worst.texts)))
    if split.dictionary is not None:
        found.append(("dictionary", points(split.dictionary["f1"])))
    elif split.majority is not None:
        found.append(("majority", percent(split.majority)))
    found.append(("added", percent(split.injection.added)))
    where = split_name(audit.held_out)
    return tuple(
        Fact(t(AUDIT_FACT[name][0]), value, t(AUDIT_FACT[name][1], split=where))
        for name, value in found
    )


def in_words(finding: Finding) -> str:
    """A finding in the language of whoever looks; plain text."""
    return finding.in_words({kind: t(text) for kind, text in english().items()}, split_name)


def mentions_table(audit: Audit) -> Table | None:
    """Gold mentions by split, the held-out split's by label, and how many the graph knows."""
    rows = []
    for name, split in audit.splits.items():
        if split.mentions is None:
            return None
        gold = split.mentions
        rows.append((split_name(name), *_known(gold.all), *_known(gold.unseen)))
        if name != audit.held_out:
            continue
        rows += [
            (f"\u2003{label}", *_known(of_label), *_known(gold.unseen_by_label.get(label)))
            for label, of_label in gold.by_label.items()
        ]
    heads = (t("split"), t("mentions"), t("in the graph"), t("unseen"), t("unseen, in the graph"))
    return _table(heads, rows)


def splits_table(audit: Audit) -> Table | None:
    """Rows, repeats and matches by split."""
    with_gold = any(split.kinds is not None for split in audit.splits.values())
    rows = []
    for name, split in audit.splits.items():
        row = [
            split_name(name),
            f"{split.examples:,}",
            percent(split.repeated),
            percent(split.with_match),
            f"{split.matches / split.examples:.2f}",
        ]
        kinds = split.kinds
        more = (kinds.exact, kinds.part, kinds.other, kinds.outside) if kinds else ()
        rows.append((*row, *map(percent, more)))
    heads = (t("split"), t("rows"), t("repeated"), t("with a head"), t("matches a row"))
    of_matches = (t("are mentions"), t("part of their type"), t("part of another"), t("of none"))
    return _table((*heads, *of_matches) if with_gold else heads, rows)


def leaks_table(audit: Audit) -> Table | None:
    """Texts of one split that stand in another."""
    rows = [
        (
            t("of {of} in {into}", of=split_name(leak.of), into=split_name(leak.into)),
            f"{leak.texts.count:,}",
            percent(leak.texts),
            percent(leak.same_label) if leak.texts.count else "–",
        )
        for leak in audit.leaks
    ]
    return _table((t("same text"), t("rows"), t("share"), t("same label")), rows)


def names_table(audit: Audit) -> Table | None:
    """Gold names by the splits they stand in, and how many are heads."""
    if audit.answers is None:
        return None
    rows = [
        (_where(where), f"{share.total:,}", percent(share))
        for where, share in audit.answers.known_names.items()
    ]
    return _table((t("names that stand in"), t("names"), t("in the graph")), rows)


def _where(where: str) -> str:
    """The splits that some names stand in, from "test only" or "train, dev and test"."""
    *others, last = map(split_name, where.removesuffix(" only").replace(" and ", ", ").split(", "))
    if not others:
        return t("{split} only", split=last)
    return t("{first} and {last}", first=listed(others), last=last)


def dictionary_table(audit: Audit) -> Table | None:
    """The dictionary tagger's scores by split, the held-out split's by label."""
    rows = []
    for name, split in audit.splits.items():
        scores = split.dictionary
        if scores is not None:
            unseen = points(scores["unseen"]["recall"]) if scores["unseen"]["gold"] else "–"
            rows.append((split_name(name), *_scores(scores), unseen))
        if scores is not None and name == audit.held_out:
            rows += [(f"\u2003{la}", *_scores(of), "") for la, of in scores["by_label"].items()]
    heads = (t("split"), t("precision"), t("recall"), t("F1"), t("recall, unseen"))
    return _table(heads, rows)


def split_name(split: str) -> str:
    """What a split is called."""
    return t(AUDIT_SPLIT[split])


def percent(share: Share | None) -> str:
    """A share as it is shown; a dash where there is nothing to have a share of."""
    return f"{100 * share.share:.1f} %" if share is not None and share.total else "–"


def share_text(share: Share) -> str:
    """A share with what it is of."""
    count, total = f"{share.count:,}", f"{share.total:,}"
    return t("{percent} ({count} of {total})", percent=share.percent, count=count, total=total)


def _table(heads: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Table | None:
    if not rows:
        return None
    return {head: list(column) for head, column in zip(heads, zip(*rows, strict=True), strict=True)}


def _known(coverage: Coverage | None) -> tuple[str, str]:
    if coverage is None:
        return "", ""
    return f"{coverage.known.total:,}", percent(coverage.known)


def _scores(scores: Mapping[str, float]) -> tuple[str, ...]:
    return tuple(points(scores[name]) for name in ("precision", "recall", "f1"))
