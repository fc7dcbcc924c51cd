"""What a visitor does on the start page, in headless Chromium: each card keeps its promise."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
CARDS = ("triple", "wrong", "systems", "mask", "own", "figure")


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
