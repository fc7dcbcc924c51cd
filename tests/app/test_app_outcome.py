"""What an edit would make of a prediction, before it is made."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from app import audits, services
from kbert_core import Card, KBertError, Triple
from kbert_core.knowledge.edit import Edit
from kbert_core.tasks import ClassPrediction, MaskPrediction, NerPrediction, Span
from kbert_core.tasks.mask import Filling
from kbert_lab.lab.models import ModelInfo
from kbert_lab.lab.scene import GraphRef, Scene
from kbert_lab.lab.texts import t
from kbert_lab.lab.views.prediction import outcome
from kbert_lab.lab.views.shared import place_of

TEXT, AT = "患者行胃镜检查", (3, 5)
INFO = ModelInfo("models/x", "x", Card())


def ner(*spans):
    return NerPrediction(tuple(Span(s, e, label, TEXT[s:e], p) for s, e, label, p in spans), ())


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (ner((3, 5, "Examine", 0.6)), "no change"),
        (ner((3, 5, "Disease", 0.921)), "Disease 92.1 %"),
        (ner(), "none"),
        (ner((3, 7, "Examine", 0.8)), "Examine 80.0 %"),  # the span grows
        (ner((0, 2, "Cure", 0.7), (3, 5, "Examine", 0.9)), "“患者” Cure 70.0 %"),
        (ner((0, 2, "Cure", 0.7), (3, 5, "Cure", 0.6)), "Cure 60.0 %"),  # the mention first
    ],
)
def test_what_becomes_of_the_mention_is_said_before_what_becomes_of_others(after, said):
    turns = said != "no change"
    assert outcome(INFO, TEXT, ner((3, 5, "Examine", 0.9)), after, AT) == (said, turns)


def test_another_label_or_token_is_said_with_its_probability_and_an_edit_that_cannot_be_made():
    good = ClassPrediction("good", {"bad": 0.2, "good": 0.8})
    bad = ClassPrediction("bad", {"bad": 0.7, "good": 0.3})
    assert outcome(INFO, TEXT, good, bad, AT) == ("bad 70.0 %", True)
    one, other = (
        MaskPrediction((Filling(0, 6, tuple(best)),))
        for best in ([("腹", 0.9), ("胸", 0.1)], [("胸", 0.5), ("腹", 0.4)])
    )
    assert outcome(INFO, TEXT, one, other, AT) == ("胸 50.0 %", True)
    assert (
        outcome(INFO, TEXT, one, one, AT)
        == outcome(INFO, TEXT, good, good, AT)
        == (t("no change"), False)
    )
    assert outcome(INFO, TEXT, one, KBertError("no"), AT) == (t("not possible"), False)


def test_what_is_foretold_of_an_edit_is_what_is_predicted_once_it_is_made():
    graph = services.demo_graph("medical_zh")
    folder = str(services.ROOT / "models" / "medical-ner-kbert")
    options = services.model_info(folder).card.reading.options
    scene = Scene(("患者行胃镜检查未见异常",), folder, GraphRef.of(graph), options=options)
    triple = Triple("胃镜", "类别", "检查")
    tails = services.tails(graph, "类别", 3)
    assert tails == ("疾病", "治疗", "检查")  # the most frequent first
    new = [replace(triple, tail=tail) for tail in ("疾病", "治疗")]
    edits = [Edit("replace", triple, own) for own in (replace(triple, tail="a\tb"), *new)]
    with ThreadPoolExecutor() as pool, audits._counting:  # what others count keeps nobody waiting
        later = pool.submit(services.predicted_after, scene, graph, edits)
        refused, *foretold = later.result(60)
    assert isinstance(refused, KBertError)
    for own, said in zip(new, foretold, strict=True):
        trace = services.trace(scene, graph.replace(triple, own))
        assert place_of(trace, own) == AT
        (span,), (made,) = said.spans, trace.prediction.spans
        assert replace(span, probability=0) == replace(made, probability=0)
        assert span.probability == pytest.approx(made.probability, abs=1e-5)
