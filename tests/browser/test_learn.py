"""Through a lesson and into the Lab, by mouse and by keyboard."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


@pytest.fixture
def learn(lab):
    lab.go("Learn")
    lab.page.wait_for_selector(".kb-words")
    lab.settle()
    return lab


def test_a_lesson_is_done_by_keyboard_and_another_by_mouse_and_opened_in_the_lab(learn):
    page = learn.page
    page.get_by_role("radio", name="1 Tokens").focus()
    assert reach(page, "input")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    learn.settle()
    assert page.get_by_role("radio", name="14", exact=True).is_checked()
    assert reach(page, "Reveal")
    page.keyboard.press("Enter")
    learn.settle()
    assert "As predicted: 14" in learn.text()
    assert reach(page, "Next lesson")
    page.keyboard.press("Enter")
    learn.settle()
    assert "Which token stands right behind “Cook”" in learn.text()

    learn.show("7 When knowledge hurts")
    expect(page.get_by_role("button", name="Reveal")).to_be_disabled()
    page.get_by_text("Disease", exact=True).first.click()
    learn.settle()
    learn.press("Reveal")
    assert "You predicted Disease. It is Examine" in learn.text()
    assert "2 of 7 revealed, 1 as predicted" in learn.text()
    learn.press("Open in the Lab")
    page.wait_for_selector("canvas.over")
    learn.settle()
    assert page.url.rstrip("/") == learn.address
    assert learn.prediction("Before") == [("高血压", "Disease"), ("阿司匹林", "Cure")]
    assert learn.prediction("Now") == [("高血压", "Examine"), ("阿司匹林", "Cure")]
    learn.press("Undo")  # the wrong triple is the last edit
    assert learn.prediction("Now") == [("高血压", "Disease"), ("阿司匹林", "Cure")]
    learn.go("Learn")
    expect(page.get_by_role("radio", name="7 When knowledge hurts ✓")).to_be_checked()
    assert "It is Examine" in learn.text()


def reach(page, wanted):
    """Press Tab until an element of this text has the focus, or "input" for a radio button."""
    for _ in range(16):
        page.keyboard.press("Tab")
        page.wait_for_timeout(150)
        said = page.evaluate(
            "(() => { const e = document.activeElement;"
            " return e.type === 'radio' ? ['input'] : e.innerText.split('\\n'); })()"
        )
        if wanted in said:
            return wanted
    return None
