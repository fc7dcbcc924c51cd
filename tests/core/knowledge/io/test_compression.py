"""Triple files packed as .xz, .gz or .bz2: like plain ones; broken ones refused."""

import bz2
import gzip
import lzma
import os
from pathlib import Path

import pytest

from kbert_core import load_graph, read_triples
from kbert_core.errors import GraphFileError
from kbert_core.knowledge.io import ReadOptions, in_memory, rows_of
from kbert_core.knowledge.io.compression import plain_stem, zstd
from kbert_lab import cli

TEXT = "糖尿病\t类别\t疾病\n" + "".join(f"名{n}\t类别\t{n % 7}\n" for n in range(300))
PACK = {
    ".xz": lzma.compress,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": zstd.compress,
}


@pytest.fixture(params=PACK)
def file(request, tmp_path):
    path = tmp_path / f"kg.spo{request.param}"
    path.write_bytes(PACK[request.param](TEXT.encode()))
    return path


def test_a_packed_file_holds_the_triples_of_the_plain_one(file):
    (file.parent / "plain.spo").write_text(TEXT, encoding="utf-8")
    assert read_triples(file).triples == read_triples(file.parent / "plain.spo").triples
    assert load_graph(file).name == "kg"


def test_a_bad_line_in_a_packed_file_is_named_as_in_a_plain_one(file):
    file.write_bytes(PACK[file.suffix](b"a\tb\tc\nonly\ttwo\n"))
    with pytest.raises(GraphFileError, match=r"kg\.spo\.\w+, line 2: found 2 fields"):
        read_triples(file)
    assert len(read_triples(file, skip_bad=True).triples) == 1


def test_a_packed_file_that_is_cut_off_anywhere_is_refused_by_name(file):
    data = file.read_bytes()
    for end in (3, 20, len(data) // 2, len(data) - 1):
        file.write_bytes(data[:end])
        with pytest.raises(GraphFileError, match="it is cut off") as caught:
            read_triples(file)
        assert str(caught.value).startswith(f"{file}: can't be unpacked")
        assert "pack the file again" in str(caught.value)


def test_a_damaged_or_unpacked_file_is_refused_by_name(file):
    data = bytearray(file.read_bytes())
    for at in (len(data) // 2, len(data) // 2 + 1):
        data[at] ^= 0xFF
    for broken in (bytes(data), TEXT.encode()):
        file.write_bytes(broken)
        with pytest.raises(GraphFileError, match="damaged, or packed in another format") as caught:
            read_triples(file)
        assert str(caught.value).startswith(str(file))


def test_an_empty_file_is_no_graph(file):
    file.write_bytes(b"")
    with pytest.raises(GraphFileError, match=r"kg\.spo"):
        read_triples(file)


def test_what_is_too_large_when_unpacked_is_refused(file):
    data = PACK[file.suffix](b"x" * (5 << 20))
    with pytest.raises(GraphFileError, match="larger than 1 MB when unpacked"):
        in_memory(rows_of(data, file.name, ReadOptions(most=1 << 20)))
    size = len(TEXT.encode())
    read = in_memory(rows_of(file.read_bytes(), file.name, ReadOptions(most=size)))
    assert len(read.triples) == 301
    with pytest.raises(GraphFileError, match="when unpacked"):
        in_memory(rows_of(file.read_bytes(), file.name, ReadOptions(most=size - 1)))


def test_the_command_line_reads_and_writes_packed_graphs(file, capsys):
    output = file.parent / f"shuffled.spo{file.suffix}"
    assert (
        cli.main(
            ["kg", "control", "--tails", "shuffled", "--kg", str(file), "--output", str(output)]
        )
        == 0
    )
    assert cli.main(["kg", "stats", "--kg", str(output), "--json"]) == 0
    assert '"triples": 301' in capsys.readouterr().out
    file.write_bytes(file.read_bytes()[:-9])
    assert cli.main(["kg", "stats", "--kg", str(file)]) == 2
    assert f"kbert: {file}: can't be unpacked" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "name"),
    [("kg/a.spo", "a"), ("a.spo.xz", "a"), ("a.b.spo.gz", "a.b"), ("a.xz", "a"), ("a", "a")],
)
def test_a_graph_is_called_by_its_file_without_endings(path, name):
    assert plain_stem(path) == name


@pytest.mark.skipif("KBERT_DATA" not in os.environ, reason="KBERT_DATA names no data folder")
def test_a_published_packed_graph_is_read():
    path = Path(os.environ["KBERT_DATA"]) / "kg" / "zh_thuocl_types.spo.xz"
    assert len(read_triples(path).triples) == 157_169
