"""Data made of other forms: questions of SQuAD's, labelled spans, marked relations."""

import json
import os
from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest

from kbert_core.errors import DataError, SplitError
from kbert_core.labels import RIGHT
from kbert_lab.data.labelled import read_examples
from kbert_lab.data.sources import read_split
from kbert_lab.data.spans import write_spans
from kbert_lab.data.squad import Counts, ranking_rows, read_comprehension, sentence_spans
from kbert_lab.data.squad import write_ranking_set as write
from results.tools.relations import LABELS, relation_examples, write_relations

needs_data = pytest.mark.skipif("KBERT_DATA" not in os.environ, reason="KBERT_DATA isn't set")
CONTEXT = "小猫住在山上。它说：“我饿了！”于是下山；山下有鱼。鱼在河里"


def squad(tmp_path, *questions, context=CONTEXT, impossible=()):
    """A file of one paragraph; a question is (text, (answer, its start), …)."""
    asked = [
        {
            **{"id": f"Q{number}", "question": text, "is_impossible": number in impossible},
            "answers": [{"text": answer, "answer_start": at} for answer, at in answers],
        }
        for number, (text, *answers) in enumerate(questions)
    ]
    paragraph = {"context": context, "id": "P", "qas": asked}
    path, data = tmp_path / "squad.json", {"data": [{"title": "", "paragraphs": [paragraph]}]}
    path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
    return path


def made(path):
    """The questions of a file: text → (candidates, which are right), and the counts."""
    counts = Counts()
    questions = {}
    for _, rows in groupby(ranking_rows(path, counts), lambda row: row.group):
        rows = [*rows]
        right = {n for n, row in enumerate(rows) if row.label == RIGHT}
        questions[rows[0].sentences[0]] = [row.sentences[1] for row in rows], right
    return questions, counts


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
        ("……好。。。", ["……好。。。"]),
    ],
)
def test_sentences_end_with_their_mark_and_the_quote_after_it(text, sentences):
    assert [text[a:b] for a, b in sentence_spans(text)] == sentences


SELECTED = {  # questions → which of their candidates are right, and what is counted
    "where the answer is": ([("谁？", ("我饿了", 11))], [{1}], {"questions": 1, "candidates": 5}),
    "over two sentences": ([("?", ("下山；山下", 18))], [{2}], {"over_several_sentences": 1}),
    "a wrong offset, mended where the text stands once": (
        [("一", ("河里", 0)), ("二", ("山", 0)), ("三", ("没有", 3))],
        *([{4}], {"offset_mended": 1, "left_out_without_answer": 2}),
    ),
    "several annotators": (
        [("?", ("山上", 4), ("山上", 4), ("河里", 28))],
        [{0, 4}],
        {"several_right": 1},
    ),
    "nothing asked or answered": (
        [("", ("小猫", 0)), ("问", (" ", 0)), ("问",)],
        *([], {"left_out_without_answer": 3}),
    ),
}


@pytest.mark.parametrize(("asked", "right", "counted"), SELECTED.values(), ids=SELECTED)
def test_the_sentence_in_which_an_answer_begins_is_right(tmp_path, asked, right, counted):
    questions, counts = made(squad(tmp_path, *asked))
    assert [found for _, found in questions.values()] == right
    assert vars(counts).items() >= counted.items()
    assert all(candidates[1] == "它说：“我饿了！”" for candidates, _ in questions.values())


def test_a_sentence_that_stands_twice_is_one_candidate_and_one_alone_no_choice(tmp_path):
    questions, _ = made(squad(tmp_path, ("问", ("对", 4)), context="对。错。对。"))
    assert questions == {"问": (["对。", "错。"], {0})}
    _, counts = made(squad(tmp_path, ("问", ("一", 0)), context="一句。"))
    assert counts.left_out_one_sentence == 1


def test_what_is_written_is_read_for_answer_selection(tmp_path):
    path = squad(tmp_path, ("谁\t饿了？", ("我饿了", 11)), ("问", ("鱼在", 26)))
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


def test_the_command_writes_the_set_and_says_what_was_left_out(tmp_path, kbert):
    path = squad(tmp_path, ("问", ("小猫", 0)), ("问", ("没有", 0)))
    command = ("data", "rank", "--input", path, "--output")
    found = kbert(*command, tmp_path / "rank.tsv", "--json")
    assert (found["questions"], found["left_out_without_answer"]) == (1, 1)
    assert "candidates: 5" in kbert(*command, tmp_path / "rank.tsv").out
    assert "can't be written" in kbert(*command, tmp_path / "nowhere" / "x.tsv", code=2).err


