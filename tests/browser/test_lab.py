"""What a visitor of the Lab does, in headless Chromium."""

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from kbert_lab.lab.texts import t

pytestmark = pytest.mark.browser

FIGURE_2 = "[CLS] Tim Cook CEO Apple is visiting Beijing capital China is_a City now [SEP]".split()
FIGURE_2_SOFT = [0, 1, 2, 3, 4, 3, 4, 5, 6, 7, 6, 7, 6, 7]
BRANCHES = ["CEOApple", "capitalChina", "is_aCity"]


def test_a_first_visit_shows_a_prediction_and_edits_change_it_until_undone(lab):
    before, matrix, branches = lab.prediction("Now"), lab.matrix(), lab.branches()
    assert "Without the triple “胃镜 类别 检查” the model predicts something else" in lab.text()
    assert ("胃镜", "Examine") in [(text[:2], label) for text, label in before]

    lab.rewrite(3, 0, "疾病")
    after = lab.prediction("Now")
    assert lab.prediction("Before") == before
    assert ("胃镜", "Disease") in [(text[:2], label) for text, label in after]
    expect(lab.page.locator(".kb-ring").first).to_be_visible()
    lab.press("Undo")
    assert lab.prediction("Now") == before

    shown = lab.probabilities()
    assert (lab.cell(4, 0), lab.cell(4, 2)) == ("injected", "over the limit per mention")
    lab.toggle(0)
    assert (lab.cell(4, 0), lab.cell(4, 2)) == ("switched off", "over the limit per mention")
    assert lab.branches() == branches[1:]  # and none has moved up into its place
    assert lab.matrix()["sum"] != matrix["sum"]
    assert lab.probabilities() != shown
    lab.press("Undo")
    assert (lab.matrix(), lab.branches()) == (matrix, branches)
    assert lab.cell(4, 0) == "injected"
    lab.press("Redo")
    assert lab.cell(4, 0) == "switched off"

    for row in (1, 2, 3):
        lab.toggle(row)
    assert "the same as BERT without a graph" in lab.text()
    assert "Δ = 0" in lab.text()
    assert lab.branches() == []


def test_figure_2_looks_like_the_papers_and_a_click_says_why_a_cell_is_visible(lab):
    lab.example("Figure 2 of the paper")
    tokens = lab.tokens()
    assert [text for text, _, _ in tokens] == FIGURE_2
    assert [int(soft) for _, soft, _ in tokens] == FIGURE_2_SOFT
    assert [int(hard) for _, _, hard in tokens] == list(range(14))
    assert lab.branches() == BRANCHES
    trunk = lab.page.locator(".kb-toks").all()
    heights = {round(node.bounding_box()["y"]) for node in trunk}
    assert len(heights) == 1, "the trunk stands on one line"
    line = trunk[0].bounding_box()
    for branch in lab.page.locator(".kb-branch").all():
        assert branch.bounding_box()["y"] >= line["y"] + line["height"]

    said = lab.page.locator(".why")
    lab.click_matrix(FIGURE_2.index("Apple"), FIGURE_2.index("China"))
    expect(said).to_contain_text("“Apple” may not attend to “China”")
    expect(said).to_contain_text("branches of different mentions")


DRAWN = """() => {
  const hosts = document.querySelectorAll("[data-testid=stBidiComponentIsolated]");
  const matrix = [...hosts].map(host => host.shadowRoot.querySelector(".root[data-sum]"))
    .find(root => root).dataset;
  return [document.querySelector(".kb-tree-root").drawn, matrix.tokens, matrix.sum];
}"""


def test_a_switch_is_marked_as_asked_at_once_and_drawn_once_answered_or_refused(lab):
    """Off, on, one that is refused; a switch is large enough to be met."""
    ask = """(tell) => {
      const root = document.querySelector(".kb-tree-root"), own = root.send;
      if (!tell) root.send = (sent) => own({ ...sent, triple: ["another", "is", "gone"] });
      root.querySelector("[data-switch]").click();
      return root.querySelectorAll(".kb-asked").length;
    }"""
    lab.example("Figure 2 of the paper")
    box = lab.page.locator("[data-switch]").first.bounding_box()
    assert min(box["width"], box["height"]) >= 24
    for tell in (True, True, False):
        before = lab.page.evaluate(DRAWN)
        assert lab.page.evaluate(ask, tell) == 1
        lab.settle()
        assert (lab.page.evaluate(DRAWN) != before) == tell
        assert lab.page.locator(".kb-asked").count() == 0


