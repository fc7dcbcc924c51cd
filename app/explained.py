"""Scenes as cases to be explained, and what explains them, cached as traces are."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from app import services
from kbert_core import KnowledgeGraph
from kbert_core.explain.case import NOTHING, Case, Target
from kbert_lab.explain.compare import Comparison, compare
from kbert_lab.lab.scene import Scene, content_key
from kbert_lab.lab.views import shared


def case_of(scene: Scene, graph: KnowledgeGraph, target: Target = NOTHING) -> Case:
    """A scene as a case.

    Raises:
        KBertError: a text, option or model that can't be used.
    """
    trace = services.trace(scene, graph)
    reader = services.pipeline(scene.model, scene.device, scene.system)
    return Case(reader, graph, trace, target)


def model_name(scene: Scene) -> str:
    """What reads a scene."""
    info = services.model_info(scene.model) if scene.has_model else None
    return info.name if info else shared.model_name(scene.model)


def key_of(scene: Scene, graph: KnowledgeGraph) -> str:
    """All that an explanation of a scene depends on, but what is asked."""
    return content_key(scene, graph, services.stamp(scene.model))


@st.cache_resource(max_entries=16, show_spinner=False, hash_funcs=services.CONTENT)
def compared(
    scenes: Sequence[Scene], graphs: Sequence[KnowledgeGraph], target: Target
) -> Comparison:
    """Scenes of one text side by side, named by their numbers from 0.

    Args:
        scenes: with models.
        graphs: of each, with the edits made.

    Returns:
        A shared value: not to be changed; its sides without their states,
        which are large and have been compared.
    """
    cases = {
        str(number): case_of(scene, graph, target)
        for number, (scene, graph) in enumerate(zip(scenes, graphs, strict=True))
    }
    made = compare(cases, target=target)
    return replace(made, sides=tuple(replace(side, states=()) for side in made.sides))
