"""What `kbert audit` reads: files, saved folders, tables, hub names; the task guessed."""

import lzma

import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, Sequence, Value, config

from kbert_core.errors import DataError
from kbert_core.words import Characters, Words
from kbert_lab.data.sources import guess_task, other_task
from kbert_lab.study.audit_values import plain_tokenizer, read_data


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "HF_DATASETS_CACHE", tmp_path / "cache")


def entities(*texts, tags=(0, 1, 2, 2)):
    """Texts of a character and a name of three; the tags are named classes."""
    names = ClassLabel(names=["O", "B-D", "I-D"])
    columns = Features({"tokens": Sequence(Value("string")), "ner_tags": Sequence(names)})
    rows = {"tokens": [list(text) for text in texts], "ner_tags": [list(tags)] * len(texts)}
    return Dataset.from_dict(rows, features=columns)


def table(**columns):
    return Dataset.from_dict(columns)


@pytest.fixture
def saved(tmp_path):
    """A saved data set for named entities, and a graph that knows one of its names."""
    splits = {"train": entities("有糖尿病", "无糖尿病"), "validation": entities("有关节炎")}
    DatasetDict(**splits, test=entities("有糖尿病")).save_to_disk(tmp_path / "saved")
    (tmp_path / "kg.spo").write_text("糖尿病\t类别\t疾病\n", encoding="utf-8")
    return tmp_path / "saved"


def test_a_saved_folder_is_audited_with_its_task_guessed(saved, kbert):
    arguments = ("--data", saved, "--kg", saved.parent / "kg.spo", "--json")
    found = kbert("audit", *arguments)
    assert (found["data"], found["task"]) == ("saved", "ner")
    assert [found["splits"][split]["examples"] for split in ("train", "dev", "test")] == [2, 1, 1]
    assert found["splits"]["test"]["mentions"]["all"]["known"]["count"] == 1
    assert found["splits"]["dev"]["mentions"]["all"]["known"]["count"] == 0


@pytest.mark.parametrize("ending", ["txt", "conll", "bio.xz"])
def test_a_folder_with_one_token_a_line_is_read(tmp_path, ending):
    lines = "有 O\n糖 B-D\n尿 I-D\n病 I-D\n\n无 O\n".encode()
    for split in ("train", "test"):
        data = lzma.compress(lines) if ending.endswith("xz") else lines
        (tmp_path / f"{split}.{ending}").write_bytes(data)
    found = read_data(tmp_path)
    assert (found.task, list(found.splits)) == ("ner", ["train", "test"])
    assert [example.spans for example in found.splits["test"]] == [((1, 4, "D"),), ()]


def test_a_single_table_or_file_is_a_training_set(tmp_path):
    table(text=["a b", "c"], label=["x", "y"]).to_csv(tmp_path / "mine.csv", index=False)
    data = read_data(tmp_path / "mine.csv")
    assert (data.name, data.task, list(data.splits)) == ("mine.csv", "classify", ["train"])
    (tmp_path / "mine.tsv").write_text("label\ttext_a\n1\ta\n")
    assert list(read_data(tmp_path / "mine.tsv").splits) == ["train"]


def test_a_dev_set_by_another_name_is_read_and_files_not_used_are_named(tmp_path, kbert, caplog):
    for name in ("train", "devel", "testing", "more"):
        rows = "甲\t1\n乙\t0\n" * (1 + (name == "more"))
        (tmp_path / f"{name}.tsv").write_text(f"text_a\tlabel\n{rows}", encoding="utf-8")
    (tmp_path / "kg.spo").write_text("甲\t是\t天干\n", encoding="utf-8")
    arguments = ("--data", tmp_path, "--kg", tmp_path / "kg.spo", "--json")
    found = kbert("audit", *arguments)
    assert list(found["splits"]) == ["train", "dev"]
    assert f"{tmp_path}: not used: more.tsv, testing.tsv. Name a file with --dev" in caplog.text
    caplog.clear()
    others = ("--dev", tmp_path / "more.tsv", "--test", tmp_path / "testing.tsv")
    found = kbert("audit", *arguments, *others)
    sizes = {split: of["examples"] for split, of in found["splits"].items()}
    assert sizes == {"train": 2, "dev": 4, "test": 2}
    assert f"{tmp_path}: not used: devel.tsv. Name" in caplog.text  # neither of those named
    said = kbert("audit", *arguments, "--dev", tmp_path / "gone.tsv", code=2).err
    assert "gone.tsv" in said


