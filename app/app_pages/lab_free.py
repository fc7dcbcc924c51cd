"""Free choice of what stands side by side: a model, a graph and an ablation for every panel."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app import services, state
from app.app_pages.parts import segments, select
from kbert_core import SYSTEMS, Ablation
from kbert_core.systems import K_BERT, reader_class
from kbert_lab.lab import comparing
from kbert_lab.lab.comparing import Choice, Known, Panel
from kbert_lab.lab.scene import NO_MODEL, Scene
from kbert_lab.lab.texts import N_, t
from kbert_lab.lab.words import OPTIONS_TEXTS, SIDES_SYSTEM

SIDES_GRAPH = {
    "edited": N_("as edited"),
    "own": N_("the Lab's"),
    "loaded": N_("as loaded"),
    "none": N_("none"),
}

ss = st.session_state
DEFAULTS = (
    Choice(graph="none"),
    Choice(),
    Choice(ablation=Ablation("hard", "tree")),
    Choice(ablation=Ablation("soft", "all")),
)


def free_panels(now: Scene, known: Known) -> Sequence[Panel]:
    """Choose two to four panels."""
    count = segments(
        t("Panels"),
        range(comparing.FEWEST, comparing.MOST + 1),
        "lab.free_count",
        hidden=False,
        default=2,
    )
    numbers = range(int(count or comparing.FEWEST))
    panels = []
    for number, column in zip(numbers, st.columns(len(numbers), gap="medium"), strict=True):
        with column:
            panels.append(comparing.chosen(now, choose(now, number, known), known.loaded))
    return panels


def choose(now: Scene, number: int, known: Known) -> Choice:
    """Model, graph, system and ablation of one panel."""
    default = DEFAULTS[number]
    key = f"lab.free.{number}"
    st.markdown(f"**{t('Panel {number}', number=number + 1)}**")
    models = state.offer().names(state.session().task)
    wide: dict[str, Any] = {"width": "stretch"}
    model = select(
        t("Model"), list(models), f"{key}.model", lambda path: models[path], now.model, **wide
    )
    graphs = ["edited", *(["loaded"] if known.loaded is not None else []), "none"]
    edited = "own" if known.loaded is None else "edited"  # what the Lab's is called
    called = {name: t(SIDES_GRAPH[edited if name == "edited" else name]) for name in graphs}
    graph = select(
        t("Knowledge graph"), graphs, f"{key}.graph", lambda g: called[g], default.graph, **wide
    )
    read_by_any = [name for name in SYSTEMS if not reader_class(name).inserts]
    systems = ["", *([] if model in NO_MODEL else read_by_any)]
    system_name = lambda name: t(SIDES_SYSTEM[name or "own"])  # noqa: E731
    system = select(t("How knowledge is read"), systems, f"{key}.system", system_name, **wide)
    own = model not in NO_MODEL and services.model_info(model).card.system
    tree = (system or own or K_BERT) == K_BERT  # positions and visibility are K-BERT's
    for part, title, names in (
        ("positions", t("Positions"), ["soft", "hard"]),
        ("visible", t("Visible matrix"), ["tree", "all"]),
    ):
        segments(
            title,
            names,
            f"{key}.{part}",
            OPTIONS_TEXTS,
            hidden=False,
            default=getattr(default.ablation, part),
            disabled=not tree,
        )
    options = None
    if model not in (now.model, *NO_MODEL):
        options = services.model_info(model).card.reading.options
    ablation = Ablation(ss[f"{key}.positions"], ss[f"{key}.visible"]) if tree else Ablation()
    return Choice(model, options, graph, ablation, system)
