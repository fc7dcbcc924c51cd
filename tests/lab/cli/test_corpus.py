"""`kbert predict --data`: a corpus read shard by shard, each exactly once, by any workers."""

import gzip
import json
import random
import shutil
import sys
from collections import Counter
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from filelock import FileLock

from kbert_core import Pipeline
from kbert_core.errors import DataError
from kbert_core.tasks import TASKS
from kbert_core.tasks.link import Link
from kbert_core.tasks.qa import Answer
from kbert_lab.cli import corpus
from kbert_lab.data.shards import BrokenRow, Row, find_shards, rows_of

MEDICAL = str(Path(__file__).parents[3] / "demo_kgs" / "medical_zh.spo")


class InThisProcess:
    """An executor whose calls are done here, in another order than they were made.

    Attributes:
        started: is called when the first worker starts, after the command has looked at model
            and graph.
        deadly: names of shards whose worker dies.
        calls: how often each shard was given to a worker.
    """

    def __init__(self):
        self.started, self.deadly, self.calls = lambda: None, set(), Counter()

    def __call__(self, count, *, initializer, initargs, mp_context):
        self.started()
        initializer(*initargs)
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def shutdown(self, **how):
        pass

    def submit(self, work, shard):
        return lambda: work(shard), shard.name

    def done(self, calls):
        for work, name in reversed(calls):
            self.calls[name] += 1
            if name in self.deadly:
                raise BrokenProcessPool
            yield SimpleNamespace(result=work)


@pytest.fixture
def here(monkeypatch):
    """Workers in this process."""
    workers = InThisProcess()
    monkeypatch.setattr(corpus, "ProcessPoolExecutor", workers)
    monkeypatch.setattr(corpus, "as_completed", workers.done)
    return workers


TEXTS = [
    "".join(random.Random(number).choices("患者有糖尿病史 cat7。", k=3 + number % 70))
    for number in range(60)
]
TEXTS[1::4] = ["患者有糖尿病史", "行心电图检查", "给予布洛芬口服", "cat"] * 3 + TEXTS[49:58:4]


@pytest.fixture
def texts(tmp_path):
    """A corpus of four shards of all kinds, 60 rows."""
    folder = tmp_path / "corpus"
    (folder / "more").mkdir(parents=True)
    (folder / "_SUCCESS").touch()
    (folder / "a.txt").write_text("\n".join(TEXTS[:20]), encoding="utf-8-sig")
    lines = [json.dumps({"text": text, "id": 1}) for text in TEXTS[20:40]]
    (folder / "b.jsonl.gz").write_bytes(gzip.compress("\n\n".join(lines).encode()))
    pq.write_table(pa.table({"text": TEXTS[40:50], "id": range(10)}), folder / "c.parquet")
    (folder / "more" / "a.txt").write_bytes("\r\n".join(TEXTS[50:]).encode())
    return folder


@pytest.fixture
def predict(kbert, texts, tmp_path, checkpoints):
    """Run the command over the corpus; returns its report, or the error."""

    def run(*more, output="out", model="ner", code=0):
        command = ["predict", "--data", texts, "--output", tmp_path / output, "--json", *more]
        command += ["--model", checkpoints.get(model, model), "--kg", MEDICAL, "--device", "cpu"]
        said = kbert(*command, code=code)
        return said.err if code else said

    return run


def contents(folder):
    """What a reader of results sees: by name, the bytes of every file."""
    files = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    hidden = ("_lock", "_unfinished")
    return {str(f): (folder / f).read_bytes() for f in files if f.parts[0] not in hidden}


# Rows of shards


def rows(path, **how):
    (shard,) = find_shards(path)
    return [*rows_of(shard, **how)]


def test_every_kind_of_shard_gives_the_same_rows(texts):
    shards = find_shards(texts)
    assert [shard.name for shard in shards] == ["a.txt", "b.jsonl.gz", "c.parquet", "more/a.txt"]
    found = [row for shard in shards for row in rows_of(shard)]
    assert [row.sentences[0] for row in found] == TEXTS
    assert [row.number for row in found[:20]] == [*range(1, 21)]
    assert [row.number for row in found[20:40]] == [*range(1, 41, 2)]  # lines


