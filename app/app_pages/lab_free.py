"""Free choice of what stands side by side: a model, a graph and an ablation for every panel."""

from collections.abc import Sequence

import streamlit as st

from app import comparing, services, state
from app.comparing import Choice, Known, Panel
from app.scene import NO_MODEL, Scene
from app.texts import t
from kbert_core import SYSTEMS, Ablation
from kbert_core.systems import K_BERT, reader_class

ss = st.session_state
DEFAULTS = (
    Choice(graph="none"),
    Choice(),
    Choice(ablation=Ablation("hard", "tree")),
    Choice(ablation=Ablation("soft", "all")),
)


def free_panels(now: Scene, known: Known) -> Sequence[Panel]:
    """Choose two to four panels.

    Args:
        now: the Lab's scene.
        known: the scenes there are besides.
    """
    count = st.segmented_control(
        t("sides.count"),
        range(comparing.FEWEST, comparing.MOST + 1),
        key="lab.free_count",
        default=2,
        required=True,
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
    st.markdown(f"**{t('sides.number', number=number + 1)}**")
    models = state.choices().models
    model = st.selectbox(
        t("sides.model"),
        list(models),
        index=list(models).index(now.model) if now.model in models else 0,
        key=f"{key}.model",
        format_func=lambda path: models.get(path, path),
    )
    graphs = ["edited", *(["loaded"] if known.loaded is not None else []), "none"]
    called = {name: t("sides.graph_" + name) for name in graphs}
    if known.loaded is None:
        called["edited"] = t("sides.graph_own")
    graph = st.selectbox(
        t("sides.graph"),
        graphs,
        index=graphs.index(default.graph),
        key=f"{key}.graph",
        format_func=lambda name: called.get(name, name),
    )
    read_by_any = [name for name in SYSTEMS if not reader_class(name).inserts]
    systems = ["", *([] if model in NO_MODEL else read_by_any)]
    system = st.selectbox(
        t("sides.system"),
        systems,
        key=f"{key}.system",
        format_func=lambda name: t("sides.system_" + (name or "own")),
    )
    own = model not in NO_MODEL and services.model_info(model).card.system
    tree = (system or own or K_BERT) == K_BERT  # positions and visibility are K-BERT's
    st.segmented_control(
        t("options.positions"),
        ["soft", "hard"],
        key=f"{key}.positions",
        default=default.ablation.positions,
        required=True,
        disabled=not tree,
        format_func=lambda name: t("options." + name),
    )
    st.segmented_control(
        t("options.visible"),
        ["tree", "all"],
        key=f"{key}.visible",
        default=default.ablation.visible,
        required=True,
        disabled=not tree,
        format_func=lambda name: t("options." + name),
    )
    options = None
    if model not in (now.model, *NO_MODEL):
        options = services.model_info(model).card.reading.options
    ablation = Ablation(ss[f"{key}.positions"], ss[f"{key}.visible"]) if tree else Ablation()
    return Choice(model, options, graph, ablation, system)
