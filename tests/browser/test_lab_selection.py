"""What is chosen in one panel of the Lab is marked in the others, in headless Chromium."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

FIGURE_2 = "[CLS] Tim Cook CEO Apple is visiting Beijing capital China is_a City now [SEP]".split()
ENCODER = "Figure 2 read by an English encoder"


@pytest.fixture
def encoder(lab):
    lab.example(ENCODER)
    return lab


def token(lab, number):
    return lab.page.locator(".kb-tree .kb-tok[data-name]").nth(number)


def marked(lab, kind):
    """The tokens of the tree with a mark."""
    return lab.page.locator(f".kb-tree .{kind} .kb-text")


def chosen(lab):
    return lab.page.locator(".st-key-lab_head_tree")


def canvas(lab):
    return lab.page.locator("canvas.over")


def caption(lab):
    return lab.page.locator(".root[data-sum] .said")


def why(lab):
    return lab.page.locator(".root[data-sum] .why")


def small_map(lab, layer, head):
    """Click one of the small maps."""
    root = lab.page.locator(".root[data-layers]")
    expect(root).to_have_attribute("data-ready", "1")
    heads = int(root.get_attribute("data-heads"))
    root.locator(".maps button").nth((layer - 1) * heads + head - 1).click()
    lab.settle()


def test_a_token_or_a_cell_is_chosen_in_tree_or_matrix_by_mouse_or_keys(lab):
    lab.example("Figure 2 of the paper")
    sizes = [canvas(lab).bounding_box()["height"]]
    lab.page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop = 150")
    token(lab, FIGURE_2.index("Cook")).click()
    expect(marked(lab, "kb-chosen")).to_have_text(["Cook"])
    lab.settle()
    sizes.append(canvas(lab).bounding_box()["height"])
    assert sizes[0] == sizes[1]  # though the page is scrolled
    expect(marked(lab, "kb-unseen")).to_have_text(["capital", "China", re.compile("is_?a"), "City"])
    expect(lab.page.get_by_text("“Cook” sees 10 of 14 tokens")).to_be_visible()
    token(lab, FIGURE_2.index("Cook")).click()
    expect(marked(lab, "kb-chosen")).to_have_count(0)
    expect(chosen(lab)).to_contain_text("Click a token")

    root = lab.page.locator(".root[data-sum]")
    cell, left, top = (float(root.get_attribute(f"data-{k}")) for k in ("cell", "left", "top"))
    canvas(lab).click(position={"x": left / 2, "y": top + 7.5 * cell})
    expect(marked(lab, "kb-chosen")).to_have_text(["Beijing"])
    lab.settle()

    lab.click_matrix(FIGURE_2.index("Cook"), FIGURE_2.index("CEO"))
    expect(why(lab)).to_contain_text("“Cook” may attend to “CEO”")
    canvas(lab).focus()
    lab.page.keyboard.press("ArrowRight")
    expect(caption(lab)).to_have_text("Cook → Apple · a mention and its branch · Enter opens it")
    lab.page.keyboard.press("ArrowDown")
    lab.page.keyboard.press("Enter")
    expect(why(lab)).to_contain_text("“CEO” may attend to “Apple”")
    lab.settle()
    canvas(lab).focus()
    lab.page.keyboard.press("Escape")
    expect(why(lab)).to_be_hidden()
    lab.settle()

    lab.press("Clear")
    lab.page.locator('.kb-tok[tabindex="0"]').focus()
    for _ in range(3):
        lab.page.keyboard.press("ArrowRight")
    lab.page.keyboard.press("Enter")
    expect(marked(lab, "kb-chosen")).to_have_text(["CEO"])
    expect(lab.page.locator(".kb-picked")).to_have_count(1)  # its triple
    lab.settle()
    assert lab.page.evaluate("document.activeElement.textContent").startswith("CEO")
    frames_its_row_and_its_own_column(lab)


def frames_its_row_and_its_own_column(lab):
    """A chosen cell."""
    root = lab.page.locator(".root[data-sum]")
    cell, left, top = (float(root.get_attribute(f"data-{k}")) for k in ("cell", "left", "top"))
    cook, apple = FIGURE_2.index("Cook"), FIGURE_2.index("Apple")
    lab.click_matrix(cook, apple)
    expect(why(lab)).to_contain_text("“Cook” may attend to “Apple”")
    lab.page.mouse.move(0, 0)

    def framed(row, column):
        """Whether a line is drawn along the left edge of a cell, far from the chosen row."""
        return canvas(lab).evaluate(
            """(over, [x, y]) => {
              const by = over.width / over.clientWidth;
              const pixels = over.getContext("2d").getImageData(x * by - 1, y * by, 3, 1).data;
              return pixels.some((value, i) => i % 4 === 3 && value > 0);
            }""",
            [left + column * cell, top + (row + 0.5) * cell],
        )

    last = len(FIGURE_2) - 1
    assert framed(last, apple) and framed(last, apple + 1)
    assert not framed(last, cook)


def scrolls_under_its_names_and_zooms(lab):
    """The matrix of a long text."""
    lab.write("Tim Cook is visiting Beijing now and then. " * 12)
    root = lab.page.locator(".root[data-sum]")
    assert int(lab.matrix()["n"]) > 200
    before = float(root.get_attribute("data-cell"))
    lab.page.get_by_role("button", name="Zoom in").click()
    assert float(root.get_attribute("data-cell")) > before
    lab.page.get_by_role("button", name="Whole matrix").click()
    whole = "e => [e.scrollWidth - e.clientWidth, e.scrollHeight - e.clientHeight]"
    assert max(lab.page.locator(".scroll").evaluate(whole)) <= 1
    token(lab, 21).click()
    expect(marked(lab, "kb-chosen")).to_have_count(1)
    lab.settle()
    for width in (1400, 390):
        lab.page.set_viewport_size({"width": width, "height": 1100})
        lab.settle()
        assert lab.fits(), width


def test_a_triple_is_marked_in_every_panel_and_a_long_texts_matrix_zooms(encoder):
    lab = encoder
    relation = lab.page.get_by_role("textbox", name="relation", exact=True)
    relation.fill("half typed")
    lab.choose("Follow a triple", "(Tim Cook, CEO, Apple)")
    expect(lab.page.locator(".kb-picked")).to_have_count(1)
    expect(lab.page.locator(".kb-picked .kb-text")).to_have_text(["CEO", "Apple"])
    expect(chosen(lab)).to_contain_text("(Tim Cook, CEO, Apple)")
    expect(relation).to_have_value("half typed")
    lab.show("Graph")
    expect(lab.page.locator(".net canvas")).to_be_visible()
    expect(lab.page.locator("[data-chosen]")).to_have_attribute("data-chosen", "0")
    lab.page.get_by_role("button", name="Clear", exact=True).click()
    expect(lab.page.locator(".kb-picked")).to_have_count(0)
    lab.settle()
    scrolls_under_its_names_and_zooms(lab)


def test_a_cell_opens_its_arithmetic_and_attention_is_thinned_out_and_compared(encoder):
    lab = encoder
    lab.show("Attention")
    lab.switch("All heads")
    small_map(lab, 2, 4)
    expect(lab.page.get_by_role("combobox", name="Layer")).to_have_value("2")
    expect(lab.page.get_by_role("combobox", name="Head")).to_have_value("4")
    lab.click_matrix(2, 4)  # Cook and Apple
    box = lab.page.locator(".st-key-lab_cell")
    expect(why(lab)).to_contain_text("“Cook” may attend to “Apple”")
    expect(box).to_contain_text("layer 2, head 4")
    expect(marked(lab, "kb-chosen")).to_have_text(["Cook"])
    expect(marked(lab, "kb-target")).to_have_text(["Apple"])
    row = box.get_by_role("row").filter(has_text="softmax")
    weight = re.search(r"gives “Apple” ([\d.]+) % of its attention", box.inner_text())[1]
    expect(row).to_contain_text(f"{weight} %")
    expect(caption(lab)).to_contain_text(f"Cook → Apple · {weight} %")  # what the canvas drew
    lab.click_matrix(0, 4)
    expect(box).to_contain_text("the visible matrix closes this cell")

    root = lab.page.locator(".root[data-sum]")
    slider = root.get_by_role("slider")
    expect(root.locator("output")).to_have_text("all")
    every = int(root.get_attribute("data-kept"))
    kept = []
    for share in (95, 80, 50):
        slider.fill(str(share))
        expect(root.locator("output")).to_contain_text(f"{share} % of its mass")
        kept.append(int(root.get_attribute("data-kept")))
    assert every > kept[0] > kept[1] > kept[2] >= int(root.get_attribute("data-n"))
    attention = lab.matrix()
    lab.choose("Head", "1")
    expect(root.locator("output")).to_contain_text("50 % of its mass")  # it stays
    assert lab.matrix()["sum"] != attention["sum"]
    assert lab.matrix()["kind"] == "attention"

    lab.show("Difference")
    lab.page.get_by_role("radiogroup", name="Difference of").get_by_text("Attention").click()
    lab.settle()
    change = lab.matrix()
    assert change["kind"] == "difference"
    assert "CEO Apple" in change["tokens"]


def blocked_and_opened_again_by_two_clicks(lab):
    """A cell, wherever it stands by the second click."""
    root = lab.page.locator(".root[data-sum]")
    seen = lab.matrix()["sum"]
    cell, left, top = (float(root.get_attribute(f"data-{k}")) for k in ("cell", "left", "top"))
    at = {"x": left + 6.5 * cell, "y": top + 4.5 * cell}
    canvas(lab).dblclick(position=at)
    lab.settle()
    blocked = lab.matrix()["sum"]
    assert blocked != seen
    canvas(lab).dblclick(position=at)
    lab.settle()
    assert lab.matrix()["sum"] == seen

    frame = canvas(lab).bounding_box()
    lab.page.mouse.click(frame["x"] + at["x"], frame["y"] + at["y"])
    root.evaluate("(e, by) => { e.style.paddingTop = `${by}px`; }", 2 * cell)
    lab.page.mouse.down(click_count=2)
    lab.page.mouse.up(click_count=2)
    lab.settle()
    assert lab.matrix()["sum"] == blocked  # the first click's cell


def test_what_is_under_the_mouse_is_marked_and_a_cell_clicked_twice_is_blocked(lab):
    cook = token(lab, 4)
    cook.hover()
    expect(cook).to_have_class(re.compile("kb-hover"))
    expect(lab.page.locator(".kb-tree .kb-dim")).to_have_count(0)  # a mention sees its branches
    token(lab, 1).hover()
    dim = lab.page.locator(".kb-tree .kb-branch-tok.kb-dim")
    expect(dim).to_have_count(7)  # the trunk sees no branch
    lab.page.get_by_role("radio", name="Attention").click()
    lab.settle()
    cook.hover()
    expect(lab.page.locator(".kb-arcs path").first).to_be_visible()
    lab.page.mouse.move(5, 5)
    expect(lab.page.locator(".kb-arcs path")).to_have_count(0)
    blocked_and_opened_again_by_two_clicks(lab)
