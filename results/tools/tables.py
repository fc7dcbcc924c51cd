"""The tables of a report, in Markdown, as its templates take them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import fmean
from string import ascii_uppercase
from typing import Any

from kbert_core.checkpoints.encoders import PACKAGE
from kbert_core.knowledge.io.compression import plain_stem
from kbert_lab.study.statistics import NONE, Difference, Metric, Spread, in_points, per_cent, signed
from kbert_lab.suites.results import Tables
from kbert_lab.suites.suite import AT_RANDOM, Baseline, Condition, Run, Suite
from kbert_lab.training.finetune import MAIN_SCORE
from results.tools.beside import Group, Rerun

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
    "relation_f1": "official F1 of relations",
    "chance_mrr": "MRR by chance",
    "overlap_mrr": "MRR by shared characters",
}
TEST_SETS: dict[str, tuple[Metric, ...]] = {  # by task: what makes a test set easy or hard
    "ner": (
        Metric("mentions not labelled in training", {"unseen": 1}, {"gold": 1}),
        Metric("of these known to the graph", {"covered": 1}, {"unseen": 1}),
    ),
}
RAISED = dict(zip(map(ord, "0123456789"), "⁰¹²³⁴⁵⁶⁷⁸⁹", strict=True))
UNKNOWN = "processor not noted"  # in older results
MISSING, TIE = "missing", "\N{NO-BREAK SPACE}"


def progress(tables: Tables) -> str:
    """How many of the planned runs are done."""
    rows = tables.suite.rows
    return f"{sum(map(tables.done, rows))}/{sum(len(row.seeds) for row in rows)}"


def noise(suites: Sequence[Tables]) -> tuple[int, int]:
    """How many pairs of seeds of one row there are, and how many seem to differ.

    That is, the interval of the sentences alone leaves 0 out, of the main score of trained rows.
    """
    pairs = [
        pair
        for tables in suites
        for run in tables.suite.runs
        for pair in tables.resampled.between_seeds(run.name, tables.metrics[0])
    ]
    return len(pairs), sum(pair.low > 0 or pair.high < 0 for pair in pairs)


def retrained(suites: Sequence[Tables]) -> tuple[int, int]:
    """How many rows were trained again by another seed, and how many then seem to differ."""
    found = [
        tables.resampled.difference(run.name, run.compare_with, tables.metrics[0])
        for tables in suites
        for run in tables.suite.runs
        if run.retrained and run.compare_with is not None
    ]
    moved = [each.low > 0 or each.high < 0 for each in found if each is not None]
    return len(moved), sum(moved)


def rerun_rows(reruns: Sequence[Rerun]) -> str:
    """A line a row that was run twice."""
    names = [*dict.fromkeys(name for again in reruns for name in again.differences)]
    lines = []
    for again in reruns:
        first, second = (tables.suite.name for tables in again.suites)
        lines.append(
            [f"{again.row}: *{second}* − *{first}*", *_paired(again.differences, names, NONE)]
        )
    return table(["points", "seeds", *names], lines)


def facts(tables: Tables) -> str:
    """What all runs have in common."""
    data, runs = tables.suite.data, tables.suite.runs
    parts = [f"Data: {Path(data.folder).name}, {data.split}"]
    if data.split == "entity-disjoint":
        known = f"names known to {plain_stem(data.among)}"
        among = "all names" if data.among == AT_RANDOM else known
        parts[0] += f" (held out among {among}; each seed draws its own)"
    if data.also_train:  # a file with its folder, as in bq/train.tsv; a hub name as it is
        more = ("/".join(Path(path).parts[-2:]) for path in data.also_train)
        parts[0] += f", and to train on {', '.join(more)}"
    for split in ("train", "dev", "test"):
        if sizes := tables.values(None, "examples", split):
            parts.append(f"{split} {_counts(sizes)}")
    encoders = dict.fromkeys(Path(run.encoder.removeprefix(PACKAGE)).name for run in runs)
    parameters = {*tables.values(None, "parameters")}
    size = f" ({parameters.pop():,} parameters)" if len(parameters) == 1 else ""
    unit = "steps" if all("steps" in run.train for run in runs) else "epochs"
    length = " or ".join(dict.fromkeys(str(run.train.get(unit, 4)) for run in runs))
    trained = f"{length} {unit.removesuffix('s')}{'s' * (length != '1')}"
    if (longer := _more_steps(tables)) > 0.02:
        trained += f", up to {100 * longer:.0f} % more steps than in the row compared with"
    return "; ".join([*parts, f"encoder {', '.join(encoders)}{size}", trained]) + "."


def _more_steps(tables: Tables) -> float:
    """By what share a row makes more steps than what it is compared with: branches fill batches."""
    rows = {run.name: run for run in tables.suite.runs}
    steps = {
        name: fmean(curve[-1]["step"] for curve in curves)
        for name in rows
        if (curves := [curve for curve in tables.values(name, "learning_curve") if curve])
    }
    pairs = [(name, run.compare_with) for name, run in rows.items()]
    return max(
        (
            steps[name] / steps[other] - 1
            for name, other in pairs
            if name in steps and other in steps
            if all(
                rows[name].train.get(of) == rows[other].train.get(of) for of in ("epochs", "steps")
            )
        ),
        default=0,
    )


def others(tables: Tables) -> dict[str, str]:
    """Further scores that some rows have → their titles."""
    names = {name for scores in tables.values(None, "scores", "test") for name in scores}
    return {name: title for name, title in OTHERS.items() if name in names}


def scores(tables: Tables) -> str:
    """A line a row: its seeds and scores. Under conditions, see :func:`_by_condition`."""
    suite = tables.suite
    graph_off = "without_knowledge", "test", MAIN_SCORE[suite.task]
    further = {} if suite.conditions else others(tables)
    paths = {title: ("scores", "test", other) for other, title in further.items()}
    if tables.values(None, *graph_off):
        paths = {f"{tables.metrics[0].name}, graph off": graph_off, **paths}
    head = ["", "seeds", *(metric.name for metric in tables.metrics), *paths]
    rows = []
    for row in suite.rows:
        values: list[Spread | None] = [tables.score(row.name, m) for m in tables.metrics]
        values += [tables.spread(row.name, *path) for path in paths.values()]
        done = tables.done(row)
        cells = [*map(per_cent, values)] if done else [MISSING, *[""] * (len(head) - 3)]
        rows.append([row.name, tables.lacking(row).removesuffix(" seeds") or str(done), *cells])
    if suite.conditions:
        lines = ((row.called, row, *line[1:]) for row, line in zip(suite.rows, rows, strict=True))
        return _by_condition(suite, head[2:], lines)
    return table(head, rows)


def differences(tables: Tables, reruns: Sequence[Rerun] = ()) -> str:
    """A line a comparison; nothing where no two rows can be compared.

    Marked *none*, lines where nothing differs but the seed, or the day: a row that was retrained,
    the two seeds of a row that are furthest apart, and runs that another suite has too.
    Under conditions, see :func:`_by_condition`.
    """
    suite, metrics = tables.suite, tables.main_metrics
    names = [metric.name for metric in metrics]
    by_metric = {metric.name: tables.differences(metric) for metric in metrics}
    if not any(by_metric.values()):
        return ""
    lines: list[tuple[str, Run | Baseline, list[str]]] = []
    for pair in tables.pairs:
        row, other = map(suite.row, pair)
        null = "*none:* " * getattr(row, "retrained", False)
        found = {name: of[pair] for name, of in by_metric.items() if pair in of}
        lines.append((f"{null}{row.called} − {other.called}", row, _paired(found, names)))
    compared = {row for pair in tables.pairs for row in pair}
    for run in (run for run in suite.runs if run.name in compared):
        nulls = [tables.resampled.between_seeds(run.name, metric) for metric in metrics]
        if any(nulls):
            largest = [max((abs(d.mean) for d in of), default=None) for of in nulls]
            cells = [NONE if value is None else f"{100 * value:.1f}" for value in largest]
            told = f"*none:* {run.called}, one seed and another, at most"
            lines.append((told, run, ["1", *cells]))
    made, rows = [], [[name, *cells] for name, _, cells in lines]
    if suite.conditions:
        shown = [f"{name}, points" for name in names]
        by_condition = ((name, row, *cells) for name, row, cells in lines)
        made, rows = [_by_condition(suite, shown, by_condition)], []
    for again in reruns:
        if tables in again.suites:
            (other_suite,) = (of.suite.name for of in again.suites if of is not tables)
            also = f"also in [{other_suite}]({other_suite}.md)"
            rows.append(
                [f"*none:* {again.row}, run twice ({also})", *_paired(again.differences, names)]
            )
    if rows:
        made.append(table(["difference, points", "seeds", *by_metric], rows))
    return "\n\n".join(made)


def _by_condition(suite: Suite, columns: Sequence[str], lines: Iterable[tuple[Any, ...]]) -> str:
    """A table a figure: a line a row, a column a condition, named by what isn't as in the first.

    Args:
        columns: names of the figures.
        lines: each a label, the row whose conditions it is of, its seeds, and its figures.
    """
    centre, lines = suite.conditions[0], [*lines]
    varied = (Condition(**dict(c.given.items() - centre.given.items())) for c in suite.conditions)
    conditions = {c.in_words: v.in_words for c, v in zip(suite.conditions, varied, strict=True)}
    tables = []
    for place, name in enumerate(columns):
        cells: dict[str, dict[str, str]] = {}
        seeds: dict[str, dict[str, None]] = {}
        for label, row, of, *figures in lines:
            seeds.setdefault(label, {})[of] = None
            under = (c.in_words for c in suite.conditions if row.is_under(c))
            cells.setdefault(label, {}).update(dict.fromkeys(under, _tied(figures[place])))
        rows = [
            [
                label,
                " or ".join(filter(None, seeds[label])),
                *(of.get(words, "") for words in conditions),
            ]
            for label, of in cells.items()
            if {*of.values()} - {NONE, ""}
        ]
        told = (differing or words for words, differing in conditions.items())
        head = [name, "seeds", *(words.replace(" %", f"{TIE}%") for words in told)]
        tables.append(table(head, rows))
    return "\n\n".join(tables)


def _in_the_centre(suite: Suite, rows: Sequence[Run | Baseline]) -> list[tuple[str, str]]:
    """What rows are called and their names; under conditions those of the first, the centre."""
    centre = suite.conditions[:1]
    return [(row.called, row.name) for row in rows if all(map(row.is_under, centre))]


def by_label(tables: Tables) -> str:
    """F1 on test by label."""
    path = ("scores", "test", "by_label")
    rows = [
        [called, *(per_cent(tables.spread(name, *path, label, "f1")) for label in tables.labels)]
        for called, name in _in_the_centre(tables.suite, tables.suite.rows)
        if any(tables.values(name, *path))
    ]
    return table(["", *(f"{la} ({_counts(gold)})" for la, gold in tables.labels.items())], rows)


def edits(tables: Tables, *added: str) -> str:
    """Response to edits on test, for every run that has one; over its seeds.

    Args:
        added: "added", for triples that were added; else tails were replaced.
    """
    rows: list[tuple[str, str, int, dict[str, Spread]]] = []
    for called, name in _in_the_centre(tables.suite, tables.suite.runs):
        for group in ("unseen", "seen"):
            values = tables.values(name, "edit_response", "test", *added, group)
            responses = [response for response in values if response.get("n")]
            shares = {o: [r[o] for r in responses if r.get(o) is not None] for o in OUTCOMES}
            spreads = {outcome: Spread.of(of) for outcome, of in shares.items() if of}
            if responses:
                rows.append((called, group, sum(r["n"] for r in responses), spreads))
    outcomes = [o for o in OUTCOMES if any(o in spreads for *_, spreads in rows)]
    cells = [
        [name, group, f"{n:,}", *(per_cent(spreads.get(o), 0, " %") for o in outcomes)]
        for name, group, n, spreads in rows
    ]
    head = ["", "name in training", "edits", *(OUTCOMES[outcome] for outcome in outcomes)]
    return table(head, cells) if rows else ""


def parts(tables: Tables, rows: Mapping[str, str]) -> str:
    """A line a row, by what it is called: its score and what edits do, at the seeds all have."""
    seeds = set.intersection(*(set(tables.results.get(name, {})) for name in rows.values()))
    of_row = {row: tables.results.get(row, {}) for row in rows.values()}
    same = replace(tables, results={row: {s: of[s] for s in seeds} for row, of in of_row.items()})
    of_edits = "edit_response", "test"
    lines = [
        [
            called,
            per_cent(same.score(row, tables.metrics[0])),
            per_cent(same.spread(row, *of_edits, "unseen", "new"), 0, " %"),
            per_cent(same.spread(row, *of_edits, "added", "unseen", "others_changed"), 0, " %"),
        ]
        for called, row in rows.items()
    ]
    head = [f"{len(seeds)} seeds", tables.metrics[0].name, "edits followed", "other names changed"]
    return table(head, lines)


def named_by_tails(tables: Tables) -> dict[str, str]:
    """Labels that an edit can give, as tails of the graph name them → the runs they are of."""
    rows: dict[str, list[str]] = {}
    for row in tables.suite.runs:
        of_seeds = [{*of_tail.values()} for of_tail in tables.values(row.name, "type_labels")]
        named = []
        for label in sorted(set().union(*of_seeds)):
            count, seeds = sum(label in labels for labels in of_seeds), tables.done(row)
            named.append(label if count == seeds else f"{label} ({count} of {seeds} seeds)")
        if named:
            rows.setdefault(", ".join(named), []).append(f"**{row.called}**")
    return {named: "; ".join(dict.fromkeys(of)) for named, of in rows.items()}


def made_on(tables: Tables) -> str:
    """Which processor or GPU trained what, in which precision: a line a row, a column a seed."""
    letters: dict[tuple[str, str], str] = {}
    made: dict[tuple[str | None, int], str] = {}
    for run in tables.suite.runs:
        for seed, result in tables.results.get(run.name, {}).items():
            versions, options = result["versions"], result["inputs"]["options"]
            device = versions.get("cpu" if result["device"].startswith("cpu") else "cuda")
            precision = "bfloat16" if options.get("bf16") else "float32"
            machine = device or UNKNOWN, result.get("precision", precision)
            made[run.name, seed] = letters.setdefault(machine, ascii_uppercase[len(letters)])
    if len(letters) <= 1:
        return "".join(f"All runs: {', '.join(machine)}." for machine in letters)
    told = [f"{letter}: {', '.join(machine)}" for machine, letter in letters.items()]
    seeds = sorted({seed for _, seed in made})
    rows: dict[str, dict[int, set[str]]] = {}
    for run, seed in product(tables.suite.runs, seeds):
        if (own := made.get((run.name, seed))) is not None:
            rows.setdefault(run.called, {}).setdefault(seed, set()).add(own)
    lines = [
        [name, *(", ".join(sorted(of.get(seed, ()))) or NONE for seed in seeds)]
        for name, of in rows.items()
    ]
    return f"{'; '.join(told)}.\n\n{table(['seed', *map(str, seeds)], lines)}"


def notes(suite: Suite) -> dict[str, str]:
    """What rows are called → their notes."""
    return {row.called: row.note for row in suite.rows}


# Suites side by side


def group_data(group: Group) -> str:
    """What the suites' data are like."""
    members = [tables for _, tables in group.members]
    sizes = [tables.values(None, "examples", "train") for tables in members]
    rows = [["to train on", *(_counts(of) if of else MISSING for of in sizes)]]
    for fact in TEST_SETS.get(members[0].suite.task, ()):
        cells = []
        for tables in members:  # the same for every row: of that with the most seeds
            name = max(tables.results, key=lambda n: len(tables.results[n]), default=None)
            cells.append(MISSING if name is None else per_cent(tables.score(name, fact)))
        rows.append([f"{fact.name}, %", *cells])
    return table(["data", *(called for called, _ in group.members)], rows)


