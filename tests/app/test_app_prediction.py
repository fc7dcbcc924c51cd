"""Predictions before and after, and of several readings: in words, on the text, as bars."""

import pytest

from kbert_core import Card
from kbert_core.tasks import (
    ClassPrediction,
    LabelledToken,
    Link,
    LinkPrediction,
    MaskPrediction,
    NerPrediction,
    Span,
)
from kbert_core.tasks.mask import Filling
from kbert_lab.lab.models import ModelInfo
from kbert_lab.lab.views import prediction
from kbert_lab.lab.views.prediction import Side, before_and_now

TEXT = "心电图<b>"
TEXTS = (TEXT,)
TAGS = {"O": 0.25, "B-Cure": 0.25, "I-Cure": 0.5}


def ner(*spans):
    tags = ["O"] * len(TEXT)
    for start, end, label, *_ in spans:
        tags[start:end] = [f"B-{label}"] + [f"I-{label}"] * (end - start - 1)
    tokens = tuple(LabelledToken(i, i + 1, tag, TAGS) for i, tag in enumerate(tags))
    found = (Span(s, e, label, TEXT[s:e], *(p or [0.9])) for s, e, label, *p in spans)
    return NerPrediction(tuple(found), tokens)


def model(task="ner", **notes):
    return ModelInfo("models/x", "x", Card(task, notes=notes))


def drawn(*found, text=TEXT, names=("before", "now"), **how):
    return prediction.spans_html(text, before_and_now(model(), *found[::-1], names=names), **how)


NO, YES = ClassPrediction("no", {"no": 0.7, "yes": 0.3}), ClassPrediction("yes", {"yes": 0.8})
LINKS = [
    LinkPrediction((Link(0, 3, "c", 1.0, 1.0), Link(3, 4, None, 1.0, 0.6))),
    LinkPrediction((Link(3, 4, "<i>", 1.0, 0.8),)),
]
MASKS = [MaskPrediction((Filling(0, 6, ((own, 0.9), ("c", 0.1))),)) for own in "ab"]


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (
            ner((0, 3, "Examine"), (4, 5, "Cure")),
            ner((0, 3, "Symptom"), (5, 6, "Cure")),
            "心电图: Examine 90.0 % → Symptom 90.0 %; b: Cure 90.0 % → none; >: none → Cure 90.0 %",
        ),
        (ner((0, 3, "Cure")),) * 2 + ("The entities are the same before and now.",),
        (*LINKS, "心电图: c > 99.9 % → none; <: NULL 60.0 % → <i> 80.0 %"),
        (NO, YES, "no 70.0 % → yes 80.0 %"),
        (YES, YES, "yes 80.0 %"),
        (None, YES, "yes 80.0 %"),
        (*MASKS, "a 90.0 % → b 90.0 %"),
        (None, MASKS[0], ""),
        (
            ner(),
            ner(*((i, i + 1, "Cure") for i in range(5))),
            "心: none → Cure 90.0 %; 电: none → Cure 90.0 %; 图: none → Cure 90.0 %; 2 more",
        ),
    ],
)
def test_what_became_of_a_prediction_is_said(before, now, said):
    assert prediction.headline(TEXTS, model(), now, before) == said


def test_an_answer_has_a_score_and_no_label():
    before, after = (ClassPrediction("1", {"0": 1 - p, "1": p}) for p in (0.3, 0.8))
    assert prediction.probabilities(model("rank"), after) == {"score": 0.8}
    assert prediction.headline(TEXTS, model("rank"), after, before) == "30.0 % → 80.0 %"
    other = ClassPrediction("good", {"good": 0.6, "bad": 0.4})
    assert prediction.probabilities(model("rank"), other) == {"good": 0.6, "bad": 0.4}


def test_a_bare_label_is_shown_with_its_meaning_where_that_is_known():
    found = ClassPrediction("1", {"0": 0.1, "1": 0.9})
    known = model("classify", data="chnsenticorp_dedup")
    assert prediction.probabilities(known, found) == {"0 · negative": 0.1, "1 · positive": 0.9}
    by_command = model("pair", data="train.tsv", command="kbert train --train x/lcqmc/train.tsv")
    assert prediction.probabilities(by_command, found)["1 · same meaning"] == 0.9
    own = model("pair", data="mine", label_names={"1": "duplicate"})
    assert prediction.headline(TEXTS, own, found, None) == "1 · duplicate 90.0 %"
    other = model("pair", data="mybq", command="x")
    assert prediction.probabilities(other, found) == {"0": 0.1, "1": 0.9}


