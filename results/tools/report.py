"""Results → docs/results.md: the findings, a page a suite with its tables, and pictures.

    python -m results.tools.report

Its words and their order are in ``report.md.jinja`` and ``report_suite.md.jinja``, its tables in
:mod:`results.tools.tables`. All of it comes from the runs, the suite files and the text of the
findings, so it is made again by one command, and what isn't there yet is shown as missing.
"""

import argparse
import logging
import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError
from jinja2.sandbox import SandboxedEnvironment

from kbert_core.errors import ExperimentError
from kbert_lab.study.statistics import ENOUGH_SEEDS, LEVEL, RESAMPLES, SURE_SEEDS, Metric
from kbert_lab.suites.grid import Experiment
from kbert_lab.suites.results import Tables
from kbert_lab.suites.suite import Suite, read_suite, slug
from results.tools import tables as tables_of
from results.tools.beside import Group, groups, reruns
from results.tools.pictures import draw_group, draw_suite
from results.tools.tables import (
    MISSING,
    in_points,
    on_few,
    per_cent,
)

RESULTS, REPORT = Path("results"), Path("docs/results.md")
FIRST = "medical-ner-disjoint"  # of the suites
APPENDICES = ("selection", "expected")
READING = "how-to-read.md"
UNCHECKED = "Not checked for being up to date where this was made"
ALT = {  # of a picture, by the end of its name
    "scores.png": "scores on test",
    "curves.png": "scores by epoch",
    "map.png": "what each row gains where one thing is varied",
}
ANCHORS = {"score": "scores", "gain": "differences", "followed": "edits"}  # of a suite's page
STATISTICS = Path("decisions/statistics.md")  # beside the report, in this project's docs
TEMPLATES = Environment(  # it keeps what it has compiled
    loader=FileSystemLoader(Path(__file__).parent), trim_blocks=True, lstrip_blocks=True
)
TEMPLATES.globals |= vars(tables_of)
TEMPLATES.filters["cell"] = tables_of.cell


def write_report(
    suites: Sequence[Tables],
    output: Path,
    *,
    findings: Path | None = None,
    published: Path | None = None,
    appendices: Sequence[Path] = (),
) -> list[Path]:
    """Write the report.

    Args:
        suites: shown in this order, those that nothing was run of last.
        output: the Markdown file that the others are reached from; a page a
            suite and the pictures stand in a folder of its name.
        findings: Markdown for that file, whose figures are filled in: see :class:`Findings`.
        published: YAML of figures published by others: ``title``, ``about``
            (Markdown), and the ``columns`` and ``rows`` of one table, or
            ``tables``, a list of these with an ``about`` each.
        appendices: Markdown of pages made elsewhere, each with a heading first.

    Returns:
        The files written.

    Raises:
        ExperimentError: they can't be, or the findings claim what the results don't hold.
    """
    if output.suffix != ".md":
        raise ExperimentError(f"The report is {output}, expected the name of a .md file.")
    suites = sorted(suites, key=lambda tables: not tables.results)
    folder, beside, twice = output.parent / output.stem, groups(suites), reruns(suites)
    told = Findings(suites, folder.name)
    said = told.filled_in(findings) if findings is not None else ""
    others = [_appendix(path) for path in appendices]
    if published is not None:
        figures = _published(published)
        text = _rendered("report_published.md.jinja", **figures)
        others.append((figures["title"], f"{published.stem}.md", text))
    top = f"[{output.stem}](../{output.name})"
    back = f"{top} · [how to read a table]({READING})"
    of_groups, of_suites = _draw(suites, folder)
    of_all = {
        "groups": beside,
        "suites": suites,
        "others": [(title, name) for title, name, _ in others],
        "explained": STATISTICS if (output.parent / STATISTICS).is_file() else None,
        "reruns": twice,
    }
    pages = {output: _rendered("report.md.jinja", findings=said, at=f"{folder.name}/", **of_all)}
    for group in beside:
        about = told.of_group(group)
        page = _rendered("report_group.md.jinja", group=group, back=back, about=about)
        pages[folder / f"{group.name}-side-by-side.md"] = page
    for tables in suites:
        pictures = [path.name for path in of_suites[tables.suite.name]]
        shown = {"tables": tables, "suite": tables.suite, "pictures": pictures, "back": back}
        shown |= told.of_suite(tables.suite)
        page = _rendered("report_suite.md.jinja", **shown, reruns=twice)
        pages[folder / f"{tables.suite.name}.md"] = page
    pages[folder / READING] = _rendered("report_reading.md.jinja", back=top, at="", **of_all)
    pages |= {folder / name: f"# {title}\n\n{top}\n\n{text}" for title, name, text in others}
    for path, text in pages.items():
        path.write_text(re.sub(r"\n{3,}", "\n\n", text).strip() + "\n", encoding="utf-8")
    return [*pages, *of_groups, *chain.from_iterable(of_suites.values())]


