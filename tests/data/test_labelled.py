"""Loaders of labelled data: the release's formats, and what is wrong with a file."""

import gzip
import lzma
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.scheme import BILOU, IOB1, IOB2, IOBES, Entities

from kbert_core.errors import DataError, OptionError, SplitError
from kbert_core.labels import bio_spans
from kbert_lab.data.labelled import (
    Example,
    check_labels,
    labels_of,
    read_examples,
    warn_of_rare_labels,
)
from kbert_lab.data.sources import find_split, read_split
from kbert_lab.data.tables import parse_columns, plain_lines
from kbert_lab.data.tagging import as_bio, scheme_of

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
    with pytest.raises(DataError, match="'Disease' isn't a BIO tag"):
        read_examples(file, "ner")


@pytest.mark.parametrize("lines", ONE_A_LINE)
def test_one_token_a_line_is_read_as_sentences(tmp_path, lines):
    first, second = read_examples(write(tmp_path / "train.txt", *lines), "ner")
    assert [*first.sentences, *second.sentences] == ["有糖尿病", "\u3000好"]
    assert first.spans == ((1, 4, "D"),)
    assert not second.spans
    assert lines[second.line - 1].startswith("\u3000")
    assert first.place == f"{tmp_path / 'train.txt'}, line {first.line}"
    assert lines[first.line - 1].startswith("有")


def test_the_token_of_a_wrong_tag_and_a_tag_without_a_type_are_named(tmp_path):
    file = write(tmp_path / "train.tsv", "text_a\tlabel", "有 糖 尿\tO B-D E_D")
    with pytest.raises(DataError, match=r"'E_D' isn't a BIO tag \(token 3, '尿'\).*Write E-D"):
        read_examples(file, "ner")
    file = write(tmp_path / "train.conll", "有 O", "痛 O", "痛 B", "")
    with pytest.raises(DataError, match=r"line 3: the tag 'B' names no type\. Write it with one"):
        read_examples(file, "ner")


@pytest.mark.parametrize("line", ["糖", "糖尿病 Disease", "\tO", "# id 1"])
@pytest.mark.parametrize("at", [0, 3])
def test_a_line_without_a_token_or_its_tag_is_named(tmp_path, line, at):
    lines = ["有 O", "", "有 O"]
    file = write(tmp_path / "train.conll", *lines[:at], line, *lines[at:])
    said = rf"train\.conll, line {at + 1}: '{line}' isn't a token followed by its tag"
    with pytest.raises(DataError, match=said):
        read_examples(file, "ner")


def test_a_space_behind_a_tag_makes_no_other_type(tmp_path):
    file = write(tmp_path / "train.conll", "患\tO ", "糖\tB-D ", "尿\tI-D\r")
    assert read_examples(file, "ner")[0].tags == ("O", "B-D", "I-D")


def test_numbers_in_the_place_of_tokens_are_told(tmp_path):
    file = write(tmp_path / "train.conll", "1\t患\tO", "2\t糖\tB-D", "3\t尿\tI-D")
    with pytest.raises(DataError, match=r"line 3: the first column numbers the tokens"):
        read_examples(file, "ner")


def test_one_token_a_line_is_no_text_to_fill(tmp_path):
    file = write(tmp_path / "train.txt", "患 O", "糖 B-D", "尿 I-D")
    with pytest.raises(
        DataError, match="one token with its tag per line, but the task is fill-mask"
    ):
        read_examples(file, "mask")


def test_a_broken_packed_file_gets_its_own_remedy(tmp_path):
    (tmp_path / "train.tsv.xz").write_bytes(b"no xz")
    with pytest.raises(DataError, match=r"can't be unpacked, .* Get or pack the file again"):
        read_examples(tmp_path / "train.tsv.xz", "ner")


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


@pytest.mark.parametrize("scheme", [IOB1, IOB2, IOBES, BILOU])
@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("XY")), max_size=6)))
def test_entities_of_any_scheme_are_those_that_seqeval_reads(scheme, rows):
    """A length in tokens (0: one token outside) and a type each."""
    rows = [[("O", "") if not n else (n, type_) for n, type_ in row] for row in rows]
    tags = [[*tagged(row, scheme.__name__)] for row in rows]
    expected = [
        [(entity.start, entity.end, entity.tag) for entity in sentence]
        for sentence in Entities(tags, scheme).entities
    ]
    named = scheme_of(tags)
    assert [bio_spans(as_bio(row, named)) for row in tags] == expected
    assert sum(map(len, expected)) == sum(kind != "O" for row in rows for kind, _ in row)


