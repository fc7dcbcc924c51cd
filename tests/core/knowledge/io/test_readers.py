"""Every format of triple files, in every encoding and packing; broken ones refused or bounded."""

import csv
import gzip
import io
import json
import re
from dataclasses import astuple
from pathlib import Path

import pyoxigraph as ox
import pytest
from fuzzed_files import ENCODINGS, PACK, READERS, files, read_or_refused
from hypothesis import given
from hypothesis import strategies as st

from kbert_core import KnowledgeGraph, Triple, load_graph, read_triples
from kbert_core.errors import GraphFileError, OptionError
from kbert_core.knowledge import io as readers
from kbert_core.knowledge.io import ReadOptions, in_memory, rows_of
from kbert_core.knowledge.io.compression import plain_stem
from kbert_core.knowledge.io.text_lines import MAX_LINE, lines
from kbert_core.knowledge.mentions import find_mentions
from kbert_lab.graphs.rdf import format_of, shortened

SUGAR = ("糖尿病", "类别", "疾病")
APPLE = ("Tim Cook", "CEO", "Apple")
CHINA = ("Beijing", "capital", "China")
A, B, C = (("a", "r", "t"), ("b", "r", "t"), ("c", "r", "t"))
BOTH = "糖尿病\t类别\t疾病\nTim Cook\tCEO\tApple\n"
DEMOS = Path(__file__).parents[4] / "demo_kgs"


def rows(text, name, skip_bad=False, **options):
    data = text if isinstance(text, bytes) else text.encode()
    return list(rows_of(data, name, ReadOptions(**options), skip_bad=skip_bad))


def triples(text, name="a.csv", **options):
    return [row[1:] for row in rows(text, name, **options)]


def error_of(text, name="a.csv", **options):
    with pytest.raises(GraphFileError) as caught:
        rows(text, name, **options)
    message = str(caught.value)
    assert message.replace("\n", "").isprintable() and len(message) < 3000
    return message


# Lines and tables

CSV = (  # the same in a table of commas
    "糖尿病,类别,疾病\nTim Cook,CEO,Apple\n",
    "糖尿病;类别;疾病\nTim Cook;CEO;Apple\n",
    "糖尿病|类别|疾病\nTim Cook|CEO|Apple",
    "head,relation,tail\n糖尿病,类别,疾病\nTim Cook,CEO,Apple\n",
    "Relation,Object,Subject\n类别,疾病,糖尿病\nCEO,Apple,Tim Cook\n",  # in any order
    'id,实体,属性,值\n1,糖尿病,类别,疾病\n2,Tim Cook,CEO,"Apple"\n',
    '"糖尿病","类别","疾病"\r\n\r\n"Tim Cook","CEO","Apple"\r\n',
)
TABS = (  # and in lines of tabs
    "Tim Cook\tCEO\tApple\nBeijing\tcapital\tChina\n",
    "Tim Cook\tCEO\tApple\nBeijing\tcapital\tChina",  # no last line break
    "\ufeffTim Cook\tCEO\tApple\nBeijing\tcapital\tChina\n",  # byte-order mark
    "Tim Cook\tCEO\tApple\r\nBeijing\tcapital\tChina\r\n",
    "Tim Cook\tCEO\tApple\rBeijing\tcapital\tChina\r",  # of old Macs
    "\n\n  \nTim Cook\tCEO\tApple\n\t\n\t\t\nBeijing\tcapital\tChina\n\n",
    " Tim Cook \tCEO\t Apple\u3000\nBeijing\tcapital\tChina \n",
)
NUMBERED = "relation,display_relation,x_index,x_id,x_type,x_name,y_index,y_id,y_type,y_name\n"
WORDS = "entity\ttype\tobject\na\tr\tt\n"
OBJECTS = (
    '{"head": "糖尿病", "relation": "类别", "tail": "疾病"}\n\n["Tim Cook", "CEO", "Apple"]\n'
    '{"s": "a", "p": "r", "o": 3}\n'
)


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        *(("a.csv", text, [SUGAR, APPLE]) for text in CSV),
        *(("a.spo", text, [APPLE, CHINA]) for text in TABS),
        # the columns of names, not of numbers and types; of labels, as in SPARQL's results
        ("a.csv", f"{NUMBERED}r,r2,1,2,3,a,4,5,6,t\n", [A]),
        ("a.csv", "item,itemLabel,prop,propLabel,value,valueLabel\n1,a,2,r,3,t\n", [A]),
        ("a.csv", "head,relation,tail,source_name\na,r,t,b\n", [A]),
        # headings, but never in .spo, whatever else is in the name
        ("a.tsv", "head\trelation\ttail\na\tr\tt\n", [A]),
        ("b/a.spo", "head\trelation\ttail\na\tr\tt\n", [("head", "relation", "tail"), A]),
        ("x.2024.spo", WORDS, [("entity", "type", "object"), A]),
        (
            "x.2024.SPO.gz",
            gzip.compress(WORDS.encode(), mtime=0),
            [("entity", "type", "object"), A],
        ),
        # comments
        ("a.csv", "# by hand, 2026, for a class\na,r,t\n# more\n#a,r,t\n", [A, ("#a", "r", "t")]),
        ("a.spo", "# one\n\na\tr\tt\n#two\n", [A]),
        # quotes, which mean nothing between tabs
        ("a.csv", '"a, ""b""",r,t\n', [('a, "b"', "r", "t")]),
        ("a.csv", 'a "b",r,t\n', [('a "b"', "r", "t")]),
        ("a.tsv", '"a"\tr\tt\n', [('"a"', "r", "t")]),
        # what a spreadsheet leaves behind
        ("a.csv", 'sep=;\na;r;t\n;;\n"b,\n b";r;t\n;;;;\n', [A, ("b, b", "r", "t")]),
        ("a.csv", "a，r，t\rb，r，t", [A, B]),
        ("a.tsv", "a\tr\tt\n\t\t\n", [A]),
        ("a.jsonl", OBJECTS, [SUGAR, APPLE, ("a", "r", "3")]),
        # what only begins as another kind of file
        *(
            ("a.tsv", f"{line}\n", [tuple(line.split("\t"))])
            for line in ("PAR1\tregulates\tblood", "- a: b\tis\tc", "C0000005|1\tis\tc")
        ),
    ],
)
def test_a_file_is_read_as_it_is_meant(name, text, found):
    assert triples(text, name) == found


