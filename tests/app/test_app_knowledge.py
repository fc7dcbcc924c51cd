"""The Knowledge page as Streamlit runs it: search, edit, import, look back, keep."""

from pathlib import Path

import pytest
import streamlit
from explaining_pages import opened
from explaining_pages import said as everything
from sessions import add_triple, do, session

from app import export, services, state
from app.app_pages import knowledge_table
from kbert_core import KnowledgeGraph, Triple
from kbert_core.errors import FetchError
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.io import in_memory, rows_of
from kbert_lab.graphs.store.store import GraphStore
from kbert_lab.lab import workspaces
from kbert_lab.lab.commands import Show
from kbert_lab.lab.texts import t

COOK = Triple("Tim Cook", "CEO", "Apple")
FIGURE_2 = (COOK, Triple("Beijing", "capital", "China"), Triple("Beijing", "is_a", "City"))


@pytest.fixture(autouse=True)
def folders(monkeypatch, tmp_path):
    monkeypatch.setenv("KBERT_MODELS", str(tmp_path))
    monkeypatch.setenv("KBERT_WORKSPACES", str(tmp_path / "workspaces"))


def choose(at, title):
    graphs = session(at).graphs
    name = next(name for name, own in graphs.items() if own.graph.name == title)
    at.selectbox(key="knowledge.graph").set_value(name).run()
    assert not at.exception
    return at


@pytest.fixture
def page():
    return choose(opened("knowledge.py"), "figure2")


def triples(at):
    """What the page's graph holds."""
    return list(session(at).graph_now())


def table(at):
    return [tuple(row)[1:] for row in at.dataframe[0].value.itertuples(index=False)]


@pytest.fixture(autouse=True)
def grids(monkeypatch):
    """AppTest changes no cell and presses no button of a table: a callback in the next run."""

    def data_editor(data, *, key, on_change, args, real=streamlit.data_editor, **how):
        real(data, key=key, **how)
        streamlit.session_state["seen.edit"] = (key, on_change, args)

    def button_column(label, *, key, on_click, args, **how):
        streamlit.session_state["seen.press"] = (key, on_click, args)

    def begin(first=knowledge_table.begin):
        if CHANGES:  # as a callback, before anything is drawn
            what, value = CHANGES.pop()
            key, call, args = streamlit.session_state[what]
            streamlit.session_state[key] = value
            call(*args)
            del streamlit.session_state[key]
        first()

    monkeypatch.setattr(streamlit, "data_editor", data_editor)
    monkeypatch.setattr(streamlit.column_config, "ButtonColumn", button_column)
    monkeypatch.setattr(knowledge_table, "begin", begin)


CHANGES: list = []  # to be made in the next run


def change(at, **changes):
    unchanged = {"edited_rows": {}, "added_rows": [], "deleted_rows": []}
    CHANGES.append(("seen.edit", unchanged | changes))
    at.run()
    assert not at.exception and not CHANGES


def turn(at, entry):
    """Press the button of an entry in the history."""
    CHANGES.append(("seen.press", {"row": list(at.dataframe[0].value["entry"]).index(entry)}))
    at.run()
    assert not at.exception and not CHANGES


def add(at, *fields):
    change(at, added_rows=[dict(zip(("head", "relation", "tail"), fields, strict=True))])


def rewrite(at, triple, **fields):
    row = table(at).index((triple.head, triple.relation, triple.tail))
    change(at, edited_rows={row: fields})


def delete(at, *rows):
    change(at, deleted_rows=[table(at).index(row) for row in rows])


def look_at(at, triple):
    at.session_state["knowledge.triple"] = triple
    at.run()
    assert not at.exception


def press(at, key):
    at.button(key=f"knowledge.{key}").click().run()
    assert not at.exception
    return at


def view(at, name):
    at.session_state["knowledge.view"] = name
    at.run()
    assert not at.exception
    return at


def open_path(at, path):
    at.button(key="lab.open_graph").click().run()
    at.text_input(key="lab.path").set_value(str(path))
    at.button(key="lab.open_path").click().run()
    assert not at.exception


