"""Every format of triple files, in every encoding and packing; broken ones refused or bounded."""

import csv
import gzip
import io
import json
import re
from dataclasses import astuple

import pyoxigraph as ox
import pytest
from fuzzed_files import ENCODINGS, PACK, READERS, files, read_or_refused
from hypothesis import given
from hypothesis import strategies as st

from kbert_core import KnowledgeGraph, Triple
from kbert_core.errors import GraphFileError, OptionError
from kbert_core.knowledge import io as readers
from kbert_core.knowledge.io import ReadOptions, rows_of, text_lines
from kbert_core.knowledge.io.text_lines import MAX_LINE, lines
from kbert_core.knowledge.mentions import find_mentions
from kbert_lab.graphs.rdf import format_of, shortened

SUGAR = ("糖尿病", "类别", "疾病")
APPLE = ("Tim Cook", "CEO", "Apple")


def rows(text, name, skip_bad=False, **options):
    data = text if isinstance(text, bytes) else text.encode()
    return list(rows_of(data, name, ReadOptions(**options), skip_bad=skip_bad))


def triples(text, name="a.csv", **options):
    return [row[1:] for row in rows(text, name, **options)]


def error_of(text, name="a.csv", **options):
    with pytest.raises(GraphFileError) as caught:
        rows(text, name, **options)
    return str(caught.value)


# Tables


@pytest.mark.parametrize(
    "text",
    [
        "糖尿病,类别,疾病\nTim Cook,CEO,Apple\n",
        "糖尿病;类别;疾病\nTim Cook;CEO;Apple\n",
        "糖尿病|类别|疾病\nTim Cook|CEO|Apple",
        "head,relation,tail\n糖尿病,类别,疾病\nTim Cook,CEO,Apple\n",
        "Relation,Object,Subject\n类别,疾病,糖尿病\nCEO,Apple,Tim Cook\n",  # in any order
        'id,实体,属性,值\n1,糖尿病,类别,疾病\n2,Tim Cook,CEO,"Apple"\n',
        '"糖尿病","类别","疾病"\r\n\r\n"Tim Cook","CEO","Apple"\r\n',
    ],
)
def test_a_csv_file_is_read_with_headings_or_without(text):
    assert triples(text) == [SUGAR, APPLE]


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
        assert triples(f"{between.join(headings)}\na{between}r{between}t\n", name) == [
            ("a", "r", "t")
        ]
    if "drug" not in line:  # these are known by their places
        head, relation, tail = headings
        assert triples(f"{tail},{relation},{head}\nt,r,a\n") == [("a", "r", "t")]
        row = dict(zip(("more", *headings), "xart", strict=True))
        assert triples(json.dumps(row), "a.jsonl") == [("a", "r", "t")]
    assert "are headings, and no triple follows" in error_of(line)


def test_names_are_taken_before_numbers_and_types():
    heads = "relation,display_relation,x_index,x_id,x_type,x_name,y_index,y_id,y_type,y_name"
    assert triples(f"{heads}\nr,r2,1,2,3,a,4,5,6,t\n") == [("a", "r", "t")]
    for words in ("item prop value", "subject predicate object"):  # as SPARQL's results have them
        heads = ",".join(f"{word},{word}Label" for word in words.split())
        assert triples(f"{heads}\n1,a,2,r,3,t\n") == [("a", "r", "t")]
    heads = "head,relation,tail,source_name"
    assert triples(f"{heads}\na,r,t,b\n") == [("a", "r", "t")]


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


def test_a_line_that_may_be_of_headings_is_told(caplog):
    rows = "".join(f"drug {n},treats,ill {n % 3}\n" for n in range(9))
    for first in ("Mittel,hilft gegen,Leiden", "Mittel,entity2,Leiden"):
        assert triples(f"{first}\n{rows}")[0] == tuple(first.split(","))
        assert "a.csv, line 1: 'Mittel, " in caplog.text and "--columns Mittel," in caplog.text
        caplog.clear()
    assert len(triples("source,via,target\na,r,t\n")) == 2
    assert "'source, via, target' was read as a triple" in caplog.text
    assert len(triples("head\trelation\ttail\n", "a.spo")) == 1
    assert "'head, relation, tail' was read as a triple" in caplog.text


@pytest.mark.parametrize("first", ["source,target,weight", "weight,Subject,Object", "id,head,tail"])
def test_headings_of_head_and_tail_without_one_of_a_relation_are_refused(first):
    assert f"none of '{first.replace(',', ', ')}' is known as the" in error_of(f"{first}\na,b,3\n")