HEADINGS = """
entity1,relation,entity2 | node_1,edge,node_2 | from,relation,to | subj,pred,obj | e1,rel,e2
head_entity,relation,tail_entity | start,relation,end | source,relation,target | h,r,t
头,关系,尾 | 实体1,关系,实体2 | 主语,谓语,宾语 | 头实体,关系,尾实体 | 节点1,边,节点2
起点,关系,终点
drug,relation,disease | x_name,relation,y_name | Kopf,Relation,Ziel | Subjekt,Prädikat,Objekt
a.name,type(r),b.name | n.name,type(r),m.name | drug.name,type(r),disease.name | left,rel,right
headEntity,relationName,tailEntity | CUI1,REL,CUI2 | #node1,edge,node2 | x_id,relation,y_id
Entity 1,Relationship Type,Entity 2 | 源实体,关系类型,目标实体 | 主体,谓词,客体 | 实体一,关系,实体二
subjectLabel,predicateLabel,objectLabel | itemLabel,propertyLabel,valueLabel
实体名,属性名,属性值 | 主语名称,关系名称,宾语名称
from_node,edge_type,to_node | entity,attribute,value | source_id,label,target_id
source,metaedge,target | source,type,target | start,label,end | subject_id,predicate,object_id
src,link,dst
"""


@pytest.mark.parametrize("line", re.split(r" \| |\n", HEADINGS.strip()))
def test_columns_are_known_by_usual_headings_in_any_order(line):
    headings = line.split(",")
    for name, between in (("a.csv", ";"), ("a.tsv", "\t")):
        assert triples(f"{between.join(headings)}\na{between}r{between}t\n", name) == [A]
    if "drug" not in line:  # these are known by their places
        head, relation, tail = headings
        assert triples(f"{tail},{relation},{head}\nt,r,a\n") == [A]
        row = dict(zip(("more", *headings), "xart", strict=True))
        assert triples(json.dumps(row), "a.jsonl") == [A]
    assert "are headings, and no triple follows" in error_of(line)


