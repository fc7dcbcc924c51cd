"""What is said of a graph that has little to say."""

import logging

import pytest

from kbert_core.data.labelled import Example
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.triple import Triple
from kbert_core.training.matches import LOOKED_AT, tell_of_matches

GRAPH = KnowledgeGraph([Triple("糖尿病", "类别", "疾病")])
OTHER, SICK = Example(("今天天气很好",)), Example(("有糖尿病史",))


@pytest.mark.parametrize(
    ("rows", "options", "level", "text"),
    [
        ([OTHER] * 9, InjectionOptions(), "WARNING", "0 of 9 rows of train (0.0%)"),
        ([OTHER] * 199 + [SICK], InjectionOptions(), "WARNING", "1 of 200 rows of train (0.5%)"),
        ([OTHER] * 3 + [SICK], InjectionOptions(), "INFO", "1 of 4 rows of train (25.0%)"),
        ([SICK], InjectionOptions(relations=("治疗",)), "WARNING", "--relations names some it has"),
        (
            [SICK] * 3 * LOOKED_AT,
            InjectionOptions(),
            "INFO",
            "2,000 of 2,000 rows looked at",
        ),
    ],
)
def test_the_share_of_rows_is_told_and_hardly_any_is_a_warning(caplog, rows, options, level, text):
    caplog.set_level(logging.INFO)
    tell_of_matches(rows, GRAPH, options, "train")
    (record,) = caplog.records
    assert record.levelname == level
    assert text in record.getMessage()


def test_nothing_is_said_without_a_graph(caplog):
    tell_of_matches([OTHER], KnowledgeGraph([]), InjectionOptions(), "train")
    assert not caplog.records