def save(at, title="mine", who="ann"):
    at.text_input(key="knowledge.title").set_value(title)
    at.text_input(key="knowledge.who").set_value(who)
    press(at, "save_workspace")
    at.run()
    assert session(at).graph == state.WORKSPACE
    return session(at).workspace.key


# Looking


def test_a_search_narrows_the_table(page):
    assert len(table(page)) == len(triples(page))
    page.text_input(key="knowledge.text").set_value("bei").run()
    assert {row[0] for row in table(page)} == {"Beijing"}
    page.multiselect(key="knowledge.relations").set_value(["capital"]).run()
    assert table(page) == [("Beijing", "capital", "China")]
    page.text_input(key="knowledge.text").set_value("nothing like it").run()
    assert "Nothing found" in everything(page)


def test_a_large_graph_is_shown_in_pages(monkeypatch):
    for module in ("kbert_lab.lab.catalogue", "app.app_pages.knowledge_table"):
        monkeypatch.setattr(f"{module}.PAGE", 10)
    at = choose(opened("knowledge.py"), "medical_zh")
    assert "1 to 10 of 1,737" in everything(at)
    first = table(at)
    press(at, "next")
    assert "11 to 20 of" in everything(at)
    assert not set(first) & set(table(at))
    press(at, "previous")
    assert table(at) == first


def test_a_graph_file_is_looked_through_where_it_lies(tmp_path, page):
    path = tmp_path / "mine.kg"
    with GraphStore.create(path) as store:
        store.apply(*(Edit("add", x) for x in FIGURE_2), who="bob")
    open_path(page, path)
    assert len(table(page)) == 3
    look_at(page, COOK)
    assert "Edited by bob (entry 1)" in everything(page)
    rewrite(page, COOK, tail="Pear")
    assert ("Tim Cook", "CEO", "Pear") in table(page)
    look_at(page, Triple("Tim Cook", "CEO", "Pear"))
    assert "Edited by you" in everything(page)
    with GraphStore(path) as store:
        assert COOK in store.graph()


def test_a_file_that_is_opened_again_is_as_it_lies_there_and_the_edited_graph_stays(tmp_path, page):
    for name in ("mine.spo", "other.spo"):
        (tmp_path / name).write_text("pear\tis\tfruit\nplum\tis\tfruit\n", encoding="utf-8")

    def open_file(name):
        open_path(page, tmp_path / name)
        assert f"Opened {Path(name).stem}: 2 triples" in everything(page)
        graph = session(page).graph
        assert session(page).base.name == Path(name).stem
        return graph

    first = open_file("mine.spo")
    assert open_file("mine.spo") == first  # it is open as it lies there
    delete(page, ("pear", "is", "fruit"))
    assert len(triples(page)) == 1
    assert open_file("other.spo") != first
    assert len(triples(page)) == 2
    again = open_file("mine.spo")
    assert again != first and len(triples(page)) == 2
    for graph, count in ((first, 1), (again, 2)):
        page.selectbox(key="knowledge.graph").set_value(graph).run()
        assert len(triples(page)) == len(table(page)) == count


def test_a_first_line_that_may_be_headings_is_said_where_the_file_is_opened(tmp_path, page):
    path = tmp_path / "mine.tsv"
    rows = "".join(f"Ann\tknows\tname {n}\n" for n in range(30))
    path.write_text(f"from\tvia\tto\n{rows}", encoding="utf-8")
    open_path(page, path)
    (warning,) = (each.value.replace("\\", "") for each in page.warning)
    assert "mine.tsv, line 1: 'from, via, to' was read as a triple" in warning
    assert "name three columns head, relation and tail" in warning and "--" not in warning


