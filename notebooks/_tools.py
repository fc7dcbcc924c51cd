"""What every notebook begins and ends with: the first cell, pictures, exercises, a link to the Lab.

A notebook in the folder zh gets its answers in Chinese: ``checks/zh.txt`` has them.

Importing this needs nothing but Python, so that the first cell can say in
plain words what is missing.
"""

from __future__ import annotations  # so that an older Python comes to the sentence about it

import importlib
import io
import os
import random
import re
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache, wraps
from importlib.metadata import PackageNotFoundError, version
from inspect import isfunction
from pathlib import Path
from typing import Any, Optional

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ((3, 11), (3, 14))  # the oldest and the newest
APP = "http://localhost:8501/"  # where `make app` opens the app
WIDTH = 1000  # of a picture, in pixels; a narrow screen shows it smaller
SLIDER = "<em>Interactive control: run the notebook to use it. One result is below.</em>"
CHINESE = Path.cwd().name == "zh"  # where the kernel of a notebook in Chinese begins


class Stop(Exception):
    """Stops a notebook with a plain sentence, without a traceback."""

    def _render_traceback_(self) -> list[str]:  # what IPython asks for
        return [in_chinese(str(self)) if CHINESE else str(self)]


def ready(*needs: str, seed: int = 0, models: bool = True) -> None:
    """Begin a notebook: install what is missing, or say what to do.

    Sets seeds, one thread and the repository's root as the folder, and keeps
    everything offline. A name that isn't there yet gets a plain sentence.

    Args:
        needs: files and folders, from the repository's root.
        seed: of everything random.
        models: whether the notebook needs PyTorch.

    Raises:
        Stop: something is missing, and can't be installed.
    """
    for look in (_python, lambda: _files(needs), _packages):
        if problem := look():
            raise Stop(problem)
    for folder in (ROOT, ROOT / "notebooks"):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    os.chdir(ROOT)
    os.environ |= {
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "TRANSFORMERS_VERBOSITY": "error",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        **({"KBERT_LANGUAGE": "zh"} if CHINESE else {}),
    }
    if "IPython" in sys.modules and (shell := sys.modules["IPython"].get_ipython()):
        shell.set_custom_exc((NameError,), _out_of_order)
    random.seed(seed)
    import numpy

    numpy.random.seed(seed)
    numpy.set_printoptions(precision=3, suppress=True, linewidth=120)
    if models:
        import torch
        from transformers.utils import logging

        torch.manual_seed(seed)
        torch.set_num_threads(1)
        torch.set_printoptions(precision=3, sci_mode=False)
        logging.disable_progress_bar()
    say(f"Ready: everything is here. Seed {seed}, one thread, nothing is downloaded.")


def _python() -> str | None:
    if PYTHONS[0] <= sys.version_info[:2] <= PYTHONS[1]:
        return None
    oldest, newest, here = (f"{a}.{b}" for a, b in (*PYTHONS, sys.version_info[:2]))
    return (
        f"Python {oldest} to {newest} is needed; this kernel has {here}. "
        "Choose another kernel, or make an environment: docs/install.md says how for each system."
    )


def _packages() -> str | None:
    if not (missing := _missing()):
        return None
    say(f"Installing {', '.join(missing)}, once. This may take some minutes.")
    command = [sys.executable, "-m", "pip", "install", "-q", "-e", f"{ROOT}[notebooks]"]
    done = subprocess.run(command, capture_output=True, text=True)
    importlib.invalidate_caches()
    if done.returncode == 0 and not (missing := _missing()):
        return None
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
    return (
        f"Install {', '.join(missing)} yourself: in a terminal, `make lab`; without make, as "
        "docs/install.md says. Then choose that environment's kernel and run this cell again. "
        f"Installing it from here failed: {' '.join(said) or 'pip said nothing'}"
    )


