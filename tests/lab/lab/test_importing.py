"""What an import would add, before it does; and what may be wrong with what was typed."""

import gzip

import pytest

from kbert_core import KnowledgeGraph, Triple
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.io import ReadOptions
from kbert_lab.lab.history import Edited, Step
from kbert_lab.lab.views.importing import doubts_of, pasted_name, preview

GRAPH = KnowledgeGraph([Triple("a", "is", "b")])


def test_a_preview_counts_what_is_new_there_repeated_and_bad():
    data = b"a\tis\tb\nc\tis\td\nonly two\tfields\nc\tis\td\n<b>\tis\t=1+1\n"
    found = preview(data, "more.spo", GRAPH)
    assert [row for row in found.rows] == [(2, "c", "is", "d"), (5, "<b>", "is", "=1+1")]
    assert (found.there, found.repeated, found.bad, found.error) == (1, 1, 1, None)
    assert found.problems[0].startswith("more.spo, line 3: found 2 fields")


def test_a_file_without_any_triple_shows_its_bad_lines():
    found = preview(b"one\n" * 30, "bad.spo", GRAPH)
    assert (found.rows, found.bad, len(found.problems), found.error) == ((), 30, 20, None)


@pytest.mark.parametrize(
    ("data", "name", "said"),
    [
        (b"", "empty.spo", "no triples"),
        ("糖尿病\t是\t病\n".encode("gb18030"), "gb.spo", "choose its encoding here, gb18030"),
        (b"not packed", "x.spo.gz", "can't be unpacked"),
        (b"bad line\na\tis\tc\n\xff\xfe\tis\tx\n", "cut.spo", "line 3: byte 0xFF"),
    ],
)
def test_a_file_that_cannot_be_read_says_why_and_offers_nothing(data, name, said):
    found = preview(data, name, GRAPH)
    assert said in found.error
    assert found.rows == ()


def test_an_encoding_may_be_named_and_a_file_packed():
    data = gzip.compress("糖尿病\t是\t病\n".encode("gb18030"))
    found = preview(data, "gb.spo.gz", GRAPH, ReadOptions(encoding="gb18030"))
    assert found.rows == ((1, "糖尿病", "是", "病"),)


def test_more_than_is_added_at_once_is_said():
    data = b"".join(b"a\tis\t%d\n" % n for n in range(5))
    found = preview(data, "many.spo", GRAPH, most=2)
    assert (len(found.rows), found.too_many) == (2, True)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a\tb\tc", "pasted.tsv"),
        ("\n a,b,c", "pasted.csv"),
        ('{"head": 1}', "pasted.jsonl"),
        ('["a","b","c"]', "pasted.jsonl"),
        ("@prefix x: <y> .", "pasted.ttl"),
        ("<http://a> <http://b> <http://c> .", "pasted.ttl"),
        ("nothing of it", "pasted.tsv"),
    ],
)
def test_a_pasted_text_tells_its_format(text, name):
    assert pasted_name(text) == name


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (("a", "is", "letter"), "“a” is an everyday word"),
        (("胃", "is", "part"), "“胃” is one character"),
        (("Beijing", "is_a", "town"), "“Beijing” has several types (City, town)"),
        (("beijing", "is_a", " city"), "differs only in case, width or spaces"),
        (("CT", "is", "ct"), "The tail is the head"),
        (("CT", "is", "x" * 41), "The tail has over 40 characters"),
        (("Rome", "hosts", "games"), None),
    ],
)
def test_what_may_be_wrong_with_a_triple_is_said_once_it_is_written(written, said):
    new = Triple(*written)
    graph = KnowledgeGraph([Triple("Beijing", "is_a", "City"), new])
    doubts = doubts_of(Step(1, Edited("own", (Edit("add", new),))), graph)
    assert said in doubts[0] if said else not doubts
