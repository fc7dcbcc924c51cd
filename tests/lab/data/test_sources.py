"""Where splits come from: folders, files by name, a share of train, Hugging Face's `datasets`."""

import json

import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, Sequence, Value, config
from fuzzed_files import DATA, data_file, read_or_refused_data

from kbert_core.errors import DataError, OptionError, SplitError
from kbert_lab.data.files import DataFiles
from kbert_lab.data.labelled import Example
from kbert_lab.data.sources import hold_out, read_split, read_splits


def texts(folder, split, *letters):
    folder.mkdir(exist_ok=True)
    rows = [f"{number % 2}\t{letter}" for number, letter in enumerate(letters)]
    (folder / f"{split}.tsv").write_text("\n".join(["label\ttext_a", *rows]) + "\n")
    return folder


def read(examples):
    return [e.sentences[0] for e in examples]


def test_a_folder_gives_its_splits_and_a_missing_test_set_is_told(tmp_path, caplog):
    texts(tmp_path, "train", "a", "b")
    texts(tmp_path, "dev", "c")
    found = read_splits(DataFiles(str(tmp_path)), "classify")
    assert {split: read(of) for split, of in found.items()} == {"train": ["a", "b"], "dev": ["c"]}
    assert "no scores on test" in caplog.text


def test_files_stand_in_for_those_of_the_folder(tmp_path):
    one = texts(tmp_path / "one", "dev_as_train", "a", "b")
    texts(one, "test", "t")
    two = texts(tmp_path / "two", "other", "d")
    given = DataFiles(str(one), str(one / "dev_as_train.tsv"), str(two / "other.tsv"))
    found = read_splits(given, "classify")
    assert [read(found[split]) for split in ("train", "dev", "test")] == [["a", "b"], ["d"], ["t"]]
    assert given.name == "one"
    assert DataFiles(train=str(one / "dev_as_train.tsv")).name == "one"


def test_a_missing_dev_set_offers_a_share_of_train(tmp_path):
    texts(tmp_path, "train", *"abcdefghij")
    (tmp_path / "gate.json").write_text("{}", "utf-8")  # not a table of theirs
    with pytest.raises(SplitError, match=r"no dev\.tsv.*--dev-share 0\.1"):
        read_splits(DataFiles(str(tmp_path)), "classify")
    file = str(tmp_path / "train.tsv")
    with pytest.raises(SplitError, match=r"No dev set.*--dev FILE.*--dev-share 0\.1"):
        read_splits(DataFiles(train=file), "classify")
    for given in (DataFiles(str(tmp_path), dev_share=0.3), DataFiles(train=file, dev_share=0.3)):
        found = read_splits(given, "classify", seed=1)
        assert sorted(read(found["train"]) + read(found["dev"])) == list("abcdefghij")
        assert len(found["dev"]) == 3
        assert read(found["train"]) == sorted(read(found["train"]))  # in their old order


def test_a_share_is_drawn_by_the_seed_and_rows_of_one_text_or_question_stay_together():
    examples = [Example((str(n),), "1") for n in range(50)]
    assert hold_out(examples, 0.2, seed=3) == hold_out(examples, 0.2, seed=3)
    assert hold_out(examples, 0.2, seed=3) != hold_out(examples, 0.2, seed=4)
    examples = [Example((f"t{n % 10}",), "1") for n in range(40)]
    rest, held = hold_out(examples, 0.25, seed=0)
    assert not {e.sentences for e in rest} & {e.sentences for e in held}
    assert len(held) == 12  # three texts of four rows: the first at or over a quarter
    answers = [Example(("q", f"a{n}"), "0", group=f"q{n // 5}") for n in range(20)]
    rest, held = hold_out(answers, 0.1, seed=0)
    assert len(held) == 5
    assert len({e.group for e in held}) == 1
    with pytest.raises(SplitError, match="All 5 training rows have the same text or question"):
        hold_out(answers[:5], 0.5, seed=0)
    asked = [Example((f"q{n}", f"p{n // 3}"), group=f"{n}", answers=((0, "p"),)) for n in range(30)]
    kept, held = hold_out(asked, 0.2, seed=0)  # those about one paragraph
    assert len(held) == 6
    assert not {e.sentences[1] for e in kept} & {e.sentences[1] for e in held}


def test_the_last_text_of_a_label_is_never_held_out():
    examples = [Example((str(n),), label) for n, label in enumerate("0" * 6 + "11" + "2")]
    for seed in range(20):
        rest, held = hold_out(examples, 0.5, seed=seed)
        assert {e.label for e in rest} == {"0", "1", "2"}
        assert len(held) == 5
    with pytest.raises(SplitError, match="Every training row has a label that no other text has"):
        hold_out(examples[5::2], 0.5, seed=0)


