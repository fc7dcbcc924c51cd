"""Results kept by content, up to a number of bytes."""

import threading
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from kbert_lab.lab.kept import Kept

PATIENCE = 20


@pytest.fixture
def kept():
    return Kept(10, len)


def test_a_result_is_made_once(kept):
    made = []
    for _ in range(3):
        assert kept.get("key", lambda: made.append(1) or "four") == "four"
    assert made == [1]


def test_what_was_used_longest_ago_goes_first(kept):
    for key in "abc":
        kept.get(key, lambda key=key: key * 3)
    kept.get("a", lambda: pytest.fail("it was kept"))
    kept.get("d", lambda: "ddd")
    assert kept.bytes == 9
    kept.get("a", lambda: pytest.fail("it was kept"))
    assert kept.get("b", lambda: "new") == "new"


def test_never_more_bytes_than_allowed_whatever_their_sizes(kept):
    for size in (1, 9, 3, 10, 2, 8, 11, 5):
        assert len(kept.get(size, lambda size=size: "x" * size)) == size
        assert kept.bytes <= 10


def test_a_result_too_large_is_given_but_not_kept_and_pushes_nothing_out(kept):
    kept.get("small", lambda: "xx")
    assert len(kept.get("large", lambda: "x" * 11)) == 11
    assert kept.bytes == 2
    assert kept.get("large", lambda: "made again") == "made again"


def test_an_error_is_not_kept(kept):
    with pytest.raises(ZeroDivisionError):
        kept.get("key", lambda: 1 / 0)
    assert kept.get("key", lambda: "fine") == "fine"


def test_who_asks_while_it_is_made_waits_and_others_do_not(kept):
    begun, go, made = threading.Event(), threading.Event(), []

    def slow():
        begun.set()
        assert go.wait(PATIENCE)
        made.append(1)
        return "slow"

    with ThreadPoolExecutor(3) as pool:
        found = [pool.submit(kept.get, "key", slow) for _ in range(3)]
        assert begun.wait(PATIENCE)
        assert kept.get("other", lambda: "quick") == "quick"
        go.set()
    assert [one.result() for one in found] == ["slow"] * 3
    assert made == [1]


def test_who_asks_while_the_size_is_taken_waits_too():
    measuring, go, made = threading.Event(), threading.Event(), []

    def slow_size(result):
        measuring.set()
        assert go.wait(PATIENCE)
        return len(result)

    kept = Kept(10, slow_size)
    with ThreadPoolExecutor(2) as pool:
        pool.submit(kept.get, "key", lambda: made.append(1) or "four")
        assert measuring.wait(PATIENCE)
        second = pool.submit(kept.get, "key", lambda: made.append(2) or "four")
        wait([second], timeout=0.2)
        go.set()
    assert made == [1]
