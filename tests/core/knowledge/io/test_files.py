"""Files of triples: everything read, or nothing and a message that says how to mend it."""

import os

import pytest

from kbert_core import Triple, read_triples, write_triples
from kbert_core.errors import GraphFileError
from kbert_core.knowledge.io import in_memory, rows_of

APPLE = Triple("Tim Cook", "CEO", "Apple")
CHINA = Triple("Beijing", "capital", "China")


def parse(text, **options):
    data = text if isinstance(text, bytes) else text.encode()
    return in_memory(rows_of(data, "a.spo", **options))


def error_of(text, **options):
    with pytest.raises(GraphFileError) as caught:
        parse(text, **options)
    return str(caught.value)


def test_triples_come_in_file_order_each_once_and_duplicates_are_counted():
    file = parse("b\tr\t1\na\tr\t2\nb\tr\t1\nb\tr\t0\nb\tr\t1\n")
    assert file.triples == (Triple("b", "r", "1"), Triple("a", "r", "2"), Triple("b", "r", "0"))
    assert file.duplicates == 2
    assert file.problems == ()


@pytest.mark.parametrize(
    "text",
    [
        "Tim Cook\tCEO\tApple\nBeijing\tcapital\tChina\n",
        "Tim Cook\tCEO\tApple\nBeijing\tcapital\tChina",  # no last line break
        "\ufeffTim Cook\tCEO\tApple\nBeijing\tcapital\tChina\n",  # byte-order mark
        "Tim Cook\tCEO\tApple\r\nBeijing\tcapital\tChina\r\n",
        "Tim Cook\tCEO\tApple\rBeijing\tcapital\tChina\r",  # of old Macs
        "\n\n  \nTim Cook\tCEO\tApple\n\t\n\t\t\nBeijing\tcapital\tChina\n\n",
        " Tim Cook \tCEO\t Apple\u3000\nBeijing\tcapital\tChina \n",
    ],
)
def test_file_is_read_whatever_its_line_ends_and_blank_lines(text):
    assert parse(text).triples == (APPLE, CHINA)


def test_file_with_too_few_fields_says_file_line_found_expected_and_remedy():
    assert error_of("Tim Cook\tCEO\tApple\naspirin\ttreats\n") == (
        "a.spo, line 2: found 2 fields in 'aspirin<TAB>treats', expected 3 "
        "(head, relation, tail separated by tabs). Add the missing field or delete the line."
    )


def test_file_with_one_field_says_field_not_fields():
    assert "found 1 field in 'aspirin'" in error_of("aspirin\n")


def test_file_with_too_many_fields_says_so():
    message = error_of("a\tb\tc\td\n")
    assert "line 1: found 4 fields" in message
    assert (
        "Take the extra fields out, choose columns with --columns, or delete the line." in message
    )


@pytest.mark.parametrize(
    ("line", "field"),
    [("\tCEO\tApple", "head"), ("Tim\t \tApple", "relation"), ("Tim\tCEO\t", "tail")],
)
def test_file_with_an_empty_field_names_the_field(line, field):
    message = error_of(f"a\tb\tc\n{line}\n")
    assert message.startswith("a.spo, line 2: ")
    assert f"its {field} is empty" in message
    assert "or delete the line" in message


@pytest.mark.parametrize("code", [0x00, 0x07, 0x0B, 0x0D, 0x1F, 0x7F, 0x85, 0x2028])
def test_file_with_a_control_character_shows_it(code):
    message = error_of(f"Tim{chr(code)}Cook\tCEO\tApple\n")
    assert "a.spo, line 1:" in message
    assert f"its head holds a line break, tab or control character (U+{code:04X})" in message
    assert all(c.isprintable() for c in message)


def test_file_with_a_field_of_absurd_length_is_refused_and_shown_short():
    message = error_of("a\tb\t" + "c" * 60_000 + "\n")
    assert "a field of 60000 characters" in message
    assert len(message) < 300


def test_file_that_is_not_utf_8_says_where():
    message = error_of(b"a\tb\tc\n" + "糖尿病\t类别\t疾病\n".encode("gb18030"))
    assert message.startswith("a.spo, line 2: byte 0x")
    assert message.endswith(
        "is not UTF-8. It may be GB18030 ('糖尿病<TAB>类别<TAB>疾病') or EUC_KR "
        "('鎌쿱깹<TAB>잚깎<TAB>섣깹'). If that reads right, give --encoding gb18030 or euc_kr, or "
        "save the file as UTF-8."
    )
    message = error_of(b"a\tb\tc\n\xff\x98\xff\tb\tc\n")
    assert message == (
        "a.spo, line 2: byte 0xFF is not UTF-8. Save the file as UTF-8 and open it again."
    )