def test_a_single_file_is_train_alone(tmp_path):
    file = texts(tmp_path, "one", *"abcdefgh") / "one.tsv"
    with pytest.raises(SplitError, match=r"No dev set\. Name a file with --dev FILE, or take"):
        read_splits(DataFiles(str(file)), "classify")
    found = read_splits(DataFiles(str(file), dev_share=0.25), "classify")
    assert {split: len(rows) for split, rows in found.items()} == {"train": 6, "dev": 2}
    dev = texts(tmp_path, "dev", "x") / "dev.tsv"
    found = read_splits(DataFiles(str(file), dev=str(dev)), "classify")
    assert {split: len(rows) for split, rows in found.items()} == {"train": 8, "dev": 1}


def test_what_contradicts_itself_is_refused(tmp_path):
    with pytest.raises(OptionError, match="No data given"):
        DataFiles()
    with pytest.raises(OptionError, match=r"dev_share is 1\.5"):
        DataFiles("x", dev_share=1.5)
    with pytest.raises(OptionError, match="Both --dev and --dev-share"):
        DataFiles("x", dev="y", dev_share=0.1)
    texts(tmp_path, "train", "a", "b")
    texts(tmp_path, "dev", "c")
    with pytest.raises(OptionError, match="has a dev set, and --dev-share is given too"):
        read_splits(DataFiles(str(tmp_path), dev_share=0.5), "classify")


def test_more_sets_to_train_on_give_no_dev_and_no_row_of_dev_or_test(tmp_path, caplog):
    def pairs(name, *rows):
        file = tmp_path / name
        file.write_text("\n".join(["label\ttext_a\ttext_b", *rows]) + "\n")
        return str(file)

    main = pairs("main.tsv", *(f"1\ta{n}\tb{n}" for n in range(10)))
    test = pairs("test.tsv", "1\tt\tu")
    more = pairs("more.tsv", "0\tu\tt", "0\tv\tw", "1\ta3\tb3")
    given = DataFiles(train=main, test=test, dev_share=0.2, also_train=(more,))
    found = read_splits(given, "pair", seed=1)
    held = {e.sentences for e in found["dev"]}
    assert len(held) == 2
    assert held < {(f"a{n}", f"b{n}") for n in range(10)}
    train = [e.sentences for e in found["train"]]
    left = 2 if ("a3", "b3") in held else 1  # the test pair turned round, and perhaps a dev pair
    assert train[8:] == ([("v", "w")] if left == 2 else [("v", "w"), ("a3", "b3")])
    assert f"more.tsv: {left} rows of dev or test left out" in caplog.text


@pytest.mark.parametrize("name", DATA)
def test_any_file_of_data_is_read_or_refused_with_a_clear_message(name, tmp_path):
    assert read_or_refused_data(name, tmp_path, range(1)) == {True: 1, False: 0}
    assert sum(read_or_refused_data(name, tmp_path, range(1, 16)).values()) == 15


OF_TASKS = {
    "rows.jsonl": "classify",
    "squad.json": "qa",
    "links.jsonl": "link",
    "tags.conll": "ner",
}


@pytest.mark.parametrize(("name", "task"), OF_TASKS.items())
def test_a_file_of_another_encoding_says_so_and_is_read_if_it_is_named(
    name, task, tmp_path, monkeypatch
):
    text = data_file(name, 0).decode().replace("\\u597d", "好").replace('"ab"', '"好的"')
    (tmp_path / name).write_bytes(text.encode("gb18030"))
    with pytest.raises(DataError, match=rf"{name}, line \d+: byte 0x.* is not UTF-8.*GB18030"):
        read_split(str(tmp_path / name), "train", task)
    monkeypatch.setenv("KBERT_ENCODING", "gb18030")
    assert read_split(str(tmp_path / name), "train", task)


TAGS = ["O", "B-D", "I-D"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "HF_DATASETS_CACHE", tmp_path / "cache")


def tagged(tags=ClassLabel(names=TAGS)):
    values = {"tokens": [["有", "糖", "尿", "病"]], "ner_tags": [[0, 1, 2, 2]]}
    columns = {"tokens": Sequence(Value("string")), "ner_tags": Sequence(tags)}
    return Dataset.from_dict(values, features=Features(columns))


