"""Predictions before and after."""

import pytest

from kbert_core import Card
from kbert_core.tasks import ClassPrediction, LabelledToken, MaskPrediction, NerPrediction, Span
from kbert_core.tasks.mask import Filling
from kbert_lab.lab.models import ModelInfo
from kbert_lab.lab.views import prediction, twins
from kbert_lab.lab.views.shared import turning

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
    assert prediction.headline(changes) == "The entities are the same before and now."
    drawn = twins.now_and_before(TEXT, one, "now", one, "before")
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
    drawn = twins.now_and_before(
        TEXT, ner((0, 3, "Cure")), "<i>now", ner((0, 3, "Examine")), "before"
    )
    assert drawn.count("kb-ring") == 1 and "other type" in drawn
    assert "<b></span>" not in drawn and "&lt;i&gt;now" in drawn
    assert drawn.count("&lt;</span>") == 2


def test_type_probabilities_are_means_over_the_tokens_and_sum_to_one():
    totals = prediction.type_probabilities(ner((0, 3, "Cure")), 0, 3)
    assert totals == pytest.approx({"O (none)": 0.25, "Cure": 0.75})


def model(task, **notes):
    return ModelInfo("models/x", "x", Card(task, notes=notes))


def test_a_flipped_label_is_said():
    before = ClassPrediction("no", {"no": 0.7, "yes": 0.3})
    after = ClassPrediction("yes", {"no": 0.2, "yes": 0.8})
    info = model("classify")
    said = prediction.say_class(info, after, before)
    assert said == "Flipped from no (70.0 %) to yes (80.0 %)"
    assert "yes as before" in prediction.say_class(info, after, after)
    assert prediction.say_class(info, after, None) == "yes, 80.0 %"


def test_a_bare_label_is_shown_with_its_meaning_where_that_is_known():
    found = ClassPrediction("1", {"0": 0.1, "1": 0.9})
    known = model("classify", data="chnsenticorp_dedup")
    assert prediction.probabilities(known, found) == {"0 · negative": 0.1, "1 · positive": 0.9}
    by_command = model("pair", data="train.tsv", command="kbert train --train x/lcqmc/train.tsv")
    assert prediction.probabilities(by_command, found)["1 · same meaning"] == 0.9
    own = model("pair", data="mine", label_names={"1": "duplicate"})
    assert prediction.say_class(own, found, None) == "1 · duplicate, 90.0 %"
    other = model("pair", data="mybq", command="x")
    assert prediction.probabilities(other, found) == {"0": 0.1, "1": 0.9}


def test_an_answer_has_a_score_and_no_label():
    before = ClassPrediction("0", {"0": 0.7, "1": 0.3})
    after = ClassPrediction("1", {"0": 0.2, "1": 0.8})
    info = model("rank")
    assert prediction.probabilities(info, after) == {"score": 0.8}
    assert "30.0 % → 80.0 %" in prediction.say_class(info, after, before)
    other = ClassPrediction("good", {"good": 0.6, "bad": 0.4})
    assert prediction.probabilities(info, other) == {"good": 0.6, "bad": 0.4}


def test_words_stand_apart_and_word_pieces_do_not():
    text = "was aspirin"
    places = [(0, 3), (4, 6), (6, 11)]
    tokens = tuple(LabelledToken(a, b, "O", {"O": 1.0}) for a, b in places)
    drawn = twins.now_and_before(text, NerPrediction((), tokens), "now")
    assert drawn.count("kb-gap") == 1
    spanned = NerPrediction((Span(0, 11, "Drug", text, 0.9),), tokens)
    assert twins.now_and_before(text, spanned, "now").count("kb-gap") == 1


@pytest.mark.parametrize(
    ("value", "written"), [(0.5, "50.0 %"), (0.9999, "> 99.9 %"), (0.0001, "< 0.1 %"), (None, "–")]
)
def test_percent_is_honest_at_the_ends(value, written):
    assert prediction.percent(value) == written


def test_signed_never_writes_a_negative_zero():
    assert prediction.signed(-0.0001) == "0"
    assert prediction.signed(-0.05) == "−5.0"


def test_what_a_prediction_has_become_is_said_with_arrows():
    before, after = ner((0, 3, "Examine"), (4, 5, "Cure")), ner((0, 3, "Symptom"), (4, 5, "Cure"))
    assert turning(model("ner"), TEXT, after, before) == "心电图: Examine → Symptom"
    assert turning(model("ner"), TEXT, ner(), ner((0, 3, "Cure"))) == "心电图: Cure → none"
    no, yes = ClassPrediction("no", {"no": 0.7, "yes": 0.3}), ClassPrediction("yes", {"yes": 1.0})
    assert turning(model("classify"), TEXT, yes, no) == "no → yes"
    assert turning(model("classify"), TEXT, no, no) == ""
    masks = [MaskPrediction((Filling(0, 6, ((own, 0.9), ("c", 0.1))),)) for own in "ab"]
    assert turning(model("mask"), TEXT, masks[1], masks[0]) == "a → b"
