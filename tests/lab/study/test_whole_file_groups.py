"""A whole file: groups by label, entity, relation and triple; intervals; scores."""

import json
import math

import pytest
from explaining import GRAPH, TEXT
from lab.explain.labelled import classed, entities, triple
from tagged_texts import tagged

from kbert_lab.study.file_rows import Verdict
from kbert_lab.study.whole_file import KINDS, WholeFile, read_whole_file, wilson
from kbert_lab.training.scores import span_scores

A, B, C = triple("cat eats fish"), triple("cat is animal"), triple("dog is animal")
ROWS = (
    classed(0, "good", "good", "bad", [A, B], gain=2.0),
    classed(1, "good", "bad", "good", [C], gain=-1.0),
    classed(2, "bad", "good", "bad", [C], gain=-3.0),
    classed(3, "bad", "bad", "bad", [B], gain=0.5),
    classed(4, "bad", "bad", "bad"),
)
FILE = WholeFile("classify", "animals", ROWS, 5)
D, E, NONE = (0, 2, "D"), (4, 6, "E"), (7, 9, "D")
NER = WholeFile(
    "ner",
    "animals",
    (
        entities(0, [D, E], [D, E], [D], [A]),
        entities(1, [D, E], [E], [D, E, NONE], [B]),
        entities(2, [D], [D], [D]),
    ),
    3,
)


def counts(found, by):
    return {g.name: (g.count, g.helped, g.hurt, g.neutral) for g in found.groups(by)}


def test_groups_count_the_texts_that_a_triple_stood_in():
    assert counts(FILE, "entity") == {"dog": (2, 0, 2, 0), "cat": (2, 1, 0, 1)}
    assert counts(FILE, "relation") == {"is": (4, 1, 2, 1), "eats": (1, 1, 0, 0)}
    assert counts(FILE, "triple") == {
        "dog · is · animal": (2, 0, 2, 0),
        "cat · eats · fish": (1, 1, 0, 0),
        "cat · is · animal": (2, 1, 0, 1),
    }
    assert FILE.groups("triple")[0].triple == C
    assert FILE.groups("relation")[0].triple is None


def test_those_hurt_most_come_first():
    assert FILE.groups("triple")[0].name == "dog · is · animal"
    assert [g.helped - g.hurt for g in FILE.groups("triple")] == [-2, 1, 1]


def test_classes_are_counted_by_texts_and_entities_by_spans():
    assert counts(FILE, "label") == {"good": (2, 1, 1, 0), "bad": (3, 0, 1, 2)}
    assert {g.unit for g in FILE.groups("label")} == {"texts"}
    assert counts(NER, "label") == {"D": (3, 0, 1, 2), "E": (2, 1, 0, 1)}
    assert {g.unit for g in NER.groups("label")} == {"entities"}
    assert counts(NER, "entity") == {"cat": (2, 1, 0, 1)}  # the second text is as wrong as before


def test_the_whole_and_what_changed():
    assert (FILE.whole.helped, FILE.whole.hurt, FILE.whole.count) == (1, 2, 5)
    assert [row.number for row in FILE.changed] == [0, 1, 2]
    assert [row.number for row in FILE.with_knowledge] == [0, 1, 2, 3]


def test_mean_gain_is_of_the_score_of_what_is_right():
    dog, cat = FILE.groups("entity")
    assert (dog.mean_gain, cat.mean_gain) == (-2.0, 1.25)
    assert dog.gain_interval is None  # of two texts
    many = WholeFile("classify", "g", tuple(classed(n, "a", "a", "a", [A], n) for n in range(9)), 9)
    (group,) = many.groups("triple")
    low, high = group.gain_interval
    assert low < group.mean_gain == 4 < high
    assert many.groups("triple")[0].gain_interval == (low, high)
    rows = tuple(classed(n, "a", "a", "a", [A], 1.5) for n in range(9))
    same = WholeFile("classify", "g", rows, 9)
    assert same.groups("triple")[0].gain_interval == (1.5, 1.5)


