"""An audit on the page: what stands first, small tables, bar charts. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from app.texts import N_, listed, sentences, t
from app.view_models.styles import BRANCH, CHANGED, TRUNK
from app.words import AUDIT_SPLIT
from kbert_core.experiments.audit_values import Audit, Coverage, Share
from kbert_core.experiments.verdict import Level, Verdict, english

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

AUDIT_LEVEL = {"warning": N_("Warning"), "note": N_("Note"), "good": N_("Fine")}

AUDIT_CHART = {"all": N_("all mentions"), "unseen": N_("unseen in training")}

BAR = 26  # pixels of a bar with its gap
MOST_GROUPS = 12
LONGEST_TEXT = 60  # characters of a text quoted
ICONS = {
    Level.WARNING: (":material/warning:", "orange"),
    Level.NOTE: (":material/info:", "blue"),
    Level.GOOD: (":material/check_circle:", "green"),
}


@dataclass(frozen=True, slots=True)
class Fact:
    """One number to see first.

    Attributes:
        name, value: what, and how much, as they are shown.
        help: what exactly is counted.
    """

    name: str
    value: str
    help: str


@dataclass(frozen=True, slots=True)
class Reason:
    """A finding of the verdict, ready to be drawn.

    Attributes:
        icon, colour: as Streamlit names them.
        level: in a word, so that the colour isn't all that tells it.
        text: plain.
        first: whether it is a warning, which stands first.
    """

    icon: str
    colour: str
    level: str
    text: str
    first: bool


Table = dict[str, list[str]]  # the columns, by their heads; a part of a row is set in


@dataclass(frozen=True, slots=True)
class Part:
    """A part of what led to the verdict: its chart, tables and notes, each if there is one."""

    title: str
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()  # plain text
    chart: go.Figure | None = None
    chart_title: str = ""


def parts(audit: Audit) -> tuple[list[Part], list[Part]]:
    """All parts, in two columns."""
    mixed = t(
        "Labelled in more than one way: {share} of the texts.",
        share=share_text(audit.conflicts.texts),
    )
    known = Part(
        t("What the graph knows"),
        _some(mentions_table(audit)),
        chart=coverage_chart(audit),
        chart_title=t(
            "Share of the {split} mentions whose name is a head, by label",
            split=split_name(audit.held_out),
        ),
    )
    splits = Part(
        t("Between the splits"),
        _some(splits_table(audit), leaks_table(audit)),
        (mixed, *mixed_texts(audit)),
    )
    what = t("type" if audit.ambiguity.relation else "relation")
    answers = Part(
        t("Was the graph made from the answers?"),
        _some(names_table(audit)),
        (
            gold_heads(audit),
            t(
                "A graph made by others knows rare names less than common ones, and few of its "
                "heads are mentions. Where nearly all are, as the bars in another colour would "
                "show, a gain shows reading, not independent knowledge."
            ),
        ),
        groups_chart(audit),
        t(
            "Share of the heads that are gold mentions, word for word, and how many heads there "
            "are; by {what}",
            what=what,
        ),
    )
    learnt = listed(f"{tail} → {label}" for tail, label in audit.tail_labels.items())
    dictionary = Part(
        t("A dictionary instead of a model"),
        _some(dictionary_table(audit)),
        (
            t(
                "The longest match; the first tail of a head that stands for a label decides. "
                "Learnt from train: {tails}.",
                tails=learnt or t("nothing"),
            ),
        ),
    )
    homonymous = homonyms_table(audit)
    heads = Part(
        t("How clear the heads are"),
        _some(ambiguous_table(audit), homonymous),
        (say_heads(audit), *([homonyms(audit)] if homonymous else [])),
    )
    lengths = Part(t("What injection costs"), _some(lengths_table(audit)))
    return (
        [part for part in (known, splits) if part.tables],
        [part for part in (answers, dictionary) if part.tables] + [lengths, heads],
    )


def _some(*tables: Table | None) -> tuple[Table, ...]:
    return tuple(table for table in tables if table)


def say_heads(audit: Audit) -> str:
    """How clearly the graph says what its heads are; plain text."""
    heads = audit.ambiguity
    if heads.relation is None:
        said = [t("No relation of this graph looks like a type.")]
    else:
        said = [
            t(
                "{share} of the heads have several tails under “{relation}”.",
                share=share_text(heads.several),
                relation=heads.relation,
            )
        ]
    if heads.several_labels is not None:
        said.append(
            t(
                "{share} have tails that stand for several labels.",
                share=share_text(heads.several_labels),
            )
        )
    return sentences(said)


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
        found.append(("dictionary", score(split.dictionary["f1"])))
    elif split.majority is not None:
        found.append(("majority", percent(split.majority)))
    found.append(("added", percent(split.injection.added)))
    where = split_name(audit.held_out)
    return tuple(
        Fact(t(AUDIT_FACT[name][0]), value, t(AUDIT_FACT[name][1], split=where))
        for name, value in found
    )


def headline(verdict: Verdict) -> str:
    """The verdict in one or two sentences; plain text."""
    return verdict.headline.in_words(_templates(), split_name)


def reasons(verdict: Verdict) -> tuple[Reason, ...]:
    """The verdict's findings, warnings first."""
    return tuple(
        Reason(
            *ICONS[finding.level],
            t(AUDIT_LEVEL[finding.level]),
            finding.in_words(_templates(), split_name),
            finding.level is Level.WARNING,
        )
        for finding in verdict.findings
    )


