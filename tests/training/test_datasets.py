"""Loaders of labelled data: the release's formats, and what is wrong with a file."""

import os
from pathlib import Path

import pytest

from kbert_core.errors import DataError
from kbert_core.training.datasets import find_split, labels_of, read_examples


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_ner_rows_of_characters_become_a_text_without_spaces(tmp_path):
    file = write(tmp_path / "train.tsv", "text_a\tlabel", "有 糖 尿 病\tO B-D I-D I-D")
    (example,) = read_examples(file, "ner")
    assert example.sentences == ("有糖尿病",)
    assert example.words == ((0, 1), (1, 2), (2, 3), (3, 4))
    assert example.spans == ((1, 4, "D"),)


def test_ner_rows_of_words_become_a_text_with_spaces(tmp_path):
    file = write(tmp_path / "train.tsv", "text_a\tlabel", "treat Parkinson 's now\tO B-D I-D O")
    (example,) = read_examples(file, "ner")
    assert example.sentences == ("treat Parkinson 's now",)
    assert example.spans == ((6, 18, "D"),)
    assert example.sentences[0][6:18] == "Parkinson 's"


def test_a_token_of_white_space_shifts_no_label(tmp_path):
    file = write(tmp_path / "train.tsv", "text_a\tlabel", "甲 \u3000 乙 丙\tO O B-P I-P")
    (example,) = read_examples(file, "ner")
    assert example.sentences[0][2:4] == "乙丙"
    assert example.spans == ((2, 4, "P"),)


def test_an_orphan_inside_tag_is_no_span(tmp_path):
    file = write(tmp_path / "train.tsv", "text_a\tlabel", "甲 乙 丙\tI-P O B-P")
    assert read_examples(file, "ner")[0].spans == ((2, 3, "P"),)


def test_unequal_numbers_of_tokens_and_labels_are_named_with_file_and_line(tmp_path):
    file = write(tmp_path / "train.tsv", "text_a\tlabel", "甲\tO", "甲 乙\tO")
    with pytest.raises(DataError, match=r"train\.tsv, line 3: 2 tokens and 1 labels"):
        read_examples(file, "ner")


def test_a_tag_outside_bio_is_named(tmp_path):
    file = write(tmp_path / "train.tsv", "text_a\tlabel", "甲\tDisease")
    with pytest.raises(DataError, match="'Disease' is no BIO tag"):
        read_examples(file, "ner")


def test_a_missing_column_and_a_missing_field_are_named(tmp_path):
    with pytest.raises(DataError, match="line 1: no column 'text_b'"):
        read_examples(write(tmp_path / "a.tsv", "label\ttext_a", "1\tx"), "pair")
    with pytest.raises(DataError, match="line 3: found 1 fields"):
        read_examples(write(tmp_path / "b.tsv", "label\ttext_a", "1\tx", "1"), "classify")


def test_pairs_and_classes_are_read_by_the_names_of_their_columns(tmp_path):
    file = write(tmp_path / "dev.tsv", "text_a\ttext_b\tlabel", "甲\t乙\t1")
    (example,) = read_examples(file, "pair")
    assert (example.sentences, example.label) == (("甲", "乙"), "1")


def test_an_empty_file_a_header_alone_and_a_missing_folder_are_refused(tmp_path):
    (tmp_path / "empty.tsv").write_bytes(b"")
    with pytest.raises(DataError, match="no column"):
        read_examples(tmp_path / "empty.tsv", "ner")
    with pytest.raises(DataError, match="no labelled row"):
        read_examples(write(tmp_path / "head.tsv", "text_a\tlabel"), "ner")
    with pytest.raises(DataError, match="no such folder"):
        find_split(tmp_path / "nowhere", "train")


def test_labels_put_outside_first_and_begin_before_inside(tmp_path):
    file = write(tmp_path / "train.tsv", "text_a\tlabel", "甲 乙\tB-X I-X", "丙\tB-A")
    assert labels_of(read_examples(file, "ner")) == ["O", "B-A", "I-A", "B-X", "I-X"]


def test_an_inside_tag_that_goes_on_from_nothing_is_told(tmp_path, caplog):
    file = write(tmp_path / "a.tsv", "text_a\tlabel", "甲 乙\tB-X I-X", "丙 丁\tI-X I-X")
    assert read_examples(file, "ner")[1].spans == ()
    assert "1 entities begin with I- instead of B- and are read as O, the first in line 3" in (
        caplog.text
    )


@pytest.mark.skipif("KBERT_DATA" not in os.environ, reason="KBERT_DATA names no data folder")
@pytest.mark.parametrize(
    ("path", "task", "count"),
    [
        ("kbert/medical_ner/test.tsv", "ner", 755),
        ("ner/medical_ner_dedup/train.tsv", "ner", 3945),
        ("kbert/financial_ner/dev.tsv", "ner", 2910),
        ("kbert/chnsenticorp/dev.tsv", "classify", 1200),
        ("ner/bc5cdr_en/dev.tsv", "ner", 4581),
    ],
)
def test_published_files_are_read_whole(path, task, count):
    examples = read_examples(Path(os.environ["KBERT_DATA"]) / path, task)
    assert len(examples) == count
    for example in examples:
        for (start, end), tag in zip(example.words, example.tags, strict=True):
            assert tag == "O" or example.sentences[0][start:end]
