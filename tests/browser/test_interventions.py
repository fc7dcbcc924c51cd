"""Blocking and opening cells of the visible matrix, in headless Chromium."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def panel(lab):
    return lab.page.locator(".st-key-lab_interventions")


def press(lab, name):
    """A button of the panel, by the end of its key."""
    panel(lab).locator(f".st-key-lab-iv_{name} button").first.click()
    lab.settle()


def turn(lab, way):
    """Undo or redo the page's last step."""
    lab.page.locator(f".st-key-lab-{way} button").first.click()
    lab.settle()


def preset(lab, menu, name):
    panel(lab).get_by_role("button", name=menu).first.click()
    lab.page.get_by_text(name, exact=True).last.click()
    lab.settle()


def test_blocking_a_branch_changes_the_prediction_and_undo_restores_it(lab):
    before, matrix = lab.prediction("Now"), lab.matrix()
    assert ("胃镜", "Examine") in before
    tokens = matrix["tokens"].split()
    lab.click_matrix(tokens.index("胃"), tokens.index("类"))
    expect(panel(lab)).to_contain_text("What")
    lab.choose("What", "the trunk and the branch (胃镜, 类别, 检查)")
    press(lab, "block")
    said = "1. The trunk and the branch (胃镜, 类别, 检查) may not see each other · 16 cells"
    expect(panel(lab)).to_contain_text(said)
    expect(lab.page.locator(".kb-side").first).to_contain_text("without interventions")
    assert ("胃镜", "Examine") not in lab.prediction("Now")
    assert lab.prediction("Before") == before
    blocked = lab.prediction("Now")
    turn(lab, "undo")
    expect(panel(lab)).not_to_contain_text("may not see")
    assert lab.prediction("Now") == before
    assert lab.matrix() == matrix
    turn(lab, "redo")
    expect(panel(lab)).to_contain_text(said)
    assert lab.prediction("Now") == blocked
    press(lab, "remove_0")
    expect(panel(lab)).not_to_contain_text("may not see")
    assert lab.prediction("Now") == before


def test_a_preset_on_a_narrow_page_in_chinese_says_what_it_equals(visit):
    lab = visit(width=390, height=900, path="?lang=zh")
    preset(lab, "预设", "切断主干与分支之间的连接")
    expect(panel(lab)).to_contain_text("1. 主干与所有分支不能互相看见 · 28 个单元格")
    expect(panel(lab)).to_contain_text("与不使用图谱的模型相等")
    preset(lab, "预设", "[CLS] 看不到任何分支")
    expect(panel(lab)).to_contain_text("在此没有任何改变")
    expect(panel(lab)).to_contain_text("预测与不干预时相同")
    box = panel(lab).bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
