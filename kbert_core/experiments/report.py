"""Results → one report: Markdown, the same as self-contained HTML, and pictures.

Everything in it comes from the results' JSON and the suite files, so it is
made again by one command, and what isn't there yet is shown as missing.
"""

import base64
import html
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from kbert_core.checkpoints.encoders import PACKAGE
from kbert_core.errors import ExperimentError
from kbert_core.experiments.keys import AT_RANDOM
from kbert_core.experiments.pictures import draw_group, drawn
from kbert_core.experiments.side_by_side import Group, groups, section
from kbert_core.experiments.statistics import LEVEL, RESAMPLES
from kbert_core.experiments.tables import Pair, Tables, spread
from kbert_core.experiments.text import (
    MISSING,
    NONE,
    counts_text,
    difference_text,
    score_text,
    share_text,
    spread_text,
    table,
)
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
REPLACED = (
    "Response to edits on test: of an entity that is tagged rightly, the tail of its type triple "
    "is replaced by another type's, and the sentence is read again."
)
ADDED = (
    "The same for a missing triple: an entity that the graph doesn't know gets the triple that "
    "names its type, and the sentence is read again."
)
BY_LABEL = "F1 on test by label; in brackets how many of it a test set has."
RELEASE_F1 = "release_f1"
OTHERS = {  # scores that have no counts a sentence
    RELEASE_F1: "F1, release's own count",
    "release_trunk_f1": "F1, release's count in the text alone",
    "macro_f1": "macro F1",
    "chance_mrr": "MRR by chance",
    "overlap_mrr": "MRR by shared characters",
}
HOW_TO_READ = f"""\
Scores are per cent on the test set, which is read once a seed; every choice, the best epoch
included, is made on dev. ± is the standard deviation over the seeds, of a difference that of the
seeds' own differences. A difference is paired by sentence and seed; in brackets stand
{100 * LEVEL:.0f} % of {RESAMPLES:,} resamples of the sentences, which do not hold the spread over
the seeds. p is two-sided and corrected for the number of comparisons with the run without
knowledge (Holm), those still missing included; *exploratory* is what stands outside that family,
or has fewer than three seeds."""
RELEASE = (
    "The release's count is the released K-BERT's, to compare published figures with: of the "
    "likeliest tag of each token (with a dictionary, of its spans), borders alone, whatever the "
    "type. Its own count divides also by entities begun on injected tokens, for which the release "
    "trains a label and this training doesn't; in the text alone these are left out."
)
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
        published: YAML of figures published by others, see ``_published``.
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
    folder = output.parent / output.stem
    pictures = {tables.suite.name: drawn(tables, folder) for tables in suites}
    beside = {folder / f"{group.name}-side-by-side.png": group for group in groups(suites)}
    more = f" How and why: [{STATISTICS}]({STATISTICS})."
    how = HOW_TO_READ + (more if (output.parent / STATISTICS).is_file() else "")
    parts = ["# Results", _made_by(command), how, _contents(suites, [*beside.values()])]
    for picture, group in beside.items():
        draw_group(group, picture)
        parts += section(group, picture.relative_to(output.parent).as_posix())
    for tables in suites:
        parts += _suite(tables, [p.relative_to(output.parent) for p in pictures[tables.suite.name]])
    parts += map(_appendix, appendices)
    if published is not None:
        parts += _published(published)
    text = "\n\n".join(part for part in parts if part) + "\n"
    page = output.with_suffix(".html")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")
        page.write_text(html_page(text, output.parent), encoding="utf-8")
    except OSError as error:
        raise ExperimentError(
            f"{output}: can't be written ({error.strerror}). Name another file with --report."
        ) from error
    return [output, page, *beside, *(p for made in pictures.values() for p in made)]


# Parts of it


def _made_by(command: str) -> str:
    if not command:
        return ""
    return f"Made from the JSON of every run by `{command}`; don't edit it by hand."


def _contents(suites: Sequence[Tables], beside: Sequence[Group]) -> str:
    if len(suites) < 2:
        return ""
    rows = [[f"[{group.declared.title}](#{_anchor(group.declared.title)})", ""] for group in beside]
    for tables in suites:
        planned = sum(len(row.seeds) for row in tables.suite.rows)
        done = sum(map(tables.done, tables.suite.rows))
        old = sum(map(tables.old, tables.suite.rows))
        said = f"{done}/{planned}" + (f", {old} stale" if old else "")
        rows.append([f"[{tables.suite.title}](#{_anchor(tables.suite.title)})", said])
    return table(["Experiment", "runs done"], rows)