def test_comments_are_passed_over():
    text = "# made by hand, 2026, for a class\na,r,t\n# more\n#a,r,t\n"
    assert triples(text) == [("a", "r", "t"), ("#a", "r", "t")]
    assert triples("# one\n\na\tr\tt\n#two\n", "a.spo") == [("a", "r", "t")]


def test_quotes_in_csv_hold_commas_and_quotes():
    assert triples('"a, ""b""",r,t\n') == [('a, "b"', "r", "t")]
    assert triples('a "b",r,t\n') == [('a "b"', "r", "t")]


def test_a_quote_that_isnt_closed_is_told_and_doesnt_swallow_the_file():
    text = 'a,r,t\n"b,r,t\n' + "c,r,t\n" * 50_000
    assert error_of(text).startswith("a.csv, line 2: ")
    assert "A quote may not be closed" in error_of(text)
    found = triples(text, skip_bad=True)
    assert (len(found), found[0], found[-1]) == (50_001, ("a", "r", "t"), ("c", "r", "t"))
    assert triples('a,r,t\nb,"r,t\nc,"x" y,t\nd,"r\n,e', skip_bad=True) == [("a", "r", "t")]


def test_quotes_that_open_on_every_line_dont_make_reading_endless():
    """Each line closes the quote of the one before and opens its own."""
    lines_of_it = 'a",",b\n' * 300_000
    assert "too many quotes" in error_of(lines_of_it, skip_bad=True)
    assert triples('a",",b\n' * 200 + "a,r,t\n", skip_bad=True)[-1] == ("a", "r", "t")


def test_a_table_of_quotes_leaves_the_limit_of_other_tables_as_it_was():
    limit = csv.field_size_limit()
    first, second = (iter(rows_of(b"a,b,c\nd,e,f\n", "a.csv")) for _ in range(2))
    next(first), next(second)
    assert csv.field_size_limit() == limit
    assert next(first) == next(second) == (2, "d", "e", "f")


def test_a_cell_that_is_too_long_is_one_bad_line():
    text = f"a,b,{'x' * 50_001}\nx,y,z\n"
    assert triples(text, skip_bad=True) == [("x", "y", "z")]
    assert "a field of 50001 characters" in error_of(text)


def test_a_message_about_a_table_of_tabs_can_be_shown():
    assert "'<U+0009>' expected after" in error_of('"\t\n",', "a.csv")


def test_what_a_spreadsheet_leaves_behind_is_passed_over():
    assert triples('sep=;\na;r;t\n;;\n"b,\n b";r;t\n;;;;\n') == [
        ("a", "r", "t"),
        ("b, b", "r", "t"),
    ]
    assert triples("a，r，t\rb，r，t") == [("a", "r", "t"), ("b", "r", "t")]
    assert triples("a\tr\tt\n\t\t\n", "a.tsv") == [("a", "r", "t")]
    assert "holds a line end of another kind (U+000D)" in error_of("a,r,t\nb,r,t\rc,r,t\n")


def test_tabs_are_read_with_headings_but_never_in_spo():
    text = "head\trelation\ttail\n糖尿病\t类别\t疾病\n"
    assert triples(text, "a.tsv") == [SUGAR]
    assert triples(text, "b/a.spo") == [("head", "relation", "tail"), SUGAR]
    assert triples('"a"\tr\tt\n', "a.tsv") == [('"a"', "r", "t")]  # quotes mean nothing there


def test_the_last_ending_tells_whether_there_may_be_headings():
    for name in ("x.2024.spo", "x.2024.SPO.gz"):
        data = b"entity\ttype\tobject\na\tb\tc\n"
        data = gzip.compress(data) if name.endswith("gz") else data
        assert triples(data, name) == [("entity", "type", "object"), ("a", "b", "c")]


def test_columns_are_chosen_by_number_and_by_name():
    text = "id\tx\ty\tz\n1\t糖尿病\t疾病\t类别\n"
    assert triples(text, "a.tsv", columns=("x", "Z", "y")) == [SUGAR]
    headless = text.split("\n", 1)[1]
    assert triples(headless, "a.tsv", columns=("2", "4", "3")) == [SUGAR]
    assert "no column is called 'q'; found id, x, y, z" in error_of(
        text, "a.tsv", columns=("q", "x", "y")
    )
    assert "has 4 columns, and columns 2,4,5 were asked for" in error_of(
        text, "a.tsv", columns=("2", "4", "5")
    )
    with pytest.raises(OptionError, match="Give three different ones"):
        ReadOptions(columns=("1", "1", "2"))


