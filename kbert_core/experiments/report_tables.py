"""The tables and lists of the report, as Markdown."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from kbert_core.checkpoints.encoders import PACKAGE
from kbert_core.experiments.statistics import Difference, Metric, Spread
from kbert_core.experiments.suite import AT_RANDOM
from kbert_core.experiments.tables import Group, Pair, Tables
from kbert_core.knowledge.io.compression import plain_stem

OUTCOMES = {  # of edits
    "new": "new type",
    "kept": "old type",
    "other": "another type",
    "lost": "span lost",
    "right_before": "right before",
    "right_after": "right after",
    "others_changed": "other spans changed",
    "others_new": "other spans new",
}
OTHERS = {  # scores that have no counts a sentence
    "release_f1": "F1, release's own count",
    "release_trunk_f1": "F1, release's count in the text alone",
    "macro_f1": "macro F1",
    "chance_mrr": "MRR by chance",
    "overlap_mrr": "MRR by shared characters",
}
TEST_SETS: dict[str, tuple[Metric, ...]] = {  # by task: what makes a test set easy or hard
    "ner": (
        Metric("mentions not labelled in training", {"unseen": 1}, {"gold": 1}),
        Metric("of these known to the graph", {"covered": 1}, {"unseen": 1}),
    ),
}
MISSING, NONE = "missing", "–"


def anchor(title: str) -> str:
    """The anchor that a heading gets: as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.casefold()).replace(" ", "-")


def contents(suites: Sequence[Tables], beside: Sequence[Group]) -> str:
    """The sections, and how many of their runs are done."""
    rows = [(group.declared.title, "") for group in beside]
    for tables in suites:
        planned = sum(len(row.seeds) for row in tables.suite.rows)
        done, old = (sum(map(count, tables.suite.rows)) for count in (tables.done, tables.old))
        rows.append((tables.suite.title, f"{done}/{planned}" + (f", {old} stale" if old else "")))
    linked = [[f"[{title}](#{anchor(title)})", done] for title, done in rows]
    return table(["Experiment", "runs done"], linked)


# Parts made elsewhere


def caption(picture: str) -> str:
    """What a picture shows."""
    return f"scores on {'test' if picture.endswith('scores.png') else 'dev by epoch'}"


def facts(tables: Tables) -> str:
    """What all runs have in common."""
    data, runs = tables.suite.data, tables.suite.runs
    of_data = f"Data: {Path(data.folder).name}, {data.split}"
    if data.split == "entity-disjoint":
        known = f"names known to {plain_stem(data.among)}"
        among = "all names" if data.among == AT_RANDOM else known
        of_data += f" (held out among {among}; each seed draws its own)"
    if data.also_train:  # a file with its folder, as in bq/train.tsv; a hub name as it is
        more = ("/".join(Path(path).parts[-2:]) for path in data.also_train)
        of_data += f", and to train on {', '.join(more)}"
    sizes = {split: tables.values(None, "examples", split) for split in ("train", "dev", "test")}
    encoders = dict.fromkeys(Path(run.encoder.removeprefix(PACKAGE)).name for run in runs)
    encoder = f"encoder {', '.join(encoders)}"
    parameters = {*tables.values(None, "parameters")}
    if len(parameters) == 1:
        encoder += f" ({parameters.pop():,} parameters)"
    epochs = [*dict.fromkeys(str(run.train.get("epochs", 4)) for run in runs)]
    of_sizes = [f"{split} {_counts(counts)}" for split, counts in sizes.items() if counts]
    trained = f"{' or '.join(epochs)} epoch{'s' * (epochs != ['1'])}"
    return "; ".join([of_data, *of_sizes, encoder, trained]) + "."


def others(tables: Tables) -> dict[str, str]:
    """Further scores that some rows have → their titles."""
    names = {name for scores in tables.values(None, "scores", "test") for name in scores}
    return {name: title for name, title in OTHERS.items() if name in names}