def test_a_file_with_bad_lines_is_refused_with_the_good_ones_offered(tmp_path, page):
    path = tmp_path / "bad.spo"
    bad = "a\tb\tc\td\n" + "only two\tfields\n" * 29
    path.write_text(f"Tim Cook\tlikes\ttea\n{bad}", encoding="utf-8")
    before = triples(page)
    open_path(page, path)
    said = everything(page)
    assert "nothing was changed" in said and "bad.spo, line 2: found 4 fields" in said
    assert "and 10 more bad lines" in said
    assert "--columns" not in said and "name three columns head, relation and tail" in said
    assert triples(page) == before
    page.button(key="lab.right_lines").click().run()
    assert not page.exception
    assert table(page) == [("Tim Cook", "likes", "tea")]
    assert "lab.asking" not in page.session_state


def test_a_fetch_that_fails_says_why_where_other_ways_are(page, monkeypatch):
    def fetch(name):
        raise FetchError("no network here")

    monkeypatch.setattr(services, "fetch_graph", fetch)
    page.button(key="lab.open_graph").click().run()
    page.button(key="lab.fetch_medical").click().run()
    said = everything(page)
    assert t("{name} could not be fetched.", name=services.public_title("medical")) in said
    assert "no network here" in said and page.text_input(key="lab.path")


def test_an_empty_graph_says_how_to_begin(page):
    page.button(key="lab.open_graph").click().run()
    page.button(key="lab.open_empty").click().run()
    assert "has no triples yet" in everything(page)
    add(page, "Aspirin", "treats", "pain")
    assert table(page) == [("Aspirin", "treats", "pain")]
    delete(page, *table(page))
    assert "has no triples yet" in everything(page)


# Editing


def test_a_triple_is_added_changed_switched_and_deleted(page):
    add(page, "Beijing", "hosts", "games")
    games = Triple("Beijing", "hosts", "Games")
    rewrite(page, Triple("Beijing", "hosts", "games"), tail="Games")
    look_at(page, games)
    assert "Edited by you (entry 2)" in everything(page)
    rewrite(page, games, on=False)
    assert list(page.dataframe[0].value["on"]).count(False) == 1
    delete(page, ("Beijing", "hosts", "Games"), (COOK.head, COOK.relation, COOK.tail))
    assert len(table(page)) == 2
    assert (
        t("{name}, {count} triples", name="figure2", count=3)
        in page.selectbox(key="knowledge.graph").options
    )
    assert "3 triples as opened, 2 now. Edits are private to this visit" in everything(page)
    for _ in range(4):
        press(page, "undo")
    assert not any("hosts" in row for row in table(page))
    rewrite(page, COOK, on=False)
    look_at(page, COOK)
    assert "From figure2.spo, line" in everything(page)  # switched, it is still the file's


def test_the_structure_shows_the_way_between_two_names(page):
    view(page, "structure")
    assert page.dataframe[0].value["name"][0] == "Beijing"
    for end, way in (
        ("city", "**Beijing** :gray[—is_a →] **City**"),
        ("Apple", "No triples lead from one to the other."),
        ("Oslo", "“Oslo” is no name of what was looked at."),
    ):
        page.text_input(key="knowledge.way_from").set_value("beijing")
        page.text_input(key="knowledge.way_to").set_value(end).run()
        assert way in everything(page)


# Importing


def test_an_import_into_a_workspace_keeps_file_and_line(page):
    save(page)
    view(page, "import")
    page.text_area(key="knowledge.paste").set_value("x,y,z\nBeijing,hosts,games").run()
    press(page, "import")
    view(page, "triples")
    look_at(page, Triple("Beijing", "hosts", "games"))
    assert "From pasted.csv, line 2" in everything(page)
    view(page, "history")
    assert page.dataframe[0].value["what"][0] == "imported 2 triples from pasted.csv"
    turn(page, 2)
    assert not any(x.relation == "hosts" for x in triples(page))


# Workspaces


