"""Loaders of labelled data: the release's formats, and what is wrong with a file."""

import gzip
import lzma
import os
from pathlib import Path

import pytest

from kbert_core.errors import DataError, OptionError, SplitError
from kbert_lab.data.files import parse_columns
from kbert_lab.data.labelled import (
    Example,
    check_labels,
    read_examples,
    warn_of_rare_labels,
)
from kbert_lab.data.sources import find_split, read_split
from kbert_lab.data.tables import plain_lines

ONE_A_LINE = (
    ("有 O", "糖 B-D", "尿 I-D", "病 I-D", "", "\u3000 O", "好 O"),
    ("", "有\tO", "糖\tB-D", "尿\tI-D", "病\tI-D", "", "", "\u3000\tO", "好\tO", ""),
    (
        *("-DOCSTART- -X- O", "", "有 VV O", "糖 NN  B-D", "尿 NN I-D", "病 NN I-D"),
        *("-DOCSTART- -X- O", "\u3000 PU O", "好 VA O"),
    ),
)


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


TAGGED = [  # tokens, tags, and the text and its entities that they make
    ("有 糖 尿 病", "O B-D I-D I-D", "有糖尿病", [(1, 4, "D")]),
    ("treat Parkinson 's now", "O B-D I-D O", "treat Parkinson 's now", [(6, 18, "D")]),
    ("甲 \u3000 乙 丙", "O O B-P I-P", "甲\u3000乙丙", [(2, 4, "P")]),  # white space is a token
    ("甲 乙 丙", "I-P O B-P", "甲乙丙", [(2, 3, "P")]),  # I- alone begins nothing
    ("患者 有 糖尿病", "O O O", "患者有糖尿病", []),
    ("用 iPhone X 拍 的", "O O O O O", "用iPhone X拍的", []),
    ("Parkinson ' s", "O O O", "Parkinson ' s", []),
    ("2 0 年", "O O O", "20年", []),
]


@pytest.mark.parametrize(("tokens", "tags", "text", "spans"), TAGGED)
def test_tokens_are_joined_as_their_script_is_written(tmp_path, tokens, tags, text, spans):
    file = write(tmp_path / "train.tsv", "text_a\tlabel", f"{tokens}\t{tags}")
    (example,) = read_examples(file, "ner")
    assert example.sentences == (text,)
    assert [text[a:b] for a, b in example.words] == tokens.split(" ")
    assert [*example.spans] == spans