@needs_data
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


# Examples for reading comprehension


def test_a_question_is_read_with_its_paragraph_and_answers(tmp_path, caplog):
    path = squad(tmp_path, ("谁\n饿了？", ("我饿了", 11), ("我", 0)))
    (example,) = read_split(str(path), "train", "qa")
    assert example.sentences == ("谁 饿了？", CONTEXT)
    assert example.answers == ((11, "我饿了"), (11, "我"))
    assert (example.group, example.place) == ("Q0", "squad.json, question 1")
    (example,) = read_comprehension(squad(tmp_path, ("谁？", ("没有", -1), ("小猫", 0))))
    assert example.answers == ((-1, "没有"), (0, "小猫"))  # kept for scores
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


def test_blank_and_unanswerable_questions_are_left_out_and_counted(tmp_path, caplog):
    path = squad(tmp_path, ("谁？", ("小猫", 0)), (" ", ("小猫", 0)))
    assert [example.group for example in read_comprehension(path)] == ["Q0"]
    assert "question 'Q1': the question is blank" in caplog.text
    asked = [("谁？", ("小猫", 0))] * 2
    path = squad(tmp_path, *asked, ("谁？",), impossible=(1, 2))
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


# Labelled spans, as annotation tools export them

TEXT = "患者头痛，服aspirin片"
PLACES = ((2, 4, "Symptom"), (6, 13, "Drug"))
OFFSETS = [{"start_offset": a, "end_offset": b, "label": t, "id": 1} for a, b, t in PLACES]
REGIONS = [
    {"type": "labels", "value": {"start": a, "end": b, "text": TEXT[a:b], "labels": [t]}}
    for a, b, t in PLACES
]
CHOICE = {"type": "choices", "value": {"choices": [1]}}
DONE = [{"was_cancelled": True}, {"was_cancelled": False, "result": [*REGIONS, CHOICE]}]
CLUENER = {"Symptom": {"头痛": [[2, 3]]}, "Drug": {"aspirin": [[6, 12]]}}
CMEEE = [{"start_idx": a, "end_idx": b - 1, "type": t, "entity": TEXT[a:b]} for a, b, t in PLACES]
ROWS = {
    "doccano": {"id": 1, "text": TEXT, "label": PLACES},
    "doccano's other name for the text": {"data": TEXT, "label": PLACES},
    "Prodigy": {"text": TEXT, "spans": OFFSETS, "answer": "accept"},
    "doccano's older name": {"text": TEXT, "labels": PLACES, "meta": {}},
    "doccano with relations": {"text": TEXT, "entities": OFFSETS, "relations": []},
    "Label Studio": {"id": 1, "data": {"text": TEXT}, "annotations": DONE},
    "Label Studio, short": {"text": TEXT, "label": [region["value"] for region in REGIONS]},
    "CLUENER": {"text": TEXT, "label": CLUENER},
    "CMeEE": {"text": TEXT, "entities": CMEEE},
    "spaCy": {"text": TEXT, "ents": [{"start": a, "end": b, "label": t} for a, b, t in PLACES]},
    "spans": {"text": TEXT, "spans": [{"start": a, "end": b, "label": t} for a, b, t in PLACES]},
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("ending", [".json", ".jsonl"])
def test_spans_of_every_tool_become_rows(tmp_path, row, ending):
    names = {"label", "labels", "ents", "entities", "spans"} & row.keys()
    none = {**row, "text": "无", **{name: [] for name in names}}
    if isinstance(row.get("data"), str):
        none |= {"data": none.pop("text")}
    elif "data" in row:
        none |= {"data": {"text": "无"}, "annotations": []}
    source, rows = tmp_path / f"admin{ending}", [row, none]
    text = "\n".join(map(json.dumps, rows)) if ending == ".jsonl" else json.dumps(rows, indent=1)
    source.write_text(text, encoding="utf-8")
    counts = write_spans(source, tmp_path / "train.tsv")
    assert (counts["rows"], counts["entities"], counts["left out"]) == (2, 2, 0)
    assert (tmp_path / "train.tsv").read_text(encoding="utf-8").splitlines()[1:] == [
        "患 者 头 痛 ， 服 aspirin 片\tO O B-Symptom I-Symptom O O B-Drug O",
        "无\tO",
    ]
    first, second = read_examples(tmp_path / "train.tsv", "ner")
    assert (first.sentences, first.spans) == ((TEXT,), PLACES)
    assert (second.sentences, second.spans) == (("无",), ())


def spans(tmp_path, text, *found):
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": text, "spans": found}), encoding="utf-8")
    write_spans(tmp_path / "a.jsonl", tmp_path / "b.tsv")
    return (tmp_path / "b.tsv").read_text(encoding="utf-8").splitlines()[1:]


def test_words_are_cut_where_a_span_begins_and_lines_where_none_goes_on(tmp_path):
    text = "Parkinson's and beta-blocker (1.5 mg).\n\nHeart\nattack"
    assert spans(tmp_path, text, (0, 9, "Dis ease"), (40, 52, "X"), (16, 28, "D")) == [
        "Parkinson 's and beta-blocker ( 1.5 mg ) .\tB-Dis_ease O O B-D O O O O O",
        "Heart attack\tB-X I-X",
    ]


def test_a_text_that_was_refused_in_prodigy_is_left_out(tmp_path, caplog):
    answers = ("accept", "reject", "ignore")
    rows = [{"text": "头痛", "spans": [(0, 2, "A")], "answer": answer} for answer in answers]
    (tmp_path / "a.json").write_text(json.dumps(rows), encoding="utf-8")
    assert write_spans(tmp_path / "a.json", tmp_path / "b.tsv")["rows"] == 1
    assert "2 texts are left out, whose answer is reject or ignore" in caplog.text


def test_brat_is_read_with_its_texts(tmp_path):
    (tmp_path / "1.txt").write_text("Heart attack,\ntreated. Heart\nattack", encoding="utf-8")
    notes = "T1\tDisease 0 12\tHeart attack\nR1\tOf Arg1:T1 Arg2:T2\n"
    notes += "T2\tDisease 23 28;29 35\tHeart attack\n"
    (tmp_path / "1.ann").write_text(notes, encoding="utf-8")
    assert write_spans(tmp_path, tmp_path / "out.tsv")["entities"] == 2
    first, second = read_examples(tmp_path / "out.tsv", "ner")
    assert first.sentences[0][slice(*first.spans[0][:2])] == "Heart attack"
    assert second.spans == ((10, 22, "Disease"),)
    (tmp_path / "1.txt").write_bytes(b"In a\r\nHeart attack")  # its line end counts two
    (tmp_path / "1.ann").write_bytes(b"T1\tDisease 6 18\tHeart attack\r\n")
    write_spans(tmp_path, tmp_path / "out.tsv")
    assert read_examples(tmp_path / "out.tsv", "ner")[1].tags == ("B-Disease", "I-Disease")
    with pytest.raises(DataError, match=r"no train\.tsv.*`kbert data spans`"):
        read_split(str(tmp_path), "train", "ner")


KAGGLE = {
    "the first word has the number": 'Sentence #,Word,POS,Tag\nSentence: 1,He,PRP,O\n,"""",X,O\n,'
    "Oslo,NNP,B-geo\nSentence: 2,Rome,NNP,I-geo\n",
    "every word": 'sentence_id;words;labels\n0;He;O\n0;"""";O\n0;Oslo;B-geo\n\n1;Rome;S-geo\n',
    "tabs": 'sent\ttoken\tner_tags\n1\tHe\tO\n1\t"\tO\n1\tOslo\tB-geo\n2\tRome\tU-geo\n',
}


@pytest.mark.parametrize("text", KAGGLE.values(), ids=KAGGLE)
def test_a_table_of_tokens_with_a_sentence_number_becomes_rows(tmp_path, text):
    source = tmp_path / ("ner.tsv" if "\t" in text else "ner.csv")
    source.write_text(text, encoding="utf-8")
    assert write_spans(source, tmp_path / "out.tsv")["rows"] == 2
    first, second = read_examples(tmp_path / "out.tsv", "ner")
    assert (first.sentences, first.tags) == (('He " Oslo',), ("O", "O", "B-geo"))
    assert second.sentences == ("Rome",)
    with pytest.raises(DataError, match=r"`kbert data spans`"):
        read_split(str(source), "train", "ner")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([(0, 3, "A"), (2, 4, "B")], "line 1: '患者头' .A. and '头痛' .B. overlap, and a tok"),
        ([(0, 9, "A")], r"the span \[0, 9\) has no text in the 4 characters"),
        ([(2, 2, "A")], r"the span \[2, 2\) has no text"),
        ([(0, 2)], r"found '\[0, 2\]', expected start, end and one type"),
        ([{"start": 0, "end": 2, "labels": ["A", "B"]}], "expected start, end and one type"),
        ([{"start": 0, "end": 2, "label": "A", "text": "头痛"}], "'患者', and the file says"),
        ([], "found no labelled span"),
    ],
)
def test_what_can_not_be_tags_is_refused_by_row_or_left_out_and_counted(
    tmp_path, found, said, caplog
):
    with pytest.raises(DataError, match=said):
        spans(tmp_path, "患者头痛", *found)
    rows = [{"text": "患者头痛", "spans": found}, {"text": "头痛", "spans": [(0, 2, "A")]}]
    (tmp_path / "a.json").write_text(json.dumps(rows), encoding="utf-8")
    counts = write_spans(tmp_path / "a.json", tmp_path / "b.tsv", skip_bad=True)
    assert (counts["entities"], counts["left out"]) == (1, bool(found))
    assert not found or "left out: " in caplog.text