def tagged(row, scheme):
    """The tags of entities and outsides, one after another, by the definition of a scheme."""
    before = ""
    for length, type_ in row:
        if length == "O":
            yield "O"
        elif scheme == "IOB1":
            yield from [
                f"B-{type_}" if type_ == before else f"I-{type_}",
                *[f"I-{type_}"] * (length - 1),
            ]
        else:
            alone, last = {"IOB2": "BI", "IOBES": "SE", "BILOU": "UL"}[scheme]
            borders = alone if length == 1 else f"B{'I' * (length - 2)}{last}"
            yield from (f"{border}-{type_}" for border in borders)
        before = type_


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("LABEL_1", "It is the number of a label. Write the tag that it stands for"),
        (
            "Disease",
            "If 'Disease' is a type, write B-Disease for the first token of an entity and I-",
        ),
        ("疾病", "If '疾病' is a type, write B-疾病 for the first token"),
        ("B_D", "Write B-D for it"),
        ("D-B", "Write B-D for it"),
        ("D_I", "Write I-D for it"),
        ("B", "It names no type. Write it with one, as in B-Disease"),
        ("B-", "It names no type"),
        ("7", "Expected O, B-TYPE or I-TYPE.$"),
    ],
)
def test_a_word_that_is_no_tag_is_refused_with_what_to_write(tmp_path, wrong, said):
    file = write(tmp_path / "train.tsv", "text_a\tlabel", "甲\tO", f"甲\t{wrong}")
    with pytest.raises(DataError, match=f"line 3: the label '{wrong}' isn't a BIO tag.*{said}"):
        read_examples(file, "ner")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            ("He O", "met O", "Ann PER", "O O"),
            "line 3: 'Ann PER' isn't a.*write B-PER for the first",
        ),
        (("He LABEL_0", "met LABEL_0", "Ann LABEL_3"), "line 1: the label 'LABEL_0'.*the number"),
        (
            ("a E-X", "b O", "c I-X", "d E-X"),
            "0 entities have a tag that begins them, and 2 have none",
        ),
    ],
)
def test_one_token_a_line_without_borders_is_refused_with_what_to_write(tmp_path, lines, said):
    with pytest.raises(DataError, match=said):
        read_examples(write(tmp_path / "train.conll", *lines), "ner")


def test_one_beginning_at_another_place_tells_bio_from_iob1(tmp_path, caplog):
    rows = ("甲 乙 丙\tI-X O I-X", "甲\tB-X")
    found = read_examples(write(tmp_path / "a.tsv", "text_a\tlabel", *rows), "ner")
    assert [len(example.spans) for example in found] == [0, 1]
    assert "2 entities begin with I- instead of B- and are read as O" in caplog.text
    many = write(tmp_path / "b.tsv", "text_a\tlabel", *rows[:1] * 6, rows[1])
    with pytest.raises(DataError, match="1 entities have a tag that begins them, and 12 have none"):
        read_examples(many, "ner")


def test_a_missing_column_and_a_wrong_number_of_fields_are_named(tmp_path):
    with pytest.raises(DataError, match=r"line 1: no column 'text_b'.*--columns text_b=NAME"):
        read_examples(write(tmp_path / "a.tsv", "label\ttext_a", "1\tx"), "pair")
    with pytest.raises(DataError, match="line 3: found 1 fields"):
        read_examples(write(tmp_path / "b.tsv", "label\ttext_a", "1\tx", "1"), "classify")
    with pytest.raises(DataError, match="line 2: found 3 fields in '1\tx\ty', expected 2"):
        read_examples(write(tmp_path / "c.tsv", "label\ttext_a", "1\tx\ty"), "classify")


@pytest.mark.parametrize(
    ("task", "header", "row", "blank"),
    [
        ("classify", "label\ttext_a", "1\t \u3000", "text_a"),
        ("classify", "label\ttext_a", "\t甲", "label"),
        ("pair", "label\ttext_a\ttext_b", "1\t甲\t", "text_b"),
        ("mask", "label\ttext_a", "1\t", "text_a"),
    ],
)
def test_a_blank_text_or_label_is_named(tmp_path, task, header, row, blank):
    file = write(tmp_path / "a.tsv", header, row)
    with pytest.raises(DataError, match=rf"a\.tsv, line 2: {blank} is blank"):
        read_examples(file, task)


