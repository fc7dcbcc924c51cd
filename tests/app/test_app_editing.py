"""The Lab's table and its callbacks, with an editor that does as the browser's."""

from types import SimpleNamespace

import pytest

from app import editing
from kbert_core import KnowledgeGraph, Triple

TRIPLES = [Triple("Beijing", "capital", "China"), Triple("Beijing", "is_a", "City")]
TRIPLES += [Triple("Tim Cook", "CEO", "Apple")]


class Table:
    """A visitor's table: what the browser shows and tells, and what the server draws."""

    def __init__(self, ss):
        self.ss, self.graph, self.refuses = ss, KnowledgeGraph(TRIPLES), False
        self.draw()

    def rows(self):
        triples = [t for _, triples in self.graph.items() for t in triples]
        return tuple((triple, self.graph.is_on(triple)) for triple in triples)

    def draw(self):
        """The page is drawn: with another key the editor starts afresh."""
        key, self.given = editing.begun("lab", self.rows())
        if key != self.__dict__.get("key"):
            self.key, self.edited = key, {}
            self.ss[key] = {"edited_rows": {}}

    def change(self, row, column, value):
        """In the browser: a value that equals what was given is no change."""
        triple, on = self.given[row]
        given = on if column == "on" else getattr(triple, column)
        changed = {**self.edited.get(row, {}), column: value}
        if value == given:
            del changed[column]
        self.edited = {**self.edited, row: changed}
        if not changed:
            del self.edited[row]
        self.ss[self.key] = {"edited_rows": dict(self.edited)}
        editing.read_table(self.key)

    def press_bin(self, row, key=None):
        key = key or self.key
        self.ss[editing.delete_key(key)] = {"row": row}
        editing.delete_row(key)

    def shows(self):
        return editing.rows_changed(self.given, {"edited_rows": self.edited})

    def commit(self, *edits):
        if self.refuses:
            return False
        self.graph = self.graph.apply(*edits)
        return True


@pytest.fixture
def table(monkeypatch):
    ss = {}
    monkeypatch.setattr(editing, "ss", ss)
    monkeypatch.setattr(editing.state, "session", lambda: SimpleNamespace(graph="a graph"))
    made = Table(ss)
    monkeypatch.setattr(editing.state, "graph", lambda: made.graph)
    monkeypatch.setattr(editing.state, "commit", made.commit)
    return made


@pytest.mark.parametrize("drawn", [(), (0,), (1,), (0, 1)], ids=str)
def test_a_tick_cleared_and_set_again_is_set_however_late_the_page_is_drawn(table, drawn):
    for number, on in enumerate((False, True, False)):
        table.change(0, "on", on)
        assert table.graph.is_on(TRIPLES[0]) is on
        if number in drawn:
            table.draw()
    table.draw()
    assert table.shows() == table.rows()


def test_the_table_keeps_its_key_while_it_alone_changes_the_graph(table):
    key = table.key
    table.change(0, "tail", "Hebei")
    table.draw()
    table.change(1, "on", False)
    table.change(0, "tail", "China")
    table.draw()
    assert table.key == key and table.shows() == table.rows()
    assert table.rows()[0] == (TRIPLES[0], True) and table.rows()[1] == (TRIPLES[1], False)


def test_what_changes_the_rows_elsewhere_starts_the_table_afresh(table, monkeypatch):
    table.change(0, "on", False)
    table.draw()
    key = table.key
    table.graph = table.graph.switch_on(TRIPLES[0])  # as undo does
    table.draw()
    assert table.key != key and table.shows() == table.rows()
    key = table.key
    monkeypatch.setattr(editing.state, "session", lambda: SimpleNamespace(graph="another"))
    table.draw()
    assert table.key != key


def test_a_refused_change_is_told_and_shown_no_longer(table):
    table.change(0, "tail", "")
    assert "tail is empty" in table.ss["lab.problem"]
    table.draw()
    assert table.shows() == table.rows() == tuple((t, True) for t in TRIPLES)
    table.refuses = True
    table.change(1, "on", False)
    table.draw()
    assert table.shows() == table.rows() == tuple((t, True) for t in TRIPLES)


@pytest.mark.parametrize("drawn", [False, True])
@pytest.mark.parametrize("row", range(len(TRIPLES)))
def test_a_bin_pressed_twice_deletes_one_triple(table, row, drawn):
    key = table.key
    table.press_bin(row, key)
    if drawn:
        table.draw()
    table.press_bin(row, key)  # the browser still showed the old table
    table.draw()
    assert [t for t, _ in table.rows()] == [t for t in TRIPLES if t != TRIPLES[row]]


def test_a_bin_deletes_what_its_row_has_become(table):
    table.change(0, "tail", "Hebei")
    table.press_bin(0)
    assert [t for t, _ in table.rows()] == TRIPLES[1:]


def test_a_change_that_came_with_an_old_table_makes_no_edit(table):
    old = table.key
    table.press_bin(0)
    table.draw()
    table.ss[old] = {"edited_rows": {0: {"on": False}}}
    editing.read_table(old)
    assert all(on for _, on in table.rows())
