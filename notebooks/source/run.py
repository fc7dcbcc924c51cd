"""Run the notebooks with the network off; compare with what is stored, or store anew.

    python notebooks/source/run.py                 all of them, and compare
    python notebooks/source/run.py 03 05 --write   two of them, and store their outputs
    python notebooks/source/run.py --texts         store changed texts, and keep the outputs

Where a script has a translation (zh/NAME.txt), the same notebook with its texts
is stored in notebooks/zh. Each translated cell begins with a line of +++ and
the mark of the English cell that it translates: when that changes, the mark
doesn't fit any more, and the translation is refused until somebody has looked.

The script (.py, here) is what is run; the notebook (.ipynb, one folder up) is
what students get: the same cells with their outputs. A cell tagged "test" is
run and not stored: what must hold here need not hold for a student's own
input. After the last cell the folded solutions are run too: each must be right
by the check of its exercise.

What a cell prints must agree with what is stored, numbers to a hundredth of
their size. A cell tagged "varies" (times, versions) isn't compared; one tagged
"about" may differ in numbers by a tenth (what is trained).
"""

import argparse
import hashlib
import os
import platform
import re
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from nbformat import NotebookNode
from traitlets.config import Config

HERE = Path(__file__).resolve().parent
NOTEBOOKS = HERE.parent
sys.path.insert(0, str(NOTEBOOKS))
import _tools  # noqa: E402