def test_an_empty_token_is_named(tmp_path):
    file = write(tmp_path / "a.tsv", "text_a\tlabel", "甲  乙\tO O O")
    with pytest.raises(DataError, match="line 2: token 2 is empty"):
        read_examples(file, "ner")
    with pytest.raises(DataError, match="line 2: token 1 is empty"):
        read_examples(write(tmp_path / "b.tsv", "text_a\tlabel", "\tO"), "ner")
    words = write(tmp_path / "c.tsv", "text_a\tlabel", "Tim  Cook visits\tB-P I-P I-P O")
    with pytest.raises(DataError, match="line 2: token 2 is empty"):
        read_examples(words, "ner")


def test_a_quotation_mark_is_a_character_like_any_other(tmp_path):
    file = write(tmp_path / "a.tsv", "label\ttext_a", '1\t"甲', '0\t"乙" 说"')
    assert [e.sentences[0] for e in read_examples(file, "classify")] == ['"甲', '"乙" 说"']


def test_lines_end_as_on_any_system_and_at_no_other_character(tmp_path):
    (tmp_path / "a.tsv").write_bytes("\ufefflabel\ttext_a\r\n1\t甲\u2028乙\r\n".encode())
    assert read_examples(tmp_path / "a.tsv", "classify")[0].sentences == ("甲\u2028乙",)


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
    assert [(e.sentences, e.label) for e in found] == [
        (("Übelkeit",), "häufig"),
        (("Fieber",), "NA"),
    ]


def test_packed_json_lines_are_labelled_rows(tmp_path):
    row = '{"text": "甲", "label": "1"}\n'
    (tmp_path / "train.jsonl.gz").write_bytes(gzip.compress(row.encode()))
    for name in (tmp_path, tmp_path / "train.jsonl.gz"):
        assert read_split(str(name), "train", "classify")[0].sentences == ("甲",)


@pytest.mark.parametrize(
    ("first", "refused"),
    [
        ('{"text": "a"}', True),
        ('["a", "b"]', True),
        ('[{"text": "a"},', True),
        ("[", True),
        ("[MASK] is red", False),
        ("[1] as they say", False),
        ("[2019]", False),
        ("2019", False),
        ("{a} and {b}", False),
    ],
)
def test_json_is_no_plain_text(first, refused):
    read = plain_lines(iter(["", first, '{"a": 1}']), "a.txt")
    if not refused:
        assert [*read] == ["", first, '{"a": 1}']
        return
    with pytest.raises(DataError, match=r"a\.txt: found JSON, .*expected plain text.* jq does it"):
        list(read)


def test_an_example_knows_where_it_stands_and_is_equal_by_content(tmp_path):
    file = write(tmp_path / "a.tsv", "label\ttext_a", "1\t甲", "", "1\t甲")
    first, second = read_examples(file, "classify")
    assert (first.place, second.place) == (f"{file}, line 2", f"{file}, line 4")
    assert first == second
    assert Example(("甲乙",)).place == "the example '甲乙'"


def test_a_label_that_is_not_known_is_named_with_file_and_line(tmp_path):
    examples = read_examples(
        write(tmp_path / "a.tsv", "label\ttext_a", "1\t甲", "2\t乙"), "classify"
    )
    with pytest.raises(
        DataError, match=r"a\.tsv, line 3: the label '2' is not among those of the model \(0, 1\)"
    ):
        check_labels(examples, ["0", "1"], "the model")
    tagged = read_examples(write(tmp_path / "b.tsv", "text_a\tlabel", "甲 乙\tO B-X"), "ner")
    with pytest.raises(DataError, match=r"b\.tsv, line 2: the label 'B-X'"):
        check_labels(tagged, ["O", "B-Y", "I-Y"], "the model")
    check_labels(tagged, ["O", "B-X", "I-X"], "the model")


def test_a_class_with_one_example_is_warned_of_with_file_and_line(tmp_path, caplog):
    rows = ["1\t甲", "0\t乙", "0\t丙"]
    warn_of_rare_labels(
        read_examples(write(tmp_path / "a.tsv", "label\ttext_a", *rows), "classify")
    )
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
    with pytest.raises(
        DataError, match=r"line 1: no column 'nix' for label\. There are 'sentence1'"
    ):
        read_examples(file, "pair", {"label": "nix"})
    for wrong in ("text=a", "label", "label="):
        with pytest.raises(OptionError, match="--columns has"):
            parse_columns(wrong)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            ("患者头痛三天。 B-S", "胃痛 O", "无发热， O"),
            r"line 1: the token '患者头痛三天。' looks like a",
        ),
        (
            ("患者行胃镜检查未见异常 O", "", "胃痛 O", "复查胃镜后回家休息 O"),
            "as do 2 of the tokens",
        ),
        (("患者 O", "中华人民共和国卫生部 B-O", "。 O"), ""),  # a long name among words
        (("Donaudampfschifffahrt O", "and,so O"), ""),
    ],
)
def test_a_sentence_as_one_token_is_refused(tmp_path, lines, said):
    file = write(tmp_path / "train.conll", *lines)
    if not said:
        assert read_examples(file, "ner")
    else:
        with pytest.raises(DataError, match=said):
            read_examples(file, "ner")


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


