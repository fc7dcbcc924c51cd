"""What a visitor of the Lab does, in headless Chromium."""

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

FIGURE_2 = "[CLS] Tim Cook CEO Apple is visiting Beijing capital China is_a City now [SEP]".split()
FIGURE_2_SOFT = [0, 1, 2, 3, 4, 3, 4, 5, 6, 7, 6, 7, 6, 7]


def test_first_visit_shows_a_prediction(lab):
    assert lab.prediction("Now")
    assert "This example has already run" in lab.text()
    assert "胃镜" in lab.text()


def test_switching_a_triple_off_changes_tree_matrix_and_prediction(lab):
    matrix, branches, shown = lab.matrix(), lab.branches(), lab.probabilities()
    first, third = lab.cell(4, 0), lab.cell(4, 2)
    assert (first, third) == ("injected", "over the limit per mention")
    tails = [lab.cell(3, row) for row in range(3)]
    lab.toggle(0)
    assert lab.cell(4, 0) == "switched off"
    assert lab.cell(4, 2) == "injected, moved up"
    assert lab.branches() != branches
    assert any(tails[2] in branch for branch in lab.branches())
    assert not any(branch.endswith(tails[0]) for branch in lab.branches())
    assert lab.matrix()["sum"] != matrix["sum"]
    assert lab.probabilities() != shown
    assert re.search("moved up into the free place", lab.text())
    lab.press("Undo")
    assert (lab.matrix(), lab.branches()) == (matrix, branches)
    assert lab.cell(4, 0) == "injected"
    lab.press("Redo")
    assert lab.cell(4, 0) == "switched off"


def test_editing_a_tail_changes_the_predicted_type_and_undo_restores_it(lab):
    before = lab.prediction("Now")
    assert ("胃镜", "Examine") in [(text[:2], label) for text, label in before]
    lab.rewrite(3, 0, "疾病")
    after = lab.prediction("Now")
    assert lab.prediction("Before") == before
    assert ("胃镜", "Disease") in [(text[:2], label) for text, label in after]
    expect(lab.page.locator(".kb-ring").first).to_be_visible()
    lab.press("Undo")
    assert lab.prediction("Now") == before


def test_all_triples_off_equals_bert_and_says_so(lab):
    for row in range(4):
        lab.toggle(row)
    assert "the same as BERT without a graph" in lab.text()
    assert "Δ = 0" in lab.text()
    assert lab.branches() == []


def test_figure_2_looks_like_the_papers(lab):
    lab.example("Figure 2 of the paper")
    tokens = lab.tokens()
    assert [text for text, _, _ in tokens] == FIGURE_2
    assert [int(soft) for _, soft, _ in tokens] == FIGURE_2_SOFT
    assert [int(hard) for _, _, hard in tokens] == list(range(14))
    assert lab.branches() == ["CEOApple", "capitalChina", "is_aCity"]
    trunk = lab.page.locator(".kb-toks").all()
    heights = {round(node.bounding_box()["y"]) for node in trunk}
    assert len(heights) == 1, "the trunk stands on one line"
    line = trunk[0].bounding_box()
    for branch in lab.page.locator(".kb-branch").all():
        assert branch.bounding_box()["y"] >= line["y"] + line["height"]


def test_a_click_says_why_a_cell_is_visible_or_not(lab):
    lab.example("Figure 2 of the paper")
    lab.click_matrix(FIGURE_2.index("Cook"), FIGURE_2.index("Apple"))
    said = lab.page.locator(".st-key-lab_cell")
    expect(said).to_contain_text("may attend to “Apple”")
    expect(said).to_contain_text("hangs from the mention “Tim Cook”")
    lab.click_matrix(FIGURE_2.index("Apple"), FIGURE_2.index("China"))
    expect(said).to_contain_text("“Apple” may not attend to “China”")
    expect(said).to_contain_text("branches of different mentions")


def test_attention_and_difference_are_shown(lab):
    lab.example("Figure 2 read by an English encoder")
    lab.show("Attention")
    attention = lab.matrix()
    assert attention["kind"] == "attention"
    lab.choose("Head", "2")
    assert lab.matrix()["sum"] != attention["sum"]
    lab.toggle(0)
    lab.show("Difference")
    assert lab.matrix()["kind"] == "difference"
    assert "CEO Apple" in lab.matrix()["tokens"]


