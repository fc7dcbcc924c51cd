"""What the Learn page runs and opens: lessons' settings as scenes, and a visitor's progress."""

from dataclasses import replace

import streamlit as st

from app import services, sharing, state
from kbert_core import InjectionOptions, KBertTrace
from kbert_lab.lab.examples import MINILM
from kbert_lab.lab.scene import WORDS, GraphRef, Scene
from kbert_lab.lab.selection import Selection
from kbert_lab.lab.session import NO_TASK
from kbert_lab.lab.share import Shared
from kbert_lab.lab.texts import language
from kbert_lab.lab.views.lessons import LESSON, LESSONS, Setting

ss = st.session_state
NOTEBOOKS = "https://github.com/OWNER/kbert-lab/blob/main/notebooks"


def scene_of(setting: Setting) -> Scene:
    """A setting as a scene, its edits among it."""
    model, options = WORDS, InjectionOptions()
    if setting.model == MINILM:
        model = services.english_encoder() or WORDS
    elif setting.model != WORDS:
        model = str(services.models_folder() / setting.model)
        options = services.model_info(model).card.reading.options
    return Scene(
        (setting.text,),
        model,
        GraphRef.of(setting.graph),
        setting.edits,
        replace(options, max_triples=options.max_triples + setting.more_triples),
        setting.ablation,
    )


def read(setting: Setting) -> KBertTrace:
    """Run a setting, or find it where it has run before.

    Raises:
        KBertError: it can't be run.
    """
    return services.trace(scene_of(setting), setting.edited)


def open_in_lab(setting: Setting) -> None:
    """Put a setting into the Lab; what the visitor edited in its graph is taken back."""
    scene = scene_of(setting)
    task = NO_TASK
    if scene.has_model:
        task = services.model_info(scene.model).card.task or NO_TASK
    selection = Selection().with_cell(*setting.cell) if setting.cell else Selection()
    named = replace(scene, model=sharing.name_of(scene.model))
    sharing.take(
        Shared(named, task, selection=selection, views={"matrix_view": setting.panel}),
        setting.graph,
    )


# Progress


def begin() -> None:
    """Fill a new session."""
    state.begin()
    if ss.get("learn.lesson") not in LESSONS:
        ss["learn.lesson"] = LESSONS[0]
    ss.setdefault("learn.given", {})  # lesson → what was predicted, and whether it was right


def reveal(lesson: str, right: str) -> None:
    """Callback: keep what was predicted."""
    answer = ss[f"learn.answer.{lesson}"]
    ss["learn.given"] = {**ss["learn.given"], lesson: (answer, answer == right)}


def again(lesson: str) -> None:
    """Callback: hide the answer, and ask once more."""
    ss["learn.given"] = {name: own for name, own in ss["learn.given"].items() if name != lesson}
    ss[f"learn.answer.{lesson}"] = None


def notebook(lesson: str) -> str:
    """The notebook that goes further, as a link; in the visitor's language if there is one."""
    name = f"{LESSON[lesson]['notebook']}.ipynb"
    own = f"{language()}/{name}"
    return f"[{name}]({NOTEBOOKS}/{own if (services.ROOT / 'notebooks' / own).is_file() else name})"