NER = "text_a\tlabel"
NO_TAGS = [  # a word, and what to write
    ("LABEL_1", "It is the number of a label. Write the tag that it stands for"),
    ("Disease", "If 'Disease' is a type, write B-Disease for the first token of an entity and I-"),
    ("B_D", "Write B-D for it"),
    ("D-B", "Write B-D for it"),
    ("B", "It names no type. Write it with one, as in B-Disease"),
    ("7", "Expected O, B-TYPE or I-TYPE.$"),
]
NO_TAG = "the label '{}' isn't a BIO tag.*{}"
JSON = ["", '{"text": "好", "label": 1}']
AS_JSON = r"found JSON.* a name that ends with \.jsonl"
WHOLE = ["患者行胃镜检查未见异常 O", "", "胃痛 O", "复查胃镜后回家休息 O"]  # sentences, no tokens
REFUSED = [  # task, file, its lines, and what is said of them
    *(("ner", "a.tsv", [NER, "甲\tO", f"甲\t{w}"], NO_TAG.format(w, how)) for w, how in NO_TAGS),
    ("ner", "a.tsv", [], r"a\.tsv: the file is empty"),
    ("ner", "a.tsv", [NER], r"a\.tsv: no labelled line"),
    ("ner", "a.tsv", [NER, "甲\tO", "甲 乙\tO"], r"a\.tsv, line 3: 2 tokens and 1 labels"),
    ("ner", "a.tsv", [NER, "有 糖 尿\tO B-D E_D"], r"a BIO tag \(token 3, '尿'\).*Write E-D"),
    ("ner", "a.tsv", [NER, "甲  乙\tO O O"], "line 2: token 2 is empty"),
    ("ner", "a.conll", ["有 O", "痛 O", "痛 B"], r"line 3: the tag 'B' names no type\. Write it"),
    ("ner", "a.conll", ["1\t患\tO", "2\t糖\tB-D", "3\t尿\tI-D"], "line 3: the first column num"),
    ("ner", "a.conll", ["He O", "met O", "Ann PER", "O O"], "line 3: 'Ann PER' isn't.*write B-PER"),
    ("ner", "a.conll", ["He LABEL_0", "met LABEL_0"], "line 1: the label 'LABEL_0'.*the number"),
    ("ner", "a.conll", ["a E-X", "b O", "c I-X", "d E-X"], "0 entities .* and 2 have none"),
    ("ner", "a.conll", ["患者头痛三天。 B-S", "无发热， O"], "line 1: the token '患者头痛三天。'"),
    ("ner", "a.conll", WHOLE, "as do 2 of"),
    ("mask", "a.txt", ["患 O", "糖 B-D", "尿 I-D"], "per line, but the task is fill-mask"),
    *((task, f"a.{end}", JSON, AS_JSON) for task, end in (("mask", "txt"), ("pair", "tsv"))),
    ("pair", "a.tsv", ["label\ttext_a", "1\tx"], r"line 1: no column 'text_b'.*text_b=NAME"),
    ("classify", "a.tsv", ["label\ttext_a", "1\tx", "1"], "line 3: found 1 fields"),
    ("classify", "a.tsv", ["label\ttext_a", "1\t \u3000"], "line 2: text_a is blank"),
    ("pair", "a.tsv", ["label\ttext_a\ttext_b", "1\t甲\t"], "line 2: text_b is blank"),
    ("rank", "a.tsv", ["甲\t乙\t1", "甲\t丙\tyes"], "line 2: the label is 'yes', expected 1"),
    ("rank", "a.tsv", ["甲\t乙", "甲\t丙"], "line 1: no column 'label'"),
]


@pytest.mark.parametrize(("task", "name", "lines", "said"), REFUSED)
def test_a_file_that_does_not_fit_is_refused_with_its_line_and_a_remedy(
    tmp_path, task, name, lines, said
):
    with pytest.raises(DataError, match=said):
        read_examples(write(tmp_path / name, *lines), task)


def test_long_names_among_words_are_no_sentences(tmp_path):
    for lines in (["患者 O", "中华人民共和国卫生部 B-O", "。 O"], ["Donaudampfschiff O", "a,so O"]):
        assert read_examples(write(tmp_path / "train.conll", *lines), "ner")


def test_a_missing_split_and_a_missing_folder_are_named(tmp_path):
    write(tmp_path / "dev_as_train.tsv", "label\ttext_a", "1\t甲")
    said = r"no train\.tsv; the folder holds dev_as_train\.tsv.*in place of.*--train FILE too"
    with pytest.raises(SplitError, match=said):
        find_split(tmp_path, "train")
    with pytest.raises(DataError, match="no such folder"):
        find_split(tmp_path / "nowhere", "train")


@pytest.mark.parametrize("lines", ONE_A_LINE)
def test_one_token_a_line_is_read_as_sentences(tmp_path, lines):
    first, second = read_examples(write(tmp_path / "train.txt", *lines), "ner")
    assert [*first.sentences, *second.sentences] == ["有糖尿病", "\u3000好"]
    assert first.spans == ((1, 4, "D"),)
    assert not second.spans
    assert lines[second.line - 1].startswith("\u3000")
    assert first.place == f"{tmp_path / 'train.txt'}, line {first.line}"
    assert lines[first.line - 1].startswith("有")
    file = write(tmp_path / "train.conll", "患\tO ", "糖\tB-D ", "尿\tI-D\r")  # spaces, too
    assert read_examples(file, "ner")[0].tags == ("O", "B-D", "I-D")


@pytest.mark.parametrize("line", ["糖", "糖尿病 Disease", "\tO", "# id 1"])
@pytest.mark.parametrize("at", [0, 3])
def test_a_line_without_a_token_or_its_tag_is_named(tmp_path, line, at):
    lines = ["有 O", "", "有 O"]
    file = write(tmp_path / "train.conll", *lines[:at], line, *lines[at:])
    said = rf"train\.conll, line {at + 1}: '{line}' isn't a token followed by its tag"
    with pytest.raises(DataError, match=said):
        read_examples(file, "ner")