@pytest.mark.parametrize(
    "line",
    [
        *("aspirin,type,drug", "1,type,2", "n1,r,n2", "Drug1,interaction,Drug2", "a,r,b"),
        *("糖尿病,类型,疾病", "苹果,关系到,人", "from,is,to", "gene 1,association,gene 2"),
    ],
)
def test_facts_are_no_headings(line, caplog):
    assert triples(f"{line}\nx,r,y\n") == [tuple(line.split(",")), ("x", "r", "y")]
    assert not caplog.text


@pytest.mark.parametrize(
    ("name", "first"),
    [
        *(("a.csv", f"{words},Leiden") for words in ("Mittel,hilft gegen", "Mittel,entity2")),
        *(("a.csv", "source,via,target"), ("a.spo", "head\trelation\ttail")),
    ],
)
def test_a_line_that_may_be_of_headings_is_told(name, first, caplog):
    between = "\t" if "\t" in first else ","
    text = "".join(f"drug {n},treats,ill {n % 3}\n" for n in range(9)).replace(",", between)
    words = first.split(between)
    assert triples(f"{first}\n{text}", name)[0] == tuple(words)
    assert f"{name}, line 1: '{', '.join(words)}' was read as a triple" in caplog.text
    assert f"--columns {','.join(words)} " in caplog.text


BAD_JSON = ("{", "[1, 2]", '{"head": "a"}', '["a", "b", {}]', "3", "null", "[" * 9000)
LAST_ENDS = "Mend or delete the line."
EMPTY = (
    "a.spo: no triples, the file is empty. Expected one triple a line: head, relation, "
    "tail, separated by tabs. To go without a graph, leave --kg out."
)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            *("a.spo", "Tim Cook\tCEO\tApple\naspirin\ttreats\n"),
            "a.spo, line 2: found 2 fields in 'aspirin<TAB>treats', expected 3 "
            "(head, relation, tail separated by tabs). Add the missing field or delete the line.",
        ),
        ("a.spo", "aspirin\n", "found 1 field in 'aspirin'"),
        ("a.spo", "a\tb\tc\td\n", "extra fields out, choose columns with --columns, or delete the"),
        ("a.csv", "a,r,t\nb,r\n", "a.csv, line 2: found 2 fields in 'b,r', expected 3 (head,"),
        ("a.csv", "a;r;t\nb;\n", "a.csv, line 2: found 2 fields in 'b;', expected 3 (head,"),
        ("a.csv", "a,r,t\nb,r\nc,r,t,u\n", "\na.csv, line 3: found 4 fields"),
        ("a.spo", "a\tb\tc\n\tCEO\tApple", "a.spo, line 2: '<TAB>CEO<TAB>Apple' is no triple: its"),
        ("a.spo", "\tCEO\tApple", "its head is empty; give it a text, or delete the line."),
        ("a.spo", "Tim\t \tApple", "its relation is empty"),
        ("a.spo", "Tim\tCEO\t", "its tail is empty"),
        *(
            ("a.spo", f"Tim{chr(code)}Cook\tis\tApple\n", f"control character (U+{code:04X})")
            for code in (0x00, 0x07, 0x0B, 0x0D, 0x1F, 0x7F, 0x85, 0x2028)
        ),
        ("a.csv", "a,b,c\na,b,c\0\n", "a.csv, line 2: 'a,b,c<U+0000>' is no triple"),
        ("a.jsonl", '["a", "b", "c\\u0000"]', "control character (U+0000)"),
        ("a.csv", '"\t\n",', "'<U+0009>' expected after"),
        ("a.csv", "a,r,t\nb,r,t\rc,r,t\n", "holds a line end of another kind (U+000D)"),
        *(("a.jsonl", f'["a", "b", "c"]\n{line}\n', LAST_ENDS) for line in BAD_JSON),
        *(("a.spo", text, EMPTY) for text in ("", "\n\n", "\ufeff", "  \n\t\n")),
        *(
            ("a.csv", f"{first}\na,b,3\n", f"none of '{first.replace(',', ', ')}' is known as the")
            for first in ("source,target,weight", "weight,Subject,Object", "id,head,tail")
        ),
        ("a.ttl", "<a> <b> .", "line 1"),
        ("a.nt", "nonsense", "a.nt, statement 1: "),
    ],
)
def test_what_is_no_triple_is_named_with_its_place_and_what_to_do(name, text, said):
    assert said in error_of(text, name)