def group_scores(group: Group, metric: Metric) -> str:
    """A line a row, a column a suite."""
    columns = [[f"{metric.name}, %", *group.rows]]
    for called, tables in group.members:
        in_head, of_pairs = group.lacking(tables), tables.differences(metric)
        column = [called + (f" ({in_head})" if in_head else "")]
        rows = {row.name: row for row in tables.suite.rows}
        for name in group.rows:
            row, score = rows.get(name), tables.score(name, metric)
            if row is None or score is None:
                column.append(NONE if row is None else MISSING)
                continue
            difference, lacking = of_pairs.get((name, row.compare_with or "")), tables.lacking(row)
            cell = per_cent(score)
            if difference is not None:
                cell += f" ({signed(difference.mean)}){on_few(difference.seeds, group.seeds)}"
            column.append(cell + (f" *{lacking}*" if lacking != in_head else ""))
        columns.append(column)
    head, *lines = zip(*columns, strict=True)
    return table(head, lines)


# Cells


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    first, *others = [f"| {' | '.join(map(cell, row))} |" for row in (head, *rows)]
    return "\n".join([first, "|---|" + "---:|" * (len(head) - 1), *others])


def cell(text: str) -> str:
    """A text that stays in its cell."""
    return text.replace("|", "\\|").replace("\n", " ")


def on_few(seeds: int, usual: int) -> str:
    """Of how many seeds a figure is, as a raised number, where these are fewer than usual."""
    return "" if seeds >= usual else str(seeds).translate(RAISED)


def _tied(cell: str) -> str:
    """A figure that a narrow column breaks before its interval alone."""
    return " [".join(part.replace(" ", TIE) for part in cell.split(" ["))


def _paired(
    differences: Mapping[str, Difference], metrics: Sequence[str], missing: str = MISSING
) -> list[str]:
    """How many seeds some differences are of, and each with its interval, by metric."""
    some = next(iter(differences.values()), None)
    count = f"{some.seeds}{', *exploratory*' * some.exploratory}" if some else ""
    return [count, *(in_points(differences.get(name), missing) for name in metrics)]


def _counts(counts: Sequence[int]) -> str:
    """The least and the greatest of some counts."""
    return "–".join(f"{count:,}" for count in sorted({min(counts), max(counts)}))