SCHEMES = {  # tags of rows, and the same in BIO
    "IOB1": ("I-P I-P O I-Q B-Q I-P", "B-P I-P O B-Q B-Q B-P"),
    "BIOES": ("B-P E-P S-P B-Q I-Q E-Q O", "B-P I-P B-P B-Q I-Q I-Q O"),
    "BMES": ("B-P M-P E-P O S-Q", "B-P I-P I-P O B-Q"),
    "BILOU": ("B-P I-P L-P U-P O U-Q", "B-P I-P I-P B-P O B-Q"),
}


@pytest.mark.parametrize(("scheme", "tags", "bio"), [(n, *both) for n, both in SCHEMES.items()])
def test_tags_of_another_scheme_become_bio_and_it_is_said(tmp_path, caplog, scheme, tags, bio):
    tokens = "甲乙丙丁戊己庚"[: len(tags.split())]
    rows = (f"{' '.join(tokens)}\t{tags}", "甲 乙\tO O")
    first, second = read_examples(write(tmp_path / "a.tsv", "text_a\tlabel", *rows), "ner")
    assert (first.tags, second.tags) == (tuple(bio.split()), ("O", "O"))
    assert caplog.messages == [
        f"{tmp_path / 'a.tsv'}: the tags are {scheme}; they are read as BIO (IOB2)."
    ]
    lines = map("{} {}".format, tokens, tags.split())
    assert read_examples(write(tmp_path / "a.conll", *lines), "ner") == [first]


def test_one_beginning_at_another_place_tells_bio_from_iob1(tmp_path, caplog):
    rows = ("甲 乙 丙\tI-X O I-X", "甲\tB-X")
    found = read_examples(write(tmp_path / "a.tsv", "text_a\tlabel", *rows), "ner")
    assert [len(example.spans) for example in found] == [0, 1]
    said = "2 entities begin with I- instead of B- and are read as O, the first in line 2. Write B-"
    assert f"{tmp_path / 'a.tsv'}: {said}" in caplog.text
    many = write(tmp_path / "b.tsv", "text_a\tlabel", *rows[:1] * 6, rows[1])
    with pytest.raises(DataError, match="1 entities have a tag that begins them, and 12 have none"):
        read_examples(many, "ner")


def test_a_quotation_mark_or_another_line_end_is_a_character_like_any_other(tmp_path):
    file = write(tmp_path / "a.tsv", "label\ttext_a", '1\t"甲\u2028乙', '0\t"乙" 说"')
    assert [e.sentences[0] for e in read_examples(file, "classify")] == ['"甲\u2028乙', '"乙" 说"']


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz", "a.csv", "a.csv.gz"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_labelled_table_takes_what_a_table_of_triples_takes(
    tmp_path, monkeypatch, name, encoding, end
):
    between = "\t" if ".tsv" in name else ";"
    rows = ("text,label", "Übelkeit,häufig", ",", "Fieber,NA", "")
    text = end.join(rows).replace(",", between)
    data = (text if between == "\t" else f"sep=;{end}{text}").encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    if encoding == "cp1252":
        with pytest.raises(DataError, match=r"CP1252 \('Übelkeit.*häufig'\).* --encoding cp1252"):
            read_split(str(tmp_path / name), "train", "classify")
        monkeypatch.setenv("KBERT_ENCODING", encoding)
    found = read_split(str(tmp_path / name), "train", "classify")
    texts = [(*e.sentences, e.label) for e in found]
    assert texts == [("Übelkeit", "häufig"), ("Fieber", "NA")]


def test_packed_json_lines_are_labelled_rows(tmp_path):
    row = '{"text": "甲", "label": "1"}\n'
    (tmp_path / "train.jsonl.gz").write_bytes(gzip.compress(row.encode()))
    for name in (tmp_path, tmp_path / "train.jsonl.gz"):
        assert read_split(str(name), "train", "classify")[0].sentences == ("甲",)


def test_json_is_no_plain_text():
    for first in ("[MASK] is red", "[1] as they say", "[2019]", "2019", "{a} and {b}"):
        lines = ["", first, '{"a": 1}']
        assert [*plain_lines(iter(lines), "a.txt")] == lines
    for first in ('{"text": "a"}', '["a", "b"]', '[{"text": "a"},', "["):
        with pytest.raises(DataError, match=r"a\.txt: found JSON, .*expected plain.* jq does it"):
            list(plain_lines(iter(["", first]), "a.txt"))


