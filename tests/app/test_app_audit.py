"""What an audit says, and the page Data without a model, as Streamlit runs it."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from tagged_texts import row, tagged

from app import audits
from app.edit_log import EditLog
from app.texts import t
from app.view_models import audit as view
from kbert_core import Characters, InjectionOptions, KnowledgeGraph, Triple, load_graph
from kbert_core.errors import DataError
from kbert_core.knowledge.edit import Edit
from kbert_lab.data.labelled import Example, check_labels
from kbert_lab.study.audit import audit
from kbert_lab.study.audit_values import read_data

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "app" / "app_pages" / "data.py"
PATIENCE = 120
GRAPH = KnowledgeGraph(
    [Triple(f"病{n}号", "类别", "疾病") for n in range(60)]
    + [Triple("心电图", "类别", "检查"), Triple("心电图", "类别", "<b>症状</b>")],
    name="made",
)
SPLITS = {
    "train": [tagged(f"有病{n}号", (f"病{n}号", "D")) for n in range(50)],
    "test": [
        tagged("有病1号", ("病1号", "D")),
        tagged("有病55号及心电图", ("病55号", "D"), ("心电图", "E")),
        tagged("有胸片", ("胸片", "E")),
    ],
}


def made(splits=SPLITS, graph=GRAPH, task="ner"):
    return audit(splits, graph, task=task, tokenizer=Characters(special=True), data="made")


def test_the_facts_are_those_of_the_held_out_set():
    facts = {fact.name: fact.value for fact in view.facts(made())}
    assert facts == {
        t("Mentions known"): "75.0 %",
        t("New, and known"): "50.0 %",
        t("Worst leak"): "33.3 %",
        t("Dictionary F1"): "57.1",  # 2 right of 3 predicted, 4 gold: 心电图 is taken for D
        t("Tokens added"): "104.5 %",  # 4 and 4 + 4 + 11 beside 6 + 11 + 5
    }


def test_classification_has_other_facts_and_no_mentions():
    splits = {
        "train": [Example(("有病1号",), "1"), Example(("无",), "1")],
        "dev": [Example(("有病2号",), "0"), Example(("否",), "1")],
    }
    found = made(splits, task="classify")
    names = [fact.name for fact in view.facts(found)]
    assert names == [t(view.AUDIT_FACT[name][0]) for name in ("texts", "leak", "majority", "added")]
    assert view.mentions_table(found) is view.names_table(found) is None
    assert view.dictionary_table(found) is view.groups_table(found) is None
    assert view.gold_heads(found) == []
    table = view.splits_table(found)
    assert table["split"] == ["train", "dev"] and len(table) == 5  # of no gold mentions
    assert [len(column) for column in view.parts(found)] == [1, 0]


def test_tables_show_the_held_out_set_by_label():
    assert list(view.mentions_table(made()).values()) == [
        ["train", "test", "\u2003D", "\u2003E"],
        ["50", "4", "2", "2"],
        ["100.0 %", "75.0 %", "100.0 %", "50.0 %"],
        ["", "3", "1", "2"],
        ["", "66.7 %", "100.0 %", "50.0 %"],
    ]
    assert list(view.leaks_table(made()).values())[1:] == [["1"], ["33.3 %"], ["100.0 %"]]
    assert view.dictionary_table(made())["split"][0] == "test"


def test_heads_of_the_test_set_only_are_given_as_a_share_of_all_heads_and_of_those_that_are_gold():
    said = " ".join(view.gold_heads(made()))  # 50 names of train, 病55号 and 心电图 of test alone
    assert "Heads of the graph that are gold mentions: 85.2 % (52 of 61)." in said
    assert "of the test set only: 3.3 % (2 of 61); 3.8 % of those" in said
    without_test = {**SPLITS, "dev": SPLITS["test"]}
    del without_test["test"]
    assert "test set" not in " ".join(view.gold_heads(made(without_test)))


def test_a_leak_of_nothing_has_no_share_of_labels():
    splits = {**SPLITS, "test": [tagged("无")]}
    assert list(view.leaks_table(made(splits)).values())[1:] == [["0"], ["0.0 %"], ["–"]]


def test_types_made_of_the_answers_are_marked():
    types, heads, shares = view.groups_table(made()).values()
    assert (types[-1], heads[-1], shares[-1]) == ("疾病 ●", "60", "85.0 %")
    assert "检查" in types  # of a single head nothing can be told


def test_what_to_expect_is_drawn_with_its_intervals():
    found = made()
    (drawn,) = view.expected_chart(found).data
    gains = [found.expected[way] for way in ("K-BERT", "gate", "dictionary")]
    assert list(drawn.y) == [t(name) for name in view.EXPECTED_WAY.values()]
    assert list(drawn.x) == [100 * gain.mean for gain in gains]
    for low, gain in zip(drawn.error_x.arrayminus, gains, strict=True):
        assert gain.mean - low / 100 == pytest.approx(gain.low)
    assert "only a guess" in view.expected_chart(found).layout.xaxis.title.text  # half is wrong
    nothing = {**SPLITS, "test": [tagged("无")]}
    assert view.expected_chart(made(nothing)) is None
    assert (
        view.expected_chart(made({"train": [Example(("有病1号",), "1")]}, task="classify")) is None
    )


# Reading


def files():
    return {
        split: (f"{split}.tsv", ("text_a\tlabel\n" + "\n".join(map(row, rows)) + "\n").encode())
        for split, rows in SPLITS.items()
    }


def test_uploaded_files_are_read_like_a_folder():
    read = audits.uploaded(files(), "mine", None)
    assert (read.name, read.task) == ("mine", "ner")
    assert [e.sentences for e in read.splits["test"]] == [e.sentences for e in SPLITS["test"]]


def test_a_bad_upload_names_the_file_and_the_line_and_no_folder_of_ours():
    with pytest.raises(DataError) as said:
        bad = ("my own.conll", b"text_a\tlabel\na b\tO\n")
        audits.uploaded({**files(), "test": bad}, "mine", "ner")
    assert str(said.value).startswith("my own.conll, line 2: 2 tokens and 1 labels")


def test_examples_of_an_upload_name_the_file_and_no_folder_of_ours():
    given = files()
    read = audits.uploaded({**given, "test": ("my own.tsv", given["test"][1])}, "mine", None)
    assert [e.place for e in read.splits["test"]] == [f"my own.tsv, line {n}" for n in (2, 3, 4)]
    with pytest.raises(DataError, match=r"^my own\.tsv, line 3: the label 'B-E' is not among"):
        check_labels(read.splits["test"], ["O", "B-D", "I-D"], "the model")


def test_a_folder_that_is_too_big_is_not_read(tmp_path, monkeypatch):
    (tmp_path / "train.tsv").write_text("label\ttext_a\n1\ta\n", encoding="utf-8")
    monkeypatch.setattr(audits, "MOST_BYTES", 5)
    with pytest.raises(DataError, match="can be audited in the app"):
        audits.folder(str(tmp_path), None)


def test_a_folder_of_tables_is_read_like_one_of_files_and_weighed_too(tmp_path, monkeypatch):
    (tmp_path / "train.csv").write_text("text,label\na,1\nb,0\n", encoding="utf-8")
    data = audits.folder(str(tmp_path), None)
    assert (data.task, len(data.splits["train"])) == ("classify", 2)
    monkeypatch.setattr(audits, "MOST_BYTES", 10)
    with pytest.raises(DataError, match="at most 0 MB"):
        audits.folder(str(tmp_path), None)


@pytest.mark.parametrize("name", ["hf:rotten_tomatoes", "hf:owner/name", "\0"])
def test_only_folders_of_this_machine_are_opened_by_name(name):
    with pytest.raises(DataError, match="no such folder"):
        audits.folder(name, None)


def test_a_folder_is_read_again_once_its_files_change(tmp_path):
    (tmp_path / "train.tsv").write_text("label\ttext_a\n1\ta\n", encoding="utf-8")
    assert len(audits.folder(str(tmp_path), None).splits["train"]) == 1
    (tmp_path / "train.tsv").write_text("label\ttext_a\n1\ta\n0\tb\n", encoding="utf-8")
    assert len(audits.folder(str(tmp_path), None).splits["train"]) == 2


def test_a_report_is_of_what_was_asked_for():
    read = audits.uploaded(files(), "mine", None)
    for limit, long in ((256, 0), (10, 1), (9, 2)):
        report = audits.audited(read, GRAPH, InjectionOptions(), limit)
        assert report.audit.splits["test"].injection.long_trees.count == long


# The example that comes with the app


def test_the_example_is_as_its_readme_says():
    text = (ROOT / "demo_kgs" / "example_data" / "README.md").read_text(encoding="utf-8")
    read = read_data(audits.EXAMPLE)
    for split, examples in read.splits.items():
        mentions = sum(len(e.spans) for e in examples)
        assert f"| `medical_ner/{split}.tsv` | {len(examples)} | {mentions} |" in text
    graph = load_graph(ROOT / "demo_kgs" / "medical_zh.spo")
    found = audit(read.splits, graph, task=read.task, tokenizer=Characters())
    assert [leak.texts.count for leak in found.leaks] == [1, 1, 0]
    assert found.conflicts.texts.count == 1
    assert sum(s.examples for s in found.splits.values()) == 31  # as the page says
    for name in ("脊柱", "阿奇霉素", "颈部"):
        assert not graph.triples_of(name)
        assert name in text


# The page


@pytest.fixture
def page(monkeypatch, tmp_path):
    """The page where there is no model: the data are counted only."""
    monkeypatch.setenv("KBERT_MODELS", str(tmp_path))
    monkeypatch.setenv("KBERT_OPEN_PATHS", "1")
    at = AppTest.from_file(PAGE, default_timeout=PATIENCE).run()
    assert not at.exception
    return at


def press(at):
    at.button(key="data.button").click().run()
    assert not at.exception
    return at


def everything(at):
    parts = (at.caption, at.info, at.error, at.markdown, at.subheader, at.code)
    return "\n".join(str(item.value) for part in parts for item in part).replace("\\", "")


def report(at):
    return at.session_state["data.report"].audit


def choose_graph(at, name):
    graphs = at.session_state["lab.graphs"].items()
    at.selectbox(key="data.graph").set_value(next(f for f, g in graphs if g.name == name)).run()


def test_without_a_model_the_first_visit_counts_the_example(page):
    assert (report(page).data, report(page).graph) == ("medical_ner", "medical_zh")
    assert [metric.value for metric in page.metric] == [f.value for f in view.facts(report(page))]
    assert t(
        "There is no model here for this task ({task}), so the data are counted only. Open a "
        "model in the Lab to read them.",
        task=t("Named entities"),
    ) in everything(page)
    sections = [part.title for column in view.parts(report(page)) for part in column]
    assert all(title in everything(page) for title in sections)
    assert len(page.dataframe) == sum(
        sum(map(bool, part.tables)) for column in view.parts(report(page)) for part in column
    )


def test_nothing_is_counted_again_until_the_button_is_pressed(page):
    page.checkbox(key="data.tail_only").set_value(True).run()
    assert t("These results are for the earlier choice.") in everything(page)
    before = page.metric[4].value
    press(page)
    assert t("These results are for the earlier choice.") not in everything(page)
    assert page.metric[4].value != before


def test_a_folder_is_counted_and_a_bad_one_says_why(page, tmp_path):
    page.session_state["data.kind"] = "folder"
    page.run()
    assert t("Enter the folder of the data set above.") in everything(page)
    assert page.button(key="data.button").disabled
    page.text_input(key="data.folder").set_value(str(tmp_path / "none")).run()
    assert t(
        "{path}: no such folder. Name the one that holds train.tsv.", path=tmp_path / "none"
    ) in everything(page)
    for name, data in files().values():
        (tmp_path / name).write_bytes(data)
    page.text_input(key="data.folder").set_value(str(tmp_path)).run()
    press(page)
    assert report(page).data == tmp_path.name


def test_paths_are_not_offered_to_visitors_of_other_machines(monkeypatch, tmp_path):
    monkeypatch.setenv("KBERT_MODELS", str(tmp_path))
    monkeypatch.setattr("app.services.may_open_paths", lambda: False)
    at = AppTest.from_file(PAGE, default_timeout=PATIENCE)
    at.session_state["data.kind"] = "folder"
    at.run()
    assert not at.exception
    assert at.session_state["data.kind"] == "example"


def test_the_labs_edits_count(page):
    medical = page.session_state["data.graph"]
    base, added = (
        page.session_state["lab.graphs"][medical],
        Edit("add", Triple("脊柱", "类别", "部位")),
    )
    page.session_state["lab.logs"] = {medical: EditLog(base, added)}
    press(page)
    assert report(page).triples == 1738
    assert page.metric[0].value == "88.9 %"  # 脊柱 is known now


def test_a_task_that_does_not_fit_is_said(page):
    page.selectbox(key="data.task").set_value("pair").run()
    assert "text_b" in everything(page)


def test_a_graph_that_names_nothing_is_said(page):
    choose_graph(page, "medical_en")
    press(page)
    assert page.metric[0].value == "0.0 %"
