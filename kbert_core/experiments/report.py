"""Results → one report: Markdown, the same as self-contained HTML, and pictures.

Its words and their order are in ``report.md.jinja``, its tables here. All of it
comes from the results' JSON and the suite files, so it is made again by one
command, and what isn't there yet is shown as missing.
"""

import base64
import html
import re
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader

from kbert_core.errors import ExperimentError
from kbert_core.experiments import report_tables
from kbert_core.experiments.pictures import draw_group, draw_suite
from kbert_core.experiments.report_tables import anchor
from kbert_core.experiments.statistics import LEVEL, RESAMPLES
from kbert_core.experiments.tables import Tables, groups

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
    templates.globals |= {"show": report_tables, "level": f"{100 * LEVEL:.0f}"}
    templates.globals |= {"resamples": f"{RESAMPLES:,}", "UNCHECKED": UNCHECKED}
    return templates.get_template(template).render(**values)


def _appendix(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ExperimentError(
            f"{path}: can't be read ({error}). Make it, or leave --appendix out."
        ) from error


def _published(path: Path) -> dict[str, Any]:
    """Figures published by others, marked as such.

    The file has ``title`` and ``about`` (Markdown), and ``columns`` and
    ``rows`` of one table, or ``tables``, a list of these with an ``about``
    each.
    """
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


# HTML and JSON


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


def summary(tables: Tables) -> Mapping[str, Any]:
    """The main figures of a suite, for JSON."""
    rows: dict[str, Any] = {}
    for row in tables.suite.rows:
        rows[row.name] = {"seeds": tables.done(row), "stale": row.name in tables.stale}
        for metric in tables.metrics:
            if s := tables.score(row.name, metric):
                interval = [s.low, s.high]
                score = {"mean": s.mean, "deviation": s.deviation, "interval": interval}
                rows[row.name][metric.name] = score
    return rows
