"""Reading comprehension and answer selection, on an invented set in SQuAD's form."""

import json
import os
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace

import pytest

from kbert_core.errors import DataError, SplitError
from kbert_core.labels import RIGHT
from kbert_lab import cli
from kbert_lab.data.labelled import Example, read_examples
from kbert_lab.data.sources import hold_out, read_split
from kbert_lab.data.squad import Counts, ranking_rows, read_comprehension, sentence_spans
from kbert_lab.data.squad import write_ranking_set as write

CONTEXT = "小猫住在山上。它说：“我饿了！”于是下山；山下有鱼。鱼在河里"


def squad(tmp_path, *questions, context=CONTEXT):
    """A file of one paragraph; a question is (text, (answer, its start), …)."""
    asked = [
        {
            "id": f"Q{number}",
            "question": text,
            "answers": [{"text": answer, "answer_start": at} for answer, at in answers],
        }
        for number, (text, *answers) in enumerate(questions)
    ]
    data = {"version": "1", "data": [{"title": "", "paragraphs": [{"context": context}]}]}
    data["data"][0]["paragraphs"][0] |= {"id": "P", "qas": asked}
    path = tmp_path / "squad.json"
    path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
    return path


def made(path):
    """The questions of a file with their candidates and which are right, and the counts."""
    counts = Counts()
    grouped = groupby(ranking_rows(path, counts), lambda row: row.group)
    questions = [[*rows] for _, rows in grouped]
    return [
        SimpleNamespace(
            text=rows[0].sentences[0],
            candidates=tuple(row.sentences[1] for row in rows),
            right={n for n, row in enumerate(rows) if row.label == RIGHT},
        )
        for rows in questions
    ], counts


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (CONTEXT, ["小猫住在山上。", "它说：“我饿了！”", "于是下山；", "山下有鱼。", "鱼在河里"]),
        ("走吗？！走……好。", ["走吗？！", "走……", "好。"]),
        ("歌《轻音！》很好。《谁？！》也是。", ["歌《轻音！》很好。", "《谁？！》也是。"]),
        ('他说"好。"我走。"他"说', ['他说"好。"', "我走。", '"他"说']),
        ("（见后。）再见。", ["（见后。）", "再见。"]),
        (" 一行 \n 二行。 三行 ", ["一行", "二行。", "三行"]),
        ("价格3.14元。", ["价格3.14元。"]),
        ("", []),
        ("一行\n。\n二行", ["一行\n。", "二行"]),
        ("……好。。。", ["……好。。。"]),
        ("。", ["。"]),
        ("！\n？", ["！\n？"]),
    ],
)
def test_sentences_end_with_their_mark_and_the_quote_after_it(text, sentences):
    assert [text[a:b] for a, b in sentence_spans(text)] == sentences


def test_the_sentence_that_holds_the_answer_is_right(tmp_path):
    ((question,), counts) = made(squad(tmp_path, ("谁饿了？", ("我饿了", CONTEXT.index("我饿了")))))
    assert question.candidates[1] == "它说：“我饿了！”"
    assert question.right == {1}
    assert (counts.questions, counts.candidates) == (1, 5)


def test_an_answer_over_two_sentences_counts_where_it_begins(tmp_path):
    ((question,), counts) = made(squad(tmp_path, ("?", ("下山；山下", CONTEXT.index("下山；")))))
    assert question.right == {2}
    assert counts.over_several_sentences == 1


def test_a_wrong_offset_is_mended_where_the_text_stands_once(tmp_path):
    path = squad(tmp_path, ("一", ("河里", 0)), ("二", ("山", 0)), ("三", ("没有", 3)))
    found, counts = made(path)
    assert [(q.text, q.right) for q in found] == [("一", {4})]
    assert (counts.offset_mended, counts.left_out_without_answer) == (1, 2)


def test_answers_of_several_annotators_may_be_in_several_sentences(tmp_path):
    asked = ("哪里？", ("山上", 4), ("山上", 4), ("河里", CONTEXT.index("河里")))
    ((question,), counts) = made(squad(tmp_path, asked))
    assert question.right == {0, 4}
    assert counts.several_right == 1