def test_a_workbook_is_refused_by_name_whatever_its_ending(tmp_path):
    (tmp_path / "a.tsv").write_bytes(b"PK\x03\x04\x14\0\xe2")
    with pytest.raises(DataError, match=r"a\.tsv: is an Excel workbook .* Save it as CSV"):
        read_examples(tmp_path / "a.tsv", "classify")


@pytest.mark.parametrize(("name", "task"), [("a.txt", "mask"), ("a.tsv", "ner"), ("a.tsv", "pair")])
def test_json_where_a_table_or_text_is_expected_is_refused(tmp_path, name, task):
    file = write(tmp_path / name, "", '{"text": "好", "label": 1}')
    with pytest.raises(DataError, match=r"found JSON.*Give the file a name that ends with \.jsonl"):
        read_examples(file, task)


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


def test_one_question_text_is_several_questions_where_they_are_numbered(tmp_path):
    rows = ["1\t0\t甲\t乙", "2\t1\t甲\t丙"]
    file = write(tmp_path / "a.tsv", "qid\tlabel\ttext_a\ttext_b", *rows)
    assert [e.group for e in read_examples(file, "rank")] == ["1", "2"]


def test_an_answers_label_is_0_or_1(tmp_path):
    file = write(tmp_path / "a.tsv", "甲\t乙\t1", "甲\t丙\tyes")
    with pytest.raises(DataError, match="line 2: the label is 'yes', expected 1 for an answer"):
        read_examples(file, "rank")
    with pytest.raises(DataError, match="line 1: no column 'label'"):
        read_examples(write(tmp_path / "b.tsv", "甲\t乙", "甲\t丙"), "rank")


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["患者", "有", "糖尿病"], "患者有糖尿病"),
        (["用", "iPhone", "X", "拍", "的"], "用iPhone X拍的"),
        (["Parkinson", "'", "s"], "Parkinson ' s"),
        (["2", "0", "年"], "20年"),
    ],
)
def test_tokens_are_joined_as_their_script_is_written(tmp_path, tokens, text):
    tags = " ".join("O" * len(tokens))
    (example,) = read_examples(
        write(tmp_path / "a.tsv", "text_a\tlabel", " ".join(tokens) + "\t" + tags), "ner"
    )
    assert example.sentences == (text,)
    assert [text[a:b] for a, b in example.words] == tokens


def test_a_missing_split_says_what_the_folder_holds(tmp_path):
    write(tmp_path / "dev_as_train.tsv", "label\ttext_a", "1\t甲")
    with pytest.raises(
        SplitError, match=r"no train\.tsv; the folder holds dev_as_train\.tsv.*--train"
    ):
        find_split(tmp_path, "train")


def test_pairs_and_classes_are_read_by_the_names_of_their_columns(tmp_path):
    file = write(tmp_path / "dev.tsv", "text_a\ttext_b\tlabel", "甲\t乙\t1")
    (example,) = read_examples(file, "pair")
    assert (example.sentences, example.label) == (("甲", "乙"), "1")


def test_an_empty_file_a_header_alone_and_a_missing_folder_are_refused(tmp_path):
    (tmp_path / "empty.tsv").write_bytes(b"")
    with pytest.raises(DataError, match=r"empty\.tsv: the file is empty"):
        read_examples(tmp_path / "empty.tsv", "ner")
    with pytest.raises(DataError, match=r"head\.tsv: no labelled line"):
        read_examples(write(tmp_path / "head.tsv", "text_a\tlabel"), "ner")
    with pytest.raises(DataError, match="no such folder"):
        find_split(tmp_path / "nowhere", "train")


def test_labels_put_outside_first_and_begin_before_inside(tmp_path):
    file = write(tmp_path / "train.tsv", "text_a\tlabel", "甲 乙\tB-X I-X", "丙\tB-A")
    assert labels_of(read_examples(file, "ner")) == ["O", "B-A", "I-A", "B-X", "I-X"]