def test_a_triple_is_added_first_and_deleted_by_undo(lab):
    lab.example("Figure 2 of the paper")
    lab.add("Beijing", "hosts", "Olympics")
    assert "hostsOlympics" in lab.branches()
    assert "is_aCity" not in lab.branches()
    assert "An added triple stands first" in lab.text()
    lab.press("Undo")
    assert lab.branches() == ["CEOApple", "capitalChina", "is_aCity"]


def test_a_row_deleted_in_the_table_is_gone_until_undone(lab):
    lab.example("Figure 2 of the paper")
    lab.delete(0)
    assert lab.branches() == ["capitalChina", "is_aCity"]
    assert "Last edit: deleted (Tim Cook, CEO, Apple)" in lab.text()
    lab.press("Undo")
    assert lab.branches() == ["CEOApple", "capitalChina", "is_aCity"]


def test_a_second_click_is_not_lost_whenever_it_comes(lab):
    """However far the page is with its answer to the first, its coming drops no later change."""
    lab.example("Figure 2 of the paper")
    ticks = lab.ticks()
    lost = []
    for pause in range(0, 800, 100):
        lab.page.mouse.click(*ticks[0])
        lab.page.wait_for_timeout(pause)
        lab.page.mouse.click(*ticks[2])
        lab.settle()
        if lab.branches() != ["capitalChina"]:
            lost.append(pause)
        while lab.branches() != ["CEOApple", "capitalChina", "is_aCity"]:
            lab.press("Undo")
    assert lost == []


def test_a_tick_cleared_and_set_again_is_set_whenever_the_second_click_comes(lab):
    lab.example("Figure 2 of the paper")
    (tick, *_) = lab.ticks()
    for pause in range(0, 800, 100):
        lab.page.mouse.click(*tick)
        lab.page.wait_for_timeout(pause)
        lab.page.mouse.click(*tick)
        lab.settle()
        assert (pause, lab.cell(0, 0)) == (pause, "true")
        assert lab.branches() == ["CEOApple", "capitalChina", "is_aCity"]


def test_a_tick_set_and_cleared_again_and_undone_shows_what_is(lab):
    lab.example("Figure 2 of the paper")
    (tick, *_) = lab.ticks()
    for branches in 2 * [["capitalChina", "is_aCity"], ["CEOApple", "capitalChina", "is_aCity"]]:
        lab.page.mouse.click(*tick)
        lab.settle()
        assert lab.branches() == branches
        assert lab.cell(0, 0) == str("CEOApple" in branches).lower()
    lab.press("Undo")
    assert lab.cell(0, 0) == "false"
    assert lab.branches() == ["capitalChina", "is_aCity"]


def test_a_refused_edit_changes_nothing_and_says_why(lab):
    lab.example("Figure 2 of the paper")
    lab.add("Beijing", "capital", "China")
    assert "is in the graph already" in lab.text()
    assert lab.branches() == ["CEOApple", "capitalChina", "is_aCity"]


@pytest.fixture(scope="session")
def large_graph(tmp_path_factory):
    """The released MedicalKG where it is, else a file of its form and size."""
    data = os.environ.get("KBERT_DATA")
    path = Path(data) / "kbert" / "Medical.spo" if data else None
    if path and path.is_file():
        return path
    path = tmp_path_factory.mktemp("graphs") / "Medical.spo"
    lines = ["发热\t类别\t症状\n", *(f"病症{i}号\t类别\t疾病\n" for i in range(13_999))]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_a_large_graph_opened_from_disk_is_edited(lab, large_graph):
    before = large_graph.read_bytes()
    head = before.decode("utf-8-sig").split("\t", 1)[0]
    lab.open_graph_path(large_graph)
    assert re.search(r"Opened Medical: 1\d,\d{3} triples", lab.text())
    lab.write(f"患者{head}三天")
    assert lab.cell(1, 0) == head
    matrix = lab.matrix()
    lab.rewrite(3, 0, "治疗")
    assert lab.cell(3, 0) == "治疗"
    assert lab.matrix()["tokens"] != matrix["tokens"]
    with lab.page.expect_download() as download:
        lab.page.get_by_role("button", name="Download .spo").click()
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert f"{head}\t类别\t治疗\n" in text
    assert text.count("\n") > 13_000
    assert large_graph.read_bytes() == before


