"""Predictions before and after."""

import pytest

from app.view_models import prediction
from kbert_core.tasks import ClassPrediction, LabelledToken, NerPrediction, Span

TEXT = "心电图<b>"


def ner(*spans):
    tags = ["O"] * len(TEXT)
    for start, end, label in spans:
        tags[start:end] = [f"B-{label}"] + [f"I-{label}"] * (end - start - 1)
    tokens = tuple(
        LabelledToken(i, i + 1, tag, {"O": 0.25, "B-Cure": 0.25, "I-Cure": 0.5})
        for i, tag in enumerate(tags)
    )
    return NerPrediction(tuple(Span(s, e, label, TEXT[s:e], 0.9) for s, e, label in spans), tokens)


def test_a_prediction_compared_with_itself_has_no_change():
    one = ner((0, 3, "Examine"))
    changes = prediction.span_changes(one.spans, one.spans)
    assert [c.change for c in changes] == ["same"]
    assert prediction.headline(changes) == "The same entities on both sides."
    drawn = prediction.ner_html(TEXT, one, "now", one, "before", {})
    assert "kb-ring" not in drawn and "kb-lost" not in drawn


def test_changes_are_of_type_new_or_lost():
    before = ner((0, 3, "Examine"), (4, 5, "Cure"))
    after = ner((0, 3, "Symptom"), (5, 6, "Cure"))
    changes = prediction.span_changes(before.spans, after.spans)
    assert [(c.text, c.change) for c in changes] == [
        ("心电图", "type"),
        ("b", "lost"),
        (">", "new"),
    ]
    assert "“心电图” was Examine, is Symptom" in prediction.headline(changes)


def test_changed_spans_are_ringed_and_named_and_all_text_is_escaped():
    drawn = prediction.ner_html(
        TEXT, ner((0, 3, "Cure")), "<i>now", ner((0, 3, "Examine")), "before", {}
    )
    assert drawn.count("kb-ring") == 1 and "other type" in drawn
    assert "<b></span>" not in drawn and "&lt;i&gt;now" in drawn
    assert drawn.count("&lt;</span>") == 2


def test_type_probabilities_are_means_over_the_tokens_and_sum_to_one():
    totals = prediction.type_probabilities(ner((0, 3, "Cure")), 0, 3)
    assert totals == pytest.approx({"O": 0.25, "Cure": 0.75})


def test_a_flipped_label_is_said():
    before = ClassPrediction("no", {"no": 0.7, "yes": 0.3})
    after = ClassPrediction("yes", {"no": 0.2, "yes": 0.8})
    assert prediction.label_change(before, after) == "Flipped from no (70.0 %) to yes (80.0 %)"
    assert "yes as before" in prediction.label_change(after, after)
    assert prediction.label_change(None, after) == "yes, 80.0 %"


@pytest.mark.parametrize(
    ("value", "written"), [(0.5, "50.0 %"), (0.9999, "> 99.9 %"), (0.0001, "< 0.1 %"), (None, "–")]
)
def test_percent_is_honest_at_the_ends(value, written):
    assert prediction.percent(value) == written


def test_signed_never_writes_a_negative_zero():
    assert prediction.signed(-0.0001) == "0"
    assert prediction.signed(-0.05) == "−5.0"
