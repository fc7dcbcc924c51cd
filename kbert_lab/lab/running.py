"""How a scene is read: by its pipeline, or cut into words or characters without a model."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from kbert_core.errors import KBertError, TextError
from kbert_core.kbert.flat_tree import collate, flatten
from kbert_core.kbert.interventions import intervene
from kbert_core.kbert.kbert import KBertReading, KBertTrace
from kbert_core.kbert.sentence_tree import grow_trees
from kbert_core.kbert.visible import ReadConfig
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.pipeline import Pipeline
from kbert_core.reader import Trace
from kbert_core.words import AS_BERT, Characters, Words
from kbert_lab.lab.scene import WORDS, Scene

LONGEST_WITHOUT_MODEL = 1024  # tokens, where no encoder sets the limit


def options_of(scene: Scene, pipeline: Pipeline) -> dict[str, Any]:
    """What a scene says of how texts are read, as far as the system has such options."""
    has = {option.name for option in fields(pipeline.config)}
    names = ("options", "ablation", "interventions", "threshold")
    return {name: getattr(scene, name) for name in names if name in has}


def run(scene: Scene, graph: KnowledgeGraph, pipeline: Pipeline | None) -> Trace:
    """Read a scene.

    Args:
        graph: with the scene's edits made.
        pipeline: of its model; None: it has none.

    Raises:
        KBertError: a text or option that can't be used.
    """
    if pipeline is not None:
        given: dict[str, Any] = {"graph": graph, **options_of(scene, pipeline)}
        try:
            return pipeline(*scene.sentences, **given)
        except TextError:
            if pipeline.card.task != "mask":
                raise
            return pipeline(*scene.sentences, **given, decode=False)  # no [MASK]: the tree alone
    in_words = scene.model == WORDS
    splitter = Words(special=True, word=AS_BERT) if in_words else Characters(special=True)
    tree = grow_trees([scene.sentences], graph, scene.options)[0]
    row = flatten([tree], splitter, max_length=LONGEST_WITHOUT_MODEL)[0]
    config = ReadConfig(scene.options, ablation=scene.ablation, interventions=scene.interventions)
    named = max((layer for one in scene.interventions for layer in one.layers), default=1)
    return unread(KBertReading((row,), config), named)


def unread(reading: KBertReading, layers: int) -> KBertTrace:
    """What is known of a reading without a model, or before it has run; of so many layers."""
    config, batch = reading.config, collate(reading.rows)
    visible = config.ablation.visible_in(batch)
    trace = KBertTrace(reading, batch=batch, visible=visible)
    if not config.interventions:
        return trace
    made = intervene(visible, reading.rows, config.interventions, layers)
    return replace(trace, visible=made.layers[-1], visible_layers=made.layers)


def predicted_after(
    scene: Scene, graph: KnowledgeGraph, pipeline: Pipeline, edits: Sequence[Edit]
) -> tuple[Any | KBertError, ...]:
    """What is predicted once each of some edits is made, alone; an edit that can't be: why.

    Args:
        edits: are read in one batch.
    """
    made: list[Any | KBertError] = []
    for edit in edits:
        try:
            given = {"graph": graph.apply(edit), **options_of(scene, pipeline)}
            made += pipeline.readings([scene.sentences], **given)
        except KBertError as error:
            made.append(error)
    read = iter(list(pipeline.predicted([own for own in made if not isinstance(own, KBertError)])))
    return tuple(o if isinstance(o, KBertError) else next(read).prediction for o in made)