@pytest.mark.parametrize("row", [ROWS["doccano"], ROWS["doccano with relations"], ROWS["CLUENER"]])
@pytest.mark.parametrize("task", [("--task", "ner"), ("--task", "classify"), ()])
def test_readers_that_meet_spans_point_to_the_command(tmp_path, kbert, row, task):
    (tmp_path / "train.jsonl").write_text(json.dumps(row), encoding="utf-8")
    (tmp_path / "kg.tsv").write_text("头痛\tis\tbad\n", encoding="utf-8")
    said = kbert("audit", "--data", tmp_path, "--kg", tmp_path / "kg.tsv", *task, code=2).err
    assert "`kbert data spans`" in said


def test_the_command_counts_what_it_wrote(tmp_path, kbert):
    (tmp_path / "a.jsonl").write_text(json.dumps(ROWS["doccano"]), encoding="utf-8")
    (tmp_path / "plain.txt").write_text("no spans\n", encoding="utf-8")
    to = ("--output", tmp_path / "train.tsv")
    assert "entities: 2" in kbert("data", "spans", "--input", tmp_path / "a.jsonl", *to).out
    said = kbert("data", "spans", "--input", tmp_path / "plain.txt", *to, code=2).err
    assert "plain.txt, line 1: the columns are no spans. Expected texts" in said


