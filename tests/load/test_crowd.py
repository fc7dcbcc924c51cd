"""Twenty visitors at once: no error, nobody sees another's, memory stays in bounds."""

import random
import sys
from pathlib import Path

import pytest

from .crowd import Crowd, One, crowd

MEGABYTES = 1500  # of the process, with a model and twenty sessions


def test_twenty_visitors_at_once_see_only_what_is_theirs(app_for_many):
    before = len(app_for_many.written())
    found = crowd(app_for_many, visitors=20, seconds=5)
    assert found.problems == []
    assert found.visits >= 20
    assert len(found.waits) >= 40
    assert max(size for _, size in found.megabytes) < MEGABYTES
    written = app_for_many.written()[before:]
    assert "Traceback" not in written
    assert "not logged" not in written


@pytest.mark.skipif(sys.platform != "linux", reason="reads what a process has loaded from /proc")
def test_the_server_sends_without_waiting_for_an_acknowledgement(app_for_many):
    # asyncio's own loop leaves Nagle's algorithm on for Streamlit's socket: 40 ms an answer
    loaded = Path(f"/proc/{app_for_many.process.pid}/maps").read_text(encoding="utf-8")
    assert "/uvloop/" in loaded


class Page:
    """What a visitor's page might show."""

    def __init__(self, received=b"", text="", tree=(), problems=()):
        self.received, self.problems = [received], list(problems)
        self._text, self._tree = text, list(tree)

    def text(self):
        return self._text

    def tree(self):
        return self._tree


@pytest.mark.parametrize(
    ("shown", "noticed"),
    [
        ({"received": b"\x12\x00visitor01x\x00"}, False),
        ({"received": b"\x12\x00visitor07x\x00"}, True),
        ({"text": "v i s i t o r 0 7 x"}, True),
        ({"problems": ["Something went wrong"]}, True),
    ],
)
def test_a_page_that_shows_what_is_anothers_is_noticed(shown, noticed):
    seen = Crowd()
    One(Page(**shown), "visitor01x", random.Random(1), seen).do(lambda: None)
    assert bool(seen.problems) == noticed


def test_a_tree_of_another_sentence_is_noticed():
    seen = Crowd()
    one = One(Page(tree=["visitor02x", "第", "1"]), "visitor01x", random.Random(1), seen)
    one.expect_tree("visitor01x第1")
    assert seen.problems