def _missing() -> list[str]:
    """The packages of ``pyproject.toml`` that aren't here, or not in a version that will do."""
    import tomllib

    from packaging.requirements import Requirement  # every kernel has it

    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    asked = [Requirement(each) for each in project["dependencies"]]
    extras = ["notebooks"]
    for extra in extras:
        for each in map(Requirement, project["optional-dependencies"][extra]):
            if each.name == project["name"]:
                extras += each.extras
            else:
                asked.append(each)
    missing = []
    for each in asked:
        try:
            fits = each.specifier.contains(version(each.name), prereleases=True)
        except PackageNotFoundError:
            fits = False
        if not fits and (each.marker is None or each.marker.evaluate()):
            missing.append(each.name)
    return missing


def _files(needs: tuple[str, ...]) -> str | None:
    missing = [
        need
        for need in ("kbert_core", "kbert_lab", "demo_kgs", *needs)
        if not (ROOT / need).exists()
    ]
    if not missing:
        return None
    return (
        f"Bring back {', '.join(missing)}: not in {ROOT}. `git checkout -- {' '.join(missing)}` does "
        "it in a clone; else download the repository anew. The notebooks use what lies beside them, "
        "so keep the folder where it is."
    )


def _out_of_order(shell: Any, kind: Any, error: Any, trace: Any, tb_offset: Any = None) -> None:
    """What IPython calls on a name that isn't there."""
    say(
        f"Run the cells above first: nothing is called {error.name} yet. (JupyterLab: Run → Run All "
        "Above Selected Cell.) If you typed the name yourself, look at its spelling."
    )
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


# The reader's language


def say(text: str) -> None:
    """Print, in Chinese in a notebook that is."""
    print(in_chinese(text) if CHINESE else text, flush=True)


@cache
def translations() -> dict[str, str]:
    """English → Chinese, from blocks of two lines; ``{}`` stands for what changes."""
    blocks = (ROOT / "notebooks/checks/zh.txt").read_text(encoding="utf-8").strip().split("\n\n")
    return dict(block.split("\n") for block in blocks)  # type: ignore[misc]


def in_chinese(text: str) -> str:
    """A text in Chinese; what fills its places may be translated, too. Else as it is."""
    if text in (known := translations()):
        return known[text]
    for english in sorted(known, key=len, reverse=True):
        pattern = re.escape(english).replace(r"\{\}", "(.*)")
        if "{}" in english and (found := re.fullmatch(pattern, text, re.DOTALL)):
            return known[english].format(*map(in_chinese, found.groups()))
    return text


# Pictures


def show(picture: Any, says: str, *, width: int = WIDTH) -> Any:
    """Show a picture, its blank edges cut off.

    Args:
        picture: a matplotlib figure.
        says: in words, for who can't see it.
        width: at most, in pixels.
    """
    from IPython.display import Image

    data, wide = pixels(picture)
    return Image(data=data, format="png", width=min(width, wide), alt=says)


def pixels(picture: Any) -> tuple[bytes, int]:
    """A matplotlib figure as PNG with its blank edges cut off, and its width on a page."""
    from io import BytesIO

    from PIL import Image, ImageChops

    data = BytesIO()
    picture.savefig(data, format="png", dpi=200)
    drawn = Image.open(data).convert("RGB")
    blank = Image.new("RGB", drawn.size, "white")
    left, top, right, bottom = ImageChops.difference(drawn, blank).getbbox() or (0, 0, *drawn.size)
    wide, high = drawn.size
    edges = (max(0, left - 8), max(0, top - 8), min(wide, right + 8), min(high, bottom + 8))
    drawn, data = drawn.crop(edges), BytesIO()
    drawn.quantize(256).save(data, format="png", optimize=True)
    return data.getvalue(), drawn.width // 2  # drawn for screens with fine pixels


