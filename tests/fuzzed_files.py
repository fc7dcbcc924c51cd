"""Random files of every format that holds triples, right, nearly right and wrong."""

import bz2
import gzip
import lzma

from hypothesis import strategies as st

from kbert_core import KnowledgeGraph, Triple
from kbert_core.errors import GraphFileError
from kbert_core.knowledge.io import ENDINGS, ReadOptions, rows_of
from kbert_core.knowledge.io.compression import zstd

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
_SYNTAX |= {".ndjson": _SYNTAX[".jsonl"]}


def files(reader: str) -> st.SearchStrategy[bytes]:
    """Files for one of ``READERS``: its syntax in any order, good lines with a bad one, bytes."""
    ending, _, packing = reader[1:].partition(".")
    syntax = _SYNTAX.get(f".{ending}", _SYNTAX["tabs"])
    word = st.sampled_from(WORDS) | st.text(ODD, max_size=8)
    texts = st.lists(st.sampled_from(syntax) | word, max_size=40).map("".join)
    lines = st.lists(st.tuples(word, word, word).map(_line(ending)), min_size=1, max_size=6)
    content = texts | st.tuples(lines, texts).map(lambda parts: "\n".join([*parts[0], parts[1]]))
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
        if ending in ("nt", "ttl"):
            text = words[2].replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            return f'<x:{words[0]}> <x:r> "{text}" .'
        if ending in ("jsonl", "ndjson"):
            return "[" + ",".join(f'"{word}"' for word in words) + "]"
        return ("," if ending == "csv" else "\t").join(words)

    return line


def _encoded(given: tuple[str, str | None]) -> bytes:
    text, encoding = given
    return text.encode(encoding or "utf-8", "replace")