def _suite(tables: Tables, pictures: Sequence[Path]) -> list[str]:
    suite = tables.suite
    run_it = f"Run it: `kbert experiment {suite.path.as_posix()}`"
    return [
        f"## {suite.title}",
        suite.about,
        _facts(tables),
        *(f"![{suite.title}: {_caption(picture)}]({picture})" for picture in pictures[:1]),
        _scores(tables),
        _differences(tables),
        *_labels(tables),
        *_edits(tables),
        *(f"![{suite.title}: {_caption(picture)}]({picture})" for picture in pictures[1:]),
        _notes(tables),
        f"{UNCHECKED}: {', '.join(tables.unchecked)}." if tables.unchecked else "",
        suite.discussion,
        "" if suite.path.is_absolute() else run_it,
    ]


def _caption(picture: Path) -> str:
    return "scores on test" if picture.stem.endswith("scores") else "scores on dev by epoch"


def _short(path: str) -> str:
    """A file with its folder, as in bq/train.tsv; a hub name as it is."""
    return "/".join(Path(path).parts[-2:])


def _facts(tables: Tables) -> str:
    """What all runs have in common."""
    data = tables.suite.data
    facts = [f"Data: {Path(data.folder).name}, {data.split}"]
    if data.split == "entity-disjoint":
        among = (
            "all names" if data.among == AT_RANDOM else f"names known to {plain_stem(data.among)}"
        )
        facts[0] += f" (held out among {among}; each seed draws its own)"
    if data.also_train:
        facts[0] += f", and to train on {', '.join(map(_short, data.also_train))}"
    results = [result for of in tables.results.values() for result in of.values()]
    for split in ("train", "dev", "test"):
        sizes = [r["examples"][split] for r in results if split in r.get("examples", {})]
        if sizes:
            facts.append(f"{split} {counts_text(sizes)}")
    encoders = dict.fromkeys(
        Path(run.encoder.removeprefix(PACKAGE)).name for run in tables.suite.runs
    )
    facts.append(f"encoder {', '.join(encoders)}")
    parameters = dict.fromkeys(r["parameters"] for r in results if "parameters" in r)
    if len(parameters) == 1:
        facts[-1] += f" ({next(iter(parameters)):,} parameters)"
    epochs = dict.fromkeys(str(run.train.get("epochs", 4)) for run in tables.suite.runs)
    facts.append(f"{' or '.join(epochs)} epoch{'s' * (list(epochs) != ['1'])}")
    return "; ".join(facts) + "."


def _scores(tables: Tables) -> str:
    metrics = tables.metrics
    if not metrics:
        return ""
    off = any(tables.graph_off(row.name) for row in tables.suite.rows)
    head = ["", "seeds", *(metric.name for metric in metrics)]
    head += [f"{metrics[0].name}, graph off"] if off else []
    others = {
        name: title
        for name, title in OTHERS.items()
        if any(tables.other(row.name, name) for row in tables.suite.rows)
    }
    head += others.values()
    rows = []
    for row in tables.suite.rows:
        done, old, planned = tables.done(row), tables.old(row), len(row.seeds)
        if not done and not old:
            rows.append([row.name, f"0 of {planned}", MISSING, *[""] * (len(head) - 3)])
            continue
        seeds = f"{done} of {planned}" + (f", {old} stale" if old else "")
        cells = [tables.shown(row.name), str(done) if done == planned else seeds]
        cells += [score_text(tables.score(row.name, metric)) for metric in metrics]
        if off:
            found = tables.graph_off(row.name)
            cells.append(spread_text(*found) if found else NONE)
        for name in others:
            found = tables.other(row.name, name)
            cells.append(spread_text(*found) if found else NONE)
        rows.append(cells)
    made = table(head, rows)
    return f"{made}\n\n{RELEASE}" if RELEASE_F1 in others else made


def _differences(tables: Tables) -> str:
    shown = tables.main_metrics
    of_metric = [tables.differences(metric) for metric in shown]
    pairs = [*tables.family, *(Pair(*names) for names in tables.suite.also_compare)]
    pairs = list(dict.fromkeys(pairs))
    if not any(of_metric):
        return ""
    rows = []
    for pair in pairs:
        cells = [f"{tables.shown(pair.row)} − {tables.shown(pair.other)}"]
        for found in of_metric:
            cells += difference_text(found[pair]) if pair in found else [MISSING, ""]
        rows.append(cells)
    head = ["difference, points"]
    for metric in shown:
        head += [metric.name, "p"]
    return table(head, rows)


def _labels(tables: Tables) -> list[str]:
    """F1 by label; nothing for a task without."""
    if not tables.labels:
        return []
    head = ["", *(f"{label} ({counts_text(gold)})" for label, gold in tables.labels.items())]
    rows = [
        [
            tables.shown(row.name),
            *(spread_text(*of[label]) if label in of else NONE for label in tables.labels),
        ]
        for row in tables.suite.rows
        if (of := tables.by_label(row.name))
    ]
    return [BY_LABEL, table(head, rows)]


