"""Random files of every format, right, nearly right and wrong."""

import bz2
import gzip
import hashlib
import json
import lzma
import random
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from hypothesis import strategies as st
from mutated_models import mutated

from kbert_core import KBertError, KnowledgeGraph, Triple
from kbert_core.errors import GraphFileError
from kbert_core.knowledge.io import ENDINGS, ReadOptions, rows_of
from kbert_core.knowledge.io.compression import zstd
from kbert_lab.data.sources import guess_task, read_split
from kbert_lab.data.spans import write_spans
from kbert_lab.study.gate import FEATURES
from kbert_lab.study.gated import Gate
from kbert_lab.suites.suite import read_suite

PACK = {".xz": lzma.compress, ".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstd.compress}
READERS = (*ENDINGS, ".spo.xz", ".csv.gz", ".nt.bz2", ".jsonl.zst")
ENCODINGS = (None, "utf-8", "gb18030", "big5", "utf-16", "utf-16-le", "utf-32")
ODD = "ab糖尿病 　\t\r\n\0\x85\u2028\ufeff\ud7ff\U0001f600ﬁß\u0301ｶﾞ'\"\\,;|<>&=+-@:{}[]()._#$%/*"
HOSTILE = (
    *("'); DROP TABLE triple; --", '" OR 1=1 --', "<script>alert(1)</script>", "<img src=x>"),
    *("=HYPERLINK(1)", "{{7*7}}", "${jndi:ldap://x}", "../../etc/passwd", "%s%n", "$(touch x)"),
)
WORDS = ("a", "糖尿病", "Tim Cook", "", *HOSTILE)
NEO4J = (":START_ID,:TYPE,:END_ID\n", "_id,_labels,name,_start,_end,_type\n", ":ID,:LABEL\n")
APOC = ('{"type":"node"', '{"type":"relationship","label":"a","start":{')
_SYNTAX = {
    "tabs": ("\t", "\n", "\r", '"', "head", "tail"),
    ".csv": (",", ";", "|", '"', "\n", "\r\n", "head,relation,tail\n", "'=", *NEO4J),
    ".jsonl": (*APOC, *'{}[]:,"\n', '"head"', "\\u0000", "\\ud800", "null"),
    ".nt": ("<x:a>", " .", '"b"', "@zh", "^^", "_:b", "\n", "<", ">", "\\u0041", "#"),
    ".ttl": ("@prefix a: <x:> .", "a:b", ";", ",", "[", "]", "(", ")", '"""', " .", "<x:a>", "\n"),
}
XML = (
    *("<rdf:Description", ' rdf:about="x:a"', "<x:r>", "</x:r>"),
    *("/>", ">", "&amp;", "<!-- ", "]]>"),
)
_SYNTAX |= {".ndjson": _SYNTAX[".jsonl"], ".nq": _SYNTAX[".nt"], ".rdf": XML, ".owl": XML}
_SYNTAX |= {".trig": _SYNTAX[".ttl"], ".n3": _SYNTAX[".ttl"]}
_SYNTAX |= {".jsonld": ('"@id"', '"@context"', '"@value"', *_SYNTAX[".jsonl"])}
_RDF = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="x:">\n'
_FRAMES = {"jsonld": ("[", ",", "]"), **dict.fromkeys(("rdf", "owl"), (_RDF, "\n", "</rdf:RDF>"))}

ROWS = [{"text": "好", "label": 1, "more": ["x"]}, {"text": "差", "label": 0, "more": []}]
ASKED = {"id": "1", "question": "谁？", "answers": [{"text": "猫", "answer_start": 1}]}
SPAN = {"start": 0, "end": 2, "labels": ["S"]}
NUMBERS = ("bias", "threshold", "matches", "right")
DATA: dict[str, object] = {  # what is in a file, as JSON but for texts
    "rows.json": ROWS,
    "rows.jsonl": "\n".join(map(json.dumps, ROWS)),
    "squad.json": {"data": [{"paragraphs": [{"context": "小猫", "qas": [ASKED]}]}]},
    "links.jsonl": {"text": "ab", "labels": [{"span": [0, 1], "entity_id": "Q1"}]},
    "gate.json": {
        **{"format": 1, "features": dict.fromkeys(FEATURES, 0.5), **dict.fromkeys(NUMBERS, 1)},
        **{"names": {"D": {"猫": [1, 2]}}, "labels": {"病": "D"}, "injected": True, "dev_f1": {}},
        "model": hashlib.sha256(hashlib.sha256(b"").digest()).hexdigest()[:16],
        "graph": {"fingerprint": "f", "about": "kg, 3 triples"},
    },
    "suite.yaml": (
        "title: a\nseeds: [1, 2]\ntask: ner\ndata: {folder: x, split: official}\n"
        "runs:\n- name: BERT\n  note: since 2024-02-03\n"
        "- {name: K-BERT, knowledge: graph, kg: [a.spo]}\n"
    ),
    "spans.json": [
        {"text": "头痛", "label": [[0, 2, "S"]]},
        {"text": "头痛", "label": {"S": {"头痛": [[0, 1]]}}},
        {"data": {"text": "头痛"}, "annotations": [{"result": [{"value": SPAN}]}]},
    ],
    "spans.csv": 'Sentence #,Word,POS,Tag\n1,He,X,O\n,"""",X,O\n2,Oslo,X,B-geo\n',
    "tags.conll": "患 O\n糖 B-D\n尿 E-D\n\n咳 S-D\n",
}
PIECES = (
    "[" * 2000,
    "NaN",
    "1e999",
    "9" * 5000,
    "2024-02-30",
    "!!timestamp x",
    '"\\ud800"',
    "\xff",
)
PIECES = (*PIECES, "x" * 70_000, '{"a": ', "null", "- ", ": ", "&a [*a]", "\n", "\t", "'", '"')


def data_file(name: str, seed: int) -> bytes:
    """A file of ``DATA``, with other values, bytes or pieces in it if there is a seed."""
    of, dice = DATA[name], random.Random(seed)
    data = of.encode() if isinstance(of, str) else json.dumps(of, ensure_ascii=False).encode()
    if not seed:
        return data
    if not isinstance(of, str) and dice.random() < 0.4:
        return mutated(data, dice)
    for _ in range(dice.randint(1, 3)):
        begin = dice.randrange(len(data) + 1)
        piece = dice.choice(PIECES).encode("latin-1")
        data = data[:begin] + piece + data[begin + dice.choice((0, 0, 1, len(piece))) :]
    return data


def read_or_refused_data(name: str, room: Path, seeds: range) -> dict[bool, int]:
    """Count what is read of files of ``DATA`` and what is refused, as it should be said."""
    (room / "model.safetensors").write_bytes(b"")
    read = {True: 0, False: 0}
    readers = {
        "squad.json": lambda path: read_split(path, "train", "qa"),
        "links.jsonl": lambda path: read_split(path, "train", "link"),
        "gate.json": lambda path: Gate.load(room, path),
        "suite.yaml": read_suite,
        **dict.fromkeys(("spans.json", "spans.csv"), lambda path: write_spans(path, room / "o")),
        "tags.conll": lambda path: read_split(path, "train", "ner"),
    }
    for seed in seeds:
        (room / name).write_bytes(data_file(name, seed))
        path = str(room / name)
        try:
            readers.get(name, lambda path: read_split(path, "train", guess_task(path)))(path)
            read[True] += 1
        except KBertError as error:
            read[False] += 1
            assert name in str(error), seed
            assert str(error).encode() and len(str(error)) < 2000, seed
        except Exception as error:
            raise AssertionError(f"{name}, seed {seed}") from error
    return read


def files(reader: str) -> st.SearchStrategy[bytes]:
    """Files for one of ``READERS``: its syntax in any order, good lines with a bad one, bytes."""
    ending, _, packing = reader[1:].partition(".")
    syntax = _SYNTAX.get(f".{ending}", _SYNTAX["tabs"])
    word = st.sampled_from(WORDS) | st.text(ODD, max_size=8)
    texts = st.lists(st.sampled_from(syntax) | word, max_size=40).map("".join)
    lines = st.lists(st.tuples(word, word, word).map(_line(ending)), min_size=1, max_size=6)
    first, between, last = _FRAMES.get(ending, ("", "\n", ""))
    several = lines | st.tuples(lines, texts).map(lambda parts: [*parts[0], parts[1]])
    content = texts | several.map(lambda parts: f"{first}{between.join(parts)}{last}")
    encoded = st.tuples(content, st.sampled_from(ENCODINGS)).map(_encoded)
    plain = encoded | st.binary(max_size=200)
    if not packing:
        return plain
    packed = plain.map(PACK[f".{packing}"])
    return packed | packed.map(lambda data: data[: len(data) // 2]) | st.binary(max_size=60)


def read_or_refused(data: bytes, reader: str, *, encoding: str | None, skip_bad: bool) -> bool:
    """Say whether a file was read; whatever is wrong with it must be said as it should."""
    try:
        rows = list(rows_of(data, f"fuzz{reader}", ReadOptions(encoding), skip_bad=skip_bad))
    except GraphFileError as error:
        assert str(error).startswith(f"fuzz{reader}")
        assert str(error).replace("\n", "").isprintable()
        return False
    triples = [Triple(*row[1:]) for row in rows]
    assert triples
    assert all(triple.problem() is None for triple in triples)
    assert set(KnowledgeGraph(triples)) <= set(triples)
    return True


def _line(ending: str):
    def line(words: tuple[str, str, str]) -> str:
        if ending == "jsonld":
            return json.dumps({"@id": f"x:{words[0]}", "x:r": words[2]}, ensure_ascii=False)
        if ending in ("rdf", "owl"):
            about, said = quoteattr(f"x:{words[0]}"), escape(words[2])
            return f"<rdf:Description rdf:about={about}><x:r>{said}</x:r></rdf:Description>"
        if ending in ("nt", "ttl", "nq", "trig", "n3"):
            text = words[2].replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            return f'<x:{words[0]}> <x:r> "{text}" .'
        if ending in ("jsonl", "ndjson"):
            return "[" + ",".join(f'"{word}"' for word in words) + "]"
        return ("," if ending == "csv" else "\t").join(words)

    return line


def _encoded(given: tuple[str, str | None]) -> bytes:
    text, encoding = given
    return text.encode(encoding or "utf-8", "replace")
