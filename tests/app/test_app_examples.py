"""The examples do with the shipped models what their names say.

They are listed in ``kbert_lab/lab/examples.py``, with the model each was chosen for. An
example whose model isn't shipped (yet) is skipped, and the app doesn't offer
it; the default model must be there.
"""

from dataclasses import replace

import pytest

from app.services import DEMO_GRAPHS, ROOT
from kbert_core import NO_KNOWLEDGE, Pipeline, Triple, load_graph
from kbert_core.tasks import TASKS, LinkPrediction, NerPrediction
from kbert_core.tasks.mask import MaskPrediction
from kbert_lab.lab.examples import EXAMPLES
from kbert_lab.lab.models import read_model

WITH_TASK = [e for e in EXAMPLES if e.task is not None]
TURNING = [e for e in WITH_TASK if e.task != "qa"]
RESTING = [e for e in EXAMPLES if e.rests_on_triple]
DEFAULT = "medical-ner-kbert"
TYPES = {
    "疾病": "Disease",
    "症状": "Symptom",
    "部位": "BodyPart",
    "治疗": "Cure",
    "检查": "Examine",
    "disease": "Disease",
    "drug": "Chemical",
}


@pytest.fixture(scope="module")
def loaded():
    """Load a shipped model once, or skip."""
    models = {}

    def load(name):
        folder = ROOT / "models" / name
        if name != DEFAULT and not folder.is_dir():
            pytest.skip(f"no model models/{name}")
        if name not in models:
            models[name] = Pipeline.from_pretrained(folder, device="cpu")
        return models[name]

    return load


def name_of(example):
    return example.name.split(":")[0]


def graph_of(example):
    return load_graph(ROOT / "demo_kgs" / f"{example.graph}.spo")


@pytest.mark.parametrize("example", RESTING, ids=name_of)
def test_an_example_rests_on_its_first_triple(loaded, example):
    pipeline, graph = loaded(example.model), graph_of(example)

    def spans(knowledge):
        found = pipeline(*example.sentences, graph=knowledge).prediction.spans
        return [(span.text, span.label) for span in found]

    triple = pipeline(*example.sentences, graph=graph).tree.used[0]
    right = (triple.head, TYPES[triple.tail])
    assert spans(graph) == [right]
    assert right not in spans(NO_KNOWLEDGE)
    assert right not in spans(graph.switch_off(triple))
    for tail, label in TYPES.items():
        if tail != triple.tail and tail.isascii() == triple.tail.isascii():
            edited = graph.replace(triple, Triple(triple.head, triple.relation, tail))
            assert spans(edited) == [(triple.head, label)]


def test_the_paragraph_answers_whatever_its_triples_say(loaded):
    (example,) = (own for own in EXAMPLES if own.task == "qa")
    pipeline, graph = loaded(example.model), graph_of(example)
    with_graph = pipeline(*example.sentences, graph=graph)
    assert with_graph.used
    for knowledge in (graph, NO_KNOWLEDGE, *map(graph.switch_off, set(with_graph.used))):
        best = pipeline(*example.sentences, graph=knowledge).prediction.answers[0]
        assert best.text == "2019年"


def answer(prediction):
    """What a visitor sees turn: spans, senses, the likeliest characters, or the label."""
    if isinstance(prediction, NerPrediction):
        return [(span.text, span.label) for span in prediction.spans]
    if isinstance(prediction, LinkPrediction):
        return [link.entity for link in prediction.links]
    if isinstance(prediction, MaskPrediction):
        return [filling.candidates[0][0] for filling in prediction.fillings]
    return prediction.label


@pytest.mark.parametrize("example", TURNING, ids=name_of)
def test_the_edit_that_an_examples_hint_names_turns_its_prediction(loaded, example):
    pipeline, graph = loaded(example.model), graph_of(example)
    assert pipeline.card.task == example.task
    assert read_model(str(ROOT / "models" / example.model)).is_for(example)
    triple, tail = example.turn
    edited = graph.switch_off(triple)
    if tail is not None:
        edited = graph.replace(triple, Triple(triple.head, triple.relation, tail))
    before, after = (pipeline(*example.sentences, graph=g).prediction for g in (graph, edited))
    assert answer(before) != answer(after)


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.shows], ids=name_of)
def test_the_pictures_of_start_show_what_the_model_says(loaded, example):
    pipeline, graph = loaded(example.model), graph_of(example)
    as_in_lab = replace(pipeline.config.options, keep_places=True)
    (triple, _), said = example.turn, {}
    for kind in ("now", "off", "wrong"):
        edited = graph.apply(example.edit(kind)) if kind != "now" else graph
        spans = pipeline(*example.sentences, graph=edited, options=as_in_lab).prediction.spans
        found = [(own.label, round(own.probability, 2)) for own in spans if own.text == triple.head]
        said[kind] = found[0] if found else None
    assert said == {
        kind: example.shows[kind] and (example.shows[kind][0], round(example.shows[kind][1], 2))
        for kind in said
    }


def test_the_first_example_is_one_that_rests_on_a_triple():
    assert EXAMPLES[0].rests_on_triple
    assert EXAMPLES[0].model == DEFAULT
    assert len(RESTING) >= 2


def test_every_task_has_an_example_with_as_many_texts_as_it_takes():
    assert {e.task for e in WITH_TASK} == set(TASKS) - {"multilabel"}  # no model comes with it
    assert all(len(e.sentences) == TASKS[e.task].sentences for e in WITH_TASK)
    assert {e.graph for e in EXAMPLES} <= set(DEMO_GRAPHS)
    assert len({e.name for e in EXAMPLES}) == len(EXAMPLES)