def test_an_inside_tag_that_goes_on_from_nothing_is_told(tmp_path, caplog):
    file = write(tmp_path / "a.tsv", "text_a\tlabel", "甲 乙\tB-X I-X", "丙 丁\tI-X I-X")
    assert read_examples(file, "ner")[1].spans == ()
    assert (
        f"{file}: 1 entity begins with I- instead of B- and is read as O, the first in line 3. "
        "Write B- where an entity begins."
    ) in caplog.text
    two = write(tmp_path / "b.tsv", "text_a\tlabel", "甲 乙\tI-X I-Y", "丙 丁\tB-X I-X")
    read_examples(two, "ner")
    assert "2 entities begin with I- instead of B- and are read as O, the first in line 2" in (
        caplog.text
    )


# The published files, where they are: counts of the sources, and an obvious second reading.
needs_data = pytest.mark.skipif("KBERT_DATA" not in os.environ, reason="KBERT_DATA isn't set")
NER = {
    "kbert/medical_ner": (6919, 939, 755),
    "ner/medical_ner_dedup": (3945, 624, 616),
    "kbert/msra_ner": (None, 2318, 4636),
    "kbert/financial_ner": (None, 2910, 3066),
    "ner/weibo_ner": (1350, 270, 270),
    "ner/resume_ner": (3821, 463, 477),
    "ner/bc5cdr_en": (4560, 4581, 4797),
}
TEXTS = {
    "kbert/chnsenticorp": (9600, 1200, 1200),
    "cls/chnsenticorp_dedup": (7578, 1139, 1178),
    "kbert/book_review": (20000, 10000, 10000),
    "cls/book_review_dedup": (18714, 9431, 9608),
    "kbert/shopping": (20000, 10000, 10000),
    "pair/atec_finance": (35346, None, 4000),
    "pair/bq": (None, None, 10000),
    "pair/lcqmc": (None, None, 12500),
}
SPLITS = ("train", "dev", "test")


def published(sets, more=()):
    """Path and number of rows; large files wait for the long tests."""
    files = [
        (f"{folder}/{split}.tsv", count)
        for folder, counts in sets.items()
        for split, count in zip(SPLITS, counts, strict=True)
        if count
    ]
    return [
        pytest.param(path, count, id=path, marks=[pytest.mark.soak] * (count > 4000))
        for path, count in (*files, *more)
    ]


def rows_of(path):
    """The rows of a file, read anew: header → value."""
    data = path.read_bytes()
    text = (lzma.decompress(data) if path.suffix == ".xz" else data).decode("utf-8")
    header, *lines = text.rstrip("\n").split("\n")
    return [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]


@needs_data
@pytest.mark.parametrize(
    ("path", "count"),
    published(NER, [("ner/msra_ner/train.tsv.xz", 47771)]),
)
def test_published_entities_are_read_whole(path, count):
    path = Path(os.environ["KBERT_DATA"]) / path
    examples, rows = read_examples(path, "ner"), rows_of(path)
    assert len(examples) == len(rows) == count
    begun = sum(tag.startswith("B-") for row in rows for tag in row["label"].split(" "))
    assert sum(len(e.spans) for e in examples) == begun
    between = " " if "bc5cdr" in str(path) else ""
    wrong = []
    for number, (example, row) in enumerate(zip(examples, rows, strict=True), start=2):
        tokens, text = row["text_a"].split(" "), example.sentences[0]
        if (
            example.line != number
            or text != between.join(tokens)
            or list(example.tags) != row["label"].split(" ")
            or [text[a:b] for a, b in example.words] != tokens  # white space too: no label shifts
        ):
            wrong.append(number)
    assert wrong == []


@needs_data
@pytest.mark.parametrize(
    ("path", "count"),
    published(TEXTS, [("pair/bq/dev_as_train.tsv", 10000), ("pair/lcqmc/dev_as_train.tsv", 8802)]),
)
def test_published_texts_and_pairs_are_read_whole(path, count):
    task = "pair" if path.startswith("pair") else "classify"
    path = Path(os.environ["KBERT_DATA"]) / path
    examples, rows = read_examples(path, task), rows_of(path)
    assert len(examples) == len(rows) == count
    expected = [
        (row["label"], tuple(row[c] for c in ("text_a", "text_b") if c in row)) for row in rows
    ]
    assert [(e.label, e.sentences) for e in examples] == expected


@needs_data
@pytest.mark.parametrize("folder", [f for f, counts in NER.items() if counts[0]])
def test_every_label_of_a_published_test_set_is_in_its_training_set(folder):
    folder = Path(os.environ["KBERT_DATA"]) / folder
    known = labels_of(read_examples(folder / "train.tsv", "ner"))
    for split in ("dev", "test"):
        check_labels(read_examples(folder / f"{split}.tsv", "ner"), known, "the training set")
