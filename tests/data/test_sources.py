"""Where splits come from: folders, files by name, a share of train."""

import pytest
from fuzzed_files import DATA, data_file, read_or_refused_data

from kbert_core.errors import DataError, OptionError, SplitError
from kbert_lab.data.labelled import Example
from kbert_lab.data.sources import DataFiles, hold_out, read_split, read_splits


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
    assert {split: read(examples) for split, examples in found.items()} == {
        "train": ["a", "b"],
        "dev": ["c"],
    }
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


def test_a_folder_without_a_training_set_says_what_it_holds(tmp_path):
    texts(tmp_path, "dev_as_train", "a", "b")
    with pytest.raises(
        SplitError,
        match=r"the folder holds dev_as_train\.tsv.*in place of the folder.*--train FILE too",
    ):
        read_splits(DataFiles(str(tmp_path)), "classify")


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


def test_the_share_is_drawn_by_the_seed():
    examples = [Example((str(n),), "1") for n in range(50)]
    assert hold_out(examples, 0.2, seed=3) == hold_out(examples, 0.2, seed=3)
    assert hold_out(examples, 0.2, seed=3) != hold_out(examples, 0.2, seed=4)


def test_rows_of_one_text_and_of_one_question_stay_together():
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


@pytest.mark.parametrize("seed", range(20))
def test_the_last_text_of_a_label_is_never_held_out(seed):
    examples = [Example((str(n),), label) for n, label in enumerate("0" * 6 + "11" + "2")]
    rest, held = hold_out(examples, 0.5, seed=seed)
    assert {e.label for e in rest} == {"0", "1", "2"}
    assert len(held) == 5
    with pytest.raises(SplitError, match="Every training row has a label that no other text has"):
        hold_out(examples[5::2], 0.5, seed=seed)


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


def test_a_split_is_read_from_a_file_or_a_folder(tmp_path):
    texts(tmp_path, "test", "a")
    assert read(read_split(str(tmp_path), "test", "classify")) == ["a"]
    assert read(read_split(str(tmp_path / "test.tsv"), "dev", "classify")) == ["a"]
    with pytest.raises(DataError, match=r"nowhere: can't be read"):
        read_split(str(tmp_path / "nowhere"), "test", "classify")


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


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("rows.jsonl", "classify"),
        ("squad.json", "qa"),
        ("links.jsonl", "link"),
        ("tags.conll", "ner"),
    ],
)
def test_a_file_of_another_encoding_says_so_and_is_read_if_it_is_named(
    name, task, tmp_path, monkeypatch
):
    text = data_file(name, 0).decode().replace("\\u597d", "好").replace('"ab"', '"好的"')
    (tmp_path / name).write_bytes(text.encode("gb18030"))
    with pytest.raises(DataError, match=rf"{name}, line \d+: byte 0x.* is not UTF-8.*GB18030"):
        read_split(str(tmp_path / name), "train", task)
    monkeypatch.setenv("KBERT_ENCODING", "gb18030")
    assert read_split(str(tmp_path / name), "train", task)
