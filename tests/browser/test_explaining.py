"""What visitors of the pages that search, follow and disturb do, in headless Chromium."""

import re

import pytest
from playwright.sync_api import expect

from .lab import PATIENCE

pytestmark = pytest.mark.browser


def explain(lab, part):
    lab.go("Explain")
    lab.show(part)
    lab.page.wait_for_selector('[class*="stop_run"]', state="detached", timeout=3 * PATIENCE)
    lab.settle()


def test_a_visitor_sees_what_every_triple_does_and_switches_one_off(lab):
    before = lab.prediction()
    explain(lab, "Effects")
    expect(lab.page.get_by_test_id("stPlotlyChart")).to_have_count(1, timeout=3 * PATIENCE)
    changed = re.search(r"without it ([\d.]+) % → ([\d.]+) % \(−([\d.]+) points\)", lab.text())
    high, low, points = map(float, changed.groups())
    assert high - low == pytest.approx(points, abs=0.11)
    frame = lab.page.get_by_test_id("stDataFrame").first
    place = frame.bounding_box()
    lab.page.mouse.click(place["x"] + 17, place["y"] + 52)
    lab.page.get_by_role("button", name="Switch off").click()
    lab.page.wait_for_selector(".kb-tree", timeout=3 * PATIENCE)
    lab.settle()
    assert lab.prediction() != before
    lab.page.get_by_role("button", name="Undo").first.click()
    lab.settle()
    assert lab.prediction() == before


def test_a_visitor_applies_what_flips_it(lab):
    before = lab.prediction()
    explain(lab, "What flips it?")
    lab.page.get_by_role("button", name="Search", exact=True).click()
    expect(lab.page.get_by_text(re.compile(r"Everything in question was tried"))).to_be_visible(
        timeout=3 * PATIENCE
    )
    lab.settle()
    promised = re.search(r"becomes (\w+)", lab.text())[1]
    lab.page.get_by_role("button", name="Apply in the Lab").first.click()
    lab.page.wait_for_selector(".kb-tree", timeout=3 * PATIENCE)
    lab.settle()
    assert lab.prediction() != before
    assert promised in [label for _, label in lab.prediction()]


def test_a_visitor_follows_a_triple_through_the_layers(lab):
    explain(lab, "Paths")
    assert "the last of them in layer 2. It changes “镜” most" in lab.text()
    expect(lab.page.locator(".ytick text")).to_have_count(20)
