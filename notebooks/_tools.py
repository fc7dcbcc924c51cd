"""What every notebook begins and ends with: the first cell, pictures, exercises, a link to the Lab.

Importing this needs nothing but Python, so that the first cell can say in
plain words what is missing.
"""

import importlib.util
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OLDEST = (3, 11)
PACKAGES = (
    "torch",
    "transformers",
    "tokenizers",
    "matplotlib",
    "pandas",
    "ipywidgets",
    "marisa_trie",
)
APP = "http://localhost:8501/"  # where `make app` opens the app
WIDTH = 1000  # of a picture, in pixels; a narrow screen shows it smaller


class Stop(Exception):
    """Stops a notebook with a plain sentence, without a traceback."""

    def _render_traceback_(self) -> list[str]:  # what IPython asks for
        return [str(self)]


def ready(*needs: str, seed: int = 0, models: bool = True) -> None:
    """Begin a notebook: look whether all is there, or say what to do.

    Sets seeds, one thread and the repository's root as the folder, and keeps
    everything offline.

    Args:
        needs: files and folders, from the repository's root.
        seed: of everything random.
        models: whether the notebook needs PyTorch.

    Raises:
        Stop: something is missing.
    """
    for problem in (_python(), _packages(), _files(needs)):
        if problem:
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
    if sys.version_info >= OLDEST:
        return None
    return (
        f"This kernel is Python {sys.version_info[0]}.{sys.version_info[1]}, and 3.11 is needed. "
        "In a terminal, in the repository: `make lab`. It makes an environment and opens JupyterLab."
    )


def _packages() -> str | None:
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if not missing:
        return None
    return (
        f"This kernel has no {', '.join(missing)}. In a terminal, in the repository: `make lab`, or "
        "`pip install -r requirements.txt`; then choose that environment's kernel and run this cell "
        "again."
    )


def _files(needs: tuple[str, ...]) -> str | None:
    missing = [
        need for need in ("kbert_core", "app", "demo_kgs", *needs) if not (ROOT / need).exists()
    ]
    if not missing:
        return None
    return (
        f"{', '.join(missing)}: not in {ROOT}. The notebooks use what lies beside them, so keep the "
        f"folder where it is in the repository. `git checkout -- {' '.join(missing)}` brings "
        "deleted files back."
    )


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


def slider(function: Callable[..., Any], **choices: Any) -> None:
    """Let something be moved; a picture of the same stands beside it in every notebook.

    Args:
        function: draws, called with what is chosen.
        choices: as for ``ipywidgets.interact``.
    """
    from ipywidgets import interact

    interact(function, **choices)


def lab_link(*sentences: str, graph: Any, model: str, task: str = "tree", **scene: Any) -> Any:
    """A link that opens what was looked at in the app.

    Args:
        sentences: the text, one sentence or two.
        graph: as loaded from a file of demo_kgs.
        model: a folder under models, or "words" or "characters" for none.
        task: "ner", "classify", "pair", "mask"; "tree" for tree and matrix only.
        scene: further fields of ``app.scene.Scene``: options, ablation, edits.
    """
    from urllib.parse import urlencode

    from IPython.display import HTML

    from app.scene import GraphRef, Scene
    from app.share import PARAMETER, Shared, to_link
    from app.view_models.html import escape

    made = Scene(sentences, model, GraphRef(graph.fingerprint, graph.name), **scene)
    address = f"{APP}?{urlencode({PARAMETER: to_link(Shared(made, task))})}"
    return HTML(
        f'<a href="{escape(address)}" target="_blank">Open in the Lab</a>: '
        f"“{escape(' ‖ '.join(sentences))}” with the graph <code>{escape(graph.name)}</code>. "
        "The app has to run: <code>make app</code> in another terminal."
    )


# Exercises

Judge = Callable[..., str | None]
NO_ANSWER = "no answer"  # what a judge returns for a function that isn't written yet


class Check:
    """Looks at the answer to an exercise, and explains what is wrong with it.

    Attributes:
        judge: returns what is wrong, or None.
        well: what to add to "Right."
    """

    def __init__(self, judge: Judge, well: str) -> None:
        self.judge, self.well, self.__doc__ = judge, well, judge.__doc__
        self.__name__ = judge.__name__

    def __call__(self, *answers: Any) -> None:
        """Print whether the answer is right, and if not why."""
        try:
            wrong = NO_ANSWER if any(map(_has_dots, answers)) else self.judge(*answers)
        except Exception as error:  # whatever a learner's own function raises
            wrong = f"your answer raised {type(error).__name__}: {error}"
        if wrong == NO_ANSWER:
            print("No answer yet: put yours in place of the dots and run the cell again.")
        else:
            print(f"Not yet: {wrong}" if wrong else f"Right. {self.well}")


def _has_dots(answer: Any) -> bool:
    parts = answer.values() if isinstance(answer, dict) else answer
    if isinstance(parts, (list, tuple)) or isinstance(answer, dict):
        return any(part is ... for part in parts)
    return answer is ...


def exercise(well: str) -> Callable[[Judge], Check]:
    """Make a check of a function that returns what is wrong with an answer, or None.

    Args:
        well: what is worth knowing once the answer is right.
    """
    return lambda judge: Check(judge, well)
