"""A file read with a graph and without: sentences, tables, files, and the page Data."""

import html
import re
from itertools import product
from pathlib import Path

import pytest
from lab.explain.labelled import classed, triple
from streamlit.testing.v1 import AppTest
from tagged_texts import row as line_of
from tagged_texts import tagged
from tiny_knowbert import knowbert_in

from app import audits, background
from app.audits import FileSetup
from app.background import Progress
from app.models import ModelInfo
from app.texts import t
from app.view_models import audit as audit_view
from app.view_models import whole_file as view
from kbert_core import Card, KnowledgeGraph, Pipeline, Triple
from kbert_lab.study.audit_values import Data
from kbert_lab.study.whole_file import KINDS, WholeFile, wilson

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "app" / "app_pages" / "data.py"
PATIENCE = 180
A, B, C = triple("cat eats fish"), triple("cat is animal"), triple("dog is animal")
ODD = Triple("=cmd()", "<b>", "@x")
INFO = ModelInfo("m", "m", Card("classify", notes={"label_names": {"good": "4 or 5 stars"}}))


def file_of(*rows, task="classify"):
    return WholeFile(task, "animals", rows, len(rows))


MIXED = file_of(
    classed(0, "good", "good", "bad", [A, B], gain=2.0),
    classed(1, "good", "bad", "good", [C], gain=-1.0),
    classed(2, "bad", "good", "bad", [C, ODD], gain=-3.0),
    classed(3, "bad", "bad", "bad"),
)


def many(helped, hurt, same=0):
    """So many texts with the triple A that were helped, hurt, and read the same."""
    ways = [("good", "bad", 1.0)] * helped + [("bad", "good", -1.0)] * hurt
    ways += [("good", "good", 0.0)] * same
    rows = [classed(n, "good", *said, [A], gain) for n, (*said, gain) in enumerate(ways)]
    return file_of(*rows)


# In a few sentences


def test_the_whole_is_said_with_its_interval():
    assert re.fullmatch(
        r"The graph helps here: accuracy is 75\.0 points higher with it than without "
        r"\(\d+\.\d to 100\.0\)\.",
        view.say_whole(many(9, 0, 3)),
    )
    assert view.say_whole(many(0, 9, 3)).startswith("The graph hurts here: accuracy is 75.0 points")
    assert (
        "unclear from 4 texts whether the graph helps: accuracy differs by −25.0"
        in view.say_whole(MIXED)
    )
    assert view.say_whole(many(0, 0, 3)) == "The graph changes no prediction here."
    assert (
        view.say_whole(file_of(classed(0, "bad", "bad", "bad")))
        == "None of these texts contains a triple of the graph, so nothing can change."
    )


def test_a_loss_is_said_without_a_minus():
    said = view.say_whole(many(0, 9, 3))
    low, high = (float(x) for x in re.search(r"\((.*) to (.*)\)", said).groups())
    assert 0 < low < 75 < high


def test_what_hurts_is_named_only_where_it_can_be_told():
    assert view.say_hurting(many(0, 8), "triple") == (
        "These triples hurt: cat · eats · fish (8 hurt, 0 helped)."
    )
    said = view.say_hurting(MIXED, "entity")
    assert said.startswith("None is certain to hurt")
    assert "dog (2 hurt, 0 helped)" in said
    assert view.say_hurting(many(3, 0), "entity") == ""


@pytest.mark.parametrize("changed", [1, 2, 3, 4, 5, 6, 9])
def test_chance_of_a_verdict_is_that_of_all_ways_coins_can_fall(changed):
    def marked(ways):
        low, high = wilson(sum(ways), changed)
        return low > 0.5 or high < 0.5

    ways = list(product((0, 1), repeat=changed))
    assert view.by_chance(changed) == pytest.approx(sum(map(marked, ways)) / len(ways))


def test_chance_of_a_verdict_stays_about_one_in_twenty():
    assert view.by_chance(0) == view.by_chance(1) == 0
    assert all(0.03 < view.by_chance(changed) < 0.07 for changed in (100, 1000, 100_000))


