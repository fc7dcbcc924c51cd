"""Runs in the background: results as they come, stop, errors, and an end for those left alone."""

import gc
import threading
import time
import weakref
from itertools import islice

import pytest

from app import background
from app.background import BusyError, Progress, Run, State

PATIENCE = 20


@pytest.fixture
def one_place(monkeypatch):
    """As on a machine of two cores."""
    places = threading.BoundedSemaphore(1)
    monkeypatch.setattr(background, "_places", places)
    return places


def wait_until(true):
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it never came to pass"
        time.sleep(0.002)


class Gate:
    """A generator of numbers that goes on when the test says so, and freely at the test's end."""

    def __init__(self):
        self.steps, self.open = threading.Semaphore(0), False
        self.closed = threading.Event()

    def __call__(self):
        try:
            for number in range(1_000_000):
                self.open or self.steps.acquire(timeout=PATIENCE)
                yield number
        finally:
            self.closed.set()


@pytest.fixture
def new_gate():
    gates = []
    yield lambda: gates.append(Gate()) or gates[-1]
    for gate in gates:
        gate.open = True
        gate.steps.release()


def test_results_are_seen_as_they_come(new_gate):
    gate = new_gate()
    run = Run.start(gate, visitor="anna")
    assert run.look().results == ()
    gate.steps.release(2)
    wait_until(lambda: run.look().results == (0, 1))
    assert run.look().state is State.GOING
    assert run.look().progress == Progress(2)


def test_a_run_that_comes_to_its_end_is_done():
    run = Run.start(lambda: "abc", visitor="anna")
    run.join(PATIENCE)
    look = run.look()
    assert (look.state, look.results, look.ended, look.error) == (State.DONE, (*"abc",), True, None)


def test_a_growing_run_keeps_the_newest_result_of_each_type():
    def steps():
        yield from ("a", Progress(1, 3), "ab", 7, "abc")

    run = Run.start(steps, visitor="anna", growing=True)
    run.join(PATIENCE)
    look = run.look()
    assert look.results == (7, "abc")
    assert (look.state, look.progress) == (State.DONE, Progress(1, 3))


def test_stop_ends_a_run_after_its_step_and_keeps_what_was_found(new_gate):
    gate = new_gate()
    run = Run.start(gate, visitor="anna")
    gate.steps.release()
    wait_until(lambda: run.look().results == (0,))
    run.stop()
    assert run.look().state is State.STOPPED
    gate.steps.release()
    run.join(PATIENCE)
    assert gate.closed.is_set()
    assert run.look().results[:1] == (0,)
    assert run.look().state is State.STOPPED


def test_a_run_waiting_for_a_place_can_be_stopped(one_place):
    with one_place:
        run = Run.start(lambda: "abc", visitor="anna")
        run.stop()
        run.join(PATIENCE)
    assert run.look().results == ()


def fails_at_once():
    raise ValueError("a bug")


def fails_later():
    yield 1
    raise ValueError("a bug")


@pytest.mark.parametrize(("make", "results"), [(fails_at_once, ()), (fails_later, (1,))])
def test_an_error_is_kept_and_gives_the_place_back(one_place, make, results):
    run = Run.start(make, visitor="anna")
    run.join(PATIENCE)
    look = run.look()
    assert (look.state, look.results) == (State.FAILED, results)
    assert isinstance(look.error, ValueError)
    assert one_place.acquire(timeout=PATIENCE)
    one_place.release()


def test_a_run_that_nobody_looks_at_ends(monkeypatch):
    monkeypatch.setattr(background, "PATIENCE", 0.3)

    def steps():
        while True:
            time.sleep(0.005)
            yield 1

    run = Run.start(steps, visitor="anna")
    end = time.monotonic() + 0.9
    while time.monotonic() < end:
        assert run.look().state is State.GOING
        time.sleep(0.02)
    run.join(PATIENCE)
    assert run.look().state is State.STOPPED
    assert run.look().results


def test_the_oldest_run_of_a_visitor_ends_where_there_are_too_many(new_gate):
    names = ("anna", "anna", "bert", "anna")
    oldest, *others = (Run.start(new_gate(), visitor=name) for name in names)
    assert oldest.look().state is State.STOPPED
    assert all(run.look().state is State.GOING for run in others)


def test_too_many_runs_are_refused_in_words(new_gate, monkeypatch):
    monkeypatch.setattr(background, "MOST_RUNS", 3)
    gate = new_gate()
    first, *_ = (Run.start(gate, visitor=f"visitor {number}") for number in range(3))
    with pytest.raises(BusyError, match="Try again in a minute"):
        Run.start(lambda: "abc", visitor="one more")
    first.stop()
    gate.steps.release(3)
    wait_until(lambda: len(background._going) < 3)
    Run.start(lambda: "abc", visitor="one more")


def test_what_the_generator_held_is_let_go_of_at_the_end():
    class Model:
        pass

    model = Model()
    held = weakref.ref(model)

    def steps(model=model):
        yield id(model)

    run = Run.start(steps, visitor="anna")
    run.join(PATIENCE)
    del model, steps
    gc.collect()
    assert run.look().state is State.DONE
    assert held() is None


def test_no_more_steps_run_at_once_than_there_are_places(one_place):
    now, most = [0], [0]

    def steps():
        for _ in range(20):
            now[0] += 1
            most[0] = max(most[0], now[0])
            time.sleep(0.001)
            now[0] -= 1
            yield 1

    runs = [Run.start(steps, visitor=name) for name in ("anna", "bert", "cleo")]
    for run in runs:
        run.join(PATIENCE)
    assert [len(run.look().results) for run in runs] == [20, 20, 20]
    assert most == [1]


def test_two_visitors_get_results_side_by_side(one_place):
    first = []

    def steps(name):
        for number in range(200):
            time.sleep(0.001)
            yield number
        first.append(name)

    one = Run.start(lambda: steps("long"), visitor="anna")
    wait_until(lambda: len(one.look().results) > 2)
    other = Run.start(lambda: islice(steps("short"), 20), visitor="bert")
    other.join(PATIENCE)
    assert len(other.look().results) == 20
    assert not first, "a run of 200 steps let one of 20 come between"
    one.stop()
