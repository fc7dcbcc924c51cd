"""Scores in the terminal: the whole in a line, a table by label, the response to edits."""

from kbert_lab.cli.train import scores_text
from kbert_lab.training.scores import class_scores, ranking_scores, span_scores

ENTITIES = span_scores([[(0, 2, "疾病"), (3, 4, "B")]], [[(0, 2, "疾病"), (3, 4, "C")]])


def lines(**report):
    return [line.split() for line in scores_text(report).splitlines()]


def test_entities_have_a_row_for_each_label_below_the_whole_and_shares_are_in_per_cent():
    rows = lines(scores={**ENTITIES, "unseen": {"recall": 0.5, "gold": 3}})
    assert rows[:4] == [
        ["with", "knowledge:"],
        ["right:", "1"],
        ["predicted:", "2"],
        ["gold:", "2"],
    ]
    assert rows[6:9] == [
        ["f1:", "50.0"],
        ["by", "label:"],
        ["right", "predicted", "gold", "precision", "recall", "f1"],
    ]
    assert rows[9:12] == [
        ["B", "0", "0", "1", "0.0", "0.0", "0.0"],
        ["C", "0", "1", "0", "0.0", "0.0", "0.0"],
        ["疾病", "1", "1", "1", "100.0", "100.0", "100.0"],
    ]
    assert rows[12] == ["unseen:", "recall", "50.0,", "gold", "3"]


def test_classes_rankings_and_masks_have_their_own_scores():
    classes = lines(scores=class_scores(["a", "b"], ["a", "a"]))
    assert classes[1:4] == [["accuracy:", "50.0"], ["macro", "f1:", "33.3"], ["count:", "2"]]
    ranking = ranking_scores(["q", "q", "r"], [False, True, False], [0.9, 0.1, 0])
    assert lines(scores=ranking)[1:3] == [["mrr", "50.0"], ["p_at_1", "0.0"]]
    assert "perplexity 2" in scores_text({"scores": {"loss": 0.69, "perplexity": 2.0}})


def test_a_report_shows_every_split_with_and_without_knowledge():
    report = {"scores": {"dev": ENTITIES, "test": ENTITIES}, "without_knowledge": {}}
    assert [line[0] for line in lines(**report) if "knowledge:" in line] == ["dev,", "test,"]
    twin = lines(scores={"dev": ENTITIES}, without_knowledge={}, kg=[])
    assert ["dev,", "without", "knowledge:"] in twin
    assert ["dev,", "with", "knowledge:"] in lines(scores={"dev": ENTITIES}, kg=["kg.spo"])
    single = scores_text({"scores": ENTITIES, "without_knowledge": ENTITIES}).splitlines()
    assert sum(line.startswith(("with knowledge:", "graph off:")) for line in single) == 2


def test_the_response_to_edits_is_a_table_for_replaced_tails_and_one_for_added_triples():
    replaced = {"new": 0.75, "lost": 0.0, "others_changed": 0.5, "others_new": None, "n": 4}
    added = {"right_before": 0.5, "missed": 1, "n": 2}
    groups = {"unseen": replaced, "seen": {"n": 0}}
    response = {**groups, "added": {"unseen": added, "seen": {"n": 0}}}
    response["invented"] = {"D": {"n": 4, "followed": 0.25}}
    rows = lines(edit_response=response)
    assert rows[0][:3] == ["response", "to", "edits"]
    assert rows[1:3] == [["tail", "replaced:"], ["n", "new", "lost", "others", "changed"]]
    assert rows[3:5] == [["unseen", "4", "75.0", "0.0", "50.0"], ["seen", "0"]]
    assert rows[7] == ["unseen", "2", "50.0", "1"]
    assert rows[9:] == [["name", "invented:"], ["n", "followed"], ["D", "4", "25.0"]]
    splits = scores_text({"edit_response": {"dev": groups, "test": groups}})
    assert "dev, response to edits" in splits and "test, response to edits" in splits
    for later in ("triple added", "name invented"):
        assert later not in splits  # a report made before there was one