def test_nothing_is_loaded_by_half_and_bad_lines_are_listed_or_left_out():
    message = error_of("a\tb\tc\nbad\nd\te\tf\nworse\n", "a.spo")
    assert "line 2:" in message and "line 4:" in message
    many = error_of("bad\n" * 25, "a.spo").split("\n")
    assert len(many) == 21 and many[19].startswith("a.spo, line 20:")
    assert many[20] == "… and 5 more bad lines." and "more bad" not in error_of("bad\n" * 20)
    text = "bad\na\tr\tt\na\tr\tt\n\tx\ty\n" + "worse\n" * 30
    file = in_memory(rows_of(text.encode(), "a.spo", skip_bad=True))
    assert (file.triples, file.duplicates, len(file.problems)) == ((Triple(*A),), 1, 32)
    assert file.problems[1].startswith("a.spo, line 4: ")
    assert "none of its 2 lines is a triple" in error_of("bad\nworse\n", "a.spo", skip_bad=True)


def test_a_quote_that_isnt_closed_is_told_and_doesnt_swallow_the_file():
    text = 'a,r,t\n"b,r,t\n' + "c,r,t\n" * 50_000
    assert error_of(text).startswith("a.csv, line 2: ")
    assert "A quote may not be closed" in error_of(text)
    assert error_of(text, skip_bad=True) == error_of(text)  # where the next row begins is unknown
    assert "a.csv, line 2: " in error_of('a,r,t\nb,"r,t\nc,"x" y,t\n', skip_bad=True)
    assert triples('a,r,t\nb,"x" y,t\nc,r,t\nd,"r', skip_bad=True) == [A, C]


def test_a_table_of_quotes_leaves_the_limit_of_other_tables_as_it_was():
    limit = csv.field_size_limit()
    first, second = (iter(rows_of(b"a,b,c\nd,e,f\n", "a.csv")) for _ in range(2))
    next(first), next(second)
    assert csv.field_size_limit() == limit
    assert next(first) == next(second) == (2, "d", "e", "f")


def test_columns_are_chosen_by_number_and_by_name():
    text = "id\tx\ty\tz\n1\t糖尿病\t疾病\t类别\n"
    assert triples(text, "a.tsv", columns=("x", "Z", "y")) == [SUGAR]
    assert triples(text.split("\n", 1)[1], "a.tsv", columns=("2", "4", "3")) == [SUGAR]
    for columns, said in (
        (("q", "x", "y"), "no column is called 'q'; found id, x, y, z"),
        (("2", "4", "5"), "has 4 columns, and columns 2,4,5 were asked for"),
    ):
        assert said in error_of(text, "a.tsv", columns=columns)
    with pytest.raises(OptionError, match="Give three different ones"):
        ReadOptions(columns=("1", "1", "2"))


def test_files_are_read_by_their_paths_and_a_missing_one_says_its_name(tmp_path):
    with pytest.raises(GraphFileError, match=r"none\.spo: can't be read \(No such file"):
        read_triples(tmp_path / "none.spo")
    for odd in (tmp_path, "no\0where.spo", "x" * 300 + ".spo", "", "../missing/a.spo"):
        with pytest.raises(GraphFileError, match="can't be read"):
            read_triples(odd)
    for path in DEMOS.glob("*.spo"):
        file = read_triples(path)
        assert file.triples and (file.duplicates, file.problems) == (0, ())


# RDF

TURTLE = """
@prefix ex: <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:d1 rdfs:label "糖尿病"@zh, "diabetes"@en ; ex:class ex:Some_disease .
ex:d1 ex:note "甜"@zh, "sweet"@en .
ex:class rdfs:label "类别"@zh .
ex:d1 ex:since 1889 ; ex:part [ ex:x "blank" ] .
"""


def test_rdf_goes_by_labels_in_the_language_asked_for():
    assert triples(TURTLE, "a.ttl", language="zh") == [
        ("糖尿病", "类别", "Some disease"),
        ("糖尿病", "note", "甜"),
        ("糖尿病", "since", "1889"),
    ]
    assert ("diabetes", "note", "sweet") in triples(TURTLE, "a.ttl", language="en")
    assert ("糖尿病", "note", "sweet") in triples(TURTLE, "a.ttl")


RDF = """
@prefix ex: <http://x.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:island rdfs:label "Java"@en, "爪哇"@zh ; ex:is_a ex:place .
ex:language rdfs:label "Java"@en ; ex:is_a ex:code .
ex:place rdfs:label "Java"@en .
ex:a ex:b [ ex:c "blank" ] ; ex:d "" ; ex:e "deutsch"@de, "line\\nbreak" .
"""