def test_what_leaves_nothing_to_choose_is_left_out_and_counted(tmp_path):
    _, counts = made(squad(tmp_path, ("问", ("一", 0)), context="一句。"))
    assert counts.left_out_one_sentence == 1
    _, counts = made(squad(tmp_path, ("", ("小猫", 0)), ("问", (" ", 0)), ("问",)))
    assert counts.left_out_without_answer == 3


def test_a_sentence_that_stands_twice_is_one_candidate(tmp_path):
    ((question,), _) = made(squad(tmp_path, ("问", ("对", 4)), context="对。错。对。"))
    assert question.candidates == ("对。", "错。")
    assert question.right == {0}


def test_what_is_written_is_read_for_answer_selection(tmp_path):
    path = squad(
        tmp_path,
        ("谁\t饿了？", ("我饿了", CONTEXT.index("我饿了"))),
        ("问", ("鱼在", CONTEXT.index("鱼在"))),
    )
    counts = write(path, tmp_path / "rank.tsv")
    found = read_examples(tmp_path / "rank.tsv", "rank")
    assert len(found) == counts.candidates == 10
    assert [e.group for e in found] == ["Q0"] * 5 + ["Q1"] * 5
    assert [e.label for e in found[:5]] == ["0", "1", "0", "0", "0"]
    assert found[0].sentences == ("谁 饿了？", "小猫住在山上。")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no json", "can't be read"),
        ("[]", r"isn't in SQuAD's form \(list indices must be"),
        ('{"data": [[1]]}', r"isn't in SQuAD's form \(list indices must be"),
        ('{"data": [{"paragraphs": [{"context": "a"}]}]}', r"SQuAD's form \('qas' is missing\)"),
        ('{"data": [{"paragraphs": [{"context": 1, "qas": [{"question": ""}]}]}]}', "valid string"),
        ('{"data": []}', "no question whose answer"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path, text, message):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(DataError, match=message):
        write(tmp_path / "x.json", tmp_path / "y.tsv")


def test_a_target_that_can_not_be_written_is_named(tmp_path):
    with pytest.raises(DataError, match="can't be written"):
        write(squad(tmp_path, ("问", ("小猫", 0))), tmp_path / "nowhere" / "x.tsv")


def test_the_command_writes_the_set_and_says_what_was_left_out(tmp_path, capsys):
    path = squad(tmp_path, ("问", ("小猫", 0)), ("问", ("没有", 0)))
    arguments = ["data", "rank", "--input", str(path), "--output", str(tmp_path / "rank.tsv")]
    assert cli.main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["questions"], found["left_out_without_answer"]) == (1, 1)
    assert cli.main(arguments) == 0
    assert "candidates: 5" in capsys.readouterr().out


@pytest.mark.skipif("KBERT_DATA" not in os.environ, reason="KBERT_DATA isn't set")
@pytest.mark.parametrize(
    ("name", "asked", "left_out", "most_mended"),
    [
        pytest.param("cmrc2018_dev", 3219, 0, 4, marks=pytest.mark.soak),
        ("cmrc2018_trial", 1002, 4, 5),
        pytest.param("DRCD_dev", 3524, 0, 0, marks=pytest.mark.soak),
        ("DRCD_test", 3493, 3, 0),
    ],
)
def test_published_sets_are_used_nearly_whole(tmp_path, name, asked, left_out, most_mended):
    source = Path(os.environ["KBERT_DATA"]) / "qa" / f"{name}.json"
    counts = write(source, tmp_path / "rank.tsv")
    assert counts.questions == asked - left_out
    assert counts.left_out_without_answer + counts.left_out_one_sentence == left_out
    assert counts.offset_mended == most_mended
    found = read_examples(tmp_path / "rank.tsv", "rank")
    assert len({e.group for e in found}) == counts.questions
    assert len(found) == counts.candidates
    articles = json.loads(source.read_text(encoding="utf-8"))["data"]
    texts = {
        q["id"]: "".join(paragraph["context"].split())
        for article in articles
        for paragraph in article["paragraphs"]
        for q in paragraph["qas"]
    }
    assert all("".join(e.sentences[1].split()) in texts[e.group] for e in found)