# SemEval-2010 Task 8, on sentences of our own

FILE = """1\t"The <e1>baker</e1> pulled a "dark" <e2>rye loaf</e2> out."
Product-Producer(e2,e1)
Comment: he made it

2\t"A <e1>kiln</e1>-dried <e2>plank</e2>."
Other
Comment:

"""


def semeval(tmp_path, text=FILE, name="TRAIN.TXT"):
    path = tmp_path / name
    path.write_bytes(text.replace("\n", "\r\n").encode())  # as it was published
    return path


def test_entities_are_marked_by_punctuation_and_written_as_data_for_classification(tmp_path):
    first, second = relation_examples(semeval(tmp_path))
    assert first.sentences == ('The @ baker @ pulled a "dark" # rye loaf # out.',)
    assert first.label == "Product-Producer(e2,e1)"
    assert second.sentences == ("A @ kiln @-dried # plank #.",)
    assert (second.label, second.place) == ("Other", f"{tmp_path / 'TRAIN.TXT'}, line 5")
    assert write_relations(semeval(tmp_path), tmp_path / "train.tsv") == 2
    assert read_examples(tmp_path / "train.tsv", "classify") == [first, second]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("<e1>baker</e1>", "baker", "line 1: the tags are <e2> </e2>, expected <e1> </e1> <e2>"),
        ("<e2>plank</e2>", "<e2> </e2>", "line 5: <e2> has no text. Mark the words"),
        ("1\t", "", "line 1: found '\"The <e1>baker</e1>.*', expected a number, a tab and"),
        ("(e2,e1)", "(e2, e1)", r"line 2: found 'Product-Producer\(e2, e1\)' after the sentence"),
        ("Other\nComment:", "", "line 5: found 'nothing' after the sentence.*TEST_FILE_FULL"),
        (FILE, "\n", "no sentence in it"),
    ],
)
def test_what_is_odd_is_named_with_its_line_and_remedy(tmp_path, old, new, words):
    assert old in FILE
    path = semeval(tmp_path, FILE.replace(old, new, 1))
    with pytest.raises(DataError, match=words) as caught:
        write_relations(path, tmp_path / "train.tsv")
    assert str(path) in str(caught.value)


@needs_data
@pytest.mark.parametrize(("name", "count"), [("TRAIN_FILE", 8000), ("TEST_FILE_FULL", 2717)])
def test_the_published_files_are_read_whole(name, count):
    source = Path(os.environ["KBERT_DATA"]) / "rel" / f"{name}.TXT"
    examples = list(relation_examples(source))
    assert len({e.sentences for e in examples}) == len(examples) == count
    assert set(Counter(e.label for e in examples)) == set(LABELS)