def test_an_example_knows_where_it_stands_and_is_equal_by_content(tmp_path):
    file = write(tmp_path / "a.tsv", "label\ttext_a", "1\t甲", "", "1\t甲")
    first, second = read_examples(file, "classify")
    assert (first.place, second.place) == (f"{file}, line 2", f"{file}, line 4")
    assert first == second
    assert Example(("甲乙",)).place == "the example '甲乙'"


def test_a_label_that_is_not_known_is_named_with_file_and_line(tmp_path):
    file = write(tmp_path / "a.tsv", "label\ttext_a", "1\t甲", "2\t乙")
    said = r"a\.tsv, line 3: the label '2' is not among those of the model \(0, 1\)"
    with pytest.raises(DataError, match=said):
        check_labels(read_examples(file, "classify"), ["0", "1"], "the model")
    tagged = read_examples(write(tmp_path / "b.tsv", "text_a\tlabel", "甲 乙\tO B-X"), "ner")
    with pytest.raises(DataError, match=r"b\.tsv, line 2: the label 'B-X'"):
        check_labels(tagged, ["O", "B-Y", "I-Y"], "the model")
    check_labels(tagged, ["O", "B-X", "I-X"], "the model")


def test_a_class_with_one_example_is_warned_of_with_file_and_line(tmp_path, caplog):
    file = write(tmp_path / "a.tsv", "label\ttext_a", "1\t甲", "0\t乙", "0\t丙")
    warn_of_rare_labels(read_examples(file, "classify"))
    assert f"{tmp_path / 'a.tsv'}, line 2: the only training example of '1'" in caplog.text
    assert "of '0'" not in caplog.text
    rows = ["甲 乙\tB-X I-X", "丙 丁\tB-Y B-X"]
    warn_of_rare_labels(read_examples(write(tmp_path / "b.tsv", "text_a\tlabel", *rows), "ner"))
    assert "b.tsv, line 3: the only training example of 'Y'" in caplog.text
    assert "of 'X'" not in caplog.text
    caplog.clear()
    warn_of_rare_labels([Example(("甲",), str(n)) for n in range(12)])
    assert len(caplog.messages) == 6
    assert caplog.messages[-1] == "7 more labels have a single training example."


def test_columns_can_be_named_and_common_names_are_known(tmp_path):
    file = write(tmp_path / "a.tsv", "sentence1\tsentence2\tlabel\tgold", "甲\t乙\t1\tyes")
    assert read_examples(file, "pair") == [Example(("甲", "乙"), "1")]
    named = parse_columns("text_a=sentence2, text_b=sentence1,label=gold")
    assert read_examples(file, "pair", named) == [Example(("乙", "甲"), "yes")]
    said = r"line 1: no column 'nix' for label\. There are 'sentence1'"
    with pytest.raises(DataError, match=said):
        read_examples(file, "pair", {"label": "nix"})
    for wrong in ("text=a", "label", "label="):
        with pytest.raises(OptionError, match="--columns has"):
            parse_columns(wrong)


def test_scores_as_labels_are_refused_and_many_numbers_told(tmp_path, caplog):
    for labels in (["4", "3.75"], ["0.2", "0.9"], ["-1.5", "2"]):
        rows = (f"{label}\t甲{n}\t乙" for n, label in enumerate(labels))
        file = write(tmp_path / "a.tsv", "label\ttext_a\ttext_b", *rows)
        with pytest.raises(DataError, match=r"a\.tsv, line [23]: the label is .*\.\d+, a score"):
            read_examples(file, "pair")
    for labels in (["1.0", "0.0"], ["v1.5", "2"], ["1.5", "none"], ["2016", "2017"] * 20):
        rows = (f"{label}\t甲{n}" for n, label in enumerate(labels))
        assert read_examples(write(tmp_path / "b.tsv", "label\ttext_a", *rows), "classify")
    assert not caplog.messages
    rows = (f"{n}\t甲{n}" for n in range(21))
    read_examples(write(tmp_path / "c.tsv", "label\ttext_a", *rows), "classify")
    assert "the labels are 21 numbers in 21 rows, and each is read as a class" in caplog.text