EXAMINE, CURE = (0, 3, "Examine"), (4, 5, "Cure")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([ner(EXAMINE)] * 3, "All find the same entities."),
        ([ner()] * 3, "All find no entity."),
        (
            [ner(EXAMINE), ner((0, 2, "Symptom")), ner((0, 3, "Symptom"))],
            "One: “心电图” Examine; Two: “心电” Symptom; Three: “心电图” Symptom.",
        ),
        ([ner(EXAMINE), ner(), ner()], "One: “心电图” Examine; Two, Three: no entity."),
        (
            [ner(EXAMINE, CURE), ner(EXAMINE), ner(EXAMINE)],
            "One: “b” Cure; Two, Three: no other entity.",
        ),
        ([NO, YES, YES], "One: no 70.0 %; Two, Three: yes 80.0 %."),
        ([YES] * 3, "One, Two, Three: yes 80.0 %."),
    ],
)
def test_several_readings_are_compared_in_a_sentence_by_who_says_what(found, said):
    sides = [
        Side(title, "", own, model())
        for title, own in zip(("One", "Two", "Three"), found, strict=True)
    ]
    assert prediction.compared(TEXTS, sides) == said


def test_changed_spans_are_ringed_and_named_and_all_text_is_escaped():
    html = drawn(ner((0, 3, "Examine"), CURE), ner((0, 3, "Cure")), names=("before", "<i>now"))
    before, now = html.split('class="kb-side"')[1:]
    assert before.count("kb-lost") == 1 and "kb-ring" not in before
    assert now.count("kb-ring") == 1 and "other type" in now
    assert "<b></span>" not in html and "&lt;i&gt;now" in html
    assert html.count("&lt;</span>") == 2


def test_three_readings_are_each_held_against_the_first():
    found = (ner(EXAMINE), ner((0, 2, "Symptom")), ner((0, 3, "Symptom")))
    lines = prediction.spans_html(TEXT, [Side("t", "", own) for own in found]).split("kb-side")[1:]
    assert "kb-ring" not in lines[0] and "kb-lost" not in lines[0]
    assert "kb-ring" in lines[1] and "new" in lines[1]
    assert "kb-ring" in lines[2] and "other type" in lines[2]


def test_a_text_stands_once_where_nothing_changed_and_it_is_long_or_shall_fold():
    one, other = ner(EXAMINE), ner((0, 3, "Cure"))
    assert drawn(one, one).count("kb-line") == 2 and "kb-ring" not in drawn(one, one)
    assert drawn(one, one, fold=True).count("kb-line") == 1
    assert "as before" in drawn(one, one, text=TEXT + "x" * 60)
    assert drawn(one, other, fold=True).count("kb-line") == 2


def test_a_long_text_with_a_change_is_drawn_around_it_and_what_is_found():
    text = "".join(chr(0x4E00 + i) for i in range(600))
    tokens = tuple(LabelledToken(i, i + 1, "O", TAGS) for i in range(600))
    spans = [Span(at, at + 3, "Cure", text[at : at + 3], 0.9) for at in (200, 500)]
    found = [NerPrediction(tuple(own), tokens) for own in (spans[1:], spans)]
    before, now = drawn(*found, text=text).split('class="kb-side"')[1:]
    near = 40 + 3 + 40
    assert before.count("kb-text") == near + 2 and before.count("…") == 2
    assert now.count("kb-text") == 2 * near + 3 and now.count("kb-ring") == 1


def test_words_stand_apart_and_word_pieces_do_not():
    text = "was aspirin"
    tokens = tuple(LabelledToken(a, b, "O", {"O": 1.0}) for a, b in [(0, 3), (4, 6), (6, 11)])
    spans = (), (Span(0, 11, "Drug", text, 0.9),)
    assert [drawn(NerPrediction(s, tokens), text=text).count("kb-gap") for s in spans] == [1, 1]


def test_places_stand_in_a_table_before_and_now():
    html = prediction.drawn(TEXTS, before_and_now(model("link"), *LINKS[::-1]))
    assert "&lt;i&gt; 80.0 %" in html and "NULL" in html
    assert html.count("kb-badge") == 2


def test_bars_name_what_is_likeliest_and_how_it_changed():
    html = prediction.drawn(TEXTS, before_and_now(model(), YES, NO))
    assert html.count("kb-badge") == 1 and "+50.0" in html
    assert "kb-badge" not in prediction.drawn(TEXTS, before_and_now(model(), YES, YES))


def test_type_probabilities_are_means_over_the_tokens_and_sum_to_one():
    totals = prediction.type_probabilities(ner((0, 3, "Cure")), 0, 3)
    assert totals == pytest.approx({"O (none)": 0.25, "Cure": 0.75})


def test_the_change_of_what_is_predicted_is_counted_at_its_place():
    less = LabelledToken(0, 1, "O", {"O": 0.75, "B-Cure": 0.25})
    other = NerPrediction((), (less, *ner().tokens[1:]))
    assert prediction.points(model(), ner((0, 1, "Cure")), other, (0, 1)) == pytest.approx(-0.5)
    assert prediction.points(model(), YES, NO, (0, 0)) == pytest.approx(-0.5)


@pytest.mark.parametrize(
    ("value", "written"), [(0.5, "50.0 %"), (0.9999, "> 99.9 %"), (0.0001, "< 0.1 %"), (None, "–")]
)
def test_percent_is_honest_at_the_ends(value, written):
    assert prediction.percent(value) == written


def test_signed_never_writes_a_negative_zero():
    assert prediction.signed(-0.0001) == "0"
    assert prediction.signed(-0.05) == "−5.0"