def _templates() -> dict[str, str]:
    """The words of a verdict in the language of whoever looks."""
    return {kind: t(text) for kind, text in english().items()}


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


def gold_heads(audit: Audit) -> str:
    """How many of the graph's heads are gold mentions, and of the test set only."""
    answers = audit.answers
    if answers is None:
        return ""
    said = [
        t(
            "Heads of the graph that are gold mentions: {share}.",
            share=share_text(answers.gold_heads),
        )
    ]
    if answers.test_only is not None and answers.test_only_of_gold is not None:
        of_gold = percent(answers.test_only_of_gold)
        share = share_text(answers.test_only)
        said.append(
            t(
                "Heads that are gold mentions of the test set only: {share}; {of_gold} of those "
                "that are gold mentions.",
                share=share,
                of_gold=of_gold,
            )
        )
    return sentences(said)


def dictionary_table(audit: Audit) -> Table | None:
    """The dictionary tagger's scores by split, the held-out split's by label."""
    rows = []
    for name, split in audit.splits.items():
        scores = split.dictionary
        if scores is not None:
            unseen = score(scores["unseen"]["recall"]) if scores["unseen"]["gold"] else "–"
            rows.append((split_name(name), *_scores(scores), unseen))
        if scores is not None and name == audit.held_out:
            rows += [(f"\u2003{la}", *_scores(of), "") for la, of in scores["by_label"].items()]
    heads = (t("split"), t("precision"), t("recall"), t("F1"), t("recall, unseen"))
    return _table(heads, rows)


def lengths_table(audit: Audit) -> Table | None:
    """Tokens of the texts and of the branches, and what the limit cuts."""
    rows = []
    for name, split in audit.splits.items():
        injection = split.injection
        rows.append(
            (
                split_name(name),
                f"{injection.tokens / split.examples:.1f}",
                f"{injection.added.count / split.examples:.1f}",
                f"{injection.longest:,}",
                f"{injection.long_texts.count:,}",
                f"{injection.long_trees.count:,}",
                percent(injection.added_over),
            )
        )
    over = (t("texts over the limit"), t("with branches"), t("branch tokens without room"))
    return _table((t("split"), t("text"), t("added"), t("longest"), *over), rows)


def ambiguous_table(audit: Audit) -> Table | None:
    """Some heads with several tails under the relation that says types."""
    rows = [(head, listed(tails)) for head, tails in audit.ambiguity.examples]
    return _table((t("head"), t("tails")), rows)


def homonyms_table(audit: Audit) -> Table | None:
    """Some names of the held-out set that may mean several heads."""
    found = audit.splits[audit.held_out].homonyms.examples
    rows = [(name, listed(heads)) for name, heads in found]
    return _table((t("name"), t("may mean")), rows)


