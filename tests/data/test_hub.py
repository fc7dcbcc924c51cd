"""Data of Hugging Face's `datasets`: saved folders, tables, columns guessed and named."""

import json
import subprocess
import sys

import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, Sequence, Value, config

from kbert_core.errors import DataError, SplitError
from kbert_lab.data.sources import DataFiles, read_split, read_splits

TAGS = ["O", "B-D", "I-D"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "HF_DATASETS_CACHE", tmp_path / "cache")


def tagged(tags=ClassLabel(names=TAGS)):
    values = {"tokens": [["有", "糖", "尿", "病"]], "ner_tags": [[0, 1, 2, 2]]}
    columns = {"tokens": Sequence(Value("string")), "ner_tags": Sequence(tags)}
    return Dataset.from_dict(values, features=Features(columns))


def classed(*labels, names=("bad", "good"), text="text", label="label"):
    values = {text: [f"t{n}" for n in range(len(labels))], label: list(labels)}
    columns = {text: Value("string"), label: ClassLabel(names=list(names))}
    return Dataset.from_dict(values, features=Features(columns))


def test_named_tags_of_a_saved_folder_become_bio(tmp_path):
    DatasetDict(train=tagged(), validation=tagged()).save_to_disk(tmp_path / "saved")
    (example,) = read_split(str(tmp_path / "saved"), "dev", "ner")
    assert example.sentences == ("有糖尿病",)
    assert example.spans == ((1, 4, "D"),)
    assert example.place == f"{tmp_path / 'saved'} (validation), row 1"
    with pytest.raises(SplitError, match="no test split; there are train, validation"):
        read_split(str(tmp_path / "saved"), "test", "ner")


def test_tags_without_names_are_refused(tmp_path):
    tagged(Value("int64")).save_to_disk(tmp_path / "saved")
    with pytest.raises(DataError, match="the tags in 'ner_tags' are numbers without names"):
        read_split(str(tmp_path / "saved"), "train", "ner")


def test_a_single_saved_table_is_the_training_set(tmp_path):
    classed(1, 0).save_to_disk(tmp_path / "saved")
    found = read_split(str(tmp_path / "saved"), "train", "classify")
    assert [(e.sentences, e.label) for e in found] == [(("t0",), "good"), (("t1",), "bad")]


def test_a_folder_of_parquet_is_read_with_all_its_splits(tmp_path):
    folder = tmp_path / "test_of_mine"  # a name that says nothing of the files below it
    folder.mkdir()
    for file in ("train-00000-of-00002", "train-00001-of-00002", "validation", "test"):
        classed(1, 0, 1, 0).to_parquet(folder / f"{file}.parquet")
    found = read_splits(DataFiles(str(folder)), "classify")
    assert [len(found[split]) for split in ("train", "dev", "test")] == [8, 4, 4]


def test_tables_whose_names_say_nothing_are_not_guessed(tmp_path):
    (tmp_path / "mine.csv").write_text("text,label\na,1\n")
    (tmp_path / "trainer.csv").write_text("text,label\na,1\n")
    with pytest.raises(DataError, match=r"holds mine\.csv, trainer\.csv.*in place of the folder"):
        read_split(str(tmp_path), "train", "classify")
    (tmp_path / "train.csv").write_text("text,label\na,1\n")
    (tmp_path / "test.json").write_text("{}")
    with pytest.raises(DataError, match="Expected tables of one kind"):
        read_split(str(tmp_path), "train", "classify")


def test_a_folder_of_csv_and_a_single_json_lines_file_are_read(tmp_path):
    (tmp_path / "csv").mkdir()
    file = tmp_path / "csv" / "train.csv"
    file.write_text('sentence1,sentence2,label\n"one, two",three,1\nfour,five,0\n')
    first, second = read_split(str(tmp_path / "csv"), "train", "pair")
    assert (first.sentences, first.label) == (("one, two", "three"), "1")
    assert read_split(str(file), "test", "pair") == [first, second]  # a file is any split
    lines = [{"premise": "a", "hypothesis": "b", "label": "neutral"}]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (example,) = read_split(str(tmp_path / "x.jsonl"), "dev", "pair")
    assert (example.sentences, example.label) == (("a", "b"), "neutral")


