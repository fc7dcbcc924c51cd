"""What visitors of the pages that search, follow and disturb do, in headless Chromium."""

import re

import pytest
from playwright.sync_api import expect

from .lab import PATIENCE

pytestmark = pytest.mark.browser


def measured(lab):
    """Wait until what every triple does is known, and the attention beside it."""
    expect(lab.page.get_by_role("radio", name="Pairs of triples")).to_be_visible(
        timeout=3 * PATIENCE
    )
    lab.settle()


def test_a_visitor_sees_what_every_triple_does_and_applies_what_flips_it(lab):
    before = lab.prediction()
    lab.go("What flips it?")
    measured(lab)
    rows = lab.page.locator(".kb-eff:not(.kb-eff-head)")
    expect(rows).to_have_count(2)
    first = rows.first.inner_text()
    assert "moves up" in first
    flips = re.findall(r"becomes (\w+)", first)[-1]  # of the column "deleted"
    table = lab.page.locator(".kb-effs")
    expect(table.locator("th")).to_have_text(
        ["triple", "of the trunk", "of what is explained", "effect"]
    )
    lab.show("Shapley values")
    lab.press("Share it out")
    expect(lab.page.get_by_text("Exact, by all 4 sets.")).to_be_visible()
    shares = table.locator(".kb-eff-value").all_inner_texts()
    whole = re.search(r"Sum: (\S+)\.", lab.text())[1]
    values = [float(share.replace("−", "-")) for share in (*shares, whole)]
    assert sum(values[:-1]) == pytest.approx(values[-1], abs=0.2)  # two digits are shown

    lab.page.get_by_role("button", name="Search", exact=True).click()
    expect(lab.page.get_by_text(re.compile(r"All that is looked at was tried"))).to_be_visible(
        timeout=3 * PATIENCE
    )
    lab.settle()
    promised = re.search(r"becomes (\w+)", lab.page.locator(".kb-flip").first.inner_text())[1]
    for button, label in (("Apply in the Lab", promised), ("Switch off", flips)):
        if button == "Switch off":
            lab.go("What flips it?")
            measured(lab)
        lab.page.get_by_role("button", name=button).first.click()
        lab.page.wait_for_selector(".kb-tree", timeout=3 * PATIENCE)
        lab.settle()
        assert lab.prediction() != before
        assert label in [label for _, label in lab.prediction()]
        lab.page.get_by_role("button", name="Undo").first.click()
        lab.settle()
        assert lab.prediction() == before


def test_a_visitor_follows_a_triple_to_a_token_then_turns_the_dial_of_noise(lab):
    lab.go("Paths of knowledge")
    text = lab.text()
    assert "can differ from layer 2 on" in text
    assert "which is rounding" in text
    expect(lab.page.locator(".kb-paths tbody tr")).to_have_count(20)
    lab.choose("Token", "4: 胃")
    assert "can differ from layer 1 on" in lab.text()

    lab.go("Knowledge noise")
    before = lab.page.locator(".kb-noise").inner_text()
    lab.page.get_by_role("slider").first.focus()
    for _ in range(6):
        lab.page.keyboard.press("ArrowRight")
    lab.settle()
    assert "10 unrelated triples stand in the text" in lab.text()
    assert lab.page.locator(".kb-noise").inner_text() != before
    lab.page.get_by_role("button", name="Draw the curve").click()
    expect(lab.page.get_by_text("noise moves the prediction by")).to_be_visible(
        timeout=3 * PATIENCE
    )
    expect(lab.page.locator('[data-testid="stPlotlyChart"]')).to_have_count(1)