def homonyms(audit: Audit) -> str:
    """How many matches of the held-out set have such a name."""
    found = audit.splits[audit.held_out].homonyms
    where, rows = split_name(audit.held_out), percent(found.rows)
    return t(
        "{share} of the matches in {split} have a name that may mean several heads, in {rows} of "
        "the rows with a match.",
        share=share_text(found.matches),
        split=where,
        rows=rows,
    )


def mixed_texts(audit: Audit) -> tuple[str, ...]:
    """The beginnings of some texts that are labelled in more than one way."""
    return tuple(
        text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"
        for text in audit.conflicts.examples
    )


def coverage_chart(audit: Audit) -> go.Figure | None:
    """Share of the held-out mentions that the graph knows, by label."""
    gold = audit.splits[audit.held_out].mentions
    if gold is None or not gold.by_label:
        return None
    labels = sorted(gold.by_label, key=lambda label: gold.by_label[label].known.share)
    series = {"all": gold.by_label}
    if gold.unseen is not None and gold.unseen.known.total:
        series["unseen"] = {
            label: gold.unseen_by_label[label]
            for label in labels
            if gold.unseen_by_label[label].known.total
        }
    colours = {"all": TRUNK, "unseen": BRANCH}
    figure = go.Figure()
    for name in reversed(series):  # Plotly stacks grouped bars from below
        shares = {label: c.known for label, c in series[name].items()}
        shown = [label for label in labels if label in shares]
        figure.add_bar(
            y=shown,
            x=[100 * shares[label].share for label in shown],
            name=t(AUDIT_CHART[name]),
            marker_color=colours[name],
            orientation="h",
            hovertemplate="%{y}: %{customdata}<extra>%{fullData.name}</extra>",
            customdata=[share_text(shares[label]) for label in shown],
            text=[percent(shares[label]) for label in shown],
        )
    return _laid_out(figure, BAR * len(labels) * len(series), legend=len(series) > 1)


def groups_chart(audit: Audit) -> go.Figure | None:
    """Share of each type's heads that are gold mentions, word for word."""
    if audit.answers is None or not audit.answers.groups:
        return None
    groups = sorted(audit.answers.groups[:MOST_GROUPS], key=lambda group: group.gold.share)
    figure = go.Figure()
    figure.add_bar(
        y=[group.name for group in groups],
        x=[100 * group.gold.share for group in groups],
        marker_color=[CHANGED if group.from_gold else TRUNK for group in groups],
        orientation="h",
        hovertemplate="%{y}: %{customdata}<extra></extra>",
        customdata=[share_text(group.gold) for group in groups],
        text=[f"{percent(group.gold)} · {group.gold.total:,}" for group in groups],
    )
    return _laid_out(figure, BAR * len(groups))


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


def score(value: float) -> str:
    """A score from 0 to 1, as it is shown: of 100."""
    return f"{100 * value:.1f}"


def _table(heads: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Table | None:
    if not rows:
        return None
    return {head: list(column) for head, column in zip(heads, zip(*rows, strict=True), strict=True)}


def _known(coverage: Coverage | None) -> tuple[str, str]:
    if coverage is None:
        return "", ""
    return f"{coverage.known.total:,}", percent(coverage.known)


def _scores(scores: Mapping[str, float]) -> tuple[str, ...]:
    return tuple(score(scores[name]) for name in ("precision", "recall", "f1"))


def _laid_out(figure: go.Figure, height: int, *, legend: bool = False) -> go.Figure:
    figure.update_traces(textposition="outside", cliponaxis=False)
    figure.update_layout(
        barmode="group",
        bargap=0.3,
        height=height + (90 if legend else 56),
        margin={"l": 8, "r": 8, "t": 34 if legend else 6, "b": 6},
        showlegend=legend,
        legend={
            "orientation": "h",
            "y": 1.0,
            "yanchor": "bottom",
            "x": 0,
            "traceorder": "reversed",
        },
        xaxis={
            "range": [0, 122],  # room for the numbers beside the bars
            "tickvals": [0, 25, 50, 75, 100],
            "ticktext": ["0", "25 %", "50 %", "75 %", "100 %"],
        },
        yaxis={"automargin": True, "type": "category"},
    )
    return figure
