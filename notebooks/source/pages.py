"""Turn the stored notebooks into web pages, to read and to print without Python.

    python notebooks/source/pages.py handout                    all, into the folder handout
    python notebooks/source/pages.py handout 03 04 --questions  two of them, without solutions

Nothing is run: the pages show the outputs that are stored. They are whole files
that fetch nothing: pictures are inside, formulas are MathML, and there is no
script. `make handout` installs what this needs.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbconvert import HTMLExporter
from nbformat import NotebookNode

sys.path.insert(0, str(Path(__file__).parent))
import run  # noqa: E402

# Code, which stays as it is, or a formula, alone or in a line.
FORMULA = re.compile(r"```.*?```|`[^`]*`|\$\$(?P<block>.+?)\$\$|\$(?P<inline>[^$\n]+)\$", re.DOTALL)
PLACE = "formula{}here"
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")
SCRIPT = re.compile(r"<script\b.*?</script>", re.DOTALL)
STYLE = "<style>@media print { pre, img, .jp-OutputArea-child { break-inside: avoid } }</style>"


def without_formulas(text: str, formulas: list[str]) -> str:
    """Markdown with a word in place of each formula, which is added to ``formulas`` as MathML.

    Browsers draw MathML by themselves; the exporter would take it apart.

    Raises:
        SystemExit: there is a formula, and nothing to convert it with.
    """

    def word(found: re.Match[str]) -> str:
        kind = found.lastgroup
        if not kind:
            return found[0]
        try:
            from latex2mathml.converter import convert
        except ModuleNotFoundError:
            raise SystemExit(
                "Formulas need one more package: pip install -r requirements-docs.txt"
            ) from None
        formulas.append(convert(found[kind], display=kind))
        return PLACE.format(len(formulas) - 1)

    return FORMULA.sub(word, text)


def with_links(text: str, folder: Path) -> str:
    """Markdown of a notebook in a folder; its links lead to pages, else into the repository."""

    def there(link: re.Match[str]) -> str:
        path, anchor = link[1], link[2] or ""
        if path.endswith(".ipynb"):
            return f"{path.removesuffix('.ipynb')}.html{anchor}"
        file = (folder / path).resolve()
        if file == run.NOTEBOOKS / "README.md":
            return f"{path.removesuffix('README.md')}index.html{anchor}"
        return f"{run.repository()}/blob/main/{file.relative_to(run.NOTEBOOKS.parent)}{anchor}"

    return LINK.sub(there, text)


def page(notebook: NotebookNode, folder: Path = run.NOTEBOOKS, *, solutions: bool = True) -> str:
    """A notebook as one HTML file.

    Args:
        notebook: with its outputs; it is changed.
        folder: where it is, from which its links lead.
        solutions: whether to keep the folded solutions, hints and meanings.
    """
    if not solutions:
        folded = {run.SOLUTION, run.MEANING}
        notebook.cells = [cell for cell in notebook.cells if not folded & {*run.tags(cell)}]
    title = notebook.cells[0].source.splitlines()[0].removeprefix("# ")
    formulas: list[str] = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = with_links(without_formulas(cell.source, formulas), folder)
    exporter = HTMLExporter(template_name="lab", embed_images=True)
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = True
    made, _ = exporter.from_notebook_node(notebook, {"metadata": {"name": title}})
    made = SCRIPT.sub("", made).replace("</head>", f"{STYLE}</head>", 1)
    return re.sub(PLACE.format(r"(\d+)"), lambda place: formulas[int(place[1])], made)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages that are asked for; return 0."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="where to write them; made if it isn't there")
    parser.add_argument("names", nargs="*", help="how they begin, such as 03; default: all")
    parser.add_argument("--questions", action="store_true", help="leave hints and solutions out")
    options = parser.parse_args(arguments)
    plan = (run.NOTEBOOKS / "README.md").read_text(encoding="utf-8")
    index = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(plan)])
    names = tuple(options.names) or ("",)
    files = [f for f in sorted(run.NOTEBOOKS.rglob("[0-9]*.ipynb")) if f.name.startswith(names)]
    if not files:
        parser.error(f"no notebook begins with {' or '.join(names)}. Give a number, such as 03.")
    for file in (run.NOTEBOOKS / "index.ipynb", *files):
        notebook = nbformat.read(file, as_version=4) if file.is_file() else index
        to = options.folder / file.relative_to(run.NOTEBOOKS).with_suffix(".html")
        to.parent.mkdir(parents=True, exist_ok=True)
        made = page(notebook, file.parent, solutions=not options.questions)
        to.write_text(made, encoding="utf-8")
    print(f"{len(files) + 1} pages: open {options.folder / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