def scores(tables: Tables) -> str:
    """A line a row: its seeds and scores."""
    off = any(tables.graph_off(row.name) for row in tables.suite.rows)
    head = ["", "seeds", *(metric.name for metric in tables.metrics)]
    head += [f"{tables.metrics[0].name}, graph off"] if off else []
    head += others(tables).values()
    rows = []
    for row in tables.suite.rows:
        name, done, old = row.name, tables.done(row), tables.old(row)
        of = f"{done} of {len(row.seeds)}" + (f", {old} stale" if old else "")
        if not done and not old:
            rows.append([name, of, MISSING, *[""] * (len(head) - 3)])
            continue
        values: list[Spread | None] = [tables.score(name, metric) for metric in tables.metrics]
        values += [tables.graph_off(name)] if off else []
        values += [tables.spread(name, "scores", "test", other) for other in others(tables)]
        seeds = str(done) if done == len(row.seeds) else of
        rows.append([tables.shown(name), seeds, *map(_per_cent, values)])
    return table(head, rows)


def differences(tables: Tables) -> str:
    """A line a comparison; nothing where no two rows can be compared."""
    by_metric = {metric.name: tables.differences(metric) for metric in tables.main_metrics}
    if not any(by_metric.values()):
        return ""
    rows = [
        [
            f"{tables.shown(pair[0])} − {tables.shown(pair[1])}",
            *(cell for of in by_metric.values() for cell in _difference(of.get(pair))),
        ]
        for pair in tables.pairs
    ]
    return table(["difference, points", *(n for name in by_metric for n in (name, "p"))], rows)


def by_label(tables: Tables) -> str:
    """F1 on test by label."""
    head = ["", *(f"{label} ({_counts(gold)})" for label, gold in tables.labels.items())]
    path = ("scores", "test", "by_label")
    rows = [
        [
            tables.shown(row.name),
            *(_per_cent(tables.spread(row.name, *path, label, "f1")) for label in tables.labels),
        ]
        for row in tables.suite.rows
        if any(tables.values(row.name, *path))
    ]
    return table(head, rows)


def edits(tables: Tables, *added: str) -> str:
    """Response to edits on test, for every run that has one; over its seeds.

    Args:
        added: "added", for triples that were added; else tails were replaced.
    """
    responses = {
        (run.name, group): [response for response in of_seeds if response.get("n")]
        for run in tables.suite.runs
        for group in ("unseen", "seen")
        if (of_seeds := tables.values(run.name, "edit_response", "test", *added, group))
    }
    shares = {  # by outcome, run and group: of each seed that has any
        (outcome, *key): [r[outcome] for r in of_seeds if r.get(outcome) is not None]
        for key, of_seeds in responses.items()
        for outcome in OUTCOMES
    }
    outcomes = [
        name for name in OUTCOMES if any(of for key, of in shares.items() if key[0] == name)
    ]
    head = ["", "name in training", "edits", *(OUTCOMES[outcome] for outcome in outcomes)]
    rows = [
        [
            *(tables.shown(name), group, f"{sum(response['n'] for response in of_seeds):,}"),
            *(_share(shares[outcome, name, group]) for outcome in outcomes),
        ]
        for (name, group), of_seeds in responses.items()
        if of_seeds
    ]
    return table(head, rows) if rows else ""


def notes(tables: Tables) -> str:
    """What is to be said of rows, a line each."""
    rows = tables.suite.rows
    lines = [f"- **{row.name}**: {row.note}" for row in rows if row.note]
    for row in rows:
        if unchanged := tables.spread(row.name, "shuffled_unchanged"):
            share = f"{100 * unchanged.mean:.1f} %"
            lines.append(f"- **{row.name}**: {share} of the triples kept a true tail.")
    return "\n".join([*lines, *_named_by_tails(tables), *_outdated(tables)])


def _named_by_tails(tables: Tables) -> list[str]:
    """Which labels an edit can give: those that a tail of the graph names."""
    rows: dict[str, list[str]] = {}
    for row in tables.suite.runs:
        seeds = len(tables.results.get(row.name, {}))
        named = ", ".join(
            label if count == seeds else f"{label} ({count} of {seeds} seeds)"
            for label, count in tables.named_by_tails(row.name).items()
        )
        if named:
            rows.setdefault(named, []).append(f"**{row.name}**")
    return [
        f"- {'; '.join(of)}: an edit can give {named}, which tails of the graph name."
        for named, of in rows.items()
    ]


