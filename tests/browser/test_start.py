"""What a visitor does on the start page, in headless Chromium: each card keeps its promise."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def play(lab, card):
    """Press a card's Play, once, and see the Lab."""
    lab.go("Start")
    lab.page.locator(f".st-key-start-{card}").get_by_role("button", name="Play").click()
    expect(lab.page.locator(".kb-tree").first).to_be_visible()
    lab.settle()


@pytest.fixture
def lab(visit):
    """As an English visitor begins."""
    return visit(path="?example=copd")


def test_each_card_shows_what_it_promises_whatever_was_played_before(lab):
    play(lab, "triple")
    assert lab.prediction("Before") == [("COPD", "Disease")]
    assert lab.prediction("Now") == []
    expect(lab.page.locator(".kb-removed")).to_contain_text("disease")

    play(lab, "wrong")
    assert "is_adrug" in lab.branches() and "is_adisease" not in lab.branches()
    assert lab.prediction("Now") == [("COPD", "Chemical")]

    play(lab, "systems")  # one edit in each of four
    columns = lab.page.locator(".kb-column")
    expect(columns).to_have_count(4)
    for name in ("K-BERT", "KnowBert", "Roof-BERT", "plain text"):
        expect(columns.filter(has_text=name).first).to_be_visible()
    assert "Before" in lab.page.locator(".kb-ner").first.inner_text()

    play(lab, "mask")  # every token sees every triple
    expect(columns.filter(has_text="Everything visible")).to_have_count(1)

    play(lab, "figure")
    assert lab.branches() == ["CEOApple", "capitalChina", "is_aCity"]


def test_an_own_graph_is_opened_and_sentences_are_tried(lab, tmp_path):
    """The dialog is there at once, whatever was open before, and is gone once a file was taken."""
    file = tmp_path / "mine.spo"
    file.write_text("florbax\tis_a\tdrug\nCOPD\tis_a\tdisease\n", encoding="utf-8")
    play(lab, "own")
    dialog = lab.page.get_by_role("dialog")
    expect(dialog).to_contain_text("Open a knowledge graph")
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)
    play(lab, "own")
    dialog.locator('input[type="file"]').set_input_files(file)
    expect(dialog).to_have_count(0)
    lab.settle()
    assert "Opened mine: 2 triples." in lab.text()
    expect(lab.page.locator(".st-key-lab_try button").first).to_contain_text("COPD")


def test_a_card_that_is_played_takes_no_edit_away(lab):
    lab.add("COPD", "is", "my own fact")
    play(lab, "triple")
    assert "my own fact" not in str(lab.tokens())
    for _ in range(2):  # the card's edit, then the graph as it was opened
        lab.press("Undo")
    assert "ismyownfact" in lab.branches()
    lab.press("Undo")
    assert lab.branches() == ["is_adisease", "symptomchroniccough"]


@pytest.fixture
def newcomer(visit):
    """A new visitor's page, whose browser has not played anything yet."""

    def come(**how):
        lab = visit(locale="zh-CN")
        lab.page.emulate_media(**how)
        lab.page.evaluate("localStorage.setItem('kbert-play', '')")
        lab.open()
        return lab, lab.page.locator(".kb-play")

    return come


def test_a_new_visitor_is_shown_the_idea_once_and_handed_the_switch(newcomer):
    lab, play = newcomer()
    expect(play).to_contain_text("胃镜")
    for step in range(6):
        expect(play).to_have_attribute("data-step", str(step))
    play.get_by_role("button", name="我来试试").click()
    expect(play).to_have_count(0)
    lab.open()
    expect(play).to_have_count(0)


def test_the_play_goes_at_the_first_click_beside_it_which_does_what_it_does(newcomer):
    lab, play = newcomer()
    expect(play).to_be_visible()
    lab.page.locator(".kb-tree [data-switch]").first.click()
    expect(play).to_have_count(0)
    expect(lab.page.locator(".kb-removed")).to_contain_text("检查")


def test_nothing_is_played_where_motion_is_to_be_reduced(newcomer):
    lab, play = newcomer(reduced_motion="reduce")
    expect(play).to_have_count(0)
    lab.page.emulate_media(reduced_motion="no-preference")


def test_no_text_offers_the_examples(lab):
    page = lab.page.get_by_test_id("stMain")
    expect(page).to_contain_text("lightbulb")
    lab.write("")
    expect(page).not_to_contain_text("lightbulb")  # there is nothing to switch off
    lab.press("The patient with COPD recovered")
    assert lab.branches()