def test_heads_with_one_label_are_kept_apart_by_their_addresses():
    found = triples(RDF, "r.ttl", language="en", skip_bad=True)
    assert found[:2] == [("Java (island)", "is a", "Java"), ("Java (language)", "is a", "code")]
    assert triples(RDF, "r.ttl", language="zh", skip_bad=True)[0] == ("爪哇", "is a", "place")


def test_what_rdf_has_besides_triples_of_names_is_counted_and_its_statements_numbered():
    reading = rows_of(RDF.encode(), "r.ttl", ReadOptions(language="en"), skip_bad=True)
    assert len(list(reading)) == 3
    assert reading.passed == {
        "nodes without an address": 2,
        "empty texts": 1,
        "texts in other languages": 1,
    }
    assert triples(RDF, "r.ttl")[-1] == ("a", "e", "line break")  # of two lines


ONTOLOGY = """
@prefix d: <http://x.org/obo#> . @prefix o: <http://www.geneontology.org/formats/oboInOwl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
d:1 a owl:Class ; rdfs:label "quiet fever" ; rdfs:subClassOf d:2 ;
  o:hasExactSynonym "still pyrexia" ; o:hasOBONamespace "disease" ; o:id "D:1" ;
  rdfs:comment \"\"\"of two
  lines\"\"\" .
d:2 a owl:Class ; rdfs:label "fever" ; owl:deprecated true .
"""
FACTS = {
    ("quiet fever", "subClassOf", "fever"),
    ("quiet fever", "hasExactSynonym", "still pyrexia"),
    ("quiet fever", "comment", "of two lines"),
}


@pytest.mark.parametrize("ending", readers.RDF)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_an_ontology_is_read_in_every_syntax_without_what_says_nothing(ending, mark):
    data = io.BytesIO()
    quads = list(ox.parse(ONTOLOGY, format=ox.RdfFormat.TURTLE))
    ox.serialize([quad.triple for quad in quads], data, format=format_of(ending))
    reading = rows_of(mark + data.getvalue(), f"a{ending}")
    found = [Triple(*row[1:]) for row in reading]
    assert set(map(astuple, found)) == FACTS
    assert reading.passed.total() == 5
    ((mention,),) = find_mentions(["a still pyrexia"], KnowledgeGraph(found))
    assert mention.entity == "quiet fever"
    assert ("fever", "type", "Class") in triples(data.getvalue(), f"a{ending}", silent=True)
    assert set(triples(ONTOLOGY, "a.owl")) == FACTS  # which goes by its content


@pytest.mark.parametrize(
    ("start", "what"),
    [
        (b"PK\x03\x04\x14", "an Excel workbook"),
        (b"\xd0\xcf\x11\xe0\xa1", "an old Excel workbook"),
        (b"PAR1\x15", "a Parquet table"),
        (b"SQLite format 3\0", "a database"),
        (b"%PDF-1.7", "a PDF file"),
        (b'<?xml version="1.0"?>\n<graphml xmlns="x">', "GraphML"),
        (b'<?xml version="1.0"?>\n<gexf xmlns="x">', "GEXF"),
        (b"$HDT\x01<http://x.org/hdt>", "HDT"),
        (b"C0000005|A1|SCUI|RB|C0036775|A2|SCUI|isa|", "UMLS's MRREL.RRF"),
        *((b, "YAML") for b in (b"---\nflu: ill", b"flu:\n  is: ill", b"- head: flu\n  tail: ill")),
        (b'{"text": "flu", "ents": [{"start": 0}]}', "JSON of labelled texts"),
        (b'[["flu", {"entities": [[0, 3, "Ill"]]}]]', "JSON of labelled texts"),
        (b'<?xml version="1.0"?>\n<Ontology xmlns="x">', "OWL/XML"),
        (b'<x:a> <x:b> "c" .\n', "N-Triples"),
        (b"<x:a>\t<x:b>\t<x:c>\t.\n", "N-Triples"),
        (b'{"@context": {}}', "JSON-LD"),
        (b'[\n{"@id": "x:a"}]', "JSON-LD"),
        (b"Prefix(:=<x:>)\nOntology(", "OWL in functional syntax"),
        (b"format-version: 1.2\n[Term]", "OBO"),
        (b'<?xml version="1.0"?>\n<rdf:RDF xmlns="x">', "RDF/XML"),
        (b"@prefix a: <x:> .", "Turtle"),
        (b'[\n {"head": "a"}]', "a JSON list"),
        (b"<!DOCTYPE html><html>", "a web page"),
    ],
)
def test_files_of_other_kinds_are_refused_by_name(start, what):
    for name in ("a.tsv", "a.xlsx", "a.csv", "a.jsonl"):
        assert error_of(start, name).startswith(f"{name}: is {what}")