def test_a_bad_upload_is_listed_and_changes_nothing(lab, tmp_path):
    lab.example("Figure 2 of the paper")
    branches = lab.branches()
    bad = tmp_path / "bad.spo"
    bad.write_text("Tim Cook\tlikes\ttea\n" + "only two\tfields\n" * 30, encoding="utf-8")
    lab.page.locator(".st-key-lab-open_graph button").first.click()
    lab.page.locator('input[type="file"]').first.set_input_files(bad)
    lab.settle()
    assert "nothing was changed" in lab.text()
    assert "bad.spo, line 2: found 2 fields" in lab.text()
    assert "and 10 more bad lines" in lab.text()
    assert lab.branches() == branches


def test_an_upload_over_the_limit_is_refused_and_says_the_limit(lab, tmp_path):
    lab.example("Figure 2 of the paper")
    large = tmp_path / "large.spo"
    large.write_text("Tim Cook\tlikes\ttea\n" * 1_200_000, encoding="utf-8")
    lab.page.locator(".st-key-lab-open_graph button").first.click()
    expect(lab.page.get_by_text("Upload a file of at most 20 MB")).to_be_visible()
    lab.page.locator('input[type="file"]').first.set_input_files(large)
    expect(lab.page.get_by_role("alert").first).to_contain_text("must be 20.0MB or smaller")
    lab.page.keyboard.press("Escape")
    lab.settle()
    assert lab.branches() == ["CEOApple", "capitalChina", "is_aCity"]


def test_a_path_without_a_file_says_so(lab):
    lab.example("Figure 2 of the paper")
    lab.open_graph_path(Path("/nowhere/<b>bold</b>.spo"))
    assert "/nowhere/<b>bold</b>.spo: there is no such file here" in lab.text()
    assert lab.branches() == ["CEOApple", "capitalChina", "is_aCity"]


def test_without_a_mask_the_tree_is_shown_and_the_mask_is_asked_for(lab):
    lab.example("高血压…")
    expect(lab.page.get_by_text("[MASK] 1")).to_be_visible()
    lab.write("高血压患者要控制血压")
    assert "write [MASK] into the sentence" in lab.text()
    assert lab.branches()
    assert lab.matrix()["kind"] == "visible"
    lab.show("Attention")
    assert lab.matrix()["kind"] == "attention"


def test_a_sentence_without_an_entity_says_so(lab):
    lab.example("Figure 2 of the paper")
    lab.write("Nobody is here")
    assert "No entity of this graph is named" in lab.text()
    assert lab.branches() == []
    assert [text for text, _, _ in lab.tokens()] == ["[CLS]", "Nobody", "is", "here", "[SEP]"]


def test_markup_in_a_triple_stays_text(lab):
    lab.example("Figure 2 of the paper")
    evil = "<img src=x onerror=alert(1)>"
    lab.page.on("dialog", lambda dialog: pytest.fail("a script ran"))
    lab.add("Beijing", "</script><b>", evil)
    assert evil in [text for text, _, _ in lab.tokens()] or "src=x" in str(lab.tokens())
    assert lab.page.locator(".kb-tree img").count() == 0
    lab.show("Graph")
    lab.page.wait_for_timeout(1500)
    frame = lab.page.frame_locator("iframe").first
    expect(frame.locator("canvas").first).to_be_visible()
    assert frame.locator("img").count() == 0


def test_two_visitors_do_not_see_each_others_edits(visit):
    one, two = visit(), visit()
    for lab in (one, two):
        lab.example("Figure 2 of the paper")
    one.rewrite(3, 0, "Pear")
    assert "CEOPear" in one.branches()
    expect(two.page.get_by_role("button", name="Undo").first).to_be_disabled()
    two.example("Figure 2 read by an English encoder")
    two.example("Figure 2 of the paper")
    assert "CEOApple" in two.branches()
    three = visit()
    three.example("Figure 2 of the paper")
    assert "CEOApple" in three.branches()


def test_the_self_check_passes_on_what_is_loaded(lab):
    lab.go("About")
    lab.page.get_by_role("button", name=re.compile("^Check ")).click()
    lab.settle()
    expect(lab.page.get_by_text("passed", exact=False)).to_have_count(3)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_window_scrolls_one_way_only(visit, scheme):
    lab = visit(width=800, height=1000, scheme=scheme)
    assert lab.fits()
