"""Texts with labelled spans become rows of tokens and tags."""

import json

import pytest

from kbert_core.errors import DataError
from kbert_lab import cli
from kbert_lab.data.labelled import read_examples
from kbert_lab.data.sources import read_split
from kbert_lab.data.spans import write_spans

TEXT = "患者头痛，服aspirin片"
PLACES = ((2, 4, "Symptom"), (6, 13, "Drug"))
OFFSETS = [{"start_offset": a, "end_offset": b, "label": t, "id": 1} for a, b, t in PLACES]
REGIONS = [
    {"type": "labels", "value": {"start": a, "end": b, "text": TEXT[a:b], "labels": [t]}}
    for a, b, t in PLACES
]
DONE = {
    "was_cancelled": False,
    "result": [*REGIONS, {"type": "choices", "value": {"choices": [1]}}],
}
CLUENER = {"Symptom": {"头痛": [[2, 3]]}, "Drug": {"aspirin": [[6, 12]]}}
CMEEE = [{"start_idx": a, "end_idx": b - 1, "type": t, "entity": TEXT[a:b]} for a, b, t in PLACES]
ROWS = {
    "doccano": {"id": 1, "text": TEXT, "label": PLACES},
    "doccano's other name for the text": {"data": TEXT, "label": PLACES},
    "Prodigy": {"text": TEXT, "spans": OFFSETS, "answer": "accept"},
    "doccano's older name": {"text": TEXT, "labels": PLACES, "meta": {}},
    "doccano with relations": {"text": TEXT, "entities": OFFSETS, "relations": []},
    "Label Studio": {
        "id": 1,
        "data": {"text": TEXT},
        "annotations": [{"was_cancelled": True}, DONE],
    },
    "Label Studio, short": {"text": TEXT, "label": [region["value"] for region in REGIONS]},
    "CLUENER": {"text": TEXT, "label": CLUENER},
    "CMeEE": {"text": TEXT, "entities": CMEEE},
    "spaCy": {"text": TEXT, "ents": [{"start": a, "end": b, "label": t} for a, b, t in PLACES]},
    "spans": {"text": TEXT, "spans": [{"start": a, "end": b, "label": t} for a, b, t in PLACES]},
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("ending", [".json", ".jsonl"])
def test_spans_of_every_tool_become_rows(tmp_path, row, ending):
    none = {
        **row,
        "text": "无",
        **{k: [] for k in ("label", "labels", "ents", "entities", "spans") if k in row},
    }
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
        (
            [(0, 3, "A"), (2, 4, "B")],
            "line 1: '患者头' .A. and '头痛' .B. overlap, and a token has one",
        ),
        ([(0, 9, "A")], r"the span \[0, 9\) has no text in the 4 characters"),
        ([(2, 2, "A")], r"the span \[2, 2\) has no text"),
        ([(0, 2)], r"found '\[0, 2\]', expected start, end and one type"),
        ([{"start": 0, "end": 2, "labels": ["A", "B"]}], "expected start, end and one type"),
        (
            [{"start": 0, "end": 2, "label": "A", "text": "头痛"}],
            "stands '患者', and the file says '头痛'",
        ),
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
@pytest.mark.parametrize("task", ["ner", "classify", ""])
def test_readers_that_meet_spans_point_to_the_command(tmp_path, capsys, row, task):
    (tmp_path / "train.jsonl").write_text(json.dumps(row), encoding="utf-8")
    (tmp_path / "kg.tsv").write_text("头痛\tis\tbad\n", encoding="utf-8")
    arguments = ["audit", "--data", str(tmp_path), "--kg", str(tmp_path / "kg.tsv")]
    assert cli.main([*arguments, *(["--task", task] if task else [])]) == 2
    assert "`kbert data spans`" in capsys.readouterr().err


def test_the_command_counts_what_it_wrote(tmp_path, capsys):
    (tmp_path / "a.jsonl").write_text(json.dumps(ROWS["doccano"]), encoding="utf-8")
    files = ["--input", str(tmp_path / "a.jsonl"), "--output", str(tmp_path / "train.tsv")]
    assert cli.main(["data", "spans", *files]) == 0
    assert "entities: 2" in capsys.readouterr().out
    (tmp_path / "plain.txt").write_text("no spans\n", encoding="utf-8")
    assert cli.main(["data", "spans", "--input", str(tmp_path / "plain.txt"), "--output", "x"]) == 2
    assert "plain.txt, line 1: the columns are no spans. Expected texts" in capsys.readouterr().err