def test_a_broken_row_keeps_its_number_and_the_others_stay(tmp_path):
    lines = [b'{"text": "a"}', b"{", b"[1]", b'{"text": 7}', b'{"note": "b"}', b'"\xff"']
    lines.append(b"[" * 9999)
    (tmp_path / "a.jsonl").write_bytes(b"\n".join([*lines, b'{"text": "c"}']))
    first, *broken, last = rows(tmp_path)
    assert (first, last) == (Row(1, ("a",)), Row(8, ("c",)))
    assert [type(row) for row in broken] == [BrokenRow] * 6
    assert [row.number for row in broken] == [*range(2, 8)]
    assert "expected an object of JSON" in broken[1].error
    assert broken[3].error == "found 'note', expected text_a. Name it: --columns text_a=NAME"
    assert len(broken[-1].found) == 200
    (tmp_path / "a.jsonl").rename(tmp_path / "a.txt")
    assert [row.number for row in rows(tmp_path) if isinstance(row, BrokenRow)] == [6]


def test_text_that_is_not_utf_8_in_parquet_is_a_broken_row(tmp_path):
    texts = pa.array([b"a", b"\xff", None, b"b"]).view(pa.string())
    pq.write_table(pa.table({"content": texts}), tmp_path / "a.parquet")
    assert [type(row) for row in rows(tmp_path)] == [Row, BrokenRow, BrokenRow, Row]


@pytest.mark.parametrize("encoding", ["gb18030", "utf-8", "utf-8-sig"])
def test_rows_may_be_in_another_encoding(tmp_path, monkeypatch, encoding):
    (tmp_path / "a.txt").write_bytes("无\n患者有糖尿病史。\n".encode(encoding))
    (tmp_path / "b.jsonl").write_bytes('{"text": "患者有糖尿病史。"}'.encode(encoding))
    monkeypatch.setenv("KBERT_ENCODING", "gb18030")
    found = [row for shard in find_shards(tmp_path) for row in rows_of(shard)]
    assert [row.sentences for row in found] == [("无",), *[("患者有糖尿病史。",)] * 2]