def test_a_workbook_and_a_broken_packed_file_are_refused_with_their_own_remedy(tmp_path):
    (tmp_path / "train.tsv.xz").write_bytes(b"no xz")
    with pytest.raises(DataError, match=r"can't be unpacked, .* Get or pack the file again"):
        read_examples(tmp_path / "train.tsv.xz", "ner")
    (tmp_path / "a.tsv").write_bytes(b"PK\x03\x04\x14\0\xe2")
    with pytest.raises(DataError, match=r"a\.tsv: is an Excel workbook .* Save it as CSV"):
        read_examples(tmp_path / "a.tsv", "classify")


ROWS = [("q1", "甲？", "乙", "0"), ("q1", "甲？", "丙", "1"), ("q2", "丁？", "戊", "0")]


@pytest.mark.parametrize(
    ("header", "row"),
    [
        (None, "{1}\t{2}\t{3}"),  # NLPCC-DBQA 2016
        (None, "{3}\t{1}\t{2}"),  # 2017
        ("qid\tlabel\ttext_a\ttext_b", "{0}\t{3}\t{1}\t{2}"),  # the released K-BERT's files
        ("question\tanswer\tlabel", "{1}\t{2}\t{3}"),
        ("label\ttext_a\ttext_b", "{3}\t{1}\t{2}"),
    ],
)
def test_answers_are_read_in_every_form_they_are_published_in(tmp_path, header, row):
    rows = [row.format(*values) for values in ROWS]
    file = write(tmp_path / "a.tsv", *([header] if header else []), *rows)
    found = read_examples(file, "rank")
    assert [(e.sentences, e.label) for e in found] == [((q, a), la) for _, q, a, la in ROWS]
    assert found[0].group == found[1].group != found[2].group
    assert found[0].group == ("q1" if "qid" in str(header) else "甲？")
    assert found[0].line == (2 if header else 1)
    numbered = ["1\t0\t甲\t乙", "2\t1\t甲\t丙"]  # one text, two questions
    file = write(tmp_path / "b.tsv", "qid\tlabel\ttext_a\ttext_b", *numbered)
    assert [e.group for e in read_examples(file, "rank")] == ["1", "2"]


# The published files, where they are, beside an obvious second reading; large ones wait for soak.
DATA = Path(os.environ.get("KBERT_DATA", "."))
TASKS = {"ner": "kbert/*_ner ner/*", "classify": "kbert/[bcs]* cls/*", "pair": "pair/*"}
FILES = [
    pytest.param(
        task,
        file,
        marks=[pytest.mark.soak] * (file.stat().st_size > 800_000),
        id=str(file.relative_to(DATA)),
    )
    for task, folders in TASKS.items()
    for folder in folders.split()
    for file in sorted(DATA.glob(f"{folder}/*.tsv*"))
]


@pytest.mark.skipif("KBERT_DATA" not in os.environ, reason="KBERT_DATA isn't set")
@pytest.mark.parametrize(("task", "path"), FILES)
def test_published_files_are_read_whole(task, path):
    data = path.read_bytes()
    text = (lzma.decompress(data) if path.suffix == ".xz" else data).decode("utf-8")
    header, *lines = text.rstrip("\n").split("\n")
    rows = [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]
    examples = read_examples(path, task)
    assert len(examples) == len(rows) > 100
    if task != "ner":
        columns = [column for column in ("text_a", "text_b") if column in rows[0]]
        assert [e.sentences for e in examples] == [tuple(row[c] for c in columns) for row in rows]
        assert [e.label for e in examples] == [row["label"] for row in rows]
        return
    between = " " if "bc5cdr" in str(path) else ""
    for number, (example, row) in enumerate(zip(examples, rows, strict=True), start=2):
        tokens, text = row["text_a"].split(" "), example.sentences[0]
        assert (example.line, text) == (number, between.join(tokens))
        assert [*example.tags] == row["label"].split(" ")
        assert [text[a:b] for a, b in example.words] == tokens  # white space too: no label shifts
        assert len(example.spans) == sum(tag.startswith("B-") for tag in example.tags)
