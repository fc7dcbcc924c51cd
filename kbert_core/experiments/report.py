"""Results → one report: Markdown, the same as self-contained HTML, and pictures.

Its words and their order are in ``report.md.jinja``, its tables here. All of it
comes from the results' JSON and the suite files, so it is made again by one
command, and what isn't there yet is shown as missing.
"""

import base64
import html
import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader

from kbert_core.checkpoints.encoders import PACKAGE
from kbert_core.errors import ExperimentError
from kbert_core.experiments.pictures import draw_group, draw_suite
from kbert_core.experiments.results import Group, Tables, groups
from kbert_core.experiments.statistics import LEVEL, RESAMPLES, Difference, Metric, Spread
from kbert_core.experiments.suite import AT_RANDOM
from kbert_core.knowledge.io.compression import plain_stem
from kbert_core.training.finetune import MAIN_SCORE

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
MISSING, NONE = "missing", "–"
UNCHECKED = "Not checked for being up to date where this was made"
STATISTICS = Path("decisions/statistics.md")  # beside the report, in this project's docs


def write_report(
    suites: Sequence[Tables],
    output: Path,
    *,
    published: Path | None = None,
    appendices: Sequence[Path] = (),
    command: str = "",
) -> list[Path]:
    """Write the report.

    Args:
        suites: shown in this order, those that nothing was run of last.
        output: the Markdown file; the HTML stands beside it, the pictures in
            a folder of its name.
        published: YAML of figures published by others: ``title``, ``about``
            (Markdown), and the ``columns`` and ``rows`` of one table, or
            ``tables``, a list of these with an ``about`` each.
        appendices: Markdown of sections made elsewhere.
        command: that makes the report.

    Returns:
        The files written.

    Raises:
        ExperimentError: they can't be.
    """
    if output.suffix != ".md":
        raise ExperimentError(f"--report is {output}, expected the name of a .md file.")
    suites = sorted(suites, key=lambda tables: not tables.results)
    folder, page = output.parent / output.stem, output.with_suffix(".html")
    beside = groups(suites)
    of_groups = [draw_group(group, folder) for group in beside]
    of_suites = {tables.suite.name: draw_suite(tables, folder) for tables in suites}
    text = _rendered(
        "report.md.jinja",
        command=command,
        explained=STATISTICS if (output.parent / STATISTICS).is_file() else None,
        groups=beside,
        suites=suites,
        folder=folder.name,
        pictures={name: [path.name for path in paths] for name, paths in of_suites.items()},
        appendices=[*map(_appendix, appendices)],
        published=_published(published) if published is not None else None,
    )
    text = re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")
        page.write_text(html_page(text, output.parent), encoding="utf-8")
    except OSError as error:
        raise ExperimentError(
            f"{output}: can't be written ({error.strerror}). Name another file with --report."
        ) from error
    return [output, page, *of_groups, *chain.from_iterable(of_suites.values())]


def _rendered(template: str, **values: Any) -> str:
    """Fill in one of the templates beside this module."""
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=lambda name: name == "report.html.jinja",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    shown = (contents, facts, others, scores, differences, by_label, edits, named_by_tails)
    templates.globals |= {f.__name__: f for f in (*shown, group_data, group_scores, table)}
    about = {"level": f"{100 * LEVEL:.0f}", "resamples": f"{RESAMPLES:,}", "UNCHECKED": UNCHECKED}
    return templates.get_template(template).render(**about, **values)


def _appendix(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ExperimentError(
            f"{path}: can't be read ({error}). Make it, or leave --appendix out."
        ) from error


def _published(path: Path) -> dict[str, Any]:
    """Figures published by others, marked as such; see ``write_report``."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        tables = [
            {
                "about": "" if each is data else str(each["about"]).strip(),
                "columns": [str(column) for column in each["columns"]],
                "rows": [[str(cell) for cell in row] for row in each["rows"]],
            }
            for each in data.get("tables", [data])
        ]
        return {"title": data["title"], "about": str(data["about"]).strip(), "tables": tables}
    except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise ExperimentError(
            f"{path}: can't be read ({error}); expected title, about, columns and rows."
        ) from error


def html_page(markdown: str, folder: Path) -> str:
    """The report as one HTML file; its pictures, named from ``folder``, are put into it."""
    try:
        from markdown_it import MarkdownIt
    except ImportError as error:
        raise ExperimentError(
            "The HTML report needs markdown-it-py, which isn't installed. "
            "`pip install markdown-it-py`."
        ) from error

    def inlined(picture: re.Match[str]) -> str:
        file = folder / html.unescape(picture[1])
        if not file.is_file():
            return picture[0]
        return f'<img src="data:image/png;base64,{base64.b64encode(file.read_bytes()).decode()}"'

    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    body = re.sub(r'<img src="([^":]+)"', inlined, body)
    body = re.sub("(<table>.*?</table>)", r'<div class="table">\1</div>', body, flags=re.DOTALL)
    body = re.sub(
        r"<h2>(.*?)</h2>",
        lambda m: f'<h2 id="{html.escape(anchor(html.unescape(m[1])))}">{m[1]}</h2>',
        body,
    )
    title = markdown.splitlines()[0].removeprefix("# ")
    return _rendered("report.html.jinja", title=title, body=body)


# What the template shows of one suite


def anchor(title: str) -> str:
    """The anchor that a heading gets: as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.casefold()).replace(" ", "-")


