"""Every page, in both languages, wide and narrow: calm, its own, and readable for everyone.

New pages are found in the app's entry. What Streamlit itself does and we can't
mend is listed in KNOWN, by rule and place, each with its reason.
"""

import pytest
from axe_playwright_python.sync_playwright import Axe

from .lab import Lab
from .pages import PAGES, pages_of

pytestmark = pytest.mark.browser

WIDE, MIDDLE, NARROW, HEIGHT = 1400, 800, 390, 1000
SIDEBAR = '[data-testid="stSidebarNavItems"]'
KNOWN: dict[tuple[str, str], str] = {
    # (rule of axe-core, selector of an element or of what it is in): why it stays
    ("list", SIDEBAR): "Streamlit puts the links of a narrow window's sections into divs of a list",
    ("listitem", SIDEBAR): "the same",
}
ASKS = "/_stcore/"  # below a page's own address: Streamlit's page tries whether the app is there
DARK = """() => getComputedStyle(document.querySelector('[data-testid="stApp"]'))
    .backgroundColor === 'rgb(18, 23, 28)'"""
OVERFLOW = """() => [document.scrollingElement, document.querySelector('[data-testid="stMain"]')]
    .map(place => place.scrollWidth - place.clientWidth)"""
WIDER = """() => {
    const width = document.documentElement.clientWidth;
    const cut = e => getComputedStyle(e).overflowX !== 'visible';
    const main = document.querySelector('[data-testid="stMain"]');
    const hidden = e => e && e !== main && (cut(e) || hidden(e.parentElement));
    return [...document.querySelectorAll('[data-testid="stMain"] *')]
        .filter(e => e.getBoundingClientRect().right > width + 1 && !hidden(e.parentElement))
        .map(e => e.outerHTML.slice(0, 120)).slice(0, 5);
}"""


def go(lab: Lab, page: str, language: str) -> None:
    """Open a page as a link would."""
    lab.page.goto(f"{lab.address}/{page}?lang={language}")
    lab.page.wait_for_selector('[data-testid="stMainBlockContainer"] [data-testid]')
    lab.settle()
    lab.page.wait_for_selector('[class*="stop_run"]', state="detached")  # of a run of its own
    lab.settle()


def errors(lab: Lab, page: str) -> list[str]:
    """What the console reported, but for what Streamlit's own page does in looking for the app.

    Opened below the app's address, it asks first for /page/_stcore/health and
    /page/_stcore/host-config, as if the app were there, and takes the answer
    "404" to mean that it is one level up.
    """
    asked = f"{lab.address}/{page}{ASKS}"
    return [said for said in lab.errors if not ("404" in said and asked in said and page)]


def findings(lab: Lab) -> list[str]:
    """What axe-core finds serious or critical, but for what is known."""
    found = []
    for violation in Axe().run(lab.page).response["violations"]:
        if violation["impact"] not in ("serious", "critical"):
            continue
        for node in violation["nodes"]:
            if not known(lab, violation["id"], node["target"]):
                found.append(f"{violation['id']}: {node['html'][:200]} {node['failureSummary']}")
    return found


def known(lab: Lab, rule: str, target: list) -> bool:
    """Whether a finding is one of those that can't be mended."""
    inside = "([target, selector]) => !!document.querySelector(target)?.closest(selector)"
    return any(
        lab.page.evaluate(inside, [target[0], selector]) for r, selector in KNOWN if r == rule
    )


def fits(lab: Lab, width: int) -> None:
    lab.page.set_viewport_size({"width": width, "height": HEIGHT})
    lab.page.wait_for_timeout(500)
    lab.settle()
    assert lab.page.evaluate(OVERFLOW) == [0, 0], (width, lab.page.evaluate(WIDER))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_calm_and_can_be_read_by_everyone(visitors, page):
    """In both languages and every width; looked at wide and light, and narrow and dark."""
    lab = visitors.lab(0, NARROW, HEIGHT, "light", "en-US")
    go(lab, page, "zh")
    assert lab.page.locator('[data-testid="stException"]').count() == 0
    for width in (NARROW, WIDE):
        fits(lab, width)
    lab.show("English")
    lab.page.mouse.move(0, HEIGHT - 1)  # off the switch, which has other colours under it
    assert lab.page.locator('[data-testid="stException"]').count() == 0
    fits(lab, WIDE)
    assert findings(lab) == []
    lab.page.emulate_media(color_scheme="dark")
    lab.page.wait_for_function(DARK)
    for width in (MIDDLE, NARROW):
        fits(lab, width)
    assert findings(lab) == []
    assert errors(lab, page) == []
    assert lab.outside == []


def test_the_scan_finds_what_is_wrong(visitors):
    lab = visitors.lab(0, WIDE, HEIGHT, "light", "en-US")
    lab.page.goto("about:blank")
    lab.page.set_content(
        '<html lang="en"><title>Bad</title><main><h1>Bad</h1><button></button>'
        '<p style="color: #bbb; background: #fff">pale</p></main></html>'
    )
    rules = {line.split(":")[0] for line in findings(lab)}
    assert rules == {"button-name", "color-contrast"}


def test_the_pages_are_those_of_the_entry():
    source = (
        'st.Page("p/lab.py", title=t("a"), default=True)\nst.Page("p/compare.py", title=t("b"))'
    )
    assert pages_of(source) == ["", "compare"]
    assert "" in PAGES
    assert len(PAGES) >= 4