def _edits(tables: Tables) -> list[str]:
    parts = []
    for intro, edits in ((REPLACED, tables.edits()), (ADDED, tables.edits(added=True))):
        outcomes = [name for name in OUTCOMES if any(name in edit.shares for edit in edits)]
        rows = [
            [
                *(tables.shown(edit.row), edit.group, f"{edit.count:,}"),
                *(share_text(edit.shares.get(name)) for name in outcomes),
            ]
            for edit in edits
        ]
        head = ["", "name in training", "edits", *(OUTCOMES[name] for name in outcomes)]
        parts += [intro, table(head, rows)] if rows else []
    return parts


def _notes(tables: Tables) -> str:
    lines = [f"- **{row.name}**: {row.note}" for row in tables.suite.rows if row.note]
    for row in tables.suite.rows:
        shares = [
            result["shuffled_unchanged"]
            for result in tables.results.get(row.name, {}).values()
            if "shuffled_unchanged" in result
        ]
        if shares:
            share = f"{100 * spread(shares)[0]:.1f} %"
            lines.append(f"- **{row.name}**: {share} of the triples kept a true tail.")
    lines += _named_by_tails(tables)
    lines += _outdated(tables)
    return "\n".join(lines)


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


def _appendix(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ExperimentError(
            f"{path}: can't be read ({error}). Make it, or leave --appendix out."
        ) from error


def _published(path: Path) -> list[str]:
    """Figures published by others, marked as such.

    The file has ``title`` and ``about`` (Markdown), and ``columns`` and
    ``rows`` of one table, or ``tables``, a list of these with an ``about``
    each.
    """
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        parts = [f"## {data['title']}", str(data["about"]).strip()]
        for each in data.get("tables", [data]):
            parts += [str(each["about"]).strip()] if each is not data else []
            columns = [str(column) for column in each["columns"]]
            parts.append(table(columns, [[str(cell) for cell in row] for row in each["rows"]]))
        return parts
    except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise ExperimentError(
            f"{path}: can't be read ({error}); expected title, about, columns and rows."
        ) from error


# HTML

STYLE = """
:root { color-scheme: light dark; --text: #222; --page: #fff; --line: #e0e0e0; --strong: #999;
  --shade: #f3f4f6; --link: #0b57d0; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e3e5e8; --page: #12171c; --line: #2c343c; --strong: #66707a; --shade: #1d242b;
    --link: #8ab4f8; }
}
body { font: 16px/1.5 system-ui, "Noto Sans", "Noto Sans CJK SC", sans-serif; color: var(--text);
  background: var(--page); max-width: 1080px; margin: 2rem auto; padding: 0 1.25rem; }
a { color: var(--link); }
h1, h2 { line-height: 1.2; }
h2 { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: 1.5rem; }
p, li { max-width: 46rem; }
p:has(> img) { max-width: 60rem; }
.table { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .7rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { text-align: left; border-bottom: 2px solid var(--strong); vertical-align: bottom; }
th:not(:first-child) { text-align: right; white-space: normal; }
td:first-child { white-space: normal; min-width: 15rem; }
tbody tr:hover { background: var(--shade); }
img { max-width: 100%; height: auto; margin: .5rem 0; background: #fff; border-radius: 6px; }
code { background: var(--shade); padding: .1rem .3rem; border-radius: 3px; font-size: .9em; }
"""


def _anchor(title: str) -> str:
    """The anchor that a heading gets: as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.casefold()).replace(" ", "-")


def html_page(markdown: str, folder: Path) -> str:
    """The report as one HTML file that needs nothing beside it.

    Args:
        markdown: the report.
        folder: that its pictures' names start from.
    """
    try:
        from markdown_it import MarkdownIt
    except ImportError as error:
        raise ExperimentError(
            "The HTML report needs markdown-it-py, which isn't installed. "
            "`pip install markdown-it-py`."
        ) from error
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    body = str(reader.render(markdown))
    body = re.sub(r'<img src="([^":]+)"', lambda m: _inlined(m, folder), body)
    body = body.replace("<table>", '<div class="table"><table>').replace(
        "</table>", "</table></div>"
    )
    body = re.sub(
        r"<h2>(.*?)</h2>",
        lambda m: f'<h2 id="{html.escape(_anchor(html.unescape(m[1])))}">{m[1]}</h2>',
        body,
    )
    title = html.escape(markdown.splitlines()[0].removeprefix("# "))
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )


def _inlined(found: re.Match[str], folder: Path) -> str:
    file = folder / html.unescape(found[1])
    if not file.is_file():
        return found[0]
    data = base64.b64encode(file.read_bytes()).decode()
    return f'<img src="data:image/png;base64,{data}"'


def summary(tables: Tables) -> Mapping[str, Any]:
    """The main figures of a suite, for JSON."""
    rows: dict[str, Any] = {}
    for row in tables.suite.rows:
        scores = {m.name: tables.score(row.name, m) for m in tables.metrics}
        rows[row.name] = {
            "seeds": tables.done(row),
            "stale": row.name in tables.stale,
            **{
                name: {"mean": s.mean, "deviation": s.deviation, "interval": [s.low, s.high]}
                for name, s in scores.items()
                if s is not None
            },
        }
    return rows