def test_wilson_is_wilsons():
    for count, total in ((0, 5), (3, 4), (7, 7)):
        z, p = 1.959964, count / total
        centre = (p + z * z / 2 / total) / (1 + z * z / total)
        half = z / (1 + z * z / total) * math.sqrt(p * (1 - p) / total + (z / 2 / total) ** 2)
        assert wilson(count, total) == pytest.approx((centre - half, centre + half), abs=1e-6)
    assert wilson(0, 0) == (0, 1)


@pytest.mark.parametrize(
    ("helped", "hurt", "verdict"),
    [
        (0, 3, Verdict.NEUTRAL),
        (0, 4, Verdict.HURT),
        (4, 0, Verdict.HELPED),
        (1, 6, Verdict.NEUTRAL),
        (1, 9, Verdict.HURT),
        (0, 0, Verdict.NEUTRAL),
    ],
)
def test_a_group_hurts_only_where_its_interval_says_so(helped, hurt, verdict):
    rows = [classed(n, "a", "a", "b", [A]) for n in range(helped)]
    rows += [classed(n, "a", "b", "a", [A]) for n in range(hurt)]
    rows += [classed(n, "a", "a", "a", [A]) for n in range(50)]
    (group,) = WholeFile("classify", "g", tuple(rows), len(rows)).groups("triple")
    assert group.verdict is verdict


def test_scores_are_those_of_evaluation_and_their_difference_is_paired():
    said = FILE.scores
    assert said.metric == "accuracy"
    assert said.main["with the graph"].mean == pytest.approx(0.6)
    difference = said.difference
    assert difference.mean == pytest.approx(0.6 - 0.8)
    assert difference.low < 0 <= difference.high
    ner = NER.scores
    gold = [row.example.spans for row in NER.rows]
    f1 = span_scores(gold, [row.plain.said for row in NER.rows])["f1"]
    assert ner.main["without a graph"].mean == pytest.approx(f1)


def test_results_are_rows_plain_data_and_figures():
    for found in (FILE, NER):
        data = json.loads(json.dumps(found.as_dict()))
        assert list(data["groups"]) == list(KINDS)
        assert len(data["rows"]) == len(found.changed)
        for by in KINDS:
            groups = [group["hurt"] for group in data["groups"][by]]
            assert groups == [group.hurt for group in found.groups(by)]
            found.figure(by)
    assert NER.rows[0].as_dict()["gold"] == "ab D, ef E"
    (panel,) = FILE.figure("entity").axes
    assert [label.get_text() for label in panel.get_yticklabels()] == [
        "dog  (n = 2)",
        "cat  (n = 2)",
    ]
    assert not any({*"-−"} & set(tick.get_text()) for tick in panel.get_xticklabels())


def test_a_file_without_any_change_is_drawn_too():
    WholeFile("classify", "g", (classed(0, "a", "a", "a"),), 1).figure()


def test_a_file_is_read_in_one_call(ner):
    examples = [tagged(TEXT, ("糖尿病", "疾病")), tagged("患者好转")]
    found = read_whole_file(ner, examples, GRAPH)
    assert (found.task, found.graph, found.total, len(found.rows)) == ("ner", "three", 2, 2)
    assert counts(found, "relation")["类别"][0] == 1


def test_answers_are_ranked_by_question():
    right = [("q1", "1", 2.0), ("q1", "0", -1.0), ("q2", "0", -0.5), ("q2", "1", 3.0)]
    rows = []
    for number, (group, gold, score) in enumerate(right):
        row = classed(number, gold, gold, "0", gain=abs(score))
        rows.append(row.__class__(number, _of(row, group), row.hung, row.known, row.plain))
    found = WholeFile("rank", "g", tuple(rows), 4)
    assert found.scores.metric == "MRR"
    assert found.scores.main["with the graph"].mean == 1


def _of(row, group):
    return row.example.__class__(row.example.sentences, row.example.label, group=group)
