"""Turns: how long runs of many visitors share few places."""

import threading
import time

import pytest

from app import work
from app.work import GaveUp, LimitError, Turns, places

PATIENCE = 20  # seconds that a thread may take before a test fails


def wait_until(true):
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it never came to pass"
        time.sleep(0.002)


class Visitor:
    """Takes turns in a thread of its own, each as long as the test lets it.

    The test holds the place that is there, has everybody line up, and lets go.
    """

    def __init__(self, turns, name, steps, order):
        self.turns, self.name, self.steps, self.order = turns, name, steps, order
        self.thread = threading.Thread(target=self.work, daemon=True)

    def start(self):
        self.thread.start()
        wait_until(lambda: self.turns.waiting(self.name) > 0)
        return self

    def work(self):
        for _ in range(self.steps):
            with self.turns.turn(self.name):
                self.order.append(self.name)

    def join(self):
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


def lined_up(turns):
    with turns._changed:
        return len(turns._waiting)


def start_in_order(turns, order, *runs):
    """Start runs one after the other while the only place is taken; let go; wait for all."""
    visitors = []
    with turns.turn("the test"):
        for name, steps in runs:
            visitors.append(Visitor(turns, name, steps, order))
            visitors[-1].thread.start()
            wait_until(lambda: lined_up(turns) == len(visitors))
    for visitor in visitors:
        visitor.join()


def test_turns_go_round_between_visitors():
    order = []
    start_in_order(Turns(1), order, ("anna", 3), ("bert", 3))
    assert order == ["anna", "bert", "anna", "bert", "anna", "bert"]


def test_many_runs_of_one_visitor_get_no_more_than_one_run_of_another():
    order = []
    start_in_order(Turns(1), order, *[("anna", 4)] * 5, ("bert", 4))
    assert max(place for place, name in enumerate(order) if name == "bert") <= 8
    assert order.count("anna") == 20


def test_a_newcomer_gets_the_next_turn_but_no_more_than_the_others_afterwards():
    turns, order = Turns(1), []
    new = Visitor(turns, "new", 10, order)

    def anna():
        for step in range(40):
            with turns.turn("anna"):
                order.append("anna")
                if step == 19:
                    new.start()

    anna = threading.Thread(target=anna, daemon=True)
    anna.start()
    anna.join(PATIENCE)
    new.join()
    assert order[:20] == ["anna"] * 20
    assert order[20:40] == ["new", "anna"] * 10


def test_a_run_alone_does_not_pass_the_second_run_of_another_visitor():
    order = []
    start_in_order(Turns(1), order, ("two runs", 5), ("two runs", 5), ("alone", 20))
    assert max(place for place, name in enumerate(order) if name == "two runs") <= 20


def test_never_more_at_once_than_the_limit_and_all_of_it_is_used():
    turns, now, most, lock = Turns(3), [0], [0], threading.Lock()
    begun = threading.Barrier(3)

    def go(name):
        for step in range(20):
            with turns.turn(name):
                with lock:
                    now[0] += 1
                    most[0] = max(most[0], now[0])
                if step == 0 and name in "abc":
                    begun.wait(PATIENCE)  # passes only where three are in at once
                time.sleep(0.001)
                with lock:
                    now[0] -= 1

    threads = [threading.Thread(target=go, args=(name,), daemon=True) for name in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert most[0] == 3
    assert turns.running() == 0


def test_an_error_in_a_turn_gives_it_back():
    turns = Turns(1)
    with pytest.raises(ZeroDivisionError), turns.turn("anna"):
        1 / 0  # noqa: B018
    assert turns.running() == 0
    with turns.turn("bert"):
        assert turns.running() == 1


def test_the_place_in_the_queue_is_told():
    turns, order = Turns(1), []
    visitors = [Visitor(turns, name, 1, order) for name in ("first", "second", "third")]
    with turns.turn("the test"):
        assert turns.waiting("the test") == 0
        for number, visitor in enumerate(visitors, start=1):
            visitor.start()
            assert turns.waiting(visitor.name) == number
    for visitor in visitors:
        visitor.join()
        assert turns.waiting(visitor.name) == 0
    assert order == ["first", "second", "third"]


def test_one_who_gives_up_leaves_the_queue_to_the_others():
    turns, gone, left = Turns(1), threading.Event(), threading.Event()

    def go():
        try:
            with turns.turn("anna", give_up=gone.is_set):
                pytest.fail("the turn was given all the same")
        except GaveUp:
            left.set()

    with turns.turn("the test"):
        threading.Thread(target=go, daemon=True).start()
        wait_until(lambda: turns.waiting("anna") == 1)
        gone.set()
        assert left.wait(PATIENCE)
        assert turns.waiting("anna") == 0
    with turns.turn("bert", give_up=lambda: False):
        pass


def test_no_step_begins_while_a_visitor_waits_for_short_work(monkeypatch):
    monkeypatch.setattr(work, "_YIELD", PATIENCE)
    turns, order = Turns(1), []
    with turns.first():
        visitor = Visitor(turns, "long", 1, order).start()
        time.sleep(0.3)
        assert order == []
        order.append("short")
    visitor.join()
    assert order == ["short", "long"]


def test_short_work_without_end_does_not_stop_long_runs(monkeypatch):
    monkeypatch.setattr(work, "_YIELD", 0.1)
    turns, order = Turns(1), []
    with turns.first():
        Visitor(turns, "long", 3, order).start().join()
    assert order == ["long"] * 3


def test_names_that_left_are_forgotten():
    turns = Turns(2)
    for number in range(500):
        with turns.turn(f"visitor {number}"):
            pass
    assert len(turns._last) < 3
    assert len(turns._running) == 0


@pytest.mark.parametrize("said", ["0", "-1", "many", "1.5", "２"])
def test_a_limit_that_is_no_number_from_one_is_refused_by_name(monkeypatch, said):
    monkeypatch.setenv("KBERT_LONG_RUNS", said)
    with pytest.raises(LimitError, match=f"KBERT_LONG_RUNS is “{said}”, expected a number from 1"):
        places()


@pytest.mark.parametrize(
    ("said", "cores", "expected"), [("3", 2, 3), ("", 2, 1), ("", 1, 1), ("", 16, 8), ("", None, 1)]
)
def test_one_long_run_for_every_two_cores_unless_said_otherwise(monkeypatch, said, cores, expected):
    monkeypatch.setenv("KBERT_LONG_RUNS", said)
    monkeypatch.setattr(work.os, "cpu_count", lambda: cores)
    assert places() == expected
