"""Choosing what to explain by its name, its place, or both; what is said at its place."""

import pytest

from kbert_core.errors import TextError
from kbert_core.explain.case import Target, target_of
from kbert_core.tasks import ClassPrediction, MaskPrediction, NerPrediction, Span
from kbert_core.tasks.mask import Filling

CLASS = ClassPrediction("good", {"good": 0.7, "bad": 0.3})
MASKS = MaskPrediction((Filling(3, 9, (("糖", 0.6), ("病", 0.1))), Filling(12, 18, (("药", 0.5),))))
SPANS = NerPrediction((Span(0, 2, "疾病", "患者", 0.9), Span(8, 12, "治疗", "予布洛芬", 0.4)), ())


@pytest.mark.parametrize(
    ("prediction", "asked", "chosen"),
    [
        (CLASS, {}, Target("good")),
        (CLASS, {"label": "bad"}, Target("bad")),
        (MASKS, {"label": "病"}, Target("病", 3, 9)),
        (MASKS, {"span": (12, 18)}, Target("药", 12, 18)),
        (MASKS, {"label": "糖", "span": (12, 18)}, Target("糖", 12, 18)),
        (SPANS, {"label": "治疗"}, Target("治疗", 8, 12)),
        (SPANS, {"span": (0, 2)}, Target("疾病", 0, 2)),
        (SPANS, {"span": (0, 3)}, Target("O", 0, 3)),
        (SPANS, {"label": "治疗", "span": (0, 3)}, Target("治疗", 0, 3)),
    ],
)
def test_target_is_found_by_what_is_said_of_it(prediction, asked, chosen):
    assert target_of(prediction, **asked) == chosen


@pytest.mark.parametrize(
    ("prediction", "asked", "said"),
    [
        (CLASS, {"span": (0, 2)}, "no span"),
        (MASKS, {"span": (0, 2)}, r"No \[MASK\] of the text stands at \[0, 2\)"),
        (SPANS, {"label": "检查"}, r"No 检查 is predicted, only 患者 疾病 \[0, 2\)"),
        (NerPrediction((), ()), {"label": "检查"}, "only nothing"),
        (None, {"label": "检查"}, "no prediction"),
    ],
)
def test_target_that_is_not_there_is_said(prediction, asked, said):
    with pytest.raises(TextError, match=said):
        target_of(prediction, **asked)


@pytest.mark.parametrize(
    ("target", "prediction", "answer"),
    [
        (Target("bad"), CLASS, "good"),
        (Target("糖", 12, 18), MASKS, "药"),
        (Target("治疗", 0, 2), SPANS, "疾病"),
        (Target("治疗", 2, 8), SPANS, "O"),
        (Target("治疗", 1, 9), SPANS, "疾病 [0, 2), 治疗 [8, 12)"),
        (Target("治疗", 9, 12), SPANS, "治疗 [8, 12)"),
    ],
)
def test_answer_is_what_is_predicted_at_the_place(target, prediction, answer):
    assert target.answer(prediction) == answer
