"""Predictions beside a twin's: what differs is marked and said, and so is that nothing does."""

from kbert_core.tasks import LabelledToken, NerPrediction, Span
from kbert_lab.lab.views import twins
from kbert_lab.lab.views.twins import Side

TEXT = "行胃镜<b>"
HEADS = (
    ("With the graph", "kbert"),
    ("Graph off", "kbert"),
    ("Twin", "bert"),
)


def sides(*predictions):
    return [Side(*head, found) for head, found in zip(HEADS, predictions, strict=True)]


def ner(*spans):
    tokens = tuple(LabelledToken(i, i + 1, "O", {"O": 1.0}) for i in range(len(TEXT)))
    return NerPrediction(tuple(Span(s, e, label, TEXT[s:e], p) for s, e, label, p in spans), tokens)


def test_equal_spans_are_said_in_a_plain_sentence():
    one = ner((1, 3, "Examine", 0.9))
    beside = sides(one, one, ner((1, 3, "Examine", 0.6)))
    assert twins.say_spans(TEXT, beside) == (
        "All three find the same entities, with the same types."
    )
    assert "kb-ring" not in twins.spans_lines(TEXT, beside)


def test_no_span_anywhere_is_said():
    assert twins.say_spans(TEXT, sides(ner(), ner(), ner())) == "All three find no entity."


def test_spans_that_differ_are_said_by_whom_and_marked():
    beside = sides(
        ner((1, 3, "Examine", 0.9)), ner((1, 2, "Symptom", 0.7)), ner((1, 3, "Symptom", 0.8))
    )
    assert twins.say_spans(TEXT, beside) == (
        "With the graph: “胃镜” Examine; Graph off: “胃” Symptom; Twin: “胃镜” Symptom."
    )
    lines = twins.spans_lines(TEXT, beside).split('class="kb-side"')[1:]
    assert "kb-ring" not in lines[0] and "kb-lost" not in lines[0]
    assert "kb-ring" in lines[1] and "new" in lines[1]
    assert "kb-ring" in lines[2] and "other type" in lines[2]


def test_what_two_sides_share_is_said_once():
    beside = sides(ner((1, 3, "Examine", 0.9)), ner(), ner())
    assert twins.say_spans(TEXT, beside) == (
        "With the graph: “胃镜” Examine; Graph off, Twin: no entity."
    )


def test_more_differences_than_are_told_are_counted():
    beside = sides(ner(*((i, i + 1, "Cure", 0.5) for i in range(4))), ner(), ner())
    said = twins.say_spans(TEXT, beside)
    assert said.count("“") == 2
    assert said.endswith("2 more places differ.")


def test_spans_are_escaped_in_lines():
    beside = sides(ner((3, 6, "<i>", 0.5)), ner(), ner())
    drawn = twins.spans_lines(TEXT, beside)
    assert "<i>" not in drawn and "&lt;i&gt;" in drawn
    assert drawn.count("&lt;</span>") == 3


def test_labels_that_differ_are_said_by_whom_and_marked():
    beside = sides({"good": 0.9, "bad": 0.1}, {"good": 0.4, "bad": 0.6}, {"good": 0.2, "bad": 0.8})
    assert twins.say_labels(beside) == (
        "They differ: With the graph: good 90.0 %; Graph off: bad 60.0 %; Twin: bad 80.0 %."
    )
    drawn = twins.bars_table(beside, head="Label")
    assert drawn.count("kb-badge") == 2
    assert "−50.0" in drawn and "+70.0" in drawn


def test_one_label_with_other_probabilities_is_said_with_the_largest_difference():
    beside = sides(
        {"good": 0.9, "bad": 0.1}, {"good": 0.85, "bad": 0.15}, {"good": 0.6, "bad": 0.4}
    )
    assert twins.say_labels(beside) == (
        "All three say good; their probabilities differ by at most 30.0 points."
    )
    assert "kb-badge" not in twins.bars_table(beside, head="Label")


def test_equal_probabilities_are_said_in_a_plain_sentence():
    beside = sides(*({"good": 0.9, "bad": 0.1},) * 3)
    assert twins.say_labels(beside) == "All three say good, with the same probabilities."
    assert twins.say_score(beside) == "All three give this answer the same score, 90.0 %."


def test_scores_are_said_by_whom():
    assert twins.say_score(sides({"score": 0.9}, {"score": 0.5}, {"score": 0.4})) == (
        "Score of this answer: With the graph: 90.0 %; Graph off: 50.0 %; Twin: 40.0 %."
    )
