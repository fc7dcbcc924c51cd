"""A graph to pandas and back, and other people's tables."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert_core import KnowledgeGraph, Triple
from kbert_core.errors import GraphFileError
from kbert_lab.graphs.pandas_frame import from_pandas, to_pandas

COOK = Triple("Tim Cook", "CEO", "Apple")
LIVES = Triple("Tim Cook", "lives in", "Cupertino")


def said(graph):
    return [(triple, graph.is_on(triple)) for triple in graph], graph.name


def test_every_triple_is_a_row_that_says_whether_it_is_on():
    frame = to_pandas(KnowledgeGraph([COOK, LIVES], name="mine").switch_off(LIVES))
    assert list(frame.columns) == ["head", "relation", "tail", "on"]
    assert frame.values.tolist() == [
        ["Tim Cook", "CEO", "Apple", True],
        ["Tim Cook", "lives in", "Cupertino", False],
    ]


names = st.sampled_from(["a", "A", "b", "ａ", "糖尿病", "<b>", "x y", "nan"])


@given(st.lists(st.tuples(names, names, names), max_size=12), st.integers(0, 11))
def test_a_round_trip_changes_nothing(fields, number):
    graph = KnowledgeGraph((Triple(*f) for f in fields), name="g")
    if number < len(graph):
        graph = graph.switch_off(list(graph)[number])
    assert said(from_pandas(to_pandas(graph))) == said(graph)


def test_a_row_that_does_not_say_whether_it_is_on_is_on():
    frame = to_pandas(KnowledgeGraph([COOK]).switch_off(COOK))
    more = pd.concat([frame, pd.DataFrame([["b", "c", "d"]], columns=["head", "relation", "tail"])])
    assert said(from_pandas(more))[0] == [(COOK, False), (Triple("b", "c", "d"), True)]
    typed = more.assign(on=more["on"].astype("boolean"))
    assert said(from_pandas(typed)) == said(from_pandas(more))


def test_two_columns_that_say_what_is_on_are_refused():
    frame = to_pandas(KnowledgeGraph([COOK]))
    frame.insert(0, "on", [True], allow_duplicates=True)
    with pytest.raises(GraphFileError, match="2 columns called on, expected one at most"):
        from_pandas(frame)


def test_columns_are_known_by_their_names_or_chosen():
    frame = pd.DataFrame([["类别", "疾病", 3, "糖尿病"]], columns=["关系", "尾实体", "n", "实体"])
    sugar = Triple("糖尿病", "类别", "疾病")
    assert list(from_pandas(frame)) == [sugar]
    chosen = from_pandas(frame.set_axis([0, 1, 2, 3], axis=1), (3, 0, 1), name="mine")
    assert (list(chosen), chosen.name) == ([sugar], "mine")


@pytest.mark.parametrize(
    ("row", "columns", "problem"),
    [
        (["a", "b", None], None, r"row 2 \(index 'y'\): found nan in .*frame\.dropna\(\)"),
        (["a", 5, "c"], None, r"row 2 \(index 'y'\): found 5 in .*frame\.astype\(str\)"),
        (["a", " ", "c"], None, r"row 2 \(index 'y'\): .*its relation is empty"),
        (["a", "b", "c"], ("head", "x", "tail"), r"has the columns head, relation, tail, expected"),
    ],
)
def test_a_row_that_is_no_triple_is_named(row, columns, problem):
    frame = pd.DataFrame([["a", "b", "c"], row], ["x", "y"], ["head", "relation", "tail"])
    with pytest.raises(GraphFileError, match=problem):
        from_pandas(frame, columns)