def test_tables_without_headings_are_told_by_split(tmp_path):
    """Their first rows are taken for headings, each table's for its own."""
    (tmp_path / "train.csv").write_text("text,label\na,1\n")
    (tmp_path / "dev.csv").write_text("b,0\nc,1\n")
    assert len(read_split(str(tmp_path), "train", "classify")) == 1
    with pytest.raises(
        DataError, match=r"\(dev\): no column 'label' in 'b . 0'. Expected the head"
    ):
        read_split(str(tmp_path), "dev", "classify")
    (tmp_path / "train-2.csv").write_text("d,0\n")
    with pytest.raises(DataError, match="one table has the headings d, 0, another text, label"):
        read_split(str(tmp_path), "train", "classify")


def test_questions_with_answers_are_read_for_ranking(tmp_path):
    rows = {"question_id": ["Q1", "Q1"], "question": ["q", "q"], "answer": ["a", "b"]}
    Dataset.from_dict({**rows, "label": [0, 1]}).save_to_disk(tmp_path / "saved")
    found = read_split(str(tmp_path / "saved"), "train", "rank")
    assert [(e.group, e.sentences, e.label) for e in found] == [
        ("Q1", ("q", "a"), "0"),
        ("Q1", ("q", "b"), "1"),
    ]


def test_the_only_class_column_and_the_only_text_are_taken_whatever_their_names(tmp_path):
    classed(1, 0, text="satz", label="klasse").save_to_disk(tmp_path / "saved")
    assert read_split(str(tmp_path / "saved"), "train", "classify")[0].label == "good"


def test_columns_can_be_named(tmp_path):
    values = {"a": ["x", "y"], "b": ["1", "2"], "c": [0, 1]}
    Dataset.from_dict(values).save_to_disk(tmp_path / "saved")
    with pytest.raises(
        DataError, match=r"no column 'label' in 'a \| b \| c'.*--columns label=NAME"
    ):
        read_split(str(tmp_path / "saved"), "train", "classify")
    named = {"text_a": "a", "text_b": "b", "label": "c"}
    found = read_split(str(tmp_path / "saved"), "train", "pair", named)
    assert [(e.sentences, e.label) for e in found] == [(("x", "1"), "0"), (("y", "2"), "1")]


def test_hidden_labels_are_a_missing_split_and_a_single_one_an_error(tmp_path, caplog):
    DatasetDict(train=classed(1, 0), validation=classed(1, 0), test=classed(-1, -1)).save_to_disk(
        tmp_path / "saved"
    )
    assert list(read_splits(DataFiles(str(tmp_path / "saved")), "classify")) == ["train", "dev"]
    assert "the labels are hidden (all are -1)" in caplog.text
    classed(1, -1).save_to_disk(tmp_path / "one")
    with pytest.raises(DataError, match=r"row 2: label is -1, which isn't a label"):
        read_split(str(tmp_path / "one"), "train", "classify")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,1\n,0\n", "row 2: text_a is blank"),
        ("a,1\nb,\n", "row 2: label is blank"),
        ("a,1\nb,0.5\n", r"row 2: label is 0\.5; labels are classes here"),
    ],
)
def test_a_row_that_does_not_fit_is_named(tmp_path, rows, message):
    (tmp_path / "train.csv").write_text("text,label\n" + rows)
    with pytest.raises(DataError, match=message):
        read_split(str(tmp_path), "train", "classify")