def test_a_switch_does_what_is_meant_by_keys_and_by_a_double_click(visit):
    """The focus stays on the branch's switch, and screen readers are told what has changed."""
    lab = visit(path="?example=copd")
    told = lab.page.get_by_role("status").filter(has_text="COPD")
    switch = lab.page.locator("[data-switch]").first
    switch.focus()
    for now, said in (([], "→ none"), ([("COPD", "Disease")], "none → Disease")):
        lab.page.keyboard.press("Enter")
        expect(told).to_contain_text(said)
        lab.settle()
        assert lab.prediction("Now") == now
        expect(switch).to_be_focused()
    switch.dblclick()  # an impatient visitor's
    expect(told).to_contain_text("→ none")
    lab.settle()
    assert lab.prediction("Now") == []


def test_triples_are_added_and_deleted_undo_takes_it_back_and_markup_stays_text(lab):
    lab.example("Figure 2 of the paper")
    lab.add("Beijing", "hosts", "Olympics")
    assert "hostsOlympics" in lab.branches()
    assert "is_aCity" not in lab.branches()
    lab.press("Undo")
    assert lab.branches() == BRANCHES
    lab.delete(0)
    assert lab.branches() == BRANCHES[1:]
    assert "Last edit: deleted (Tim Cook, CEO, Apple)" in lab.text()
    lab.press("Undo")
    assert lab.branches() == BRANCHES

    evil = "<img src=x onerror=alert(1)>"
    lab.add("Beijing", "</script><b>", evil)
    assert evil.replace(" ", "") in "".join(lab.branches())
    assert lab.page.locator(".kb-tree img").count() == 0
    lab.show("Graph")
    canvas = lab.page.locator(".net canvas")
    canvas.scroll_into_view_if_needed()
    canvas.hover(position=drawn_at(lab)[evil])
    expect(lab.page.locator(".vis-tooltip")).to_have_text(evil)
    assert lab.page.locator(".net img").count() == 0


@pytest.mark.parametrize(
    "pauses", [(0, 150), pytest.param(range(0, 800, 50), marks=pytest.mark.soak)]
)
def test_a_second_click_is_not_lost_whenever_it_comes(lab, pauses):
    """However far the page is with its answer to the first, its coming drops no later change."""
    lab.example("Figure 2 of the paper")
    ticks = lab.ticks()
    for pause in pauses:
        lab.click_grid(*ticks[0])
        lab.page.wait_for_timeout(pause)
        lab.click_grid(*ticks[2])
        lab.settle()
        assert (pause, lab.until(lab.branches, ["capitalChina"])) == (pause, ["capitalChina"])
        lab.click_grid(*ticks[2])
        lab.page.wait_for_timeout(pause)
        lab.click_grid(*ticks[0])
        lab.settle()
        assert (pause, lab.until(lab.branches, BRANCHES)) == (pause, BRANCHES)
        lab.click_grid(*ticks[0])  # cleared, and set again
        lab.page.wait_for_timeout(pause)
        lab.click_grid(*ticks[0])
        lab.settle()
        assert (pause, lab.until(lambda: lab.cell(0, 0), "true")) == (pause, "true")
        assert lab.branches() == BRANCHES
    lab.click_grid(*ticks[0])
    lab.settle()
    assert (lab.cell(0, 0), lab.branches()) == ("false", BRANCHES[1:])
    lab.press("Undo")
    assert (lab.cell(0, 0), lab.branches()) == ("true", BRANCHES)


