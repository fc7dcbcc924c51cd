"""Random edits and undos of a graph file beside obvious second implementations of both."""

import pytest
from hypothesis import strategies as st

from kbert_core import KnowledgeGraph, Triple, find_mentions
from kbert_core.errors import GraphConflict, GraphEditError
from kbert_core.knowledge.edit import Edit
from kbert_lab.graphs.store.anywhere import open_store
from kbert_lab.graphs.store.names import rebuild_names
from kbert_lab.graphs.store.store import GraphStore

TEXT = "a b, ab 阿司匹林阿司 A"

names = st.sampled_from(["a", "A", "b", "ab", "阿司匹林", "阿司", "a b"])
triples = st.builds(Triple, names, st.sampled_from(["r", "s"]), st.sampled_from(["x", "y"]))
edits = st.one_of(
    st.builds(Edit, st.just("add"), triples, index=st.sampled_from([None, 0, 1])),
    st.builds(Edit, st.sampled_from(["remove", "switch_off", "switch_on"]), triples),
    st.builds(Edit, st.just("replace"), triples, triples),
)
EDITS = st.lists(edits, max_size=12)
STEPS = st.lists(
    st.one_of(
        edits.map(lambda edit: [edit]),
        st.lists(edits, min_size=2, max_size=4),
        st.integers(1, 12),  # the entry to undo
        st.just("undo"),
        st.just("reopen"),
        st.just("index"),
    ),
    max_size=25,
)


def content(graph):
    """Every triple, in order, with whether it is on."""
    return sorted(
        (entity, [(triple, graph.is_on(triple)) for triple in graph.triples_of(entity)])
        for entity in graph.entities()
    )


def run(path, steps, *, create=GraphStore.create, index=rebuild_names):
    """Take the steps with a store and with values, and compare after each.

    A value of a graph is edited by its own code. What an undo of an older
    entry must give is worked out from what the entry had changed.
    """
    store = create(path)
    contents = [content(store.graph())]  # by revision
    edited = [KnowledgeGraph()]  # the value graph, and what it was before each edit
    for step in steps:
        if step == "reopen":
            store.close()
            store = open_store(path, write=True)
        elif step == "index":
            index(path)
        elif isinstance(step, int):
            _undo_older(store, step, contents)
            edited = [_value(store.graph())]
        elif step == "undo":
            if len(edited) < 2:
                continue
            store.undo()
            edited.pop()
        elif not _edit(store, step, edited):
            continue
        now = store.graph()
        if store.revision == len(contents):
            contents.append(content(now))
        assert content(now) == contents[-1] == content(edited[-1])
        assert len(now) == len(edited[-1])
        assert find_mentions([TEXT], now)[0] == find_mentions([TEXT], edited[-1])[0]
    for revision, then in enumerate(contents):
        assert content(store.at(revision)) == then
    store.close()


def add_to_one_name(stores):
    """Several who look at one revision add to one name, and one of them repeats the others."""
    seen = stores[0].revision
    mine = [[Triple("stomach", "has", f"{n} of {i}") for n in range(4)] for i in range(len(stores))]
    for number in range(4):
        for store, triples in zip(stores, mine, strict=True):
            store.apply(Edit("add", triples[number], index=0), seen=seen)
    every = [triple for triples in mine for triple in triples]
    for triple in every:
        with pytest.raises(GraphConflict, match="was edited meanwhile"):
            stores[-1].apply(Edit("add", triple), seen=seen)
    assert {*stores[-1].graph().triples_of("stomach")} == {*every}


def _edit(store, edits, edited):
    """Edit both; return whether the edits fit."""
    try:
        value = edited[-1].apply(*edits)
    except GraphEditError as error:
        before = store.revision
        try:
            store.apply(*edits)
        except GraphEditError as refused:
            assert str(error).split(":")[0].split("'")[0] in str(refused)
        assert store.revision == before
        return False
    store.apply(*edits)
    edited.append(value)
    return True


def _undo_older(store, revision, contents):
    """Undo any entry: what it brought is gone, what it took is there, all else is as it was."""
    before = _triples(contents[-1])
    try:
        store.undo(revision)
    except GraphEditError:
        return
    took, brought = _triples(contents[revision - 1]), _triples(contents[revision])
    assert brought - took <= before
    assert _triples(content(store.graph())) == before - (brought - took) | (took - brought)


def _triples(content):
    return {item for _, triples in content for item in triples}


def _value(graph):
    """The same graph as a value of its own."""
    value = KnowledgeGraph(graph, name=graph.name)
    return value.updated({}, set(graph.off))


def run_apart(path, edits):
    """Edit what all saw at one revision: refused is only what meets a triple changed since."""
    with GraphStore.create(path) as store:
        store.apply(*(Edit("add", Triple(head, "r", "x")) for head in ("a", "b", "ab")))
        seen, changed = store.revision, set()
        for edit in edits:
            met = changed & {edit.triple, edit.new or edit.triple}
            try:
                store.apply(edit, seen=seen)
            except GraphConflict:
                assert met
            except GraphEditError:  # it is there, or it isn't
                continue
            else:
                assert not met
                changed |= {edit.triple, edit.new or edit.triple}