def test_marked_groups_are_told_beside_those_that_chance_would_mark():
    ways = [("bad", "good", -1.0)] * 8
    rows = [classed(n, "good", *said, [A], gain) for n, (*said, gain) in enumerate(ways)]
    rows += [
        classed(8, "good", "good", "bad", [C], 1.0),
        classed(9, "good", "bad", "good", [C], -1.0),
    ]
    expected = view.by_chance(8) + view.by_chance(2)
    assert view.say_chance(file_of(*rows), "triple") == (
        "1 of the 2 groups with a change are said to help or to hurt. About "
        f"{expected:.1f} would be by chance, if every change fell either way as a coin does."
    )
    assert view.say_chance(many(0, 8), "triple") == ""  # a single one was not picked out of many
    assert view.say_chance(many(1, 1), "triple") == ""


def test_progress_counts_what_is_known():
    assert view.going(MIXED.rows) == ("4 texts so far, knowledge changes 3: 1 helped, 2 hurt.")


# Tables, bars, files


def test_rows_are_those_that_changed_by_what_knowledge_did():
    assert [row.number for row in view.shown(MIXED, view.ALL)] == [0, 1, 2]
    assert [row.number for row in view.shown(MIXED, "hurt")] == [1, 2]
    assert view.shown(MIXED, "neutral") == ()


def test_cells_are_plain_text_and_numbers_that_sort():
    columns = view.rows_table(view.shown(MIXED, view.ALL), INFO)
    assert "gain" not in columns  # nats stand in the file
    verdicts, _, gold, *_, triples = columns.values()
    assert verdicts == ["helped", "hurt", "hurt"]
    assert gold[0] == "good · 4 or 5 stars"
    assert triples[2] == "dog · is · animal, =cmd() · <b> · @x"


def test_groups_say_shares_intervals_and_what_can_be_told():
    columns = view.groups_table(many(1, 9).groups("triple"))
    assert [*columns.values()][-2:] == [["90 % (60 – 98)"], [t("hurts")]]


# What runs in the background

IS_DISEASE, IS_CURE = Triple("糖尿病", "类别", "疾病"), Triple("布洛芬", "类别", "治疗")
GRAPH = KnowledgeGraph([IS_DISEASE, IS_CURE], name="two")
TEXTS = [
    tagged("患者有糖尿病", ("糖尿病", "疾病")),
    tagged("患者好转"),
    tagged("给予布洛芬", ("布洛芬", "治疗")),
]


@pytest.fixture(scope="module")
def reader(checkpoints):
    return Pipeline.from_pretrained(checkpoints["ner"], device="cpu")


@pytest.fixture
def setup(reader):
    data = Data("made", "ner", {"train": TEXTS, "test": TEXTS[:2]})
    options, ablation = reader.card.reading.options, reader.card.reading.ablation
    return FileSetup(data, "train", "m", "g", GRAPH, options, ablation, ())


def test_reading_tells_how_far_it_is_after_every_text(reader, setup):
    items = list(audits.rows(reader, setup))
    assert [item for item in items if isinstance(item, Progress)] == [
        Progress(n, 3) for n in (1, 2, 3)
    ]
    assert [row.number for row in items[::2]] == [0, 1, 2]


def test_a_knowbert_reads_a_file(setup, tmp_path, checkpoints):
    knowbert = knowbert_in(tmp_path, checkpoints)
    rows = [item for item in audits.rows(knowbert, setup) if not isinstance(item, Progress)]
    assert [row.number for row in rows] == [0, 1, 2]


def test_too_many_texts_are_cut(setup, monkeypatch):
    monkeypatch.setattr(audits, "MOST_TEXTS", 2)
    assert len(setup.examples) == 2


# The page


@pytest.fixture(autouse=True)
def all_ended():
    """No test leaves a run behind."""
    yield
    for run in list(background._going):
        run.stop()
        run.join(PATIENCE)


def rest(at):
    """Wait for what runs in the background, then look again."""
    at.session_state["data.run"][1].join(PATIENCE)
    at.run()
    assert not at.exception
    return at


@pytest.fixture
def page(monkeypatch):
    monkeypatch.setenv("KBERT_OPEN_PATHS", "1")
    at = AppTest.from_file(PAGE, default_timeout=PATIENCE).run()
    assert not at.exception
    return rest(at)


def everything(at):
    parts = (at.caption, at.info, at.error, at.warning, at.markdown, at.subheader)
    return "\n".join(str(item.value) for part in parts for item in part).replace("\\", "")