def test_what_has_no_triple_and_an_unknown_ending_may_be_another_kind_of_file():
    for text in ("graph [\n  edge [ ]\n]", "digraph {\n  a -> b;\n}", "# A graph\n\nOf mine.\n"):
        said = error_of(text, "a.x").split("\n")
        assert re.match(r"a\.x: its first \d lines hold 0 triples\. Is it another kind", said[1])
        assert said[0].startswith("a.x, line ") and len(said) == 2
    assert len(error_of("a\tb\n" * 3 + "a\tb\tc\n", "a.x").split("\n")) == 3


@pytest.mark.parametrize(
    ("iri", "name"),
    [
        ("http://x.org/a#Heart_attack", "Heart attack"),
        ("http://x.org/resource/%E7%B3%96", "糖"),
        ("http://x.org/", "x.org"),
        ("urn:kg:a", "a"),
        ("x:", "x:"),
    ],
)
def test_an_address_without_a_label_is_shortened(iri, name):
    assert shortened(iri) == name


def test_rdf_is_utf_8_and_nothing_else():
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        assert "It looks like UTF-16" in error_of(TURTLE.encode(encoding), "a.ttl")
    assert "RDF is always UTF-8" in error_of(TURTLE, "a.ttl", encoding="gb18030")
    assert triples(TURTLE, "a.ttl", encoding="utf8")


# Encodings and lines


@pytest.mark.parametrize(
    ("encoding", "given"),
    [
        *(("utf-8-sig", given) for given in (None, "utf-8", "UTF8")),  # a mark belongs to no name
        *(("utf-16", None), ("utf-32", None), ("utf-16", "utf_16")),
        *((given, given) for given in ("gb18030", "utf-16-le", "utf-16-be")),
    ],
)
def test_an_encoding_that_a_file_says_or_that_is_given_is_read(encoding, given):
    assert triples(BOTH.encode(encoding), "a.spo", encoding=given) == [SUGAR, APPLE]


def test_an_encoding_that_doesnt_fit_is_told():
    assert "is not GB18030" in error_of(b"a\tb\t\xff\n", "a.spo", encoding="gb18030")
    broken = BOTH.encode("utf-16") + b"\x00\xd8\x00"
    assert "not UTF-16-LE throughout" in error_of(broken, "a.spo")
    for encoding in ("utf-16", "utf-32"):
        said = f"Give --encoding {encoding}-le or {encoding}-be"
        assert said in error_of(BOTH.encode(f"{encoding}-le"), "a.spo", encoding=encoding)
    for encoding in ("utf-16-le", "utf-16-be"):  # without a mark
        assert f"give --encoding {encoding}" in error_of("Tim\tis\tme\n".encode(encoding), "a.spo")
        assert "a.spo" in error_of(BOTH.encode(encoding), "a.spo", skip_bad=True)
    for unknown in ("klingon", "undefined", "rot13"):
        with pytest.raises(OptionError, match=f"'{unknown}' is unknown"):
            ReadOptions(encoding=unknown)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("癫痫\t类别\t疾病", "gb18030"),
        ("a\tb\t病", "gb18030"),
        ("頭痛\t類別\t症狀", "big5"),
        ("头痛\t类别\t症状", "utf-16-le"),
        ("头痛\t类别\t症状", "utf-16-be"),
        ("Enzephalitis\thäufig\tÜbelkeit", "cp1252"),
        ("fièvre\tsymptôme\tgrippe à virus", "cp1252"),
        ("fever\tover\t38 °C", "cp1252"),
        ("ból\tobjaw\tgrypa żołądkowa", "cp1250"),
        ("головная боль\tсимптом\tгрипп", "cp1251"),
        ("πονοκέφαλος\tσύμπτωμα\tγρίπη", "cp1253"),
        ("頭痛\t症状\tひどい", "shift_jis"),
    ],
)
def test_the_encoding_that_reads_best_is_offered_with_what_it_reads(text, encoding, monkeypatch):
    data = f"{text}\n".encode(encoding)
    message = error_of(data, "a.spo")
    shown = text.replace("\t", "<TAB>")
    assert f"It may be {encoding.upper()} ('{shown}')" in message
    assert f"give --encoding {encoding}" in message
    monkeypatch.setenv("KBERT_ENCODING", encoding)
    assert triples(data, "a.spo") == [tuple(text.split("\t"))]
    assert triples(BOTH, "a.spo") == [SUGAR, APPLE]  # it is UTF-8 all the same