def contents(suites: Sequence[Tables], beside: Sequence[Group]) -> str:
    """The sections, and how many of their runs are done."""
    rows = [(group.declared.title, "") for group in beside]
    for tables in suites:
        planned = sum(len(row.seeds) for row in tables.suite.rows)
        rows.append((tables.suite.title, f"{sum(map(tables.done, tables.suite.rows))}/{planned}"))
    linked = [[f"[{title}](#{anchor(title)})", done] for title, done in rows]
    return table(["Experiment", "runs done"], linked)


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
    return "; ".join([*parts, f"encoder {', '.join(encoders)}{size}", trained]) + "."


def others(tables: Tables) -> dict[str, str]:
    """Further scores that some rows have → their titles."""
    names = {name for scores in tables.values(None, "scores", "test") for name in scores}
    return {name: title for name, title in OTHERS.items() if name in names}


def scores(tables: Tables) -> str:
    """A line a row: its seeds and scores."""
    graph_off = "without_knowledge", "test", MAIN_SCORE[tables.suite.task]
    paths = {title: ("scores", "test", other) for other, title in others(tables).items()}
    if tables.values(None, *graph_off):
        paths = {f"{tables.metrics[0].name}, graph off": graph_off, **paths}
    head = ["", "seeds", *(metric.name for metric in tables.metrics), *paths]
    rows = []
    for row in tables.suite.rows:
        values: list[Spread | None] = [tables.score(row.name, m) for m in tables.metrics]
        values += [tables.spread(row.name, *path) for path in paths.values()]
        done = tables.done(row)
        cells = [*map(_per_cent, values)] if done else [MISSING, *[""] * (len(head) - 3)]
        rows.append([row.name, tables.lacking(row).removesuffix(" seeds") or str(done), *cells])
    return table(head, rows)


def differences(tables: Tables) -> str:
    """A line a comparison; nothing where no two rows can be compared."""
    by_metric = {metric.name: tables.differences(metric) for metric in tables.main_metrics}
    if not any(by_metric.values()):
        return ""
    head = ["difference, points", *(n for name in by_metric for n in (name, "p"))]
    columns = by_metric.values()
    rows = [
        [" − ".join(pair), *chain(*(_difference(of.get(pair)) for of in columns))]
        for pair in tables.pairs
    ]
    compared = [row for pair in tables.pairs for row in pair]
    for row in (row.name for row in tables.suite.runs if row.name in compared):
        nulls = [tables.resampled.between_seeds(row, metric) for metric in tables.main_metrics]
        if any(nulls):
            rows.append([f"*none:* {row}, one seed − another", *chain(*map(_difference, nulls))])
    return table(head, rows)


def by_label(tables: Tables) -> str:
    """F1 on test by label."""
    path = ("scores", "test", "by_label")
    rows = [
        [name, *(_per_cent(tables.spread(name, *path, label, "f1")) for label in tables.labels)]
        for name in (row.name for row in tables.suite.rows)
        if any(tables.values(name, *path))
    ]
    return table(["", *(f"{la} ({_counts(gold)})" for la, gold in tables.labels.items())], rows)


def edits(tables: Tables, *added: str) -> str:
    """Response to edits on test, for every run that has one; over its seeds.

    Args:
        added: "added", for triples that were added; else tails were replaced.
    """
    rows: list[tuple[str, str, int, dict[str, Spread]]] = []
    for run in tables.suite.runs:
        for group in ("unseen", "seen"):
            values = tables.values(run.name, "edit_response", "test", *added, group)
            responses = [response for response in values if response.get("n")]
            shares = {o: [r[o] for r in responses if r.get(o) is not None] for o in OUTCOMES}
            spreads = {outcome: Spread.of(of) for outcome, of in shares.items() if of}
            if responses:
                rows.append((run.name, group, sum(r["n"] for r in responses), spreads))
    outcomes = [o for o in OUTCOMES if any(o in spreads for *_, spreads in rows)]
    cells = [
        [name, group, f"{n:,}", *(_per_cent(spreads.get(o), 0, " %") for o in outcomes)]
        for name, group, n, spreads in rows
    ]
    head = ["", "name in training", "edits", *(OUTCOMES[outcome] for outcome in outcomes)]
    return table(head, cells) if rows else ""


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
            rows.setdefault(", ".join(named), []).append(f"**{row.name}**")
    return {named: "; ".join(of) for named, of in rows.items()}


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
            cells.append(MISSING if name is None else _per_cent(tables.score(name, fact)))
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
            cell = _per_cent(score)
            cell += f" ({_signed(difference.mean)})" if difference is not None else ""
            column.append(cell + (f" *{lacking}*" if lacking != in_head else ""))
        columns.append(column)
    head, *lines = zip(*columns, strict=True)
    return table(head, lines)


# Cells


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    cells = ([cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in (head, *rows))
    first, *others = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([first, "|---|" + "---:|" * (len(head) - 1), *others])


def _per_cent(spread: Spread | None, digits: int = 1, unit: str = "") -> str:
    """A mean in per cent, with its deviation over the seeds."""
    if spread is None:
        return NONE
    mean, deviation = f"{100 * spread.mean:.{digits}f}", spread.deviation
    return mean + ("" if deviation is None else f" ± {100 * deviation:.{digits}f}") + unit


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
    return "–".join(f"{count:,}" for count in sorted({min(counts), max(counts)}))
