"""What instructors are told is there, and the notebooks as web pages fetch nothing."""

import ast
import re
import sys
from pathlib import Path

import jupytext
import nbformat
import pytest

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "notebooks" / "source")]

import pages  # noqa: E402
import run  # noqa: E402

TEACHING = (ROOT / "docs" / "teaching.md").read_text(encoding="utf-8")


def made():
    markdown, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell
    output = nbformat.v4.new_output("stream", text="it says 42")
    solution = markdown("the answer", metadata={"tags": [run.SOLUTION]})
    text = "# A title\n\n[next](05_x.ipynb#b) [plan](README.md) [docs](../docs/see.md)"
    return nbformat.v4.new_notebook(
        cells=[markdown(text), code("f(6)", outputs=[output]), solution]
    )


def test_a_page_shows_code_and_outputs_and_leads_to_pages():
    page = pages.page(made())
    assert "<title>A title</title>" in page
    assert "it says 42" in page and "the answer" in page
    assert 'href="05_x.html#b"' in page and 'href="index.html"' in page
    assert f'href="{run.repository()}/blob/main/docs/see.md"' in page


def test_a_page_fetches_nothing():
    (script,) = run.scripts(["02"])  # it has no formula
    page = pages.page(run.stored(script))
    assert "data:image/png;base64" in page
    assert not re.search(r"<script|<link[^>]+href|src=\"(?!data:)|url\(['\"]?http|@import", page)


def test_formulas_are_drawn_and_code_stays():
    pytest.importorskip("latex2mathml", reason="installed by make handout")
    formulas = []
    text = pages.without_formulas("$x$ and `$y` and\n$$\\frac{1}{n}$$\n```\n$a$\n```", formulas)
    assert text == "formula0here and `$y` and\nformula1here\n```\n$a$\n```"
    assert "<mi>x</mi>" in formulas[0] and "<mfrac>" in formulas[1]


def test_pages_are_written_with_the_plan_of_the_course(tmp_path, monkeypatch, capsys):
    course, out = tmp_path / "course", tmp_path / "out"
    (course / "zh").mkdir(parents=True)
    (course / "README.md").write_text("# Plan\n\n[one](02_x.ipynb) [more](../docs/see.md)")
    for name in ("02_x", "03_y", "zh/02_x"):
        nbformat.write(made(), course / f"{name}.ipynb")
    monkeypatch.setattr(run, "NOTEBOOKS", course)
    monkeypatch.setattr(run, "repository", lambda: "HOST")
    assert pages.main([str(out), "02", "--questions"]) == 0
    files = {file.relative_to(out).as_posix() for file in out.rglob("*.html")}
    assert files == {"index.html", "02_x.html", "zh/02_x.html"}
    plan = (out / "index.html").read_text("utf-8")
    assert 'href="02_x.html"' in plan and 'href="HOST/blob/main/docs/see.md"' in plan
    assert "the answer" not in (out / "zh" / "02_x.html").read_text("utf-8")
    assert "3 pages" in capsys.readouterr().out


def test_slides_show_what_notebooks_show_and_are_translated():
    english = [cell.source for cell in jupytext.read(pages.SLIDES).cells]
    for texts in (english, run.translated(pages.SLIDES)):
        made = pages.slides(texts, run.NOTEBOOKS)
        assert made.count("<section>") == len(english)
        assert made.count("data:image/png;base64") == 2 and made.count("<pre>") == 4
        assert "everything visible   " in made and "\n@ " not in made
        assert 'href="07a_ablation_bench.html"' in made


def region(kind):
    return re.compile(rf"### BEGIN {kind}.*?### END {kind}\n?", re.DOTALL)


def test_an_assignment_is_as_nbgrader_wants_it_and_hides_its_test_set(tmp_path):
    pages.assignment(tmp_path, seed=3)
    folder = tmp_path / "source" / "inject"
    notebook = nbformat.read(folder / "inject.ipynb", as_version=4)
    nbformat.validate(notebook)
    marked = [c.metadata["nbgrader"] for c in notebook.cells if "nbgrader" in c.metadata]
    assert len({mark["grade_id"] for mark in marked}) == len(marked)
    assert {mark["schema_version"] for mark in marked} == {3}
    points = dict(re.findall(r"^\| ([\w ]+)[:,].*?\| (\d) \| ", TEACHING, re.MULTILINE))
    given = [mark["points"] for mark in marked if mark["grade"]]
    assert sum(given) == sum(map(int, points.values())) == 20
    whole = "".join(cell.source for cell in notebook.cells)
    students = region("SOLUTION").sub("", region("HIDDEN TESTS").sub("", whole))
    (hidden,) = re.findall(r"hidden = (\[.*?\])  #", whole)
    for sentence, kind in ast.literal_eval(hidden):
        assert sentence not in students and kind
    assert "leave off'" in whole and "leave off'" not in students
    shown = (folder / "dev.tsv").read_text(encoding="utf-8")
    tested = {word for sentence, _ in ast.literal_eval(hidden) for word in sentence.split()}
    assert not {word for word in tested if word[0].isupper()} & {*shown.split()}
    assert {file.name for file in folder.iterdir()} == {
        *("inject.ipynb", "train.tsv", "dev.tsv", "A.tsv", "B.tsv", "C.tsv")
    }


def test_the_mistakes_that_instructors_are_told_of_belong_to_exercises():
    rows = re.findall(r"^\| (\d+[ab]?), `(check_\w+)` \|", TEACHING, re.MULTILINE)
    assert len(rows) > 10
    for number, check in rows:
        (script,) = run.scripts([f"{number.zfill(2 + number[-1:].isalpha())}_"])
        assert f"{check}(" in script.read_text(encoding="utf-8"), f"{check} in {script.name}"


def test_the_commands_that_instructors_are_given_are_there():
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert {"handout", "notebooks"} == set(re.findall(r"\bmake (\w+)", TEACHING)) <= set(targets)
    for numbers in re.findall(r"pages\.py [\w-]+((?: \d\d\w?)*)", TEACHING):
        assert all(run.scripts([number]) for number in numbers.split())


def test_two_hours_are_two_hours():
    table = TEACHING.partition("## Two hours")[2].partition("###")[0]
    times = [tuple(map(int, t)) for t in re.findall(r"^\| (\d+)–(\d+) \|", table, re.MULTILINE)]
    assert times[0][0] == 0 and times[-1][1] == 120
    assert [end for _, end in times[:-1]] == [begin for begin, _ in times[1:]]