def headlines(at):
    bodies = [html.unescape(item.proto.body) for item in at.get("html")]
    return [body for body in bodies if body.startswith('<div class="kb-headline"')]


def numbers(at):
    return [metric.value for metric in at.metric][-5:]


def test_the_first_visit_has_read_the_example(page):
    assert numbers(page) == ["6", "6", "2", "2", "0"]
    found, report = (page.session_state[f"data.{name}"] for name in ("found", "report"))
    assert (found.graph, page.session_state["data.setup"].split) == ("medical_zh", "dev")
    assert view.say_whole(found) in headlines(page)[-1]
    assert audit_view.in_words(report.verdict.headline) in headlines(page)[0]
    assert list(page.dataframe[-1].value["knowledge"]) == [t("helped")] * 2


def test_a_model_that_reads_the_texts_is_offered_first():
    at = AppTest.from_file(PAGE, default_timeout=PATIENCE)
    at.query_params["example"] = "copd"  # in the Lab a model of English
    at.run()
    assert at.session_state["lab.model"].endswith("ner-en")
    assert numbers(rest(at)) == ["6", "6", "2", "2", "0"]


def test_another_split_is_read_when_asked_for(page):
    page.session_state["data.split"] = "train"
    page.run()
    assert t("These results are for the earlier choice.") in everything(page)
    assert numbers(page)[0] == "6"
    page.button(key="data.button").click().run()
    rest(page)
    assert numbers(page)[0] == "18"
    assert t("These results are for the earlier choice.") not in everything(page)


def test_a_chosen_text_opens_in_the_lab_as_it_was_read(page):
    number = page.session_state["data.run"][1].look().results[0].number
    page.session_state["data.row"] = next(
        row.number for row in page.session_state["data.found"].changed
    )
    page.run()
    assert not page.exception
    text = page.session_state["data.found"].changed[0].example.sentences[0]
    assert text in everything(page)
    page.number_input(key="data.max_triples").set_value(1).run()
    page.button(key="data.open_row").click().run()
    assert page.session_state["lab.text"] == text
    assert page.session_state["lab.task"] == "ner"
    assert page.session_state["lab.max_triples"] == 2  # as it was read, not as it is chosen now
    assert number == 0


def test_groups_are_shown_by_everything(page):
    page.session_state["data.view"] = "groups"
    for by in KINDS:
        page.session_state["data.by"] = by
        page.run()
        assert not page.exception
        groups = page.session_state["data.found"].groups(by)
        frame = page.dataframe[-1].value
        assert list(frame["name"]) == [group.name for group in groups]
        assert list(frame["hurt"]) == [group.hurt for group in groups]


def test_labels_that_the_model_does_not_know_are_said(page, tmp_path):
    line = line_of(tagged("患者有糖尿病", ("糖尿病", "Quark")))
    (tmp_path / "train.tsv").write_text(f"text_a\tlabel\n{line}\n", encoding="utf-8")
    page.session_state["data.kind"] = "folder"
    page.session_state["data.folder"] = str(tmp_path)
    page.run()
    page.button(key="data.button").click().run()
    page.session_state["data.run"][1].join(PATIENCE)
    page.run()
    assert "the label 'B-Quark' is not among those of the model" in everything(page)


def test_a_task_without_a_model_says_so(page, tmp_path):
    rows = "qid\tlabel\ttext_a\ttext_b\n1\t1\ta\tb\n1\t0\ta\tc\n"
    (tmp_path / "train.tsv").write_text(rows, encoding="utf-8")
    page.session_state["data.kind"] = "folder"
    page.session_state["data.folder"] = str(tmp_path)
    page.run()
    assert t(
        "There is no model here for this task ({task}), so the data are counted only. Open a "
        "model in the Lab to read them.",
        task=t("Answer selection"),
    ) in everything(page)
    page.button(key="data.button").click().run()
    assert not page.exception
    assert "data.run" not in page.session_state  # counted, not read
    assert page.session_state["data.report"].audit.task == "rank"


def test_a_stopped_reading_says_how_far_it_came(page):
    _, run = page.session_state["data.run"]
    found = page.session_state["data.found"]
    page.session_state["data.found"] = WholeFile(found.task, found.graph, found.rows, 9)
    page.run()
    assert t(
        "The reading was stopped: {done} of {total} texts.", done="6", total="9"
    ) in everything(page)
    assert run.look().ended
