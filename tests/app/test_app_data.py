"""Data: a labelled file read with a graph and without, what is said of it, and the page."""

import gzip
import lzma
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from explaining_pages import PATIENCE, opened, said
from sessions import session
from tagged_texts import classed, tagged, triple
from tagged_texts import row as line_of
from tiny_knowbert import knowbert_in

from app import audits
from app.audits import FileSetup
from app.background import Progress
from kbert_core import Card, KnowledgeGraph, Pipeline, Triple, load_graph
from kbert_core.errors import DataError, KBertError
from kbert_core.knowledge.edit import Edit
from kbert_lab.lab.models import ModelInfo
from kbert_lab.lab.texts import t
from kbert_lab.lab.views import data as view
from kbert_lab.study.audit_values import Data, read_data
from kbert_lab.study.verdict import Report
from kbert_lab.study.whole_file import FileRow, WholeFile

ROOT = Path(__file__).resolve().parents[2]
A, C = triple("cat eats fish"), triple("dog is animal")
INFO = ModelInfo("m", "m", Card("classify", notes={"label_names": {"good": "4 or 5 stars"}}))
GRAPH = KnowledgeGraph(
    [Triple("糖尿病", "类别", "疾病"), Triple("布洛芬", "类别", "治疗")], name="two"
)
TEXTS = [
    tagged("患者有糖尿病", ("糖尿病", "疾病")),
    tagged("患者好转"),
    tagged("给予布洛芬", ("布洛芬", "治疗")),
]


# What is said


def file_of(*rows):
    return WholeFile("classify", "animals", rows, len(rows))


def many(helped, hurt, same=0):
    """So many texts with a triple that were helped, hurt, and read the same."""
    ways = [("good", "bad", 1.0)] * helped + [("bad", "good", -1.0)] * hurt
    ways += [("good", "good", 0.0)] * same
    return file_of(*(classed(n, "good", *said, [A], gain) for n, (*said, gain) in enumerate(ways)))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            many(9, 0, 3),
            "The graph helps here. accuracy is 25.0 without it and 100.0 with it; 95 %",
        ),
        (
            many(0, 9, 3),
            "The graph hurts here. accuracy is 100.0 without it and 25.0 with it; 95 %",
        ),
        (many(1, 1), "It is unclear from 2 texts whether the graph helps. accuracy is 50.0"),
        (many(0, 0, 3), "The graph changes no prediction here."),
        (file_of(classed(0, "bad", "bad", "bad")), "None of these texts contains a triple of the"),
    ],
)
def test_whether_the_graph_helps_is_said_with_its_interval(found, said):
    assert view.say_whole(found).startswith(said)


def test_texts_whose_prediction_changed_begin_with_the_hurt_ones():
    rows = view.changed(
        file_of(
            classed(0, "good", "good", "bad", [A], gain=2.0),
            classed(1, "good", "bad", "good", [C], gain=-1.0),
            classed(2, "bad", "good", "bad", [C, Triple("=cmd()", "<b>", "@x")], gain=-3.0),
            classed(3, "bad", "bad", "bad"),
        )
    )
    assert [row.number for row in rows] == [2, 1, 0]
    did, _, correct, *_, triples = view.rows_table(rows, INFO).values()
    assert did == ["✗ hurt", "✗ hurt", "✓ helped"]
    assert correct[1] == "good · 4 or 5 stars"
    assert triples[0] == "dog · is · animal, =cmd() · <b> · @x"


# Reading

HEADER = "text_a\tlabel\n"


def files(**splits):
    rows = {name: HEADER + "".join(f"{line_of(x)}\n" for x in of) for name, of in splits.items()}
    return [(f"{name}.tsv", text.encode()) for name, text in rows.items()]


def test_one_file_is_read_whatever_its_name_and_several_by_theirs():
    alone = audits.uploaded(files(mine=TEXTS), None)
    assert (alone.name, alone.task, list(alone.splits)) == ("mine.tsv", "ner", ["train"])
    both = audits.uploaded(files(train=TEXTS, test=TEXTS[:2]), None)
    assert {split: len(of) for split, of in both.splits.items()} == {"train": 3, "test": 2}
    encoded = [("gbk.tsv", f"{HEADER}{line_of(TEXTS[0])}\n".encode("gb18030"))]
    assert audits.uploaded(encoded, None, "gb18030").splits["train"][0].spans == TEXTS[0].spans


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([("my own.conll", b"text_a\tlabel\na b\tO\n")], "my own.conll, line 2: 2 tokens and 1"),
        (files(train=TEXTS, other=TEXTS), "Of several files, name one train, one dev and one test"),
        (files(one=TEXTS, other=TEXTS), "no train.tsv; the folder holds one.tsv, other.tsv"),
    ],
)
def test_what_cannot_be_read_names_the_file_and_no_folder_of_ours(given, said):
    with pytest.raises(DataError) as refused:
        audits.uploaded(given, "ner")
    assert said in str(refused.value)
    assert "/tmp" not in str(refused.value)


def test_a_packed_file_is_read_but_not_one_that_unpacks_to_far_more_than_may_be_sent():
    (name, table), *_ = files(mine=TEXTS)
    packed = [(f"{name}.gz", gzip.compress(table)), (f"{name}.xz", lzma.compress(table))]
    for given in packed:
        assert len(audits.uploaded([given], None).splits["train"]) == 3
    bomb = gzip.compress(table + b"\n" * (80 << 20))
    assert len(bomb) < 100_000
    with pytest.raises(KBertError, match=r"^mine\.tsv\.gz: larger than 64 MB when unpacked, and "):
        audits.uploaded([("mine.tsv.gz", bomb)], None)
    with pytest.raises(KBertError, match=r"mine\.tsv\.gz"):
        audits.uploaded([("mine.tsv.gz", b"no gzip")], None)