@pytest.mark.parametrize("others", ["Übelkeit\tist\thäufig\n", "Übel\tist\ta\n" * 9000])
@pytest.mark.parametrize("end", ["", "\n"])
def test_one_line_that_is_not_utf_8_is_to_be_mended_alone(others, end):
    """Another encoding would garble the others."""
    message = error_of(others.encode() + f"Gürtelrose\tist\targ{end}".encode("cp1252"))
    number = others.count("\n") + 1
    assert message == (
        f"a.spo, line {number}: byte 0xFC is not UTF-8. Other lines are: write "
        "'G�rtelrose<TAB>ist<TAB>arg' anew in this line, or delete it."
    )
    assert "--encoding" in error_of((others[:300] + "sein\tist\tsanté\n" * 2).encode("cp1252"))


@pytest.mark.parametrize("text", ["", "\n\n", "\ufeff", "  \n\t\n"])
def test_empty_file_says_what_was_expected(text):
    assert error_of(text) == (
        "a.spo: no triples, the file is empty. Expected one triple a line: head, relation, "
        "tail, separated by tabs. To go without a graph, leave --kg out."
    )


def test_nothing_is_loaded_by_half():
    message = error_of("a\tb\tc\nbad\nd\te\tf\nworse\n")
    assert "line 2:" in message
    assert "line 4:" in message


def test_more_than_twenty_bad_lines_are_counted_not_listed():
    lines = error_of("bad\n" * 25).split("\n")
    assert len(lines) == 21
    assert lines[19].startswith("a.spo, line 20:")
    assert lines[20] == "… and 5 more bad lines."
    assert "more bad" not in error_of("bad\n" * 20)


def test_skip_bad_loads_the_good_lines_and_lists_every_bad_one():
    file = parse("bad\nTim Cook\tCEO\tApple\n\tx\ty\n" + "worse\n" * 30, skip_bad=True)
    assert file.triples == (APPLE,)
    assert len(file.problems) == 32
    assert file.problems[1].startswith("a.spo, line 3: ")


def test_skip_bad_still_refuses_a_file_without_a_good_line():
    assert "none of its 2 lines is a triple" in error_of("bad\nworse\n", skip_bad=True)


def test_triple_whose_tail_is_its_head_is_a_triple():
    assert parse("a\tis\ta\n").triples == (Triple("a", "is", "a"),)


def test_missing_file_says_its_name(tmp_path):
    with pytest.raises(GraphFileError, match=r"none\.spo: can't be read \(No such file"):
        read_triples(tmp_path / "none.spo")
    with pytest.raises(GraphFileError, match="can't be read"):
        read_triples(tmp_path)


def test_demo_graphs_are_read_without_a_problem():
    folder = os.path.join(os.path.dirname(__file__), "..", "..", "..", "..", "demo_kgs")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".spo"):
            file = read_triples(os.path.join(folder, name))
            assert (file.duplicates, file.problems) == (0, ())


def test_written_file_has_one_triple_a_line(tmp_path):
    write_triples([CHINA, APPLE], tmp_path / "a.spo")
    assert (tmp_path / "a.spo").read_bytes() == b"Beijing\tcapital\tChina\nTim Cook\tCEO\tApple\n"


def test_writing_that_fails_leaves_nothing_behind(tmp_path):
    (tmp_path / "a.spo").mkdir()
    with pytest.raises(GraphFileError, match=r"a\.spo: can't be written"):
        write_triples([APPLE], tmp_path / "a.spo")
    assert os.listdir(tmp_path) == ["a.spo"]
    with pytest.raises(GraphFileError, match=r"can't be written \(No such file"):
        write_triples([APPLE], tmp_path / "none" / "a.spo")


def test_written_file_can_be_read_by_whoever_could_read_a_new_file(tmp_path):
    (tmp_path / "plain").write_text("")
    write_triples([APPLE], tmp_path / "a.spo")
    assert (tmp_path / "a.spo").stat().st_mode == (tmp_path / "plain").stat().st_mode
