"""What is kept in memory is bounded: by bytes for all visitors, by room for each."""

import gc
import tracemalloc
import weakref
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch
from sessions import do, session
from streamlit.testing.v1 import AppTest

from app import services
from app.services import RoomError
from kbert_core import KnowledgeGraph, Triple
from kbert_lab.lab.scene import CHARACTERS, GraphRef, Scene

TEN = "".join(f"head {i}\tis\ttail {i}\n" for i in range(10)).encode()


def scene(text):
    return Scene((text,), CHARACTERS, GraphRef("", ""))


@pytest.fixture
def small_room(monkeypatch):
    """Room for 10 triples a visit."""
    monkeypatch.setattr(services, "MOST_OF_VISIT", 10 * services.TRIPLE_BYTES)


def test_the_size_of_a_trace_is_about_what_it_takes():
    graph = KnowledgeGraph([Triple(f"名{i}", "类别", f"东西{i}") for i in range(10)])
    text = "名1和名2与名3。" * 60
    services._run(scene(text), graph)
    tracemalloc.start()
    try:
        made = [services._run(scene(f"{i}{text}"), graph) for i in range(3)]
        python, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    tensors = sum(
        x.numel() * x.element_size()
        for trace in made
        for x in (*vars(trace.batch).values(), trace.visible)
        if isinstance(x, torch.Tensor)
    )
    said = sum(map(services.size_of_trace, made))
    assert tensors < said
    assert (python + tensors) / 2 < said < (python + tensors) * 3


def test_an_upload_is_in_no_cache_that_others_share():
    opened = services.read_upload(TEN, "ten.spo")
    assert opened.own
    graph = weakref.ref(opened.graph)
    services.relations(opened.graph)
    services.names_near(("head 3",), opened.graph)
    services.trace(scene("head 3 is here"), opened.graph)
    del opened
    gc.collect()
    assert graph() is None


def test_an_upload_larger_than_a_visit_may_hold_is_refused_while_it_is_read(small_room):
    assert len(services.read_upload(TEN, "ten.spo").graph) == 10
    more = TEN + b"one\tmore\ttriple\n"
    with pytest.raises(RoomError, match=r"eleven\.spo has more than 10 triples"):
        services.read_upload(more, "eleven.spo")


def test_uploads_of_two_visitors_are_read_at_once(monkeypatch):
    both, rows_of = Barrier(2, timeout=60), services.rows_of
    monkeypatch.setattr(
        services, "rows_of", lambda *given, **how: (both.wait(), rows_of(*given, **how))[1]
    )
    with ThreadPoolExecutor(2) as pool:
        opened = pool.map(lambda name: services.read_upload(TEN, name), ("a.spo", "b.spo"))
        assert [len(one.graph) for one in opened] == [10, 10]


def test_the_same_triples_twice_count_once(small_room):
    assert len(services.read_upload(TEN + TEN, "twice.spo").graph) == 10


def test_a_graph_file_takes_no_room(tmp_path, small_room):
    from kbert_lab.graphs.store.importing import Source, import_triples

    path = tmp_path / "many.kg"
    rows = [(i, f"head {i}", "is", "tail") for i in range(100)]
    import_triples(path, [Source("many", rows)])
    opened = services.open_graph(str(path))
    assert (len(opened.graph), opened.size) == (100, 0)


def visit():
    """A page on which uploads are opened: each press of a button another."""
    import streamlit as st

    from app import services, state
    from kbert_core import KBertError

    state.begin()

    def take(number):
        data = "".join(f"{number} {i}\tis\ttail\n" for i in range(6)).encode()
        try:
            state.take_graph(services.read_upload(data, f"upload {number}.spo"))
        except KBertError as error:
            st.session_state["said"] = str(error)

    for number in range(3):
        st.button(f"take {number}", key=f"take{number}", on_click=take, args=(number,))
    chosen = state.session().graph
    if state.may_close(chosen):
        st.button("close", key="close", on_click=state.close_graph, args=(chosen,))


def new_visit():
    at = AppTest.from_function(visit, default_timeout=120).run()
    assert not at.exception
    return at


def chosen(at):
    return session(at).base.name


def test_a_visit_closes_a_graph_to_open_another(small_room):
    at = new_visit()
    assert not [b for b in at.button if b.key == "close"]
    at.button(key="take0").click().run()
    assert chosen(at) == "upload 0"
    at.button(key="take1").click().run()
    assert "upload 1.spo takes about" in at.session_state["said"]
    assert chosen(at) == "upload 0"
    graph = weakref.ref(session(at).base)
    at.button(key="close").click().run()
    at.run()  # the state of the run before is kept until then
    gc.collect()
    assert graph() is None
    at.button(key="take1").click().run()
    assert chosen(at) == "upload 1"


def test_a_graph_goes_with_the_visit_and_takes_no_room_of_another(small_room):
    first, second = new_visit(), new_visit()
    for at in (first, second):
        at.button(key="take0").click().run()
        assert chosen(at) == "upload 0"
    graph = weakref.ref(session(first).base)
    del first, at
    gc.collect()
    assert graph() is None


def test_a_pinned_scene_is_let_go_of_with_its_graph():
    at = new_visit()
    at.button(key="take0").click().run()
    ref = GraphRef(session(at).base.fingerprint, "x")
    do(at, pinned=Scene(("x",), CHARACTERS, ref))
    at.button(key="close").click().run()
    assert session(at).pinned is None
    assert not at.exception