def test_a_row_of_another_number_of_cells_is_named():
    message = error_of("a,r,t\nb,r\nc,r,t,u\n")
    assert (
        "a.csv, line 2: found 2 fields in 'b<TAB>r', expected 3 (head, relation, tail)" in message
    )
    assert "a.csv, line 3: found 4 fields" in message
    assert triples("a,r,t\nb,r\n", skip_bad=True) == [("a", "r", "t")]


# JSON Lines


def test_json_lines_hold_objects_or_lists():
    text = (
        '{"head": "糖尿病", "relation": "类别", "tail": "疾病"}\n\n["Tim Cook", "CEO", "Apple"]\n'
        '{"s": "a", "p": "n", "o": 3}\n'
    )
    assert triples(text, "a.jsonl") == [SUGAR, APPLE, ("a", "n", "3")]


@pytest.mark.parametrize(
    "line",
    ["{", "[1, 2]", '{"head": "a"}', '["a", "b", {}]', "3", "null", "[" * 9000, '["a", "b", null]'],
)
def test_a_line_of_json_that_is_no_triple_is_named(line):
    message = error_of(f'["a", "b", "c"]\n{line}\n', "a.jsonl")
    assert message.startswith("a.jsonl, line 2: ")
    assert message.endswith("Mend or delete the line.")


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


def test_an_owl_file_goes_by_its_content():
    assert set(triples(ONTOLOGY, "a.owl")) == FACTS


def test_a_bad_line_of_n_triples_can_be_left_out():
    text = '<x:a> <x:b> "c" .\n<x:a> nonsense .\n<x:a> <x:b> "d" .\n'
    for name in ("a.nt", "a.nq"):
        assert triples(text, name, skip_bad=True) == [("a", "b", "c"), ("a", "b", "d")]
        assert error_of(text, name).startswith(f"{name}, statement 2: this isn't RDF (Parser error")


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


@pytest.mark.parametrize("line", ["PAR1\tregulates\tblood", "- a: b\tis\tc", "C0000005|1\tis\tc"])
def test_a_name_is_no_other_kind_of_file(line):
    assert triples(f"{line}\n", "a.tsv") == [tuple(line.split("\t"))]


def test_what_has_no_triple_and_an_unknown_ending_may_be_another_kind_of_file():
    for text in ("graph [\n  edge [ ]\n]", "digraph {\n  a -> b;\n}", "# A graph\n\nOf mine.\n"):
        said = error_of(text, "a.x").split("\n")
        assert "a.x: no line of it is a triple. Is it another kind of file?" in said[1]
        assert said[0].startswith("a.x, line ") and len(said) == 2
    assert len(error_of("a\tb\n" * 3 + "a\tb\tc\n", "a.x").split("\n")) == 3


def test_n_triples_are_read():
    text = '<http://x.org/Tim_Cook> <http://x.org/v#CEO> "Apple" .\n'
    assert triples(text, "a.nt") == [APPLE]
    assert triples(gzip.compress(text.encode()), "a.nt.gz") == [APPLE]


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


def test_wrong_rdf_is_refused_with_its_place():
    assert "line 1" in error_of("<a> <b> .", "a.ttl")
    assert error_of("nonsense", "a.nt").startswith("a.nt, statement 1: ")


def test_rdf_is_utf_8_and_nothing_else():
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        assert "It looks like UTF-16" in error_of(TURTLE.encode(encoding), "a.ttl")
    assert "RDF is always UTF-8" in error_of(TURTLE, "a.ttl", encoding="gb18030")
    assert triples(TURTLE, "a.ttl", encoding="utf8")


# Encodings and lines

BOTH = "糖尿病\t类别\t疾病\nTim Cook\tCEO\tApple\n"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_an_encoding_that_says_so_is_known(encoding):
    assert triples(BOTH.encode(encoding), "a.spo") == [SUGAR, APPLE]


@pytest.mark.parametrize("encoding", ["gb18030", "utf-16-le", "utf-16-be", "utf_16"])
def test_an_encoding_can_be_given(encoding):
    assert triples(BOTH.encode(encoding), "a.spo", encoding=encoding) == [SUGAR, APPLE]


def test_an_encoding_that_doesnt_fit_is_told():
    assert "is not GB18030" in error_of(b"a\tb\t\xff\n", "a.spo", encoding="gb18030")
    broken = BOTH.encode("utf-16") + b"\x00\xd8\x00"
    assert "not UTF-16-LE throughout" in error_of(broken, "a.spo")
    for encoding in ("utf-16", "utf-32"):
        said = f"Give --encoding {encoding}-le or {encoding}-be"
        assert said in error_of(BOTH.encode(f"{encoding}-le"), "a.spo", encoding=encoding)
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