def test_a_file_that_is_not_utf_8_says_where():
    message = error_of(b"a\tb\tc\n" + "糖尿病\t类别\t疾病\n".encode("gb18030"), "a.spo")
    assert message.startswith("a.spo, line 2: byte 0x")
    assert message.endswith(
        "is not UTF-8. It may be GB18030 ('糖尿病<TAB>类别<TAB>疾病') or EUC_KR "
        "('鎌쿱깹<TAB>잚깎<TAB>섣깹'). If that reads right, give --encoding gb18030 or euc_kr, or "
        "save the file as UTF-8."
    )
    assert error_of(b"a\tb\tc\n\xff\x98\xff\tb\tc\n", "a.spo") == (
        "a.spo, line 2: byte 0xFF is not UTF-8. Save the file as UTF-8 and open it again."
    )


@pytest.mark.parametrize("others", ["Übelkeit\tist\thäufig\n", "Übel\tist\ta\n" * 9000])
@pytest.mark.parametrize("end", ["", "\n"])
def test_one_line_that_is_not_utf_8_is_to_be_mended_alone(others, end):
    """Another encoding would garble the others."""
    message = error_of(others.encode() + f"Gürtelrose\tist\targ{end}".encode("cp1252"), "a.spo")
    number = others.count("\n") + 1
    assert message == (
        f"a.spo, line {number}: byte 0xFC is not UTF-8. Other lines are: write "
        "'G\ufffdrtelrose<TAB>ist<TAB>arg' anew in this line, or delete it."
    )
    wrong = (others[:300] + "sein\tist\tsanté\n" * 2).encode("cp1252")
    assert "--encoding" in error_of(wrong, "a.spo")


@pytest.mark.parametrize(
    ("name", "frame", "said"),
    [
        ("a.csv", "a,b,{}\nx,y,z\n", "a line of 10,000,005 characters"),
        ("a.nt", '<x:a> <x:b> "{}" .\n<x:x> <x:y> "z" .\n', "a field of 10000000 characters"),
        ("a.jsonl", '["a", "b", "{}"]\n["x", "y", "z"]\n', "a line of 10,000,0"),
    ],
)
def test_a_text_of_ten_megabytes_is_one_bad_line(name, frame, said):
    text = frame.format("z" * 10_000_000)
    assert triples(text, name, skip_bad=True) == [("x", "y", "z")]
    assert said in error_of(text, name)
    assert "a field of 50001 characters" in error_of(frame.format("z" * 50_001), name)
    assert len(triples(frame.format("z" * 50_000), name)) == 2


def test_a_line_of_ten_megabytes_is_passed_over_in_pieces():
    data = b"a\tr\tt\n" + b"x" * 10_000_000 + b"\nb\tr\tt\n"
    assert triples(data, "a.spo", skip_bad=True) == [A, B]
    assert "a.spo, line 2: a line of 10,000,001 characters" in error_of(data, "a.spo")
    for extra in (-1, 0, 1):
        data = b"y" * (MAX_LINE + extra - 1) + b"\nz\n"
        (_, first), second = lines(io.BytesIO(data), "a.spo")
        assert isinstance(first, str) == (extra <= 0) and second == (2, "z")


# Packing

LINES = "".join(f"名{n}\t类别\t{n % 7}\n" for n in range(300)).encode()


@pytest.mark.parametrize("ending", PACK)
def test_a_packed_file_is_read_as_the_plain_one(ending, tmp_path):
    path = tmp_path / f"kg.spo{ending}"
    path.write_bytes(PACK[ending](b"a\tr\tt\nonly\ttwo\n"))
    with pytest.raises(GraphFileError, match=r"kg\.spo\.\w+, line 2: found 2 fields"):
        read_triples(path)
    graph = load_graph(path, skip_bad=True)
    assert (list(graph), graph.name) == ([Triple(*A)], "kg")