class Folded:
    """What is below a line that opens when it is clicked, so that one can guess first.

    Attributes:
        title: the line.
        text: what it opens, shown as it stands; of a picture, what it shows.
        picture: a matplotlib figure, or None.
    """

    def __init__(self, title: str, text: str, picture: Any = None) -> None:
        self.title, self.text, self.picture = title, text, picture

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:  # what IPython asks for
        from base64 import b64encode
        from html import escape

        title = in_chinese(self.title) if CHINESE else self.title
        shown = f'<pre style="font-family: monospace">{escape(self.text)}</pre>'
        if self.picture:
            data, width = pixels(self.picture)
            source = f"data:image/png;base64,{b64encode(data).decode()}"
            shown = f'<img src="{source}" width="{min(width, WIDTH)}" alt="{escape(self.text)}">'
        return {
            "text/html": f"<details><summary>{escape(title)}</summary>{shown}</details>",
            "text/plain": f"{self.title}\n{self.text}",
        }


def slider(function: Callable[..., Any], **choices: Any) -> None:
    """Let something be moved; a picture of the same stands beside it in every notebook.

    Args:
        function: draws, called with what is chosen.
        choices: as for ``ipywidgets.interact``.
    """
    from ipywidgets import interact

    interact(function, **choices)


def shared(
    *sentences: str,
    graph: Any,
    model: str,
    task: str = "tree",
    options: Any = None,
    ablation: Any = None,
    added: Any = (),
) -> Any:
    """What a link or a session file tells the app to open.

    Args:
        sentences: the text, one sentence or two.
        graph: as loaded from a file of demo_kgs.
        model: a folder under models, or "words" or "characters" for none.
        task: "ner", "classify", "pair", "mask"; "tree" for tree and matrix only.
        options: how triples are chosen.
        ablation: what is taken away from K-BERT.
        added: triples that are put into the graph.
    """
    from kbert_core import Ablation, InjectionOptions
    from kbert_core.knowledge.edit import Edit
    from kbert_lab.lab.scene import GraphRef, Scene
    from kbert_lab.lab.share import Shared

    what = GraphRef(graph.fingerprint, graph.name)
    edits = tuple(Edit("add", triple) for triple in added)
    how = (options or InjectionOptions(), ablation or Ablation())
    return Shared(Scene(sentences, model, what, edits, *how), task)


def lab_link(*sentences: str, **how: Any) -> Any:
    """A link that opens what was looked at in the app; see :func:`shared`."""
    from html import escape

    from IPython.display import HTML

    from kbert_lab.lab.share import to_link

    said = (
        f'<a href="{APP}?scene={to_link(shared(*sentences, **how))}" target="_blank">Open in the '
        f"Lab</a>: “{escape(' ‖ '.join(sentences))}” with the graph <code>{escape(how['graph'].name)}"
        "</code>. The app has to run on this computer: <code>make app</code> in another terminal."
    )
    return HTML(in_chinese(said) if CHINESE else said)


# Exercises

Judge = Callable[..., Optional[str]]  # noqa: UP045 (for an older Python)


class NoAnswer(Exception):
    """An answer that isn't there yet; the message says what to do."""


class Check:
    """Looks at the answer to an exercise, and explains what is wrong with it.

    A judge gets plain numbers and lists in place of NumPy's and PyTorch's, and
    no answer that isn't finished.

    Attributes:
        judge: returns what is wrong, or None.
        well: what to add to "Right."
        right: of choices, question → its answer, and why.
    """

    def __init__(self, judge: Judge, well: str, right: Any = None) -> None:
        self.judge, self.well, self.right, self.__doc__ = judge, well, right, judge.__doc__

    def __call__(self, *answers: Any) -> None:
        """Print whether the answer is right, and if not why."""
        if Path.cwd().is_relative_to(ROOT / "notebooks"):
            say(
                "Run the first cell of the notebook, and the cells above this one; then this one again."
            )
            return
        try:
            wrong = self.judge(*(_finished(answer) for answer in answers))
        except NoAnswer as error:
            say(f"No answer yet: {error}")
            return
        except Exception as error:  # whatever a learner's own function raises
            wrong = f"your answer raised {type(error).__name__}{_line_of(error)}: {error}"
        say(f"Not yet: {wrong}" if wrong else f"Right. {self.well}")


