"""What is sent by link or file, and what is kept, in headless Chromium."""

import hashlib
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect

from .lab import CARD

pytestmark = pytest.mark.browser

WAITS = ".st-key-lab_share_graph"  # what asks for a graph
OPEN = '[data-testid="stPopoverBody"]'
PAINTED = """canvas => new Set(new Uint32Array(canvas.getContext("2d")
  .getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size"""  # how many colours
HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(1)> =1+1'


def open_popover(lab, name):
    lab.page.get_by_role("button", name=name, exact=True).first.click()
    expect(lab.page.locator(OPEN)).to_be_visible()
    lab.settle()
    return lab.page.locator(OPEN)


def link(lab):
    """Copy the link with its button, as a person does; return what follows the address."""
    lab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened = open_popover(lab, "Share")
    code = opened.locator('[data-testid="stCode"]').first
    expect(code).to_contain_text("?scene=")
    code.hover()
    code.get_by_role("button").first.click()
    copied = lab.page.evaluate("navigator.clipboard.readText()")
    assert copied == code.locator("code").text_content()
    expect(opened).to_contain_text("Anyone with the link can read them")
    lab.page.keyboard.press("Escape")
    lab.settle()
    assert copied.startswith(lab.address)
    return copied.removeprefix(f"{lab.address}/")


def download(lab, name):
    with lab.page.expect_download() as started:
        lab.page.get_by_role("button", name=name, exact=True).click()
    return Path(started.value.path()).read_bytes()


def table(lab, rows):
    return [[lab.cell(column, row) for column in range(1, 5)] for row in range(rows)]


def seen(lab, rows=4):
    """What a page shows of its scene, of its triples the first few."""
    sentence = lab.page.get_by_role("textbox", name="Sentence", exact=True)
    expect(sentence).not_to_have_value("")  # drawn for the first time, it is empty for a moment
    return {
        "text": sentence.input_value(),
        "triples": table(lab, rows),
        "branches": lab.branches(),
        "tokens": lab.tokens(),
        "matrix": lab.matrix(),
        "before": lab.prediction("Before"),
        "now": lab.prediction("Now"),
        "probabilities": lab.probabilities(),
    }


def test_a_link_shows_the_same_prediction_and_edits_in_a_fresh_browser(lab, visit):
    lab.rewrite(3, 0, "疾病")
    lab.toggle(1)
    before = seen(lab)
    assert ("胃镜", "Disease") in [(text[:2], label) for text, label in before["now"]]
    other = visit(path=link(lab), shows=CARD)
    expect(other.page).to_have_title(re.compile("^胃镜: .* → Disease · K-BERT Lab"))
    assert ("胃镜", "Disease") in [(text[:2], label) for text, label in other.prediction("Now")]
    assert not other.page.locator(".kb-tree").count()
    assert other.fits()
    other.press("Open in the Lab")
    other.page.wait_for_selector(".kb-tree")
    other.settle()
    assert seen(other) == before
    assert "Last edit: switched off" in other.text()
    other.press("Undo")
    assert other.cell(4, 1) == "injected"
    assert "scene=" not in other.page.url, "the address tells no other scene than the page shows"


def test_a_link_without_its_graph_is_read_only_until_the_graph_is_there(lab, visit, tmp_path):
    """A graph that says more of a name than a link holds."""
    graph = tmp_path / "hers.spo"
    more = (f"胃镜\t见\t{hashlib.sha256(bytes([n])).hexdigest()}\n" for n in range(200))
    graph.write_text(
        "胃镜\t类别\t疾病\n胃镜\t部位\t胃\n胃镜\t用途\t诊断\n" + "".join(more), encoding="utf-8"
    )
    lab.open_graph_path(graph)
    lab.page.get_by_role("switch", name="Switch off (胃镜, 类别, 疾病)").click()
    lab.settle()
    before = seen(lab, rows=3)
    path = link(lab)

    other = visit(path=path, shows=WAITS)
    said = other.text()
    assert "患者行胃镜检查未见异常" in said and "switched off (胃镜, 类别, 疾病)" in said
    assert "made with the graph “hers”, which isn't here" in said
    assert not other.page.locator(".kb-ner").count(), "no prediction"
    wrong = tmp_path / "wrong" / "hers.spo"
    wrong.parent.mkdir()
    wrong.write_text("胃镜\t类别\t检查\n", encoding="utf-8")
    upload = other.page.locator('input[type="file"]').first
    upload.set_input_files(wrong)
    other.settle()
    assert "isn't here with the same triples" in other.text()
    other.page.locator('input[type="file"]').first.set_input_files(graph)
    other.page.wait_for_selector(".kb-tree")
    other.settle()
    assert seen(other, rows=3) == before


def test_a_page_that_is_loaded_again_offers_to_go_on_and_the_address_does_not_lie(lab):
    page = lab.page
    assert page.url.endswith("?example=gastroscopy")
    lab.toggle(0)
    before = seen(lab)
    expect(page).not_to_have_url(re.compile("example="))
    page.reload()
    page.wait_for_selector(".kb-tree")
    lab.settle()
    assert seen(lab) != before
    lab.press("Go on with it")
    assert seen(lab) == before
    expect(page.get_by_role("button", name="Go on with it")).to_have_count(0)
    page.reload()
    page.wait_for_selector(".kb-tree")
    lab.settle()
    lab.press("Dismiss")
    page.reload()
    page.wait_for_selector(".kb-tree")
    lab.settle()
    expect(page.get_by_role("button", name="Go on with it")).to_have_count(0)