@pytest.mark.parametrize("ending", PACK)
def test_a_packed_file_that_is_broken_is_refused_by_name(ending):
    data, name = PACK[ending](LINES), f"kg.spo{ending}"
    damaged, middle = bytearray(data), len(data) // 2
    damaged[middle] ^= 0xFF
    damaged[middle + 1] ^= 0xFF
    cut = {data[:end]: "it is cut off" for end in (3, 20, middle, len(data) - 1)}
    for broken, said in (
        cut | dict.fromkeys((bytes(damaged), LINES), "or packed in another")
    ).items():
        message = error_of(broken, name)
        assert message.startswith(f"{name}: can't be unpacked") and said in message
        assert "pack the file again" in message
    assert error_of(b"", name).startswith(name)


@pytest.mark.parametrize("ending", PACK)
def test_what_is_too_large_when_unpacked_is_refused(ending, monkeypatch):
    data, name = PACK[ending](LINES), f"a.spo{ending}"
    assert len(triples(data, name, most=len(LINES))) == 300
    assert "when unpacked" in error_of(data, name, most=len(LINES) - 1)
    monkeypatch.setattr(readers, "FREE", 1 << 17)
    monkeypatch.setattr(readers, "RATIO", 10)
    for file, line in (("a.spo", b"a\tb\tc\n"), ("a.nt", b'<x:a> <x:b> "c" .\n')):
        bomb = PACK[ending](line * (2_000_000 // len(line) // 8))
        assert "when unpacked" in error_of(bomb, file + ending)


def test_a_graph_is_called_by_its_file_without_endings():
    paths = ("kg/a.spo", "a.spo.xz", "a.b.spo.gz", "a.xz", "a")
    assert list(map(plain_stem, paths)) == ["a", "a", "a.b", "a", "a"]


# Traps: small files that would fill the memory, or run


def test_a_bomb_of_bad_lines_is_refused(monkeypatch):
    monkeypatch.setattr(readers, "MOST_BAD", 1000)
    message = error_of(gzip.compress(b"a\n" * 2000), "a.spo.gz", skip_bad=True)
    assert "a.spo.gz, line 1: found 1 field" in message
    assert "its first 1,001 lines hold 0 triples. Is it another kind of file?" in message


@pytest.mark.parametrize("deep", ["(" * 100_000, "[ <x:p> " * 100_000, "<< " * 100_000])
def test_turtle_nested_without_end_is_refused(deep):
    assert error_of(f"<x:a> <x:b> {deep}", "a.ttl").startswith("a.ttl: ")


@pytest.mark.parametrize("line", ["a:a a:b a:c .", 'a:{} rdfs:label "b" .', "<x:a> <x:b> a:c ."])
def test_long_prefixes_that_would_fill_the_memory_are_refused(line):
    trap = "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
    trap += f"@prefix a: <urn:{'z' * 40_000}> .\n"
    trap += "\n".join(line.format(f"a{number}") for number in range(20_000))
    assert "when their prefixes are written out" in error_of(trap, "a.ttl")


def test_entities_of_xml_are_not_expanded():
    laughs = '<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>\n<rdf:RDF>&b;</rdf:RDF>\n'
    assert "built of others" in error_of(laughs, "a.rdf")
    for filler in ("", "<!--" + "-" * 70_000 + "-->"):
        long = f'<?xml version="1.0"?>{filler}<!DOCTYPE l [<!ENTITY a "{"h" * 300}">]>\n'
        long += '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">&a;'
        assert "built of others" in error_of(long, "a.owl")
        many = long.replace("h" * 300, "h" * 90).replace("&a;", "&a;" * 500_000)
        assert "fill the memory" in error_of(many, "a.owl")


# Anything at all


@pytest.mark.hypothesis
@pytest.mark.parametrize("reader", READERS)
def test_any_file_is_read_or_refused_with_a_clear_message(reader):
    @given(files(reader), st.sampled_from(ENCODINGS), st.booleans())
    def read(data, encoding, skip_bad):
        read_or_refused(data, reader, encoding=encoding, skip_bad=skip_bad)

    read()
