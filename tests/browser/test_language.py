"""Two visitors, two languages; a visitor who changes theirs."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def language_of(lab):
    return lab.page.evaluate("document.documentElement.lang")


def ends_before_the_choice(lab):
    """The names of the pages stand in one line, beside the choice of the language."""
    choice = lab.page.locator(".st-key-app_language").bounding_box()
    ids = ("stTopNavLink", "stTopNavSection")
    links = lab.page.locator(", ".join(f'[data-testid="{name}"]' for name in ids)).all()
    boxes = [link.bounding_box() for link in links if link.is_visible()]
    assert len(boxes) == 5  # three pages and two sections
    assert max(box["x"] + box["width"] for box in boxes) < choice["x"]
    assert len({box["y"] for box in boxes}) == 1


def test_a_chinese_browser_is_greeted_in_chinese(visit):
    lab = visit(locale="zh-CN")
    expect(lab.page.get_by_role("textbox", name="句子", exact=True)).to_be_visible()
    assert "本句的知识" in lab.text()
    assert "lang" not in lab.page.url
    expect(lab.page.get_by_role("radio", name="中文")).to_be_checked()
    lab.page.wait_for_function("document.documentElement.lang === 'zh-Hans'")
    ends_before_the_choice(lab)
    lab.page.set_viewport_size({"width": 800, "height": 1100})
    lab.settle()
    ends_before_the_choice(lab)


def test_a_visitor_changes_the_language_and_keeps_what_was_chosen(lab, visit):
    page = lab.page
    assert language_of(lab) == "en"
    ends_before_the_choice(lab)
    lab.choose("Compare with", "no knowledge")
    before = lab.prediction("Now")
    lab.show("Attention")
    lab.choose("Head", "2")
    sentence = page.get_by_role("textbox", name="Sentence", exact=True).input_value()
    for name in ("relation", "tail"):  # of a triple that isn't added yet
        page.get_by_role("textbox", name=name, exact=True).fill(f"my {name}")
    lab.show("中文")
    assert page.url.endswith("lang=zh")
    expect(page.get_by_role("combobox", name="头", exact=True)).to_have_value("2")
    expect(page.get_by_role("radio", name="注意力", exact=True)).to_be_checked()
    expect(page.get_by_role("textbox", name="句子", exact=True)).to_have_value(sentence)
    for name, text in (("关系", "my relation"), ("尾实体", "my tail")):
        expect(page.get_by_role("textbox", name=name, exact=True)).to_have_value(text)
    assert lab.prediction("现在") == [(text, f"检查 {label}") for text, label in before]
    assert lab.page.locator(".kb-side").first.inner_text().split("\n")[-1] == "不注入知识"
    lab.choose("对比对象", "打开时的图谱")  # the browser tells of every chooser with it
    expect(lab.page.locator('[data-testid="stException"]')).to_have_count(0)
    expect(lab.page.locator(".kb-side").first).to_contain_text("打开时的图谱")
    for name in ("知识", "关于", "实验室"):
        lab.go(name)
        assert page.url.endswith("lang=zh")
        expect(page.get_by_role("radio", name="中文")).to_be_checked()
    fresh = visit(path="?lang=zh")  # a link keeps the language, for another visitor too
    assert "本句的知识" in fresh.text()
    lab.show("English")
    assert page.url.endswith("lang=en")
    assert lab.prediction("Now") == before


def test_on_a_phone_the_language_can_be_chosen_and_the_menu_closes_behind_its_links(visit):
    lab = visit(width=390, height=844)
    choice = lab.page.get_by_role("radio", name="中文")
    box = choice.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390 and box["y"] < 60
    lab.go("Learn")
    expect(lab.page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "true")
    lab.go("About")  # opened again, and closed again
    expect(lab.page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "true")
    lab.show("中文")
    expect(lab.page.get_by_role("radio", name="中文")).to_be_checked()
    assert lab.page.url.endswith("lang=zh")
    assert lab.fits()
