"""Twenty visitors at once, and one who forges messages: nobody sees another's or the machine's."""

import random
import shutil
import sys
from pathlib import Path
from statistics import median
from types import SimpleNamespace

import pytest
from load.crowd import ADD, Crowd, One, crowd
from load.visitor import Visitor
from served import ROOT, served

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


@pytest.mark.soak
def test_twenty_visitors_for_five_minutes_leave_memory_where_it_was(tmp_path, figures):
    with served(tmp_path, OMP_NUM_THREADS="1", KBERT_LANGUAGE="en") as server:
        found = crowd(server, visitors=20, seconds=300)
        written = server.written()
    assert found.problems == []
    assert "Traceback" not in written
    assert "not logged" not in written
    sizes = found.megabytes
    second, last = ([mb for at, mb in sizes if a <= at / 60 < b] for a, b in ((1, 2), (4, 5)))
    waits = sorted(found.waits)
    figures["visitors"] = {
        "visitors at once": 20,
        "visits": found.visits,
        "runs": len(waits),
        "median wait, s": round(median(waits), 2),
        "95 % wait, s": round(waits[int(0.95 * len(waits))], 2),
        "MB in the second minute": round(median(second)),
        "MB in the fifth": round(median(last)),
        "MB at most": round(max(mb for _, mb in sizes)),
        "seconds": round(sizes[-1][0], 1),
    }
    assert median(last) < median(second) + 150


@pytest.mark.skipif(sys.platform != "linux", reason="reads what a process has loaded from /proc")
def test_the_server_sends_without_waiting_for_an_acknowledgement(app_for_many):
    # asyncio's own loop leaves Nagle's algorithm on for Streamlit's socket: 40 ms an answer
    loaded = Path(f"/proc/{app_for_many.process.pid}/maps").read_text(encoding="utf-8")
    assert "/uvloop/" in loaded


@pytest.mark.parametrize(
    ("shown", "noticed"),
    [
        ({"received": b"\x12\x00visitor01x\x00"}, False),
        ({"received": b"\x12\x00visitor07x\x00"}, True),
        ({"text": "v i s i t o r 0 7 x"}, True),
        ({"said": ["Something went wrong"]}, True),
    ],
)
def test_a_page_that_shows_what_is_anothers_is_noticed(shown, noticed):
    page = SimpleNamespace(received=[shown.get("received", b"")], problems=[*shown.get("said", ())])
    page.text = lambda: shown.get("text", "")
    seen = Crowd()
    One(page, "visitor01x", random.Random(1), seen).do(lambda: None)
    assert bool(seen.problems) == noticed


# Messages that no page of ours would send: they reach nothing, and nobody else notices


@pytest.fixture
def page(app_for_many):
    with Visitor(app_for_many.stream) as visitor:
        visitor.open()
        visitor.unfold("lab.drawer")
        assert visitor.tree()
        yield visitor
    with Visitor(app_for_many.stream) as another:
        another.open()
        assert another.tree()
        assert another.problems == []


def test_a_model_that_is_not_offered_is_not_opened(page, tmp_path):
    path = str(shutil.copytree(ROOT / "models" / "zh-mini", tmp_path / "elsewhere"))
    page.choose("lab.model", path)
    assert page.tree()
    assert "elsewhere" not in page.text()
    assert not any(path.encode() in data for data in page.received)


@pytest.mark.parametrize("key", ["lab.task", "lab.graph", "lab.example"])
def test_an_option_that_is_not_offered_shows_nothing_of_the_machine(page, key):
    page.choose(key, "../../etc/passwd")
    assert "root:" not in page.text()
    assert not any("Traceback" in said or ".py" in said for said in page.problems)


def test_a_number_out_of_bounds_is_not_taken(page):
    state = page._state("lab.max_triples")
    state.int_value = 10**9
    page.run()
    assert len(page.tree()) <= 512
    assert page.problems == []


def test_a_text_longer_than_the_field_allows_is_refused_and_not_read(page):
    page.write("lab.text", "长" * 1_000_000)
    page.run()
    assert page.elements("alert")
    assert "1000000" in page.text().replace(",", "")
    assert page.problems == []


def test_a_field_takes_no_more_than_it_allows(page):
    page.write("lab.add_head", "胃镜")
    page.write("lab.add_relation", "类别")
    page.write("lab.add_tail", "长" * 100_000)
    page.press(ADD)
    assert page.tree().count("长") <= 200
    assert max(map(len, page.received)) < 1_000_000