def test_a_session_file_brings_its_graph_along(lab, visit, tmp_path):
    graph = tmp_path / "hers.spo"
    graph.write_text(
        "胃镜\t类别\t疾病\n胃镜\t部位\t胃\n胃镜\t用途\t诊断\n胃镜\t见\t钡餐\n", encoding="utf-8"
    )
    lab.open_graph_path(graph)
    lab.toggle(1)
    before = seen(lab)
    open_popover(lab, "Share")
    file = tmp_path / "x.kbert.json"
    file.write_bytes(download(lab, "Session, .kbert.json"))
    assert json.loads(file.read_text(encoding="utf-8"))["triples"][0] == ["胃镜", "类别", "疾病"]

    other = visit()
    opened = open_popover(other, "Share")
    opened.locator('input[type="file"]').set_input_files(file)
    drawer = other.page.locator(".st-key-lab-drawer summary")
    expect(drawer).to_contain_text("hers, 4 triples")
    other.settle()
    assert seen(other) == before
    bad = tmp_path / "bad.kbert.json"
    bad.write_text('{"kbert": 1, "sentences": []}')
    if not other.page.locator(OPEN).is_visible():
        open_popover(other, "Share")
    other.page.locator(f'{OPEN} input[type="file"]').set_input_files(bad)
    expect(other.page.get_by_text("can't be opened").first).to_be_visible()
    other.settle()
    assert seen(other) == before


def svg_of(page, button):
    """The texts of the drawing that a button saves, what fills its boxes, and itself."""
    with page.expect_download() as started:
        button.click()
    drawn = Path(started.value.path()).read_text("utf-8")
    found = [*ElementTree.fromstring(drawn).iter()]
    fills = {own.get("fill") for own in found}
    assert "#ffffff" in fills and "NaN" not in drawn
    return [own.text for own in found if own.tag.endswith("text")], fills, drawn


def test_a_kept_page_opens_with_the_network_off_and_switches_its_triples(lab, browser, tmp_path):
    lab.rewrite(3, 0, "疾病")
    tokens = [text for text, _, _ in lab.tokens()]
    assert "胃镜\t类别\t疾病" in download(lab, "Download .spo").decode()
    opened = open_popover(lab, "Share")
    file = tmp_path / "page.html"
    file.write_bytes(download(lab, "This page, .html"))
    expect(opened).to_be_visible()
    context = browser.new_context(offline=True, accept_downloads=True)
    asked, errors = [], []
    context.on("request", lambda request: asked.append(request.url))
    page = context.new_page()
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(file.as_uri())
    matrix, now = page.locator(".root").first, page.locator(".kb-line").last
    expect(now).to_contain_text("Disease")
    assert matrix.get_attribute("data-tokens").split() == tokens
    assert page.locator("canvas.base").first.evaluate(PAINTED) > 4
    page.locator("canvas.over").first.hover(position={"x": 90, "y": 90})
    expect(page.locator(".tip").first).to_contain_text("→")
    texts, fills, d = svg_of(page, page.locator("[data-save]"))
    assert {*"".join(tokens)} <= {*"".join(texts)} and "line-through" in d and len(fills) > 3
    texts, fills, _ = svg_of(page, page.locator("button.save").first)
    assert {"hidden", "both on the trunk", tokens[-1]} <= {*texts} and "rgb(0,158,115)" in fills
    page.get_by_role("switch", name="Switch off (胃镜, 类别, 疾病)").click()
    expect(now).not_to_contain_text("Disease")
    page.get_by_text("Before:").click()
    expect(page.locator(".kb-line")).to_contain_text("Examine")
    context.close()
    assert [url for url in asked if not url.startswith(("file:", "blob:"))] == []
    assert errors == []


def test_hostile_texts_and_triples_stay_text_wherever_they_go(lab, visit, browser, tmp_path):
    lab.example("Figure 2 of the paper")
    lab.write(f"Tim Cook {HOSTILE} Beijing")
    lab.add("Tim Cook", "<img src=x onerror=alert(1)>", HOSTILE)
    assert "<script>" in "".join(text for text, _, _ in lab.tokens())
    path = link(lab)
    open_popover(lab, "Share")
    file = tmp_path / "page.html"
    file.write_bytes(download(lab, "This page, .html"))

    other = visit(path=path)
    sentence = other.page.get_by_role("textbox", name="Sentence").first
    expect(sentence).not_to_have_value("")  # drawn for the first time, it is empty for a moment
    assert HOSTILE in sentence.input_value()
    assert other.tokens() == lab.tokens()
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.on("dialog", lambda dialog: pytest.fail("a script ran"))
    page.goto(file.as_uri())
    assert HOSTILE in page.locator("body").inner_text()
    expect(page.locator("#tree")).to_contain_text("<")
    assert page.locator("script:not([type])").count() == 1
    assert page.locator("img").count() == 0
    context.close()


def test_sharing_fits_a_narrow_screen_in_chinese(visit):
    lab = visit(390, 844, "dark", path="?lang=zh")
    box = open_popover(lab, "分享").bounding_box()
    assert box and box["x"] >= 0 and box["x"] + box["width"] <= 390
    lab.page.keyboard.press("Escape")
    lab.settle()
    assert lab.fits()