@pytest.mark.parametrize(
    ("columns", "task"),
    [
        ({"tokens": [["a", "b"]], "ner_tags": [["O", "B-X"]]}, "ner"),
        ({"text": ["a b"], "label": ["O B-X"]}, "classify"),  # a text is no column of tokens
        ({"text_a": ["a b"], "label": ["O B-X"]}, "ner"),
        ({"sentence": ["a"], "label": [1]}, "classify"),
        ({"premise": ["a"], "hypothesis": ["b"], "label": [1]}, "pair"),
        ({"question": ["a"], "answer": ["b"], "label": [1]}, "pair"),
        ({"qid": [1], "question": ["a"], "answer": ["b"], "label": [1]}, "rank"),
        ({"text": ["a", "b"], "label": [["x"], ["y"]]}, "multilabel"),
    ],
)
def test_the_task_is_guessed_from_the_columns_of_a_table(tmp_path, columns, task):
    table(**columns).to_parquet(tmp_path / "train.parquet")
    assert guess_task(tmp_path) == task
    if task == "multilabel":
        with pytest.raises(DataError, match="'label' for label has several values per row"):
            read_data(tmp_path, task="classify")


def test_columns_that_tell_no_task_are_named_and_task_and_columns_asked_for(tmp_path, kbert):
    made = table(a=["x", "y"], b=["u", "v"], c=[0, 1], wide=[0.5, 1.5])
    made.to_parquet(tmp_path / "train.parquet")
    (tmp_path / "kg.spo").write_text("x\ty\tz\n")
    arguments = ("--data", tmp_path, "--kg", tmp_path / "kg.spo")
    said = kbert("audit", *arguments, code=2).err
    assert "its columns (a, b, c, wide) don't show which task this is" in said
    assert "--task (ner, classify, multilabel, pair, rank)" in said
    said = kbert("audit", *arguments, "--task", "pair", code=2).err
    assert "--columns label=NAME" in said
    named = kbert("audit", *arguments, "--columns", "text_a=a,text_b=b,label=c").out
    assert "(sentence pairs)" in named
    wrong = kbert("audit", *arguments, "--columns", "text_a=a,label=d", code=2).err
    assert "no column 'd' for label" in wrong


# Files of this project's own form


@pytest.mark.parametrize(
    ("text", "task"),
    [
        ("text_a\tlabel\n头 痛\tB-S I-S\n无\tO\n", "ner"),
        ("label\ttext_a\n1\t头 痛\nO\t无\n", "classify"),
        ("label\ttext_a\tmore\nO\t无\t\n", "ner"),
        ("label\ttext_a\ttext_b\n1\ta\tb\n", "pair"),
        ("qid\tlabel\ttext_a\ttext_b\n1\t1\ta\tb\n", "rank"),
        ("text_a\tlabel\n头 痛\tB-S I-S\n头 痛 了\tB-S X\n胃 痛 了\tB-S O\n", "ner"),
        ("text_a\tlabel\n头 痛\tB-S I-S\n癌\tX\n", "ner"),
        ("text_a\tlabel\n头 痛 了\tS S O\n", "ner"),  # types without a border
        ("患 LABEL_0\n头 LABEL_1\n", "ner"),
        ("text_a\tlabel\n头痛\tO\n胃痛\tO\n发热\tA\n", "classify"),  # blood groups
        ("label\ttext_a\nO\t头痛\nB-1\t胃痛\nS-2\t发热\n", "classify"),  # classes like tags
        ("# id 1\n患\tO\n头\tB-S\n痛\tI-S\n", "ner"),
        ("label\ttext_a\ttext_b\n1\tq\tE-mail\n0\tq\tI-95\n", "pair"),
    ],
)
def test_the_task_is_guessed_from_the_form_of_the_data(tmp_path, text, task):
    (tmp_path / "train.tsv").write_text(text, encoding="utf-8")
    assert guess_task(tmp_path / "train.tsv") == task


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("胃 炎\tB-S X", "line 3: the label 'X' isn't a BIO tag"),
        ("胃 炎\tB-S E_S", "line 3: the label 'E_S' isn't a BIO tag.*Write E-S"),
    ],
)
def test_a_broken_row_of_named_entities_is_named_not_taken_for_a_class(tmp_path, row, message):
    path = tmp_path / "train.tsv"
    path.write_text(f"text_a\tlabel\n头 痛\tB-S I-S\n{row}\n", encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_data(tmp_path)
    assert other_task(path, "ner") == ""


def test_another_task_is_named_only_where_the_rows_are_sure(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text("text_a\tlabel\n头 痛\t1\n胃 痛\t0\n", encoding="utf-8")
    assert "look like classification" in other_task(path, "ner")
    for empty in ("text_a\tlabel\n", "text_a\ttext_b\tlabel\n"):
        path.write_text(empty, encoding="utf-8")
        assert other_task(path, "ner") == ""


def test_a_missing_training_set_is_an_error_and_tokens_are_words_where_spaces_part_them(tmp_path):
    with pytest.raises(DataError, match=r"no train\.tsv"):
        read_data(tmp_path)
    for text, kind in (("糖尿病", Characters), ("a good book", Words)):
        (tmp_path / "train.tsv").write_text(f"label\ttext_a\n1\t{text}\n", encoding="utf-8")
        assert isinstance(plain_tokenizer(read_data(tmp_path)), kind)
