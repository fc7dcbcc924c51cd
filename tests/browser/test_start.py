"""What a visitor does on the start page, in headless Chromium."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def play(lab, number):
    lab.go("Start")
    lab.page.get_by_role("button", name="Play").nth(number).click()
    expect(lab.page.locator(".kb-tree").first).to_be_visible()
    lab.settle()


def test_a_card_plays_its_scene_in_the_lab_and_another_begins_anew(lab):
    play(lab, 0)
    one = lab.prediction("Now")
    assert one != lab.prediction("Before")
    play(lab, 1)
    assert lab.prediction("Now") != lab.prediction("Before")
    play(lab, 2)
    expect(lab.page.locator(".kb-column")).to_have_count(4)
    assert "Before" in lab.page.locator(".kb-ner").first.inner_text()
    play(lab, 5)
    assert "CEOApple" in lab.branches()
    play(lab, 0)
    assert lab.prediction("Now") == one