def _finished(answer: Any) -> Any:
    """An answer as a judge gets it.

    Raises:
        NoAnswer: it has dots, None, or yes and no as text.
    """
    if isfunction(answer):
        return _watched(answer)
    if hasattr(answer, "tolist"):
        return answer.tolist()
    if type(answer) in (list, tuple, range):
        _no_dots({f"place {number}": part for number, part in enumerate(answer, 1)})
        return [_finished(part) for part in answer]
    if isinstance(answer, dict):
        _no_dots({repr(key): value for key, value in answer.items()})
        for key, value in answer.items():
            if isinstance(value, str) and value.casefold() in ("yes", "no", "true", "false"):
                truth = value.casefold() in ("yes", "true")
                raise NoAnswer(f"{key!r} has the text {value!r}. Write {truth}, without quotes.")
        return {key: _finished(value) for key, value in answer.items()}
    _no_dots({"your answer": answer})
    return answer


def _no_dots(parts: dict[str, Any]) -> None:
    open_ones = [key for key, value in parts.items() if value is ...]
    if open_ones and len(open_ones) == len(parts):
        raise NoAnswer("put yours in place of the dots and run the cell again.")
    if open_ones:
        raise NoAnswer(f"{len(open_ones)} of {len(parts)} has dots still: {open_ones[0]}.")
    for key, value in parts.items():
        if value is None:
            raise NoAnswer(f"{key} is None. A function that prints and has no `return` gives that.")


def _watched(function: Callable[..., Any]) -> Callable[..., Any]:
    """A learner's function that must return something; what it prints isn't shown."""

    @wraps(function)
    def watched(*arguments: Any, **named: Any) -> Any:
        with redirect_stdout(io.StringIO()) as printed:
            result = function(*arguments, **named)
        if result is ...:
            raise NoAnswer("put yours in place of the dots and run the cell again.")
        if result is None:
            shown = printed.getvalue().strip().partition("\n")[0]
            begins = f"prints {shown[:40]!r} and returns" if shown else "returns"
            raise NoAnswer(
                f"{function.__name__} {begins} nothing. End it with `return` and the value."
            )
        return result

    return watched


def _line_of(error: Exception) -> str:
    """Where a learner's own code raised, in the words of an answer."""
    own = [
        f for f in traceback.extract_tb(error.__traceback__) if not _is_library(Path(f.filename))
    ]
    return f" in line {own[-1].lineno}, `{own[-1].line}`" if own and own[-1].line else ""


def _is_library(file: Path) -> bool:
    return any(folder in file.parents for folder in (ROOT / "notebooks", Path(os.__file__).parent))


def exercise(well: str) -> Callable[[Judge], Check]:
    """Make a check of a function that returns what is wrong with an answer, or None.

    Args:
        well: what is worth knowing once the answer is right.
    """
    return lambda judge: Check(judge, well)


def choices(name: str) -> Check:
    """Make a check of a dictionary that gives each question one of a few answers.

    Args:
        name: in ``checks/choices.yaml``, where questions, answers and reasons stand.
    """
    import yaml

    text = (ROOT / "notebooks/checks/choices.yaml").read_text(encoding="utf-8")
    found = yaml.safe_load(text)[name]
    words = found.get("words", [True, False])
    kinds = "a number" if words == "number" else f"one of {', '.join(map(str, words))}"
    right = {question: (of["is"], of["why"]) for question, of in found["right"].items()}

    def judge(answer: object) -> str | None:
        if not isinstance(answer, dict):
            return f"give a dictionary: each entry with {kinds}."
        given = {q if isinstance(q, str) else " – ".join(q): its for q, its in answer.items()}
        for question, (its, why) in right.items():
            said = given.get(question)
            if type(said) is not type(its) or (words != "number" and said not in words):
                return f"'{question}' needs {kinds}."
            if said != its:
                return f"'{question}': {why}"
        return None

    return Check(judge, found["well"], right)