# Examples for reading comprehension


def test_a_question_is_read_with_its_paragraph_and_answers(tmp_path):
    path = squad(tmp_path, ("谁\n饿了？", ("我饿了", CONTEXT.index("我饿了")), ("我", 0)))
    (example,) = read_split(str(path), "train", "qa")
    assert example.sentences == ("谁 饿了？", CONTEXT)
    assert example.answers == tuple((CONTEXT.index(text), text) for text in ("我饿了", "我"))
    assert (example.group, example.place) == ("Q0", "squad.json, question 1")


def test_answers_nowhere_in_the_paragraph_are_told_and_kept_for_scores(tmp_path, caplog):
    path = squad(tmp_path, ("谁？", ("没有", -1), ("小猫", 0)))
    with caplog.at_level("WARNING"):
        (example,) = read_comprehension(path)
    assert example.answers == ((-1, "没有"), (0, "小猫"))
    assert "1 answers aren't in their paragraphs" in caplog.text


@pytest.mark.parametrize(
    ("asked", "context", "message"),
    [
        (("谁？", ("没有", 3)), CONTEXT, "squad.json, question 'Q1': the answer '没有' isn't in"),
        (("谁？", ("山", 0)), CONTEXT, "question 'Q1': the answer '山' .* in several places"),
        (("谁？",), CONTEXT, "question 'Q1': no answer is in its paragraph"),
        (("谁？", ("猫", 0)), " \n", "question 'Q0': the paragraph is blank"),
    ],
)
def test_a_question_that_can_not_be_trained_on_is_named(tmp_path, asked, context, message):
    path = squad(tmp_path, ("谁？", ("小猫", 0)), asked, context=context)
    with pytest.raises(DataError, match=message):
        read_comprehension(path)


def test_a_blank_question_is_left_out_and_named(tmp_path, caplog):
    path = squad(tmp_path, ("谁？", ("小猫", 0)), (" ", ("小猫", 0)))
    with caplog.at_level("WARNING"):
        assert [example.group for example in read_comprehension(path)] == ["Q0"]
    assert "question 'Q1': the question is blank" in caplog.text


def test_unanswerable_questions_are_left_out_and_counted(tmp_path, caplog):
    path = squad(tmp_path, ("谁？", ("小猫", 0)), ("谁？", ("小猫", 0)), ("谁？",))
    data = json.loads(path.read_text(encoding="utf-8"))
    for question, flag in zip(
        data["data"][0]["paragraphs"][0]["qas"], (False, True, True), strict=True
    ):
        question["is_impossible"] = flag
    path.write_text(json.dumps(data), encoding="utf-8")
    assert [example.group for example in read_split(str(path), "dev", "qa")] == ["Q0"]
    assert "unanswerable questions (SQuAD 2.0) are left out: 2 of 3" in caplog.text
    counts = write(path, tmp_path / "rank.tsv")
    assert (counts.questions, counts.left_out_without_answer) == (1, 2)


def test_a_folder_holds_a_file_for_each_split(tmp_path):
    squad(tmp_path, ("谁？", ("小猫", 0))).rename(tmp_path / "dev.json")
    assert len(read_split(str(tmp_path), "dev", "qa")) == 1
    with pytest.raises(SplitError, match=r"no train\.json; the folder holds dev\.json"):
        read_split(str(tmp_path), "train", "qa")
    (tmp_path / "test.json").write_text('{"data": []}')
    with pytest.raises(DataError, match="no question, so nothing to learn"):
        read_split(str(tmp_path), "test", "qa")
    with pytest.raises(DataError, match="can't be read"):
        read_split(str(tmp_path / "none.json"), "train", "qa")


def test_questions_about_one_paragraph_are_held_out_together():
    examples = [
        Example((f"问{n}", f"段{n // 3}"), group=f"Q{n}", answers=((0, "段"),)) for n in range(30)
    ]
    kept, held = hold_out(examples, 0.2, seed=0)
    assert len(held) == 6
    assert not {e.sentences[1] for e in kept} & {e.sentences[1] for e in held}