@pytest.fixture(scope="session")
def large_graph(tmp_path_factory):
    """The released MedicalKG where it is, else a file of its form and size."""
    data = os.environ.get("KBERT_DATA")
    path = Path(data) / "kbert" / "Medical.spo" if data else None
    if path and path.is_file():
        return path
    path = tmp_path_factory.mktemp("graphs") / "Medical.spo"
    lines = ["发热\t类别\t症状\n", *(f"病症{i}号\t类别\t疾病\n" for i in range(13_999))]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_a_graph_of_ones_own_is_opened_and_edited_or_refused_with_a_reason(
    lab, large_graph, tmp_path
):
    drawer = lab.page.locator(".st-key-lab-drawer details")
    lab.choose("Task", "Sentence classification")
    assert drawer.evaluate("e => e.open")
    expect(drawer.locator("summary")).to_contain_text("sentiment-zh")
    lab.open_graph_path(Path("/nowhere/<b>bold</b>.spo"))
    dialog = lab.page.get_by_role("dialog")
    expect(dialog).to_contain_text("/nowhere/<b>bold</b>.spo: there is no such file")
    lab.page.keyboard.press("Escape")
    lab.settle()

    lab.example("Figure 2 of the paper")
    larger = tmp_path / "large.spo"
    larger.write_text("Tim Cook\tlikes\ttea\n" * 1_200_000, encoding="utf-8")
    lab.open_drawer(lab.page.get_by_role("button", name=t("Open a graph…")))
    lab.press(t("Open a graph…"))
    expect(dialog).to_contain_text(
        t("Upload a file of at most {most} MB and {triples} triples", most=20, triples="447,392")
    )
    dialog.locator('input[type="file"]').first.set_input_files(larger)
    alerts = lab.page.get_by_role("alert")
    expect(alerts.filter(has_text="must be 20.0MB or smaller").first).to_be_visible()
    lab.page.keyboard.press("Escape")
    lab.settle()
    assert lab.branches() == BRANCHES

    before = large_graph.read_bytes()
    head = before.decode("utf-8-sig").split("\t", 1)[0]
    lab.open_graph_path(large_graph)
    expect(dialog).to_have_count(0)
    assert re.search(r"Opened Medical: 1\d,\d{3} triples", lab.text())
    offered = lab.page.locator('[class*="st-key-lab-try_0"] button')
    wanted = offered.inner_text().split("。")[0]
    offered.click()
    lab.settle()
    assert lab.page.get_by_role("textbox", name="Sentence").input_value().startswith(wanted)
    assert lab.branches()
    lab.write(f"患者{head}三天")
    assert lab.cell(1, 0) == head
    matrix = lab.matrix()
    lab.rewrite(3, 0, "治疗")
    assert lab.cell(3, 0) == "治疗"
    assert lab.matrix()["tokens"] != matrix["tokens"]
    with lab.page.expect_download() as download:
        lab.page.get_by_role("button", name="Download .spo").click()
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert f"{head}\t类别\t治疗\n" in text
    assert text.count("\n") > 13_000
    assert large_graph.read_bytes() == before


def test_a_triple_is_chosen_and_edited_in_the_drawn_graph_and_nothing_moves(lab):
    lab.show("Graph")
    root = lab.page.locator(".root[data-edges]")
    expect(root).to_have_attribute("data-edges", "4")
    before = drawn_at(lab)
    canvas = lab.page.locator(".net canvas")
    canvas.scroll_into_view_if_needed()
    middle = {x: (before["胃镜"][x] + before["检查"][x]) / 2 for x in "xy"}
    canvas.hover(position=middle)
    expect(lab.page.locator(".kb-tree .kb-hover .kb-text")).to_have_text([*"类别检查"])
    lab.page.locator(".kb-branch [data-name]").last.hover()
    expect(root).to_have_attribute("data-marked", "1")
    canvas.click(position=before["检查"])
    lab.settle()
    expect(root).to_have_attribute("data-chosen", "0")
    expect(lab.page.locator(".kb-ner").first).to_be_visible()
    form = lab.page.locator("form.edit")
    form.locator("input").fill("疾病")
    form.locator("input").press("Enter")
    lab.settle()
    assert ("胃镜", "Disease") in lab.prediction("Now")
    after = drawn_at(lab)
    assert after.pop("疾病") == before.pop("检查")
    assert after == before
    form.locator(".switch").click()
    lab.settle()
    assert "类别疾病" not in lab.branches()
    assert drawn_at(lab) == {**before, "疾病": drawn_at(lab)["疾病"]}


def test_a_tail_is_typed_in_the_tree_as_what_would_be_predicted_is_read_and_nothing_moves(lab):
    pencil = lab.page.get_by_role("button", name="Change the tail of (胃镜, 类别, 检查)")
    box = lab.page.get_by_role("combobox", name="Change the tail of (胃镜, 类别, 检查)")
    offered = lab.page.locator(".kb-tail [role=option]")
    now, places = lab.prediction("Now"), where(lab)
    lab.page.locator(".kb-branch [data-name]").first.click()  # a token of the branch
    lab.settle()
    lab.page.keyboard.press("F2")
    expect(box).to_be_focused()
    expect(offered).to_have_count(4)
    expect(offered.filter(has_text="Disease 9")).to_have_count(1)
    assert where(lab) == places
    lab.page.keyboard.press("Escape")
    expect(box).to_have_count(0)
    expect(pencil).to_be_focused()

    lab.page.keyboard.press("Enter")
    expect(box).to_have_value("检查")
    lab.page.keyboard.insert_text("病")
    expect(offered).to_have_text([re.compile("^病.* [0-9]"), re.compile("^疾病diseaseDisease 9")])
    lab.page.keyboard.press("ArrowDown")
    lab.page.keyboard.press("ArrowDown")
    foretold = offered.locator("small").last.inner_text()
    lab.page.keyboard.press("Enter")
    lab.settle()
    assert "类别疾病" in lab.branches()
    assert foretold in lab.page.locator(".kb-line").last.inner_text()
    assert where(lab) == places
    renewed = lab.page.get_by_role("button", name="Change the tail of (胃镜, 类别, 疾病)")
    expect(renewed).to_be_focused()
    lab.press("Undo")
    assert lab.prediction("Now") == now


