"""Neo4j's tables and APOC's exports in, and out again; what doesn't fit is named."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert_core import Triple, load_graph, read_triples
from kbert_core.errors import GraphFileError
from kbert_core.knowledge.io import ReadOptions, rows_of
from kbert_lab.graphs.neo4j import write_neo4j

SUGAR = Triple("糖尿病", "类别", "疾病")
APPLE = Triple("Tim Cook", "CEO", "Apple")
NODES = "personId:ID(P),name:string,:LABEL\n7,Tim Cook,Person\n8,糖尿病,D;E\n"
MORE = ":ID(C);name;:LABEL\n7;Apple;C\n8;疾病;C\n"  # other identifiers, in a space of their own
RELATIONS = ":START_ID(P),since:int,:END_ID(C),:TYPE\n7,2011,7,CEO\n8,,8,类别\n"
ALL = (  # as apoc.export.csv.all writes it
    '"_id","_labels","name","since","_start","_end","_type"\n"1",":P","Tim Cook","",,,\n'
    '"2",":C","Apple","",,,\n,,,"2011","1","2","CEO"\n'
)


@pytest.fixture
def folder(tmp_path):
    for name, text in (("p.csv", NODES), ("c.csv", MORE), ("r.csv", RELATIONS)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def read(folder, nodes=("p.csv", "c.csv")):
    options = ReadOptions(nodes=tuple(str(folder / name) for name in nodes))
    return read_triples(folder / "r.csv", options).triples


def triples(text, name, **options):
    return [Triple(*row[1:]) for row in rows_of(text.encode(), name, ReadOptions(**options))]


def error_of(text, name="r.csv"):
    with pytest.raises(GraphFileError) as caught:
        triples(text, name)
    return str(caught.value)


def test_nodes_in_tables_of_their_own_give_their_names(folder):
    assert read(folder) == (APPLE, SUGAR)


def test_without_nodes_an_identifier_is_the_name():
    text = ":START_ID,:END_ID,:TYPE\n糖尿病,疾病,类别\nTim Cook,Apple,CEO\n"
    assert triples(text, "a.csv") == [SUGAR, APPLE]
    columns = (":END_ID", ":TYPE", ":START_ID")  # asked for, they are taken as they stand
    assert triples(text, "a.csv", columns=columns)[0] == Triple("疾病", "类别", "糖尿病")


def test_one_table_may_hold_nodes_and_relationships():
    assert triples(ALL, "all.csv") == [APPLE]


def test_the_command_line_takes_nodes_and_writes_for_neo4j(folder, kbert, monkeypatch):
    monkeypatch.chdir(folder)
    kbert("kg", "import", "r.csv", "--output", "g.kg", "--nodes", "p.csv", "c.csv")
    assert list(load_graph("g.kg")) == [APPLE, SUGAR]
    assert "made.csv made-nodes.csv" in kbert("kg", "export", "g.kg", "made.csv", "--neo4j").out
    nodes, *_ = (folder / "made-nodes.csv").read_text("utf-8").splitlines()
    assert nodes == "name:ID,:LABEL"
    assert (folder / "made.csv").read_text("utf-8").startswith(":START_ID,:TYPE,:END_ID\n")
    made = read_triples("made.csv", ReadOptions(nodes=("made-nodes.csv",)))
    assert made.triples == (APPLE, SUGAR)


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        ("p.csv", "", r"r\.csv, line 2: no node has the identifier '7\(P\)'.*--nodes"),
        ("p.csv", NODES.replace("8,", "9,"), r"r\.csv, line 3: no node has the identifier '8\(P\)"),
        ("p.csv", NODES + "7,Ann,P\n", r"p\.csv, line 4: the node '7' is called 'Ann', and 'Tim C"),
        ("p.csv", NODES + "9,,P\n", r"p\.csv, line 4: the node '9' has no name\. Write"),
        ("p.csv", NODES + "9,P\n", r"p\.csv, line 4: found 2 fields in '9,P', expected 3"),
        ("p.csv", "a,b\n1,2\n", r"p\.csv, line 1: no column is ':ID' in 'a,b'"),
        ("p.csv", 'a:ID\n"1\n', r"p\.csv, line 2: unexpected end of data\. A quote may"),
        ("r.csv", RELATIONS + "7,8\n", r"r\.csv, line 4: found 2 fields in '7,8', expected 4"),
        ("r.csv", NODES, r"r\.csv, line 1: .* lacks :START_ID, :TYPE, :END_ID.* --nodes \S+r\.csv"),
        ("r.csv", ":START_ID,:END_ID\n1,2\n", r"r\.csv, line 1: ':START_ID,:END_ID' lacks :TYPE"),
        ("p.csv", None, r"p\.csv: can't be read \(No such file.*after --nodes"),
    ],
)
def test_what_does_not_fit_is_named(folder, file, text, problem):
    if text is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(text, encoding="utf-8")
    with pytest.raises(GraphFileError, match=problem):
        read(folder)


def lines_of(*objects):
    return "\n".join(map(json.dumps, objects))


def edge(start, end):
    return {"type": "relationship", "id": "0", "label": "CEO", "start": start, "end": end}


COOK = {"type": "node", "id": "1", "labels": ["P"], "properties": {"name": "Tim Cook"}}


def test_ends_of_a_relationship_say_their_names_or_are_nodes_of_before():
    named = edge(
        {"id": "1", "properties": {"name": "Tim Cook"}}, {"properties": {"title": "Apple"}}
    )
    assert triples(lines_of(COOK, named), "a.jsonl") == [APPLE]
    company = {"type": "node", "id": "2", "properties": {"label": "Apple"}}
    bare = edge({"id": "1", "labels": ["P"]}, {"id": "2", "labels": []})  # APOC's older form
    assert triples(lines_of(COOK, company, bare), "a.jsonl") == [APPLE]
    message = error_of(lines_of(COOK, bare), "a.jsonl")
    assert message.startswith("a.jsonl, line 2: ")
    assert "the node at its end has no name. Export the nodes before" in message
    for broken in (edge(3, COOK), {"type": "relationship", "start": COOK, "end": COOK}):
        assert error_of(lines_of(COOK, broken), "a.jsonl").startswith("a.jsonl, line 2: ")


def test_json_lines_for_neo4j_name_every_node_before_it_is_needed(tmp_path):
    assert write_neo4j([APPLE, SUGAR], tmp_path / "g.jsonl") == (2, [tmp_path / "g.jsonl"])
    made = [json.loads(line) for line in (tmp_path / "g.jsonl").read_text("utf-8").splitlines()]
    assert [one["type"] for one in made] == 2 * ["node", "node", "relationship"]
    assert made[2]["end"] == {k: v for k, v in made[1].items() if k != "type"}
    with pytest.raises(GraphFileError, match=r"g\.ttl: Neo4j reads \.csv and \.jsonl"):
        write_neo4j([APPLE], tmp_path / "g.ttl")


field = (
    st.text("ab糖'\"=+,;|:x ", min_size=1, max_size=6)
    .map(str.strip)
    .filter(lambda text: text != "")
)


@given(st.lists(st.builds(Triple, field, field, field), min_size=1, max_size=6, unique=True))
def test_any_triples_are_read_again_as_they_were_written(tmp_path_factory, triples):
    folder = tmp_path_factory.mktemp("w")
    for name in ("a.csv.gz", "a.jsonl"):
        count, files = write_neo4j(triples, folder / name)
        nodes = tuple(map(str, files[1:]))
        assert read_triples(files[0], ReadOptions(nodes=nodes)).triples == tuple(triples)
        assert count == len(triples)
