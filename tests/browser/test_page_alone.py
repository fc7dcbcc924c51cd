"""The pages without a server behind them: served as files, in two languages and two sizes."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from kbert_core import Triple
from kbert_lab.cli import main
from kbert_lab.lab.examples import EXAMPLES
from kbert_lab.lab.page.build import PAGES, SCENES, build
from kbert_lab.lab.share import from_link

from .conftest import PATIENCE, PLAYED

HOSTILE = '<img src=x onerror="window.hurt=1">'
SIZES = [("en", 1440, "light"), ("zh", 390, "dark"), ("zh", 1440, "light"), ("en", 390, "dark")]
WORDS = {  # what the first switch does, an entity of a text of one's own, and a triple for it
    "en": ("Disease", "", "She takes zorbital now", ("zorbital", "is_a", "drug"), "Chemical"),
    "zh": ("Examine", "BodyPart", "患者服用佐巴妥", ("佐巴妥", "类别", "治疗"), "Cure"),
}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("try")
    build(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.fixture
def visit(browser, site):
    """Open a page; afterwards nothing went wrong in it, and no other host was asked."""
    contexts, wrong = [], []

    def open_page(
        language, width=1440, scheme="light", script=PLAYED, *, model=True, axe=False, keep="block"
    ):
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            bypass_csp=axe,
            service_workers=keep,  # in one that keeps files none can be held back
        )
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        context.add_init_script(script)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request",
            lambda asked: asked.url.startswith((site, "data:")) or wrong.append(asked.url),
        )
        if not model:
            page.route("**/*.bin", lambda route: route.abort())
        page.goto(site + PAGES[language])
        page.wait_for_selector("html[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def says(page, labels):
    """Wait until the model says these labels of the text."""
    page.wait_for_function(
        "said => document.querySelector('#prediction').dataset.said === said"
        " && !document.querySelector('#prediction').matches('.waits')",
        arg=labels,
    )


def loaded(page):
    page.wait_for_function("() => performance.getEntriesByName('kbert-model').length > 0")


@pytest.mark.parametrize(("language", "width", "scheme"), SIZES)
def test_first_switch_turns_the_prediction_without_the_model(visit, language, width, scheme):
    page = visit(language, width, scheme, model=False)
    with_triple, without, *_ = WORDS[language]
    says(page, with_triple)
    page.locator("[data-switch=off]").first.click()
    says(page, without)
    page.locator("[data-switch=on]").first.press("Enter")  # a second click at once is none
    says(page, with_triple)
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width
    size = page.evaluate("""performance.getEntriesByType('resource')
        .reduce((sum, one) => sum + one.decodedBodySize, 0)""")
    assert size < 1.5e6


@pytest.mark.parametrize("language", PAGES)
def test_a_text_of_ones_own_is_read_and_the_page_opens_again_without_a_line(visit, language):
    page = visit(language, keep="allow")
    *_, text, triple, label = WORDS[language]
    page.wait_for_function("() => performance.getEntriesByName('kbert-words').length > 0")
    page.context.set_offline(True)
    page.reload()
    page.locator("#text").fill(text)
    loaded(page)
    page.locator("#triples").fill(", ".join(triple))
    page.locator("#add button").click()
    says(page, label)
    page.locator("#positions").select_option("hard")
    page.locator("#visible").select_option("all")
    page.locator("#map").select_option("attention")
    page.wait_for_selector("#matrix[data-kind=attention]")
    shared = from_link(
        parse_qs(urlsplit(page.locator("#lab").get_attribute("href")).query)["scene"][0]
    )
    assert shared.scene.sentences == (text,)
    assert [edit.triple for edit in shared.scene.edits] == [Triple(*triple)]
    assert (shared.scene.ablation.positions, shared.scene.ablation.visible) == ("hard", "all")
    for _ in range(2):
        page.locator("#undo").click()
    says(page, label)
    assert page.locator("#visible").input_value() == "tree"


@pytest.mark.parametrize(("language", "width", "scheme"), SIZES)
def test_pages_can_be_read_and_used_by_everybody(visit, language, width, scheme):
    page = visit(language, width, scheme, model=False, axe=True)
    page.locator("[data-switch=off]").first.press("Enter")
    says(page, WORDS[language][1])
    page.wait_for_timeout(400)  # what moved stands
    found = Axe().run(page).response["violations"]
    assert not [one for one in found if one["impact"] in ("serious", "critical")]


@pytest.mark.parametrize(("language", "width", "scheme"), SIZES)
def test_a_page_as_one_file_switches_its_triples(browser, tmp_path, language, width, scheme):
    file, (with_triple, without, *_) = tmp_path / "page.html", WORDS[language]
    example = next(one for one in EXAMPLES if one.key == SCENES[language][0])
    words = ["--model", f"models/{example.model}", "--kg", f"demo_kgs/{example.graph}.spo"]
    assert (
        main(["page", *example.sentences, *words, "--language", language, "--output", str(file)])
        == 0
    )
    size = {"width": width, "height": 900}
    context = browser.new_context(viewport=size, color_scheme=scheme, bypass_csp=True, offline=True)
    wrong, page = [], context.new_page()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(file.as_uri())
    now = page.locator("#prediction .kb-line").last
    expect(now).to_contain_text(with_triple)
    page.locator("[data-switch=off]").first.press("Enter")
    expect(now).not_to_contain_text(with_triple)
    expect(now).to_contain_text(without)
    expect(page.locator(".kb-removed")).to_have_count(1)
    page.locator("[data-switch=on]").press("Enter")
    expect(now).to_contain_text(with_triple)
    page.locator("[data-name]").nth(1).hover()
    assert page.locator(".kb-arcs path").count() > 0  # how it attends, in the matrix below
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(page).response["violations"]
    assert not [one for one in found if one["impact"] in ("serious", "critical")]
    page.locator("#kb-before").check()
    expect(page.locator("[data-switch]:visible")).to_have_count(0)
    context.close()
    assert wrong == []


def test_a_tail_is_typed_in_place(visit):
    page = visit("en", model=False)
    page.locator("[data-edit]").first.dispatch_event("click")
    page.locator(".kb-tail input").fill("drug")
    page.keyboard.press("Enter")
    says(page, "Chemical")
    assert "drug" in page.locator(".kb-added").first.inner_text()


def test_without_a_thread_the_page_says_so_and_goes_on_with_what_is_stored(visit):
    page = visit("zh", script=PLAYED + "; delete window.Worker")
    page.wait_for_function("() => document.querySelector('#loading').textContent.includes('模型')")
    page.locator("[data-switch=off]").first.click()
    says(page, "BodyPart")


def test_bad_input_gets_a_sentence_and_the_page_goes_on(visit):
    page = visit("en", model=False)
    note = page.locator("#note")
    for typed, said in (
        ("患者行胃镜检查", "script"),
        ("", "Type a sentence"),
        ("antidisestablishmentarianism " * 40, "Shorten it"),
    ):
        page.locator("#text").fill(typed)
        page.wait_for_function(
            "said => document.querySelector('#note').textContent.includes(said)", arg=said
        )
    lines = "\n".join(f"name {number}\tis_a\tdrug" for number in range(100_000))
    for typed, said in (
        (lines, "too many"),
        ("COPD, is_a", "three parts"),
        ("COPD, is_a, disease", "already"),
    ):
        page.locator("#triples").fill("")
        page.keyboard.insert_text(typed)
        page.locator("#add button").click()
        assert said in note.inner_text()
    page.locator("#text").fill("The patient with COPD recovered")
    says(page, "Disease")


def test_hostile_text_stays_text(visit):
    page = visit("en")
    page.locator("#text").fill(f"A {HOSTILE} with COPD")
    page.locator("#triples").fill(f"COPD\t{HOSTILE}\t{HOSTILE}\nwith\t{HOSTILE}\t{HOSTILE}")
    page.locator("#add button").click()
    page.wait_for_selector(".kb-added")
    page.wait_for_function("() => !document.querySelector('#prediction').matches('.waits')")
    assert page.locator("#tree img, #prediction img").count() == 0
    assert page.evaluate("window.hurt") is None