def test_pairs_are_named_columns_or_have_a_tab_between(tmp_path):
    (tmp_path / "a.txt").write_text("one\ttwo\tthree\nalone\n")
    good, broken = rows(tmp_path, sentences=2)
    assert good.sentences == ("one", "two\tthree")
    assert broken.error == "found one text, expected two with a tab between"
    (tmp_path / "a.txt").rename(tmp_path / "a.jsonl")
    (tmp_path / "a.jsonl").write_text('{"q": "one", "question": "1", "answer": "2"}')
    assert rows(tmp_path, sentences=2) == [Row(1, ("1", "2"))]
    columns = {"text_a": "q", "text_b": "answer"}
    assert rows(tmp_path, sentences=2, columns=columns) == [Row(1, ("one", "2"))]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.parquet", b"PAR1 cut off", "can't be read as Parquet"),
        (
            "a.txt.gz",
            gzip.compress(b"a\n" * 99, mtime=0)[:-9],
            "can't be read (Compressed file ended",
        ),
        ("a.txt", "a\n".encode("utf-16"), "a corpus can't be in UTF-16. Save it as UTF-8."),
        ("a.csv", b"a,b", "holds no file of texts. Expected files that end with .txt"),
    ],
)
def test_a_file_that_is_broken_is_named(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as refused:
        rows(tmp_path)
    assert message in str(refused.value)
    assert str(tmp_path) in str(refused.value)


def test_parquet_without_a_column_of_texts_is_refused_whole(tmp_path):
    pq.write_table(pa.table({"note": ["a"]}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet: found 'note', expected text_a\. Name it"):
        rows(tmp_path)
    assert rows(tmp_path, columns={"text_a": "note"}) == [Row(1, ("a",))]


# Results


def test_the_results_are_those_of_the_texts_in_a_file(
    here, predict, kbert, tmp_path, checkpoints, monkeypatch
):
    monkeypatch.setattr(corpus, "ROWS_AT_ONCE", 7)
    assert predict("--compare")["rows"] == 60
    read = pq.read_table(tmp_path / "out").to_pylist()  # as a data set: what begins with _ is none
    (tmp_path / "all.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    command = ["predict", "--file", tmp_path / "all.txt", "--compare", "--kg", MEDICAL]
    out = kbert(*command, "--device", "cpu", "--model", checkpoints["ner"]).out
    expected = [json.loads(line) for line in out.splitlines()]
    assert [row["text"] for row in read] == TEXTS
    for row, one in zip(read, expected, strict=True):
        assert row["triples"] == one["triples"]
        cuts = [d for d in one["dropped"] if "head" not in d]
        assert row["cut"] == [{"sentence": d["sentence"], "start": d["start"]} for d in cuts]
        both = (row, one["prediction"]), (row["without_knowledge"], one["without_knowledge"])
        for found, own in both:
            for span, other in zip(found["spans"], own["spans"], strict=True):
                probability = pytest.approx(other["probability"], abs=1e-4)
                assert span == {**other, "probability": probability}
    assert any(row["triples"] for row in read)
    assert any(row["spans"] != row["without_knowledge"]["spans"] for row in read)


def test_every_task_has_its_columns_and_they_take_its_prediction(
    here, predict, texts, tmp_path, checkpoints
):
    assert set(corpus.PREDICTED) == set(TASKS)
    for kind, value in ((Link, Link(0, 1, None, 0.5, 0.25)), (Answer, Answer(0, 1, "a", 0.5))):
        assert pa.array([[asdict(value)]], corpus._list_of(kind)).to_pylist() == [[asdict(value)]]
    shutil.rmtree(texts)
    texts.mkdir()
    (texts / "a.jsonl").write_text('{"text_a": "a [MASK]", "text_b": "b"}')
    for task in ("classify", "pair", "mask"):
        predict(model=task, output=task)
        (row,) = pq.read_table(tmp_path / task).to_pylist()
        assert row["text"] == (["a [MASK]", "b"] if task == "pair" else "a [MASK]")
        named = row["fillings"][0]["candidates"] if task == "mask" else row["probabilities"]
        pipeline = Pipeline.from_pretrained(checkpoints[task], device="cpu")
        (own,) = pipeline.predict([("a [MASK]", "b")[: pipeline.task.sentences]])
        wanted = dict(own.fillings[0].candidates) if task == "mask" else own.probabilities
        assert dict(named) == pytest.approx(wanted, abs=1e-5)


def test_a_text_over_the_length_limit_says_where_it_is_cut(here, predict, tmp_path):
    predict("--max-length", 20, model="classify")
    read = pq.read_table(tmp_path / "out").to_pylist()
    assert [bool(row["cut"]) for row in read] == [len(row["text"]) > 18 for row in read]
    assert {cut["sentence"] for row in read for cut in row["cut"]} == {0}


def test_a_row_that_the_model_refuses_goes_to_the_side_file(here, predict, texts, tmp_path):
    shutil.rmtree(texts)
    texts.mkdir()
    lines = ["a [MASK]", "b", "[MASK] c", "d", "e [MASK]"]
    (texts / "a.txt").write_bytes("\n".join(lines).encode() + b"\n\xff")
    report = predict(model="mask")
    assert (report["rows"], report["broken_rows"]) == (3, 3)
    read = pq.read_table(tmp_path / "out").to_pylist()
    assert [(row["row"], row["text"]) for row in read] == [(n + 1, lines[n]) for n in (0, 2, 4)]
    side = (tmp_path / "out" / "_broken" / "a.txt.jsonl").read_text(encoding="utf-8")
    broken = [json.loads(line) for line in side.splitlines()]
    assert [(row["number"], row["found"]) for row in broken] == [(2, "b"), (4, "d"), (6, "\\xff")]
    assert broken[0]["error"].startswith("No [MASK] to fill in 'b'")


# Each shard once


def test_a_run_goes_on_where_it_was_stopped_and_reads_no_shard_twice(
    here, predict, tmp_path, monkeypatch
):
    predict(output="whole")
    here.calls.clear()
    read = corpus.Worker._predicted

    def stopped(self, rows, bad):
        for number, row in enumerate(read(self, rows, bad)):
            if len(here.calls) == 3 and number == 5:
                raise KeyboardInterrupt  # in the middle of the third shard
            yield row

    monkeypatch.setattr(corpus.Worker, "_predicted", stopped)
    predict("--workers", 1, code=130)
    assert len(contents(tmp_path / "out")) == 2
    monkeypatch.setattr(corpus.Worker, "_predicted", read)
    report = predict()
    assert (report["done_before"], report["rows"]) == (2, 60)
    assert sorted(here.calls.values()) == [1, 1, 1, 2]
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert predict()["done_before"] == 4
    assert sum(here.calls.values()) == 5


def test_a_shard_that_its_worker_dies_of_stops_the_run_which_can_go_on(here, predict, tmp_path):
    here.deadly = {"c.parquet"}
    assert "A worker died, perhaps for want of memory. Finished shards" in predict(code=2)
    assert 0 < len(contents(tmp_path / "out")) < 4
    here.deadly = set()
    assert predict()["rows"] == 60
    assert {here.calls[name] for name in ("a.txt", "more/a.txt")} == {1}


def test_a_result_that_was_cut_off_is_made_again(here, predict, tmp_path, caplog):
    predict()
    before = contents(tmp_path / "out")
    file = tmp_path / "out" / "a.txt.parquet"
    file.write_bytes(file.read_bytes()[:100])
    assert predict()["done_before"] == 3
    assert "a.txt.parquet: can't be read" in caplog.text
    assert contents(tmp_path / "out") == before


# What is refused


def test_a_folder_of_another_run_is_refused_and_stays(here, predict, texts, tmp_path):
    predict()
    before = contents(tmp_path / "out")
    assert "another run, with another reading. Name another" in predict("--max-triples", 1, code=2)
    assert "with another model" in predict(model="classify", code=2)
    assert "with another option" in predict("--compare", code=2)
    (tmp_path / "mine").mkdir()
    pq.write_table(pa.table({"a": [1]}), tmp_path / "mine" / "a.txt.parquet")
    assert "a.txt.parquet: isn't a result of this" in predict(output="mine", code=2)
    (texts / "c.parquet").rename(tmp_path / "c.parquet")  # of another corpus
    other = predict("--data", tmp_path / "c.parquet", code=2)
    assert "another run, with another corpus" in other
    (tmp_path / "c.parquet").rename(texts / "c.parquet")
    with FileLock(tmp_path / "out" / "_lock"):
        assert "another process is writing there" in predict(code=2)
    (tmp_path / "file").touch()
    assert "can't be written to" in predict(output="file", code=2)
    with (texts / "a.txt").open("a") as file:
        file.write("\nmore")
    said = predict(code=2)
    assert "a.txt: has" in said
    assert "Delete" in said
    assert contents(tmp_path / "out") == before


def test_a_worker_without_the_model_stops_the_run_and_says_where(
    here, predict, texts, tmp_path, checkpoints
):
    model = shutil.copytree(checkpoints["ner"], tmp_path / "model")
    here.started = lambda: shutil.rmtree(model)
    said = predict(model=model, code=2)
    assert "A worker can't go on. Finished shards are kept." in said
    assert f"{corpus.platform.node()}, at {texts}" in said
    assert f"Found no model '{model}'" in said
    assert not contents(tmp_path / "out")


def test_a_worker_with_another_model_stops_the_run(here, predict, tmp_path, checkpoints):
    model = shutil.copytree(checkpoints["ner"], tmp_path / "model")
    pipeline = Pipeline.from_pretrained(model, device="cpu")
    next(pipeline.reader.model.parameters()).data += 1
    here.started = lambda: pipeline.reader.model.save_pretrained(model)
    assert "found another model than where the run was started" in predict(model=model, code=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "x"], "A corpus needs both --data CORPUS and --output DIR"),
        (["a text", "--output", "y"], "Both --data and another text"),
        (["--data", "x", "--output", "x/y"], "x/y: is in the corpus"),
        (["--data", "x", "--output", "y", "--workers", "0"], "--workers is 0, expected 1 or more"),
        (["--data", "nowhere", "--output", "y"], "nowhere: holds no file of texts"),
    ],
)
def test_a_mistake_in_the_command_is_said(kbert, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in kbert("predict", *arguments, code=2).err


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nonsense"])
def test_a_cluster_that_does_not_answer_is_named_and_without_ray_the_extra(
    predict, address, monkeypatch
):
    said = predict("--cluster", address, code=2)
    assert f"No Ray cluster answers at {address} (" in said
    monkeypatch.setitem(sys.modules, "ray", None)
    assert "pip install 'kbert-lab[corpus]'" in predict("--cluster", address, code=2)