def _outdated(tables: Tables) -> list[str]:
    """Which results are of something else than the suite says now, and why."""
    seeds: dict[tuple[str, str], list[str]] = {}
    for status in tables.outdated:
        seeds.setdefault((status.cell.row.name, status.reason), []).append(str(status.cell.seed))
    lines = []
    for (row, reason), of in seeds.items():
        what = "Stale, to be run again" if row in tables.stale else "Stale and left out"
        lines.append(f"- {what}: {row}, seed{'s' * (len(of) > 1)} {', '.join(of)} ({reason}).")
    return lines


# Suites side by side


def group_data(group: Group) -> str:
    """What the suites' data are like."""
    members = [tables for _, tables in group.members]
    sizes = [tables.values(None, "examples", "train") for tables in members]
    rows = [["to train on", *(_counts(of) if of else MISSING for of in sizes)]]
    for fact in TEST_SETS.get(members[0].suite.task, ()):
        rows.append([f"{fact.name}, %", *(_fact(tables, fact) for tables in members)])
    return table(["data", *(called for called, _ in group.members)], rows)


def _fact(tables: Tables, fact: Metric) -> str:
    """Of the row of most seeds, as it is the same for every row; of a stale one if need be."""
    rows = sorted(tables.results, key=lambda n: (n not in tables.stale, len(tables.results[n])))
    return _per_cent(tables.score(rows[-1], fact)) if rows else MISSING


def group_scores(group: Group, metric: Metric) -> str:
    """A line a row, a column a suite."""
    columns = [[f"{metric.name}, %", *group.rows]]
    for called, tables in group.members:
        lacking, of_pairs = group.lacking(tables), tables.differences(metric)
        cells = [_group_cell(tables, name, metric, of_pairs, lacking) for name in group.rows]
        columns.append([called + (f" ({lacking})" if lacking else ""), *cells])
    head, *rows = zip(*columns, strict=True)
    return table(head, rows)


def _group_cell(
    tables: Tables, name: str, metric: Metric, of_pairs: Mapping[Pair, Difference], in_head: str
) -> str:
    """A score, its difference there, and what it lacks unless the head says so."""
    row = next((row for row in tables.suite.rows if row.name == name), None)
    if row is None:
        return NONE
    score = tables.score(name, metric)
    if score is None:
        return MISSING
    parts = [_per_cent(score)]
    difference = of_pairs.get((name, row.compare_with or ""))
    if difference is not None and row.compare_with not in tables.stale:
        parts.append(f"({_signed(difference.mean)})")
    lacking = tables.lacking(row)
    parts += [f"*{lacking}*"] if lacking != in_head else []
    return " ".join(parts)


# Cells


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    cells = ([cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in (head, *rows))
    first, *others = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([first, "|---|" + "---:|" * (len(head) - 1), *others])


def _per_cent(spread: Spread | None, digits: int = 1) -> str:
    """A mean in per cent, with its deviation over the seeds."""
    if spread is None:
        return NONE
    mean, deviation = f"{100 * spread.mean:.{digits}f}", spread.deviation
    return mean if deviation is None else f"{mean} ± {100 * deviation:.{digits}f}"


def _share(shares: Sequence[float]) -> str:
    """Shares over the seeds, in whole per cent."""
    return f"{_per_cent(Spread.of(shares), 0)} %" if shares else NONE


def _signed(value: float) -> str:
    """A difference in points with its sign, one decimal."""
    return f"{100 * value:+.1f}".replace("-", "−")


def _difference(difference: Difference | None) -> list[str]:
    """A difference with its deviation over the seeds and its interval, and its p."""
    if difference is None:
        return [MISSING, ""]
    mean, deviation = _signed(difference.mean), difference.deviation
    mean += "" if deviation is None else f" ± {100 * deviation:.1f}"
    p = difference.p if difference.adjusted is None else difference.adjusted
    how = ("< 0.001" if p < 0.001 else f"{p:.3f}") + ", *exploratory*" * difference.exploratory
    return [f"{mean} [{_signed(difference.low)}, {_signed(difference.high)}]", how]


def _counts(counts: Sequence[int]) -> str:
    """The least and the greatest of some counts."""
    few, many = min(counts), max(counts)
    return f"{few:,}" + (f"–{many:,}" if many != few else "")
