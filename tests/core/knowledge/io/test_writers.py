"""Triples out to every format and in again: the same triples in the same order."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert_core import Triple, read_triples, write_triples
from kbert_core.errors import GraphFileError
from kbert_core.files import replaced
from kbert_core.knowledge.io.write import ENDINGS

NASTY = (
    Triple("=1+1", "'=a", "''@b"),
    Triple('a "b", c', "r\\s;|", "<script>alert(1)</script>"),
    Triple("a_b", "x/y#z:w", "100%25"),
    Triple("'; DROP TABLE triple; --", "-", "+"),
    Triple("糖尿病", "类别", "疾病 😀"),
    Triple("＝1", "＋a", "＠b"),
    Triple("head", "relation", "tail"),
    Triple('" OR 1=1; --', "%_*?", "<img src=x onerror=alert(1)>"),
    Triple("${jndi:ldap://x}", "{{7*7}}", "../../etc/passwd"),
    Triple("%s%n", "$(touch x)", "`touch x`"),
    Triple("\\u0000", "null", "NaN"),
)
field = (
    st.text(min_size=1, max_size=12)
    .map(str.strip)
    .filter(lambda text: text and Triple(text, "r", "t").problem() is None)
)
triples = st.lists(st.builds(Triple, field, field, field), min_size=1, max_size=8, unique=True)


@pytest.mark.parametrize("packing", ["", ".xz", ".gz", ".bz2", ".zst"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_written_is_read_again(ending, packing, tmp_path):
    path = tmp_path / f"a{ending}{packing}"
    # .tsv and .txt may begin with headings, so such a triple can't come first
    assert write_triples(NASTY, path) == len(NASTY)
    assert read_triples(path).triples == NASTY
    assert os.listdir(tmp_path) == [path.name]
    (tmp_path / "plain").touch()
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


@given(triples, st.sampled_from(ENDINGS))
def test_any_triples_are_read_again_as_they_were_written(tmp_path_factory, triples, ending):
    path = tmp_path_factory.mktemp("w") / f"a{ending}"
    write_triples(triples, path)
    assert read_triples(path).triples == tuple(triples)


def test_the_same_triples_make_the_same_packed_file(tmp_path):
    for ending in (".xz", ".gz", ".bz2", ".zst"):
        files = [tmp_path / f"{name}.spo{ending}" for name in "ab"]
        for file in files:
            write_triples(NASTY, file)
        assert files[0].read_bytes() == files[1].read_bytes()


def test_no_cell_of_a_csv_file_is_a_formula(tmp_path):
    write_triples(NASTY, tmp_path / "a.csv")
    text = (tmp_path / "a.csv").read_text("utf-8")
    assert "'=1+1,''=a,'''@b\n" in text
    assert "'-,'+" in text
    assert "'＝1,'＋a,'＠b\n" in text  # East Asian spreadsheets run these too


@pytest.mark.parametrize("words", [("entity", "type", "object"), ("source", "target", "x")])
def test_a_first_triple_like_headings_is_read_again(tmp_path, words):
    first = [Triple(*words), Triple("a", "b", "c")]
    for ending in ("spo", "tsv", "txt", "csv"):
        write_triples(first, tmp_path / f"x.2024.{ending}")
        assert read_triples(tmp_path / f"x.2024.{ending}").triples == tuple(first)
    write_triples(first[1:], tmp_path / "plain.tsv")
    assert (tmp_path / "plain.tsv").read_text() == "a\tb\tc\n"


def test_what_fits_no_line_is_refused_and_the_file_before_it_stays(tmp_path):
    path = tmp_path / "a.spo"
    write_triples(NASTY[:1], path)
    before = path.read_bytes()
    with pytest.raises(GraphFileError, match="fits no line: its head holds"):
        write_triples([*NASTY, Triple("a\nb", "r", "t")], path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.spo"]
    with pytest.raises(GraphFileError, match="can't be written"):
        write_triples(NASTY, tmp_path / "missing" / "a.spo")


@pytest.mark.parametrize(("ending", "form"), [(".ttl", "turtle"), (".nt", "nt")])
def test_rdflib_reads_what_is_written_and_is_read(ending, form, tmp_path):
    rdflib = pytest.importorskip("rdflib", reason="in requirements-dev.txt")
    write_triples(NASTY, tmp_path / f"a{ending}")
    theirs = rdflib.Graph().parse(tmp_path / f"a{ending}")
    label = dict(theirs.subject_objects(rdflib.RDFS.label))
    facts = {(str(label[s]), str(label[p]), str(o)) for s, p, o in theirs if p != rdflib.RDFS.label}
    assert facts == {(t.head, t.relation, t.tail) for t in NASTY}
    theirs.serialize(tmp_path / f"b{ending}", form)
    assert set(read_triples(tmp_path / f"b{ending}").triples) == set(NASTY)


# Files and folders, whole or not at all


def test_a_file_is_replaced_when_all_went_well(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"before")
    with replaced(path) as file:
        file.write(b"after")
        assert path.read_bytes() == b"before"
    assert path.read_bytes() == b"after"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("before", [b"before", None])
def test_what_fails_after_some_bytes_leaves_what_was_there(tmp_path, before):
    path = tmp_path / "f"
    if before is not None:
        path.write_bytes(before)
    with pytest.raises(OSError, match="full"), replaced(path) as file:
        file.write(b"half of i")
        raise OSError("full")
    assert [found.read_bytes() for found in tmp_path.iterdir()] == [before] * (before is not None)