def test_what_an_edit_changes_moves_and_nothing_where_motion_is_to_be_reduced(lab):
    lab.page.evaluate(
        """() => {
            const animate = Element.prototype.animate;
            window.moved = [];
            Element.prototype.animate = function (...given) {
                window.moved.push(`${this.className} ${this.textContent}`);
                return animate.apply(this, given);
            };
        }"""
    )

    def moved():
        said = lab.page.evaluate("window.moved.splice(0)")
        parts = ("kb-added", "kb-removed", "kb-gone")
        return sorted(next((p for p in parts if p in one), "kb-branch") for one in said)

    lab.page.locator(".kb-branch [data-name]").first.click()  # draws all anew
    lab.settle()
    assert moved() == []
    lab.rewrite(3, 0, "疾病")
    assert moved() == ["kb-added", "kb-branch", "kb-removed"]
    assert lab.branches() == ["类别疾病", "部位胃"]
    lab.press("Undo")
    assert moved() == ["kb-branch", "kb-branch", "kb-gone"]
    assert lab.branches() == ["类别检查", "部位胃"]
    lab.page.emulate_media(reduced_motion="reduce")
    lab.press("Redo")
    assert (moved(), lab.branches()) == ([], ["类别疾病", "部位胃"])
    lab.page.emulate_media(reduced_motion="no-preference")


def where(lab):
    """How far the page is scrolled, and where its parts stand."""
    parts = lab.page.locator(".kb-toks, [data-testid=stHeading], [data-testid=stDataFrame]").all()
    scrolled = lab.page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop")
    return [scrolled, *(part.bounding_box()["y"] for part in parts)]


def drawn_at(lab):
    """Where the names of the drawn graph stand."""
    return lab.page.evaluate(
        """() => {
            const roots = [...document.querySelectorAll("*")]
                .map((place) => place.shadowRoot?.querySelector(".root"));
            const { network } = roots.find((root) => root?.network);
            const places = Object.entries(network.getPositions());
            return Object.fromEntries(
                places.map(([name, place]) => [name, network.canvasToDOM(place)]));
        }"""
    )


@pytest.mark.parametrize(
    ("path", "labels"),
    [
        ("?example=gastroscopy", ("Examine", "BodyPart")),
        ("?example=gastroscopy&lang=zh", ("Examine", "BodyPart")),
        ("?example=copd", ("Disease", "recovered")),  # what English visitors begin with
    ],
)
def test_one_screen_shows_prediction_tree_and_matrix_before_and_after_an_edit(visit, path, labels):
    lab = visit(path=path)
    for width, height in ((1440, 900), (1366, 768)):
        lab.page.set_viewport_size({"width": width, "height": height})
        lab.settle()
        fits_before_and_after(lab, width, height, labels)


def fits_before_and_after(lab, width, height, labels):
    matrix = lab.page.locator("canvas.over")
    tree = lab.page.locator(".kb-tree")
    now = lab.page.locator(".kb-line").last
    switch = lab.page.locator("[data-switch]").first
    places = []
    for label in labels:
        expect(now).to_contain_text(label)
        for shown in (now, tree, matrix):
            box = shown.bounding_box()
            assert box["y"] >= 0 and box["y"] + box["height"] <= height
            assert box["x"] >= 0 and box["x"] + box["width"] <= width
        assert matrix.evaluate(
            "e => [e.clientWidth, e.clientHeight].every((size, i) => size > 250)"
        )
        root = lab.page.locator(".root[data-sum]")
        whole = "e => [e.scrollWidth - e.clientWidth, e.scrollHeight - e.clientHeight]"
        assert max(root.locator(".scroll").evaluate(whole)) <= 1
        places.append([part.bounding_box()["y"] for part in (now, tree, matrix)])
        if label == labels[0]:
            switch.click()
            lab.settle()
    assert places[0] == places[1]  # nothing has moved
    switch.press("Enter")
    lab.settle()
    expect(now).to_contain_text(labels[0])
