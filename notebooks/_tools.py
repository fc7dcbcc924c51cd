"""What every notebook begins and ends with: the first cell, pictures, exercises, a link to the Lab.

Importing this needs nothing but Python, so that the first cell can say in
plain words what is missing.
"""

from __future__ import annotations  # so that an older Python comes to the sentence about it

import importlib
import io
import json
import os
import random
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import wraps
from importlib.metadata import PackageNotFoundError, version
from inspect import isfunction
from pathlib import Path
from typing import Any, Optional

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ((3, 11), (3, 14))  # the oldest and the newest
APP = "http://localhost:8501/"  # where `make app` opens the app
WIDTH = 1000  # of a picture, in pixels; a narrow screen shows it smaller


class Stop(Exception):
    """Stops a notebook with a plain sentence, without a traceback."""

    def _render_traceback_(self) -> list[str]:  # what IPython asks for
        return [str(self)]


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
    print(f"Ready: everything is here. Seed {seed}, one thread, nothing is downloaded.")


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
    print(f"Installing {', '.join(missing)}, once. This may take some minutes.", flush=True)
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
    print(
        f"Run the cells above first: nothing is called {error.name} yet. (JupyterLab: Run → Run All "
        "Above Selected Cell.) If you typed the name yourself, look at its spelling."
    )
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


# Pictures


def show(picture: Any, says: str, *, width: int = WIDTH) -> Any:
    """Show a picture, its blank edges cut off.

    Args:
        picture: a matplotlib figure.
        says: in words, for who can't see it.
        width: at most, in pixels.
    """
    from io import BytesIO

    from IPython.display import Image
    from PIL import Image as Pixels
    from PIL import ImageChops

    data = BytesIO()
    picture.savefig(data, format="png", dpi=200)
    drawn = Pixels.open(data).convert("RGB")
    blank = Pixels.new("RGB", drawn.size, "white")
    left, top, right, bottom = ImageChops.difference(drawn, blank).getbbox() or (0, 0, *drawn.size)
    wide, high = drawn.size
    drawn = drawn.crop(
        (max(0, left - 8), max(0, top - 8), min(wide, right + 8), min(high, bottom + 8))
    )
    data = BytesIO()
    drawn.quantize(256).save(data, format="png", optimize=True)
    width = min(width, drawn.width // 2)  # drawn for screens with fine pixels
    return Image(data=data.getvalue(), format="png", width=width, alt=says)


class Folded:
    """Text below a line that opens when it is clicked, so that one can guess first.

    Attributes:
        title: the line.
        text: what it opens, shown as it stands.
    """

    def __init__(self, title: str, text: str) -> None:
        self.title, self.text = title, text

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:  # what IPython asks for
        from html import escape

        shown = f"<summary>{escape(self.title)}</summary><pre>{escape(self.text)}</pre>"
        return {
            "text/html": f"<details>{shown}</details>",
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


def scene(
    *sentences: str,
    graph: Any,
    model: str,
    task: str = "tree",
    options: Any = None,
    ablation: Any = None,
    added: Any = (),
) -> dict[str, Any]:
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

    ablation = ablation or Ablation()
    return {
        "kbert": 1,
        "task": task,
        "sentences": sentences,
        "model": model,
        "graph": {"name": graph.name, "fingerprint": graph.fingerprint},
        "edits": [["add", [t.head, t.relation, t.tail]] for t in added],
        "options": (options or InjectionOptions()).as_dict(),
        "ablation": {"positions": ablation.positions, "visible": ablation.visible},
    }


def lab_link(*sentences: str, graph: Any, **how: Any) -> Any:
    """A link that opens what was looked at in the app; see :func:`scene`."""
    import base64
    import zlib
    from html import escape

    from IPython.display import HTML

    plain = json.dumps(scene(*sentences, graph=graph, **how)).encode()
    value = base64.urlsafe_b64encode(zlib.compress(plain, 9)).rstrip(b"=").decode()
    return HTML(
        f'<a href="{APP}?scene={value}" target="_blank">Open in the Lab</a>: '
        f"“{escape(' ‖ '.join(sentences))}” with the graph <code>{escape(graph.name)}</code>. "
        "The app has to run on this computer: <code>make app</code> in another terminal."
    )


# Exercises

Judge = Callable[..., Optional[str]]  # noqa: UP045 (for an older Python)
FIRST_CELL = (
    "Run the first cell of the notebook, and the cells above this one; then this one again."
)


class NoAnswer(Exception):
    """An answer that isn't there yet; the message says what to do."""


class Check:
    """Looks at the answer to an exercise, and explains what is wrong with it.

    A judge gets plain numbers and lists in place of NumPy's and PyTorch's, and
    no answer that isn't finished.

    Attributes:
        judge: returns what is wrong, or None.
        well: what to add to "Right."
    """

    def __init__(self, judge: Judge, well: str) -> None:
        self.judge, self.well, self.__doc__ = judge, well, judge.__doc__
        self.__name__ = judge.__name__

    def __call__(self, *answers: Any) -> None:
        """Print whether the answer is right, and if not why."""
        if Path.cwd().is_relative_to(ROOT / "notebooks"):
            print(FIRST_CELL)
            return
        try:
            wrong = self.judge(*(_finished(answer) for answer in answers))
        except NoAnswer as error:
            print(f"No answer yet: {error}")
            return
        except Exception as error:  # whatever a learner's own function raises
            wrong = f"your answer raised {type(error).__name__}{_line_of(error)}: {error}"
        print(f"Not yet: {wrong}" if wrong else f"Right. {self.well}")


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