def test_a_broken_table_and_a_folder_without_any_are_refused(tmp_path):
    (tmp_path / "train.parquet").write_text("no parquet")
    with pytest.raises(DataError, match="can't be read"):
        read_split(str(tmp_path), "train", "classify")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SplitError, match=r"no train\.tsv; the folder holds no \.tsv file"):
        read_split(str(tmp_path / "empty"), "train", "classify")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "train.jsonl",
            '{"text": "a", "label": "1"}\n\n{"text": "b" "label": "0"}\n',
            r"train\.jsonl, line 3: can't be read \(Expecting ',' delimiter.*\)\. Mend the file",
        ),
        (
            "train.json",
            '[{"text": "a"},\n{"text": "b" "label": "0"}]',
            r"train\.json: can't be read \(Expecting ',' delimiter: line 2",
        ),
        (
            "train.jsonl",
            '{"text": "a", "label": 1}\n\n{"text": "b", "label": "x"}\n',
            r"line 3: 'label' is a text, and a number before\. Write it in one way",
        ),
        ("train.json", '[NaN, {"text": "a", "label": 0}]', "json: can't be read .NaN is no value"),
        ("train.json", '[{"text": "a", "label": Infinity}]', "Infinity is no value in JSON"),
        (
            "train.json",
            '[{"text": "a", "label": 1}, [0]]',
            r"row 2: found '\[0\]'\. Expected objects",
        ),
        ("train.jsonl", '{"text": "\\ud800", "label": 0}', "line 1: can't be read .*surrogates"),
        ("train.json", "[" * 9999, "json: can't be read .maximum recursion"),
        ("train.json", "", "json: can't be read .Expecting value"),
        ("train.jsonl", "\n", "found nothing in it"),
        ("train.csv", "text,label\na,1\nb,0,5\n", "Expected 2 fields in line 3, saw 3"),
    ],
)
def test_a_broken_line_of_a_table_is_told_with_its_cause(tmp_path, name, text, message):
    (tmp_path / name).write_text(text, encoding="utf-8")
    for place in (tmp_path, tmp_path / name):
        with pytest.raises(DataError, match=message) as caught:
            read_split(str(place), "train", "classify")
        assert "\n" not in str(caught.value)


JSON = {
    "a list": '[{"text": "a", "label": 0},\n{"label": 1, "text": "b"}]',
    "a list over lines": '[\n{\n"text": "a", "label": 0},\n{"label": 1, "text": "b"}\n]',
    "lines": '\n{"text": "a", "label": 0}\n\n{"label": 1, "text": "b", "more": [1, "x", {}]}\n',
    "columns": '{"text": ["a", "b"],\n "label": [0, 1]}',
    "a mark, Windows": '\ufeff[{"text": "a", "label": 0.0},\r\n{"text": "b", "label": 1}]',
}


@pytest.mark.parametrize("text", JSON.values(), ids=JSON)
def test_json_is_read_in_every_form(tmp_path, text):
    for name in ("train.json", "train.jsonl")[: 1 if text[0] == "{" else 2]:
        (tmp_path / name).write_text(text, encoding="utf-8", newline="")
        found = read_split(str(tmp_path / name), "train", "classify")
        assert [(e.sentences, e.label) for e in found] == [(("a",), "0"), (("b",), "1")]


@pytest.mark.parametrize("name", ["hf:glue/sst2", "hf:someone/something", "hf:a/b/c"])
def test_a_data_set_of_the_hub_without_network_says_what_to_do(name):
    with pytest.raises(DataError, match=r"hub can't be reached.*save_to_disk\(FOLDER\)"):
        read_split(name, "train", "classify")  # HF_HUB_OFFLINE is set for the tests


def test_what_is_no_name_of_the_hub_is_refused():
    for name in ("hf:", "hf:a//b", "hf:a/b/c/d", "hf:../../etc", "hf:..", "hf:./a"):
        with pytest.raises(DataError, match="is no data set's name"):
            read_split(name, "train", "classify")


def test_of_two_parts_both_an_owner_and_a_config_are_tried(monkeypatch):
    import datasets

    tried = []

    def load(*way):
        tried.append(way)
        if len(way) == 1:
            raise datasets.exceptions.DatasetNotFoundError("none")
        return DatasetDict(train=classed(1, 0))

    monkeypatch.setattr(datasets, "load_dataset", load)
    assert len(read_split("hf:glue/sst2", "train", "classify")) == 2
    assert tried == [("glue/sst2",), ("glue", "sst2")]


def test_help_does_not_import_the_library():
    code = "import sys, kbert_lab.cli; sys.exit('datasets' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
