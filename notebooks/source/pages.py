"""Turn the stored notebooks into web pages, to read and to print without Python.

    python notebooks/source/pages.py handout                    all, into the folder handout
    python notebooks/source/pages.py handout 03 04 --questions  two of them, without solutions
    python notebooks/source/pages.py course --assignment 2027   a graded assignment for nbgrader

Beside them are the slides of two hours, slides.html, one screen or printed page each.

Nothing is run: the pages show the outputs that are stored. They are whole files
that fetch nothing: pictures are inside, formulas are MathML, and there is no
script. `make handout` installs what this needs.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path

import jupytext
import nbformat
from nbconvert import HTMLExporter
from nbconvert.filters.markdown import markdown2html
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
    for cell in notebook.cells:
        if cell.metadata == run.HIDDEN:
            cell.metadata = nbformat.from_dict({"transient": {"remove_source": True}})
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


SLIDES = run.NOTEBOOKS / "slides.md"
SHOWN = re.compile(r"^@ (\w+) (.+)$", re.MULTILINE)  # a notebook, and one of its outputs
SLIDE_STYLE = """<!doctype html><meta charset="utf-8"><style>
html { scroll-snap-type: y mandatory; font: 4vmin/1.4 sans-serif }
body { margin: 0 } h1, h2 { line-height: 1.2 } td, th { padding: .3em 1em; text-align: left }
section { min-height: 100vh; padding: 5vmin 8vmin; scroll-snap-align: start }
section { box-sizing: border-box; break-after: page } pre { font-size: 3.1vmin; overflow: auto }
img { display: block; max-width: 100%; max-height: 48vh }
.anchor-link { display: none } @page { size: 16in 9in; margin: 0 }
</style>"""


def output(name: str, what: str) -> str:
    """What a stored notebook shows: its picture of a number, or what a line named so unfolds."""
    (script,) = run.scripts([name])
    cells = run.stored(script).cells
    shown = [out.data for cell in cells for out in cell.get("outputs", ()) if "data" in out]
    if what.isdigit():
        picture = [data["image/png"] for data in shown if "image/png" in data][int(what) - 1]
        return f'<img src="data:image/png;base64,{picture}" alt="">'
    (text,) = [
        t for data in shown if (t := data.get("text/plain", "")).startswith(f"Reveal: {what}\n")
    ]
    return f"<pre>{escape(text.partition(chr(10))[2])}</pre>"


def slides(texts: Sequence[str], folder: Path) -> str:
    """Slides as one HTML file; their figures are outputs of stored notebooks."""
    made = []
    for text in texts:
        source = SHOWN.sub(lambda found: output(*found.groups()), with_links(text, folder))
        made.append(f"<section>{markdown2html(source)}</section>")
    return SLIDE_STYLE + "\n".join(made)


ASSIGNMENT = Path(__file__).with_name("assignment.py")
GRAPHS = ("demo_kgs/general_en.spo", "demo_kgs/medical_en.spo")


def assignment(folder: Path, seed: int) -> None:
    """Write the source of an assignment as nbgrader wants it: a notebook, data and three graphs.

    One graph is right, one is shuffled, and one knows no name of the test set. The hidden test set
    and the decisions stand in the notebook's hidden tests alone.

    Args:
        folder: of the course.
        seed: of the names, and of which graph is which; keep it to yourself.
    """
    from random import Random

    from _riddles import make_riddles
    from kbert_core import load_graph
    from kbert_lab.graphs.controls import shuffled

    root = run.NOTEBOOKS.parent
    riddles = make_riddles(load_graph(*(root / name for name in GRAPHS)), held_out=360, seed=seed)
    new = sorted(name for names in riddles.unseen_names.values() for name in names)
    kept = {"dev": set(new[::2]), "test": set(new[1::2])}
    rows = {"train": [(example.sentences[0], example.label) for example in riddles.train]}
    for part, names in kept.items():  # a sentence has the names of one part alone
        unseen = [(example.sentences[0], example.label) for example in riddles.unseen]
        rows[part] = [row for row in unseen if len({*row[0].split()} & names) == 2]
    graphs = {
        "inject": riddles.graph,
        "shuffled": shuffled(riddles.graph, seed=seed).graph,
        "old names": [triple for triple in riddles.graph if triple.head not in new],
    }
    letters = dict(zip(Random(seed).sample("ABC", 3), graphs, strict=True))
    to = folder / "source" / "inject"
    to.mkdir(parents=True, exist_ok=True)
    for part in ("train", "dev"):
        lines = ["text_a\tlabel", *map("\t".join, rows[part])]
        (to / f"{part}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for letter, what in letters.items():
        lines = [f"{t.head}\t{t.relation}\t{t.tail}" for t in graphs[what]]
        (to / f"{letter}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    right = {n: "inject" if letters[n] == "inject" else "leave off" for n in "ABC"}
    notebook = jupytext.read(ASSIGNMENT)
    for cell in notebook.cells:
        for name, value in (("DECISIONS", right), ("HIDDEN", rows["test"])):
            cell.source = re.sub(rf"\b{name}\b(?! TESTS)", repr(value), cell.source)
    nbformat.write(notebook, to / "inject.ipynb")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages that are asked for; return 0."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="where to write them; made if it isn't there")
    parser.add_argument("names", nargs="*", help="how they begin, such as 03; default: all")
    parser.add_argument("--questions", action="store_true", help="leave hints and solutions out")
    parser.add_argument("--assignment", type=int, help="a seed; write the graded assignment")
    options = parser.parse_args(arguments)
    if options.assignment is not None:
        assignment(options.folder, options.assignment)
        return 0
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
    if not options.names:
        english = [cell.source for cell in jupytext.read(SLIDES).cells]
        for place, texts in ((".", english), (run.ZH, run.translated(SLIDES))):
            made = slides(texts, run.NOTEBOOKS)
            (options.folder / place / "slides.html").write_text(made, encoding="utf-8")
    print(f"{len(files) + 1} pages: open {options.folder / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
