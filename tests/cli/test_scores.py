"""Scores in the terminal: the whole, the table by label, the release's count beside it."""

from kbert_core.cli.scores import report_text, scores_text
from kbert_core.experiments.release import release_scores
from kbert_core.training.scores import class_scores, pair_scores, ranking_scores, span_scores


def entities(on_branches=0):
    scores = span_scores([[(0, 2, "疾病"), (3, 4, "B")]], [[(0, 2, "疾病"), (3, 4, "C")]])
    release = release_scores([[(0, 2), (3, 4)]], [[(0, 2), (3, 4)]], [on_branches])
    return scores | {f"release_{name}": value for name, value in release.items()}


def test_entities_have_a_row_for_each_label_and_the_releases_count_beside_the_whole():
    title, header, whole, *labels = scores_text("with knowledge", entities())
    assert title.split() == ["with", "knowledge", "F1", "50.0"]
    assert header.split()[:6] == ["label", "precision", "recall", "F1", "gold", "predicted"]
    assert whole.split() == ["all", "50.0", "50.0", "50.0", "2", "2", "100.0", "100.0", "100.0"]
    assert header.index("release's P") + len("release's P") == whole.index("100.0") + 5
    assert [row.split() for row in labels] == [
        ["B", "0.0", "0.0", "0.0", "1", "0"],
        ["C", "0.0", "0.0", "0.0", "0", "1"],
        ["疾病", "100.0", "100.0", "100.0", "1", "1"],
    ]
    assert len(labels[2]) == len(labels[0]) - 2  # two characters of double width


def test_entities_begun_on_branches_are_told():
    assert (
        "takes 2 entities begun on injected tokens as predicted; F1 without them 100.0"
        in (scores_text("", entities(on_branches=2))[-1])
    )


def test_classes_pairs_rankings_and_masks_have_their_own_scores():
    classes = scores_text("t", class_scores(["a", "b"], ["a", "a"]))
    assert classes[0].split()[1:] == "accuracy 50.0 macro F1 33.3 of 2".split()
    assert classes[2].split() == ["a", "50.0", "100.0", "66.7", "1", "2"]
    pairs = scores_text("t", pair_scores(["1", "0"], ["1", "1"], ["0", "1"]))
    assert pairs[0].split()[1:] == "accuracy 50.0 F1 of '1' 66.7 macro F1 33.3 of 2".split()
    ranking = scores_text("t", ranking_scores(["q", "q", "r"], [False, True, False], [0.9, 0.1, 0]))
    assert "MRR 50.0  P@1 0.0  of 1 questions with 2 candidates" in ranking[0]
    assert "MRR by chance 75.0, in the order given 50.0" in ranking[1]
    floors = {**ranking_scores(["q"], [True], [0.9]), "overlap_mrr": 0.25}
    assert scores_text("t", floors)[1].endswith("given 100.0, by shared characters 25.0")
    assert "1 questions without a right answer left out" in ranking[2]
    assert "perplexity 2.00" in scores_text("t", {"loss": 0.69, "perplexity": 2.0})[0]


def test_a_report_shows_every_split_with_and_without_knowledge():
    report = {"scores": {"dev": entities(), "test": entities()}, "without_knowledge": {}}
    titles = [line for line in report_text(report).splitlines() if not line.startswith(" ")]
    assert [title.split()[0] for title in titles] == ["dev,", "test,"]
    single = report_text({"scores": entities(), "without_knowledge": entities()}).splitlines()
    assert sum(line.startswith(("with knowledge", "graph off")) for line in single) == 2


def test_the_response_to_edits_is_a_table_for_replaced_tails_and_one_for_added_triples():
    others = {"others_changed": 0.5, "others_new": None}
    replaced = {"new": 0.75, "kept": 0.25, "other": 0.0, "lost": 0.0, **others, "n": 4}
    added = {"right_before": 0.5, "right_after": 1.0, "missed": 1, "missed_right": 1.0, "n": 2}
    groups = {"unseen": replaced, "seen": {"n": 0}}
    response = {**groups, "added": {"unseen": {**added, **others}, "seen": {"n": 0}}}
    rows = [line.split() for line in report_text({"edit_response": response}).splitlines()]
    assert rows[0] == ["response", "to", "edits"]
    assert rows[2] == ["unseen", "4", "75.0", "25.0", "0.0", "0.0", "50.0", "–"]
    assert rows[3] == ["seen", "0", *["–"] * 6]
    assert rows[5] == ["unseen", "2", "50.0", "100.0", "1", "100.0", "50.0", "–"]
    splits = report_text({"edit_response": {"dev": groups, "test": groups}}).splitlines()
    titles = [line for line in splits if line.startswith("response")]
    assert titles == ["response to edits, dev", "response to edits, test"]
    assert "triple added" not in "".join(splits)  # a report made before there was one