def _draw(suites: Sequence[Tables], folder: Path) -> tuple[list[Path], dict[str, list[Path]]]:
    """Draw the pictures of groups, and of each suite."""
    folder.mkdir(parents=True, exist_ok=True)
    of_groups = [draw_group(group, folder) for group in groups(suites)]
    return of_groups, {tables.suite.name: draw_suite(tables, folder) for tables in suites}


def _rendered(template: str, **values: Any) -> str:
    """Fill in one of the templates beside this module."""
    about = {
        "level": f"{100 * LEVEL:.0f}",
        "resamples": f"{RESAMPLES:,}",
        "UNCHECKED": UNCHECKED,
        "ALT": ALT,
    }
    return TEMPLATES.get_template(template).render(**about, **values)


class Findings:
    """Text whose figures are filled in from the results, each linked to its table.

    In the text ``{{ score(suite, row) }}`` stands for a row's score,
    ``{{ gain(suite, row, other) }}`` for one row minus another; a metric may follow, and
    ``seeds=5`` refuses a claim on fewer. A raised number says of how many seeds a difference is,
    where fewer than five. ``{{ followed(suite, row) }}`` stands for the share of edits that a row
    follows, ``{{ parts(suite, rows) }}`` for a table, see :func:`results.tools.tables.parts`.
    Suites and rows are given by name. In a suite's own summary and discussion, which stand above
    its tables, ``{{ gain(row, other) }}`` is enough, without a link; ``score`` and ``followed``
    likewise.
    """

    def __init__(self, suites: Sequence[Tables], folder: str) -> None:
        self._suites = {tables.suite.name: tables for tables in suites}
        self._folder = folder
        self._figures: dict[str, Callable[..., tuple[str, int]]]
        self._figures = {"score": self._score, "gain": self._gain, "followed": self._followed}

    def filled_in(self, path: Path) -> str:
        """The text of a file with its figures; ExperimentError where one can't be had."""
        linked = {name: partial(self._linked, name) for name in self._figures}
        return _filled_in(path, path.read_text(encoding="utf-8"), parts=self._parts, **linked)

    def of_group(self, group: Group) -> str:
        """What a suite's file says of several side by side, with figures as in a discussion."""

        def gain(suite: str, *names: str) -> str:
            if suite not in self._suites:
                return MISSING
            return self._gain(suite, *names, usual=group.seeds)[0]

        return _filled_in(self._suites[group.name].suite.path, group.declared.about, gain=gain)

    def of_suite(self, suite: Suite) -> dict[str, str]:
        """What a suite's file says of its results, with its figures; "missing" for want of them."""

        def figure(name: str, *names: str) -> str:
            return self._figures[name](suite.name, *names)[0]

        figures = {name: partial(figure, name) for name in self._figures}
        texts = {"summary": suite.summary, "discussion": suite.discussion}
        return {key: _filled_in(suite.path, text, **figures) for key, text in texts.items()}

    def _parts(self, suite: str, rows: dict[str, str]) -> str:
        return tables_of.parts(self._of(suite, "", *rows.values())[0], rows)

    def _linked(self, name: str, suite: str, *names: str, seeds: int = 1) -> str:
        text, held = self._figures[name](suite, *names, usual=SURE_SEEDS)
        if held < seeds:
            raise ExperimentError(
                f"'{' − '.join(names[:2])}' is claimed on {seeds} seeds, and {suite} holds {held}. "
                "Run the others, or claim less."
            )
        text += ", exploratory" * (name == "gain" and held < ENOUGH_SEEDS)
        return f"[{text}]({self._folder}/{suite}.md#{ANCHORS[name]})"

    # Each: how it is written, and of how many seeds it is

    def _gain(
        self, suite: str, row: str, other: str, metric: str = "", *, usual: int = 0
    ) -> tuple[str, int]:
        """One row minus another in points; a raised number where it is of fewer seeds than usual.

        Usual are those that the suite asks for.
        """
        tables, of = self._of(suite, metric, row, other)
        found = tables.resampled.difference(row, other, of)
        if found is None:
            return MISSING, 0
        few = on_few(found.seeds, usual or len(tables.suite.seeds))
        return in_points(found, MISSING) + few, found.seeds

    def _score(self, suite: str, row: str, metric: str = "", *, usual: int = 0) -> tuple[str, int]:
        """A row's score in per cent, with its deviation over the seeds."""
        tables, of = self._of(suite, metric, row)
        found = tables.score(row, of)
        return (per_cent(found), len(found.seeds)) if found else (MISSING, 0)

    def _followed(self, suite: str, row: str, *, usual: int = 0) -> tuple[str, int]:
        """How many rewritten types of unseen names a row follows, with its deviation."""
        tables, _ = self._of(suite, "", row)
        found = tables.spread(row, "edit_response", "test", "unseen", "new")
        done = tables.done(tables.suite.row(row)) if found else 0
        return per_cent(found, 0, " %") if found else MISSING, done

    def _of(self, suite: str, metric: str, *rows: str) -> tuple[Tables, Metric]:
        tables = self._suites.get(suite)
        if tables is None:
            raise ExperimentError(f"no suite '{suite}'. There are: {', '.join(self._suites)}.")
        names = [row.name for row in tables.suite.rows]
        for row in rows:
            if row not in names:
                raise ExperimentError(f"{suite} has no row '{row}'. There are: {'; '.join(names)}.")
        metrics = {m.name: m for m in tables.metrics}
        if metric and metric not in metrics:
            raise ExperimentError(f"{suite} has no '{metric}'. There are: {', '.join(metrics)}.")
        return tables, metrics[metric] if metric else tables.metrics[0]


