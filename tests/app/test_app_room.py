"""Room for visitors' graphs: each visit's part, all together, free again when a visit ends."""

import gc

import pytest

from app import room as rooms
from app.room import Room, RoomError, room


class Graph:
    """Something a visitor brings."""


@pytest.fixture
def forty():
    """Room for 40 MB, 10 for each visit."""
    return Room(40 << 20)


def test_a_visit_gets_its_part_and_no_more(forty):
    first, second = Graph(), Graph()
    forty.take("anna", first, 7 << 20, "first")
    with pytest.raises(RoomError, match=r"second takes about 4 MB .* take 7 MB .* may take 10 MB"):
        forty.take("anna", second, 4 << 20, "second")
    forty.take("bert", second, 4 << 20, "second")
    assert forty.taken() == 11 << 20


def test_all_visits_together_get_no_more_than_there_is(forty):
    graphs = [Graph() for _ in range(5)]
    for number in range(4):
        forty.take(f"visitor {number}", graphs[number], 9 << 20, "a graph")
    with pytest.raises(RoomError, match="other visitors' graphs leave no room"):
        forty.take("one more", graphs[4], 5 << 20, "a graph")
    forty.take("one more", graphs[4], 4 << 20, "a graph")


def test_room_is_free_again_when_the_graph_is_gone(forty):
    graph = Graph()
    forty.take("anna", graph, 10 << 20, "a graph")
    del graph
    gc.collect()
    assert forty.taken() == 0
    forty.take("anna", Graph(), 10 << 20, "a graph")


def test_the_same_graph_counts_once(forty):
    graph = Graph()
    for _ in range(5):
        forty.take("anna", graph, 9 << 20, "a graph")
    assert forty.taken() == 9 << 20


@pytest.mark.parametrize("said", ["0", "-5", "2 GB", "1e3"])
def test_an_environment_that_names_no_number_is_refused(monkeypatch, said):
    room.cache_clear()
    monkeypatch.setenv("KBERT_VISITORS_MB", said)
    with pytest.raises(RoomError, match=f"KBERT_VISITORS_MB is “{said}”, expected a number from 1"):
        room()


@pytest.mark.parametrize(("said", "megabytes"), [("", rooms.DEFAULT), ("300", 300)])
def test_the_room_is_as_the_environment_says(monkeypatch, said, megabytes):
    room.cache_clear()
    monkeypatch.setenv("KBERT_VISITORS_MB", said)
    assert room().most == megabytes << 20
    assert room().most_each == (megabytes << 20) // 4
    room.cache_clear()