@pytest.fixture(scope="module")
def reader(checkpoints):
    return Pipeline.from_pretrained(checkpoints["ner"], device="cpu")


def test_the_data_are_counted_then_read_text_by_text(reader, checkpoints, tmp_path, monkeypatch):
    monkeypatch.setattr(audits, "MOST_TEXTS", 2)
    data = Data("made", "ner", {"train": TEXTS})
    setup = FileSetup(data, "train", str(checkpoints["ner"]), "g", GRAPH)
    for pipeline in (reader, knowbert_in(tmp_path, checkpoints)):
        report, *found = audits.steps(setup, pipeline)
        assert isinstance(report, Report) and report.counts.splits["train"].examples == 3
        assert [own.number for own in found if isinstance(own, FileRow)] == [0, 1]
        assert [own for own in found if isinstance(own, Progress)] == [
            Progress(1, 2),
            Progress(2, 2),
        ]
    (alone,) = audits.steps(setup, None)
    assert alone.counts.splits["train"].examples == 3


def test_the_example_is_as_its_readme_says():
    text = (ROOT / "demo_kgs" / "example_data" / "README.md").read_text(encoding="utf-8")
    read = read_data(audits.EXAMPLE)
    for split, examples in read.splits.items():
        mentions = sum(len(e.spans) for e in examples)
        assert f"| `medical_ner/{split}.tsv` | {len(examples)} | {mentions} |" in text
    graph = load_graph(ROOT / "demo_kgs" / "medical_zh.spo")
    (found,) = audits.steps(FileSetup(read, "dev", "", "g", graph), None)
    assert [leak.texts.count for leak in found.counts.leaks] == [1, 1, 0]
    assert found.counts.conflicts.texts.count == 1
    assert sum(s.examples for s in found.counts.splits.values()) == 31  # as the page says
    for name in ("脊柱", "阿奇霉素", "颈部"):
        assert not graph.triples_of(name)
        assert name in text


# The page


def rest(at):
    """Wait for what runs in the background, then look again."""
    at.session_state["data.run"][1].join(PATIENCE)
    at.run()
    assert not at.exception
    return at


@pytest.fixture
def page():
    return rest(opened("data.py"))


def numbers(at):
    return [metric.value for metric in at.metric]


def counts(at):
    """Open what the command prints."""
    at.session_state["data.counts"] = True
    return at.run()


def upload(at, *given):
    """Choose files: AppTest has no field for several."""
    at.session_state["data.read"] = audits.uploaded(list(given), None)
    at.run()
    assert not at.exception
    return at


def test_the_first_visit_has_read_the_example(page):
    assert numbers(page) == ["6", "6", "2", "2", "0"]
    assert list(page.dataframe[0].value[t("the graph")]) == ["✓ helped"] * 2
    text = said(counts(page))
    assert "It is unclear from 6 texts" in text
    assert "Scores on this split are too good: the splits leak." in text
    (table,) = [own.value for own in page.dataframe if "dev" in own.value]
    assert dict(zip(table[""], table["dev"], strict=True))["examples"] == "6"


def test_a_model_that_reads_the_texts_is_offered_first():
    at = opened("data.py", {"example": "copd"})  # in the Lab a model of English
    assert session(at).model.endswith("ner-en")
    assert numbers(rest(at)) == ["6", "6", "2", "2", "0"]


def test_another_choice_is_read_when_asked_for(page):
    page.selectbox(key="data.graph").set_value("medical_en").run()
    assert t("These results are for the earlier choice.") in said(page)
    rest(page.button(key="data.go").click().run())
    assert numbers(page) == ["6", "0", "0", "0", "0"]
    assert t("These results are for the earlier choice.") not in said(page)


def test_a_row_opens_in_the_lab_which_says_if_the_graph_has_changed(page, monkeypatch):
    chosen = SimpleNamespace(selection=SimpleNamespace(rows=[0]))
    monkeypatch.setattr("streamlit.dataframe", lambda *_, **__: chosen)
    monkeypatch.setattr("streamlit.switch_page", lambda _: None)
    now = session(page)
    assert "told" not in page.run().session_state and session(page).graph == "medical_zh"
    first = next(iter(now.graphs["medical_zh"].graph))
    page.session_state["session"] = replace(now, graph="medical_zh").edit(Edit("switch_off", first))
    (told,) = page.run().session_state["told"]
    assert told.startswith("The graph isn't as it was when the texts were read")


def test_a_task_without_a_model_is_counted_and_says_so(page):
    rows = "qid\tlabel\ttext_a\ttext_b\n1\t1\ta\tb\n1\t0\ta\tc\n"
    upload(page, ("train.tsv", rows.encode()))
    assert "There is no model here for this task (Answer selection)" in said(page)
    rest(page.button(key="data.go").click().run())
    assert not page.metric and "2" in set(counts(page).dataframe[0].value["train"])


def test_labels_of_the_file_that_the_model_does_not_know_are_said(page):
    quark = line_of(tagged("患者有糖尿病", ("糖尿病", "Quark")))
    upload(page, ("mine.tsv", f"{HEADER}{quark}\n".encode()))
    rest(page.button(key="data.go").click().run())
    assert "mine.tsv, line 2: the label 'B-Quark' is not among those of" in said(page)