def _filled_in(path: Path, text: str, **figures: Callable[..., str]) -> str:
    """A file's text with its figures; ExperimentError where one can't be had."""
    environment = SandboxedEnvironment(undefined=StrictUndefined)
    environment.globals |= figures
    try:
        return environment.from_string(text).render()
    except (TemplateError, TypeError) as error:
        raise ExperimentError(
            f"{path}: can't be filled in ({error}). Write figures as "
            "{{ gain('suite', 'row', 'other') }} or {{ score('suite', 'row') }}, in a suite's "
            "own discussion as {{ gain('row', 'other') }}."
        ) from error
    except ExperimentError as error:
        raise ExperimentError(f"{path}: {error}") from error


def _appendix(path: Path) -> tuple[str, str, str]:
    """Of a page made elsewhere its heading, the name of its file and what stands below."""
    title, _, text = path.read_text(encoding="utf-8").strip().partition("\n")
    title = title.lstrip("# ")
    return title, f"{slug(title)}.md", text.strip()


def _published(path: Path) -> dict[str, Any]:
    """Figures published by others, marked as such; see ``write_report``."""
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the report of this repository's suites, or of those named."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("suites", nargs="*", type=Path, help="default: all, the first read first")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the runs")
    parser.add_argument("--report", type=Path, default=REPORT, help="the page, .md")
    parser.add_argument("--draw", action="store_true", help="only draw the pictures")
    args = parser.parse_args(arguments)
    logging.basicConfig(level=logging.ERROR)  # the pages say what couldn't be checked
    paths, whole = args.suites, not args.suites
    if whole:
        paths = sorted(
            (RESULTS / "suites").glob("*.yaml"), key=lambda path: (path.stem != FIRST, path)
        )
    suites = [read_suite(path) for path in paths]
    with TemporaryDirectory() as work:
        tables = [Experiment(suite, args.results, Path(work)).tables() for suite in suites]
    if args.draw:
        _draw(tables, args.report.with_suffix(""))
    else:
        write_report(
            tables,
            args.report,
            findings=RESULTS / "findings.md" if whole else None,
            published=RESULTS / "published.yaml" if whole else None,
            appendices=[RESULTS / name / "section.md" for name in APPENDICES if whole],
        )


if __name__ == "__main__":
    main()