def test_a_workspace_survives_the_visit_and_is_opened_by_its_key(page):
    rewrite(page, COOK, tail="Pear")
    key = save(page, "fruit")
    assert f"?workspace={key}" in everything(page)
    assert "Workspace fruit" in everything(page)
    for other in (opened("knowledge.py", {"workspace": key}), opened(query={"workspace": key})):
        assert session(other).graph == state.WORKSPACE
        assert Triple("Tim Cook", "CEO", "Pear") in triples(other)
    typed = opened("knowledge.py")
    typed.text_input(key="knowledge.key").set_value(f"http://host/?workspace={key}")
    press(typed, "open_key")
    assert Triple("Tim Cook", "CEO", "Pear") in triples(typed)
    view(typed, "history")
    assert set(typed.dataframe[0].value["who"]) == {"ann", ""}
    assert typed.dataframe[1].value["now"][0] == "(Tim Cook, CEO, Pear)"
    press(typed, "close")
    assert session(typed).graph != state.WORKSPACE
    assert "lab.workspace" not in typed.session_state


def test_no_name_or_list_leads_to_a_workspace(page, tmp_path):
    key = save(page)
    folder = tmp_path / "workspaces"
    assert not any(key in path.name for path in folder.iterdir())
    for wrong in ("", "x", key[:-1], key + "x", next(folder.iterdir()).stem, "../" + key, "\0"):
        at = opened("knowledge.py", {"workspace": wrong})
        assert session(at).graph != state.WORKSPACE
        if wrong:
            assert "No workspace has this key" in everything(at)
    assert (workspaces.place_of(key).stat().st_mode & 0o077) == 0


def test_a_workspace_that_is_gone_is_closed_and_its_graph_stays_on_the_page(page):
    key, before = save(page), triples(page)
    for path in workspaces.folder().iterdir():
        path.unlink()
    page.run()
    assert everything(page).count("can no longer be reached") == 1
    assert "Its graph stays open here as a copy, for you alone." in everything(page)
    assert session(page).graph != state.WORKSPACE
    assert triples(page) == before
    assert str(workspaces.place_of(key)) not in everything(page)


def test_a_folder_that_may_not_be_written_is_named(page, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KBERT_WORKSPACES", str(tmp_path / "file"))
    press(page, "save_workspace")
    assert "can't be saved" in everything(page)
    assert session(page).graph != state.WORKSPACE


def test_the_second_of_two_editors_is_told_and_nothing_is_overwritten(page):
    key = save(page, "shared", who="ann")
    other = opened("knowledge.py", {"workspace": key})
    rewrite(page, COOK, tail="Pear")
    rewrite(other, COOK, tail="Plum")
    said = everything(other)
    assert "was edited by ann meanwhile (entry 2" in said
    assert "Your edit was not made: changed (Tim Cook, CEO, Apple) to (Tim Cook, CEO, Plum)" in said
    assert "Others have edited this workspace in the meantime" in said
    assert str(workspaces.folder()) not in said
    assert {x.tail for x in triples(other) if x.head == "Tim Cook"} == {"Pear"}


def test_the_lab_edits_the_open_workspace(page):
    key = save(page)
    lab = opened(query={"workspace": key})
    lab.text_area(key="lab.text").set_value("Tim Cook is visiting Beijing now").run()
    add_triple(lab, "Beijing", "hosts", "games")
    assert not lab.exception
    assert "over the limit per mention" in everything(lab)
    page.run()
    assert Triple("Beijing", "hosts", "games") in triples(page)
    lab.button(key="lab.undo").click().run()
    page.run()
    assert Triple("Beijing", "hosts", "games") not in triples(page)
    do(lab, Show("matrix_view", "difference"))
    lab.run()
    assert not lab.exception


# What goes out


def test_a_graph_goes_out_in_every_format_and_comes_back_the_same():
    graph = KnowledgeGraph([*FIGURE_2, Triple("=1+1", "@is", '<b>, "x"')]).switch_off(COOK)
    for ending in export.FORMATS:
        data = export.graph_as(graph, ending, switched_off=True)
        assert set(in_memory(rows_of(data, f"graph{ending}")).triples) == set(graph), ending
    assert b"'=1+1" in export.graph_as(graph, ".csv")
    assert b"Tim Cook" not in export.graph_as(graph, ".spo")
