"""Triple: what can be one, and what is wrong with what can't."""

import pytest

from kbert_core import Triple
from kbert_core.errors import GraphEditError


def test_triple_reads_as_in_the_paper():
    assert str(Triple("Tim Cook", "CEO", "Apple")) == "(Tim Cook, CEO, Apple)"


def test_checked_triple_is_stripped():
    assert Triple.checked(" a ", "\tb", "c\u3000") == Triple("a", "b", "c")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (("", "b", "c"), "its head is empty; give it a text"),
        (("a", "  ", "c"), "its relation is empty"),
        (("a", "b", ""), "its tail is empty"),
        (("a", "b\tb", "c"), r"its relation holds a .* \(U\+0009\); take it out"),
        (("a", "b", "c\nd"), r"\(U\+000A\)"),
        (("a\ud800", "b", "c"), r"\(U\+D800\)"),
    ],
)
def test_checked_triple_says_what_is_wrong(fields, text):
    with pytest.raises(GraphEditError, match=text):
        Triple.checked(*fields)


def test_triple_may_have_its_head_for_a_tail():
    assert Triple("a", "is", "a").problem() is None