SECONDS = 600  # for one cell
STARTING, KERNELS = 60, 3  # seconds for a kernel to answer, and how many may be started
EXERCISE, SOLUTION, TEST, VARIES, ABOUT = "exercise", "solution", "test", "varies", "about"
MEANING = "meaning"  # what a figure means, folded until one has guessed
UNANSWERED, RIGHT = "No answer yet", "Right."
RELATIVE, ABSOLUTE = 0.01, 1e-5
ABOUT_ABSOLUTE = 0.1
NUMBER = re.compile(r"(?<![\w.])[-−+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)
WIDGET = "application/vnd.jupyter.widget-view+json"
READY = "from _tools import ready\n"
ALONE = """\
# @title Run this first
try:
    from _tools import ready
except ModuleNotFoundError:  # this notebook alone, as on Colab: get what belongs to it
    print("Getting the rest from {url}. If that fails: download it there,")
    print("unpack it, and open this notebook in its folder notebooks.")
    !git clone -q --depth 1 {url} kbert-lab
    %cd -q kbert-lab/notebooks
    from _tools import ready
"""
HIDDEN = {"jupyter": {"source_hidden": True}, "cellView": "form"}  # in JupyterLab, on Colab
ELSEWHERE = "\n\n[Open in Colab]({colab}) · [other ways to run it](../docs/install.md#notebooks)"
ZH = "zh"
MARK = re.compile(r"^\+\+\+ (\w{8})\n", re.MULTILINE)
LEFT_OUT = "```python\n```"  # a block of Python as in the script
LINK = re.compile(r"\]\((?!\w+:|#)([^)]+)\)")
SAID = re.compile("^<(em|a) ?.*|(?<=<summary>).*?(?=</summary>)")  # by the tools, in HTML
ABOVE = '# @title 请先运行这里\nimport sys\n\nsys.path.insert(0, "..")  # 工具在上一级文件夹\n'
ELSEWHERE_ZH = "\n\n[在 Colab 中打开]({colab}) · [其他运行方式](../../docs/install.md#notebooks) · [English](../{name})"
METADATA = {  # as JupyterLab writes it, so that opening and saving changes nothing
    "kernelspec": {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": "python3",
    },
    "language_info": {
        "codemirror_mode": {"name": "ipython", "version": 3},
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
        "version": platform.python_version(),
    },
}


class Wrong(Exception):
    """A notebook doesn't do what it says; the message says where."""


@dataclass(frozen=True)
class Ran:
    """One notebook, run.

    Attributes:
        notebook: with fresh outputs.
        wall, cpu: seconds.
    """

    notebook: NotebookNode
    wall: float
    cpu: float


def scripts(names: Sequence[str] = ()) -> list[Path]:
    """The notebooks' scripts in reading order; those whose names begin as asked, if any."""
    found = sorted(HERE.glob("[0-9][0-9]*_*.py"))
    if not names:
        return found
    chosen = [path for path in found if path.name.startswith(tuple(names))]
    if not chosen:
        raise Wrong(f"No notebook begins with {' or '.join(names)}. Give a number, such as 03.")
    return chosen


def read(script: Path) -> NotebookNode:
    """Read a script as a notebook without outputs, its tests among the cells.

    Where a script imports ``ready``, the notebook can do so alone too, and
    says where else it runs.
    """
    notebook = jupytext.read(script)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({"tags": tags(cell)} if tags(cell) else {})
    for first, cell in zip(notebook.cells, notebook.cells[1:], strict=False):
        if cell.source.startswith(READY):
            first.source += ELSEWHERE.format(colab=colab(notebook_of(script).name))
            cell.source = cell.source.replace(READY, ALONE.format(url=repository()), 1)
            cell.metadata = nbformat.from_dict(HIDDEN)
    for number, cell in enumerate(for_students(notebook)):
        cell.id = f"cell-{number:02d}"
    notebook.metadata = nbformat.from_dict(METADATA)
    return notebook


def repository() -> str:
    """The address of the repository; the one place is ``pyproject.toml``."""
    project = tomllib.loads((NOTEBOOKS.parent / "pyproject.toml").read_text("utf-8"))["project"]
    return str(project["urls"]["Repository"])


def colab(name: str) -> str:
    """Where Colab opens a notebook; its name from the folder notebooks."""
    host = repository().removeprefix("https://github.com/")
    return f"https://colab.research.google.com/github/{host}/blob/main/notebooks/{name}"


def for_students(notebook: NotebookNode) -> list[NotebookNode]:
    """The cells that are stored: all but the tests."""
    return [cell for cell in notebook.cells if TEST not in tags(cell)]


def notebook_of(script: Path) -> Path:
    """Where the notebook of a script is stored."""
    return script.parents[1] / f"{script.stem}.ipynb"


def stored(script: Path) -> NotebookNode:
    """Read the notebook of a script.

    Raises:
        Wrong: there is none.
    """
    path = notebook_of(script)
    if not path.is_file():
        raise Wrong(f"{path.name} is missing. Make it: {anew(script)}")
    return nbformat.read(path, as_version=4)


def anew(script: Path) -> str:
    """The command that stores a notebook anew."""
    return f"python notebooks/source/run.py {script.stem.split('_')[0]} --write"


def tags(cell: NotebookNode) -> list[str]:
    """The tags of a cell."""
    return list(cell.metadata.get("tags", []))


# Running


def run(script: Path) -> Ran:
    """Run a notebook from its script, then its solutions.

    Raises:
        Wrong: a cell raises, prints a warning, or a solution isn't right.
    """
    notebook = read(script)
    with kernel_of(notebook, script.name) as client:
        began = time.monotonic()
        for number, cell in enumerate(notebook.cells):
            _execute(client, cell, number, script.name)
        wall = time.monotonic() - began
        cpu = float(_said(client, "import time; print(time.process_time())", script.name))
        _solve(client, notebook, script.name)
    notebook.cells = for_students(notebook)
    for number, cell in enumerate(c for c in notebook.cells if c.cell_type == "code"):
        cell.execution_count = number + 1
        cell.metadata.pop("execution", None)
        cell.outputs = list(_cleaned(cell.outputs, number + 1))
    notebook.metadata = nbformat.from_dict(METADATA)
    _check_outputs(notebook, script.name)
    return Ran(notebook, wall, cpu)


@contextmanager
def kernel_of(notebook: NotebookNode, name: str) -> Iterator[NotebookClient]:
    """Start a kernel that answers; one in hundreds was seen to start and never to do so.

    Raises:
        Wrong: none of some does.
    """
    for _ in range(KERNELS):
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            client = NotebookClient(
                notebook,
                timeout=STARTING,
                startup_timeout=STARTING,
                kernel_name="python3",
                resources={"metadata": {"path": str(NOTEBOOKS)}},
                config=Config({"KernelManager": {"transport": "ipc", "ip": f"{folder}/kernel"}}),
            )
            try:
                stack.enter_context(client.setup_kernel(env=environment(folder)))
                _said(client, "print()", name)
            except (RuntimeError, CellTimeoutError) as error:
                problem = error
                continue
            client.timeout = SECONDS
            yield client
            return
    raise Wrong(f"{name}: none of {KERNELS} kernels answers: {problem}")


def environment(folder: str) -> dict[str, str]:
    """What a kernel may know: no network, no display, nothing of the user's own set-up."""
    kept = {name: value for name, value in os.environ.items() if name != "DISPLAY"}
    return {
        **kept,
        "PYTHONPATH": str(HERE / "offline"),
        "IPYTHONDIR": folder,
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "KBERT_LANGUAGE": "en",
    }


def _execute(client: NotebookClient, cell: NotebookNode, number: int, name: str) -> None:
    try:
        client.execute_cell(cell, number)
    except CellExecutionError as error:
        raise Wrong(f"{name}, cell {number}:\n{cell.source}\n\n{error}") from error


def _said(client: NotebookClient, code: str, name: str) -> str:
    """Run code that is no cell of the notebook; return what it prints."""
    cell = nbformat.v4.new_code_cell(code)
    client.nb.cells.append(cell)
    try:
        _execute(client, cell, len(client.nb.cells) - 1, name)
    finally:
        client.nb.cells.pop()
    return "".join(o.text for o in cell.outputs if o.output_type == "stream" and o.name == "stdout")


def _solve(client: NotebookClient, notebook: NotebookNode, name: str) -> None:
    for number, code in solutions(notebook):
        said = _said(client, code, name)
        if not said.startswith(RIGHT):
            raise Wrong(f"{name}: the solution in cell {number} isn't right by its check:\n{said}")


def solutions(notebook: NotebookNode) -> Iterator[tuple[int, str]]:
    """The folded solutions, with the numbers of their cells."""
    for number, cell in enumerate(notebook.cells):
        if SOLUTION in tags(cell):
            for code in CODE.findall(cell.source):
                yield number, code


def _cleaned(outputs: Sequence[NotebookNode], count: int) -> Iterator[NotebookNode]:
    """Outputs as they are stored: whole streams, and of live controls their pictures."""
    joined: list[NotebookNode] = []
    for output in outputs:
        same = joined and output.output_type == joined[-1].output_type == "stream"
        if same and output.name == joined[-1].name:
            joined[-1].text += output.text
            continue
        joined.append(output)
    for output in joined:
        if output.output_type == "execute_result":
            output.execution_count = count
        data = output.get("data", {})
        if data.pop(WIDGET, None) and "text/html" not in data:  # it has no picture of its own
            data["text/html"] = _tools.SLIDER
            data["text/plain"] = re.sub("<.*?>", "", _tools.SLIDER)
        if "image/png" in data:  # a picture's text is its size in pixels
            data.pop("text/plain", None)
        yield output


def _check_outputs(notebook: NotebookNode, name: str) -> None:
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        for output in cell.outputs:
            if output.output_type == "stream" and output.name == "stderr":
                raise Wrong(f"{name}, cell {number} writes to stderr:\n{output.text}")
        if EXERCISE in tags(cell) and UNANSWERED not in text_of(cell):
            raise Wrong(f"{name}, cell {number}: the exercise is answered in the visible cell.")


# Comparing


def text_of(cell: NotebookNode) -> str:
    """All that a code cell shows as text."""
    parts = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            parts.append(output.text)
        elif "image/png" not in output.get("data", {}):
            parts.append(output.get("data", {}).get("text/plain", ""))
    return "\n".join(parts)


def difference(before: str, now: str, *, absolute: float = ABSOLUTE) -> str | None:
    """Say where two texts differ, numbers of about the same size apart.

    Args:
        before, now: what a cell showed.
        absolute: what numbers may always differ by.
    """
    if NUMBER.sub("#", before).split() != NUMBER.sub("#", now).split():
        return f"was\n{before}\nnow\n{now}"
    for old, new in zip(NUMBER.findall(before), NUMBER.findall(now), strict=True):
        a, b = (float(text.replace(",", "").replace("−", "-")) for text in (old, new))
        if abs(a - b) > max(absolute, RELATIVE * abs(a)):
            return f"was {old}, now {new}, in\n{now}"
    return None


def compare(script: Path, fresh: NotebookNode) -> None:
    """Compare a notebook with what is stored.

    Raises:
        Wrong: its cells, or what they show, are others.
    """
    old = stored(script)
    in_step(script, old)
    for number, (was, now) in enumerate(zip(old.cells, fresh.cells, strict=True)):
        if now.cell_type != "code" or VARIES in tags(now):
            continue
        absolute = ABOUT_ABSOLUTE if ABOUT in tags(now) else ABSOLUTE
        found = difference(text_of(was), text_of(now), absolute=absolute)
        if found:
            raise Wrong(
                f"{script.name}, cell {number} shows another thing than what is stored: {found}\n"
                f"If that is right: {anew(script)}"
            )


def in_step(script: Path, notebook: NotebookNode) -> None:
    """Refuse a notebook whose cells aren't those of its script.

    Raises:
        Wrong: naming the first cell that differs.
    """
    ours = [(c.cell_type, c.source.strip(), tags(c)) for c in for_students(read(script))]
    theirs = [(c.cell_type, c.source.strip(), tags(c)) for c in notebook.cells]
    for number, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        if one != other:
            raise Wrong(
                f"{script.name} and its notebook differ in cell {number}:\n{one[1]}\n— and —\n"
                f"{other[1]}\nStore it anew: {anew(script)}"
            )
    if len(ours) != len(theirs):
        raise Wrong(f"{script.name} has {len(ours)} cells and its notebook {len(theirs)}.")


def with_old_outputs(script: Path) -> NotebookNode:
    """A notebook with the texts of its script, and the outputs that it has.

    Raises:
        Wrong: the code changed, beyond where the rest of the repository is got.
    """
    old, new = stored(script), read(script)
    new.cells = for_students(new)
    before, now = ([c for c in one.cells if c.cell_type == "code"] for one in (old, new))
    if [c.source for c in before][1:] != [c.source for c in now][1:]:
        raise Wrong(f"{script.name} has other code than its notebook. Run it: {anew(script)}")
    for was, cell in zip(before, now, strict=True):
        cell.outputs, cell.execution_count = was.outputs, was.execution_count
    return new


# In Chinese


def translation_of(script: Path) -> Path:
    """Where the translated texts of a script are."""
    return script.parent / ZH / f"{script.stem}.txt"


def mark_of(text: str) -> str:
    """Eight digits that are others for any other text of a cell; its Python doesn't count."""
    return hashlib.sha256(CODE.sub(LEFT_OUT, text.strip()).encode()).hexdigest()[:8]


def translated(script: Path) -> list[str]:
    """The texts of a translation, one per text cell of the script.

    Raises:
        Wrong: the script has other cells, or one was changed since; all such cells are named.
    """
    file = translation_of(script)
    _, *parts = MARK.split(file.read_text(encoding="utf-8"))
    marks, texts = parts[::2], [text.strip() for text in parts[1::2]]
    english = [c.source for c in jupytext.read(script).cells if c.cell_type == "markdown"]
    if len(texts) != len(english):
        raise Wrong(f"{ZH}/{file.name} has {len(texts)} cells, and its script {len(english)}.")
    stale = [
        f"{ZH}/{file.name}, text cell {number}, marked {mark}: the English cell changed. It says "
        f"{text[:60]!r}; translate it anew, and mark it +++ {mark_of(text)}"
        for number, (mark, text) in enumerate(zip(marks, english, strict=True))
        if mark != mark_of(text)
    ]
    if stale:
        raise Wrong("\n".join(stale))
    return texts


def in_chinese(script: Path, notebook: NotebookNode) -> NotebookNode:
    """The same notebook with the texts of its translation; code and outputs stay.

    What the tools and the checks print is translated, too.

    Raises:
        Wrong: the translation is of other cells, or has other blocks of Python in one.
    """
    made, name = deepcopy(notebook), notebook_of(script).name
    cells = [cell for cell in made.cells if cell.cell_type == "markdown"]
    for number, (cell, text) in enumerate(zip(cells, translated(script), strict=True)):
        blocks = [f"```python\n{code}```" for code in CODE.findall(cell.source)]
        first, *others = text.split(LEFT_OUT)
        if len(others) != len(blocks):
            raise Wrong(
                f"{ZH}/{script.stem}.txt, text cell {number}: {len(others)} empty blocks of Python, "
                f"and {len(blocks)} in the script."
            )
        source = first + "".join(map("".join, zip(blocks, others, strict=True)))
        cell.source = LINK.sub(lambda link: f"]({_from_zh(script.parent, link[1])})", source)
    cells[0].source += ELSEWHERE_ZH.format(colab=colab(f"{ZH}/{name}"), name=name)
    ready = next(cell for cell in made.cells if cell.cell_type == "code")
    alone = ready.source.partition("\n")[2]  # without its title
    # Python keeps what ".." was when it looked there first
    there = 'kbert-lab/notebooks/zh\n    sys.path.insert(0, "../../notebooks")\n'
    ready.source = ABOVE + alone.replace("kbert-lab/notebooks\n", there)
    for output in (output for cell in made.cells for output in cell.get("outputs", ())):
        if output.output_type == "stream":
            lines = output.text.split("\n")
            output.text = "\n".join(_tools.in_chinese(line) for line in lines)
        elif html := output.get("data", {}).get("text/html"):
            output.data["text/html"] = SAID.sub(lambda found: _tools.in_chinese(found[0]), html)
    return made


def _from_zh(source: Path, name: str) -> str:
    """Where a link of a script leads from the Chinese notebooks: among them if it is translated."""
    return name if translation_of(source / name).is_file() else f"../{name}"


def store(script: Path, notebook: NotebookNode) -> None:
    """Write a notebook, and its Chinese version where there is one."""
    path = notebook_of(script)
    nbformat.write(notebook, path)
    if translation_of(script).is_file():
        (path.parent / ZH).mkdir(exist_ok=True)
        nbformat.write(in_chinese(script, notebook), path.parent / ZH / path.name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; return 0 if all is right."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="how they begin, such as 03; default: all")
    parser.add_argument("--write", action="store_true", help="store the outputs")
    parser.add_argument("--texts", action="store_true", help="store texts, keep the outputs")
    options = parser.parse_args(arguments)
    wrong = 0
    print(f"{'notebook':28} {'seconds':>8} {'of CPU':>8}", flush=True)
    for script in scripts(options.names):
        try:
            if options.texts:
                store(script, with_old_outputs(script))
                continue
            ran = run(script)
            if options.write:
                store(script, ran.notebook)
            else:
                compare(script, ran.notebook)
            print(f"{script.stem:28} {ran.wall:8.1f} {ran.cpu:8.1f}", flush=True)
        except Wrong as error:
            wrong += 1
            print(f"{script.stem:28} WRONG\n{error}\n", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
