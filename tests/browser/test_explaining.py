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


def test_a_visitor_sees_what_every_triple_does_and_switches_the_strongest_off(lab):
    before = lab.prediction()
    lab.go("What flips it?")
    measured(lab)
    rows = lab.page.locator(".kb-eff:not(.kb-eff-head)")
    expect(rows).to_have_count(2)
    first = rows.first.inner_text()
    assert "moves up" in first
    promised = re.findall(r"becomes (\w+)", first)[-1]  # of the column "deleted"
    lab.page.get_by_role("button", name="Switch off").first.click()
    lab.page.wait_for_selector(".kb-tree", timeout=3 * PATIENCE)
    lab.settle()
    assert lab.cell(4, 0) == "switched off"
    assert promised in [label for _, label in lab.prediction()]
    lab.page.get_by_role("button", name="Undo").first.click()
    lab.settle()
    assert lab.prediction() == before


def test_a_visitor_looks_at_pairs_shapley_values_and_attention(lab):
    lab.go("What flips it?")
    measured(lab)
    table = lab.page.locator(".kb-effs")
    expect(table.locator("th")).to_have_text(
        ["triple", "of the trunk", "of what is explained", "effect"]
    )
    lab.show("Pairs of triples")
    lab.press("Measure 1 pairs")
    expect(table.locator("tr")).to_have_count(2)
    lab.show("Shapley values")
    lab.press("Share it out")
    expect(lab.page.get_by_text("Exact, by all 4 sets.")).to_be_visible()
    shares = table.locator(".kb-eff-value").all_inner_texts()
    whole = re.search(r"Sum: (\S+)\.", lab.text())[1]
    values = [float(share.replace("−", "-")) for share in (*shares, whole)]
    assert sum(values[:-1]) == pytest.approx(values[-1], abs=0.2)  # two digits are shown


def test_a_visitor_searches_what_flips_it_and_applies_the_first_in_the_lab(lab):
    before = lab.prediction()
    lab.go("What flips it?")
    measured(lab)
    lab.page.get_by_role("button", name="Search", exact=True).click()
    expect(lab.page.get_by_text(re.compile(r"All that is looked at was tried"))).to_be_visible(
        timeout=3 * PATIENCE
    )
    lab.settle()
    first = lab.page.locator(".kb-flip").first
    promised = re.search(r"becomes (\w+)", first.inner_text())[1]
    lab.page.get_by_role("button", name="Apply in the Lab").first.click()
    lab.page.wait_for_selector(".kb-tree", timeout=3 * PATIENCE)
    lab.settle()
    after = lab.prediction()
    assert after != before
    assert promised in [label for _, label in after]
    lab.page.get_by_role("button", name="Undo").first.click()
    lab.settle()
    assert lab.prediction() == before


LONG = (
    "患者行胃镜检查未见异常，有糖尿病史，入院后行心电图检查，给予布洛芬口服后好转，行胸部CT，"
    "诊断为肺炎，给予头孢治疗，有头痛、发热、咳嗽，给予阿司匹林，诊断为高血压、糖尿病"
)


def test_a_visitor_stops_a_search_and_keeps_what_was_found(lab):
    lab.write(LONG)  # with all that follows, a search that isn't over before it is stopped
    lab.go("What flips it?")
    measured(lab)
    lab.choose("It shall become", "Disease")
    lab.page.get_by_text("Larger sets too, once smaller ones are found").click()
    lab.settle()
    lab.show("3")
    lab.page.get_by_role("slider").press("End")
    lab.settle()
    assert lab.page.get_by_role("slider").get_attribute("aria-valuetext") == "1000"
    lab.page.get_by_role("button", name="Search", exact=True).click()
    lab.page.locator(".kb-flip").first.wait_for(timeout=PATIENCE)
    lab.page.get_by_role("button", name="Stop").click(timeout=PATIENCE)
    expect(lab.page.get_by_text("Stopped; what was found by then is shown.")).to_be_visible()
    lab.settle()
    assert lab.page.locator(".kb-flip").count() > 0


def test_a_visitor_follows_a_triple_to_a_token(lab):
    lab.go("Paths of knowledge")
    text = lab.text()
    assert "can differ from layer 2 on" in text
    assert "which is rounding" in text
    expect(lab.page.locator(".kb-paths tbody tr")).to_have_count(20)
    lab.choose("Token", "4: 胃")
    assert "can differ from layer 1 on" in lab.text()
    lab.page.get_by_role("radio", name="What a token can know").click()
    lab.settle()
    assert "From layer 1 on, “胃” can know all that stands in the tree." in lab.text()


def test_a_visitor_turns_the_dial_and_draws_the_curve(lab):
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


@pytest.mark.parametrize("name", ["What flips it?", "Paths of knowledge", "Knowledge noise"])
def test_pages_fit_a_narrow_window(visit, name):
    lab = visit(width=390, height=900)
    lab.go(name)
    assert lab.fits()