def classed(*labels):
    values = {"text": [f"t{n}" for n in range(len(labels))], "label": list(labels)}
    columns = {"text": Value("string"), "label": ClassLabel(names=["bad", "good"])}
    return Dataset.from_dict(values, features=Features(columns))


def test_named_tags_of_a_saved_folder_become_bio(tmp_path):
    DatasetDict(train=tagged(), validation=tagged()).save_to_disk(tmp_path / "saved")
    (example,) = read_split(str(tmp_path / "saved"), "dev", "ner")
    assert example.sentences == ("有糖尿病",)
    assert example.spans == ((1, 4, "D"),)
    assert example.place == f"{tmp_path / 'saved'} (validation), row 1"
    with pytest.raises(SplitError, match="no test split; there are train, validation"):
        read_split(str(tmp_path / "saved"), "test", "ner")
    tagged(Value("int64")).save_to_disk(tmp_path / "numbers")
    with pytest.raises(DataError, match="the tags in 'ner_tags' are numbers without names"):
        read_split(str(tmp_path / "numbers"), "train", "ner")
    classed(1, 0).save_to_disk(tmp_path / "one")  # a single table is the training set
    found = read_split(str(tmp_path / "one"), "train", "classify")
    assert [(*e.sentences, e.label) for e in found] == [("t0", "good"), ("t1", "bad")]


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
    said = r"\(dev\): no column 'label' in 'b . 0'. Expected the head"
    with pytest.raises(DataError, match=said):
        read_split(str(tmp_path), "dev", "classify")
    (tmp_path / "train-2.csv").write_text("d,0\n")
    with pytest.raises(DataError, match="one table has the headings d, 0, another text, label"):
        read_split(str(tmp_path), "train", "classify")


def test_hidden_labels_are_a_missing_split_and_a_single_one_an_error(tmp_path, caplog):
    good, hidden = classed(1, 0), classed(-1, -1)
    DatasetDict(train=good, validation=good, test=hidden).save_to_disk(tmp_path / "saved")
    assert list(read_splits(DataFiles(str(tmp_path / "saved")), "classify")) == ["train", "dev"]
    assert "the labels are hidden (all are -1)" in caplog.text
    classed(1, -1).save_to_disk(tmp_path / "one")
    with pytest.raises(DataError, match=r"row 2: label is -1, which isn't a label"):
        read_split(str(tmp_path / "one"), "train", "classify")


def test_a_broken_table_and_a_folder_without_any_are_refused(tmp_path):
    (tmp_path / "train.parquet").write_text("no parquet")
    with pytest.raises(DataError, match="can't be read"):
        read_split(str(tmp_path), "train", "classify")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SplitError, match=r"no train\.tsv; the folder holds no \.tsv file"):
        read_split(str(tmp_path / "empty"), "train", "classify")


LINES = '{{"text": "a", "label": 1}}\n\n{}\n'
BROKEN = "can't be read \\("
BAD = [  # a file's name, its text, and what is said
    ("jsonl", LINES.format('{"text": "b" "l": 0}'), rf"line 3: {BROKEN}expected .* at column 14"),
    ("json", '[{"text": "a"},\n{"text": "b" "l": 0}]', rf"json: {BROKEN}expected .* at line 2 col"),
    ("jsonl", LINES.format('{"label": "x"}'), r"line 3: 'label' is a text, and a number"),
    ("json", '[NaN, {"text": "a", "label": 0}]', f"json: {BROKEN}expected value"),
    ("json", '[{"text": "a", "label": 1}, [0]]', r"row 2: found '\[0\]'\. Expected objects"),
    ("jsonl", '{"text": "\\ud800", "label": 0}', f"line 1: {BROKEN}unexpected end of hex escape"),
    ("json", "[" * 9999, f"json: {BROKEN}recursion limit"),
    ("json", "", f"json: {BROKEN}EOF while"),
    ("jsonl", "\n", "found nothing in it"),
    ("csv", "text,label\na,1\nb,0,5\n", "Expected 2 fields in line 3, saw 3"),
    ("csv", "text,label\na,1\n,0\n", "row 2: text_a is blank"),
    ("csv", "text,label\na,1\nb,\n", "row 2: label is blank"),
    ("csv", "text,label\na,1\nb,0.5\n", r"row 2: label is 0\.5; labels are classes here"),
]


@pytest.mark.parametrize(("ending", "text", "message"), BAD)
def test_a_broken_line_of_a_table_is_told_with_its_cause(tmp_path, ending, text, message):
    file = tmp_path / f"train.{ending}"
    file.write_text(text, encoding="utf-8")
    for place in (tmp_path, file):
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
