"""Scenes as cases to be explained, and what explains them, cached as traces are."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import streamlit as st

from app import services
from app.scene import Scene, content_key
from kbert_core import KnowledgeGraph, Triple
from kbert_core.explain.case import MOST_READ, NOTHING, Case, Target
from kbert_lab.explain.compare import Comparison, compare
from kbert_lab.explain.noise import NoiseCurve, noise_curve, noisy_tree


def case_of(scene: Scene, graph: KnowledgeGraph, target: Target = NOTHING) -> Case:
    """A scene as a case.

    Raises:
        KBertError: a text, option or model that can't be used.
    """
    trace = services.trace(scene, graph)
    reader = services.pipeline(scene.model, scene.device, scene.system)
    return Case(reader, graph, trace, target)


def key_of(scene: Scene, graph: KnowledgeGraph) -> str:
    """All that an explanation of a scene depends on, but what is asked."""
    return content_key(scene, graph, services.stamp(scene.model))


@services.by_content
def noise_at(
    scene: Scene, graph: KnowledgeGraph, target: Target, count: int, seed: int
) -> NoiseCurve:
    """A prediction without noise and with so many unrelated triples a mention, drawn once."""
    made = case_of(scene, graph, target)
    return noise_curve(made, counts=(0, count), seeds=(seed,))


@services.by_content
def noise_drawn(
    scene: Scene, graph: KnowledgeGraph, count: int, seed: int
) -> list[tuple[str, tuple[Triple, ...]]]:
    """Every mention of a scene, in its own words, with the unrelated triples drawn for it."""
    made = case_of(scene, graph)
    source = tuple(islice(graph.active_triples(), MOST_READ))
    noisy = noisy_tree(made, count, seed=seed, source=source)
    found = []
    for before, node in zip(made.trace.tree.nodes, noisy.nodes, strict=True):
        mention = node.mention
        text = scene.sentences[mention.sentence][mention.start : mention.end]
        found.append((text, tuple(b.triple for b in node.branches[len(before.branches) :])))
    return found


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