def test_the_mark_of_utf_8_belongs_to_no_name():
    for encoding in (None, "utf-8", "UTF8"):
        assert triples(b"\xef\xbb\xbf" + BOTH.encode(), "a.spo", encoding=encoding) == [
            SUGAR,
            APPLE,
        ]


def test_wide_text_without_a_mark_is_refused_not_misread():
    for encoding in ("utf-16-le", "utf-16-be"):
        assert f"give --encoding {encoding}" in error_of("Tim\tis\tme\n".encode(encoding), "a.spo")
    with pytest.raises(GraphFileError):
        rows(BOTH.encode("utf-16-le"), "a.spo", skip_bad=True)


def test_a_line_of_ten_megabytes_is_passed_over_in_pieces():
    data = b"a\tb\tc\n" + b"x" * 10_000_000 + b"\nd\te\tf\n"
    assert triples(data, "a.spo", skip_bad=True) == [("a", "b", "c"), ("d", "e", "f")]
    assert "a.spo, line 2: a line of 10,000,001 characters" in error_of(data, "a.spo")
    assert "a line of 10,000,000 characters" in error_of(b"x" * 10_000_000, "a.spo")


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_a_line_is_whole_up_to_its_limit(extra):
    data = b"y" * (MAX_LINE + extra - 1) + b"\nz\n"
    found = list(lines(io.BytesIO(data), "a.spo"))
    assert [number for number, _ in found] == [1, 2]
    assert isinstance(found[0][1], str) == (extra <= 0)
    assert found[1][1] == "z"


# Packing


@pytest.mark.parametrize("ending", PACK)
def test_a_bomb_is_refused_before_it_fills_memory(ending, monkeypatch):
    monkeypatch.setattr(readers, "FREE", 1 << 17)
    monkeypatch.setattr(readers, "RATIO", 10)
    for file, line in (("a.spo", b"a\tb\tc\n"), ("a.nt", b'<x:a> <x:b> "c" .\n')):
        data = PACK[ending](line * (2_000_000 // len(line) // 8))
        assert "when unpacked" in error_of(data, file + ending)


# Traps: small files that would fill the memory, or run


def test_a_bomb_of_empty_or_of_bad_lines_is_refused(monkeypatch):
    monkeypatch.setattr(text_lines, "MAX_EMPTY", 1000)
    monkeypatch.setattr(readers, "MOST_REPEATED", 1000)
    monkeypatch.setattr(readers, "MOST_BAD", 1000)
    for line, said in ((b"\n", "over 1,000 empty lines"), (b"\r\n", "empty lines")):
        assert said in error_of(gzip.compress(line * 1100), "a.spo.gz", skip_bad=True)
    repeated = gzip.compress(b"a\tb\tc\n" * 1100)
    assert "1,001 of its first 1,002 triples are repeated" in error_of(repeated, "a.spo.gz")
    message = error_of(gzip.compress(b"a\n" * 2000), "a.spo.gz", skip_bad=True)
    assert "a.spo.gz, line 1: found 1 field" in message
    assert "and only 0 triples. Is it another kind of file?" in message


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


def test_a_text_of_ten_megabytes_in_rdf_or_a_cell_is_refused():
    text = "z" * 10_000_000
    assert "a field of 10000000 characters" in error_of(f'<x:a> <x:b> "{text}" .\n', "a.nt")
    assert "a.csv, line 1: a line of 10,000,0" in error_of(f"a,b,{text}\n", "a.csv")
    assert "a.jsonl, line 1: a line of 10,000,0" in error_of(f'["a", "b", "{text}"]', "a.jsonl")


@pytest.mark.parametrize("reader", [".spo", ".csv", ".jsonl"])
def test_a_null_character_is_named_with_its_line(reader):
    line = '["a", "b", "c\\u0000"]' if reader == ".jsonl" else "a\tb\tc\0"
    first = '["a", "b", "c"]' if reader == ".jsonl" else "a\tb\tc"
    message = error_of(f"{first}\n{line}\n", f"a{reader}")
    assert message.startswith(f"a{reader}, line 2: ")
    assert "control character (U+0000)" in message


# Anything at all


@pytest.mark.hypothesis
@pytest.mark.parametrize("reader", READERS)
def test_any_file_is_read_or_refused_with_a_clear_message(reader):
    @given(files(reader), st.sampled_from(ENCODINGS), st.booleans())
    def read(data, encoding, skip_bad):
        read_or_refused(data, reader, encoding=encoding, skip_bad=skip_bad)

    read()
