"""A page as one file: it holds a scene before and now, and with its triples off."""

import base64
import hashlib
import json
from html.parser import HTMLParser

import pytest

from kbert_core import Triple
from kbert_core.knowledge.io.write import write_triples
from kbert_lab.lab.texts import speaking, t

HOSTILE = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "=1+1", "$x_2$ \\")
TEXT = "Tim Cook is visiting Beijing now"
CITY, CHINA = Triple("Beijing", "is_a", "City"), Triple("Beijing", "capital", "China")


class Reader(HTMLParser):
    """Elements, what they ask for, scripts, and the text of a page."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.asked, self.handlers, self.text = [], [], [], ""
        self.scripts, self.policy, self._inside = [], "", False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.asked += [v for k, v in attrs if k in ("src", "href", "action", "data", "srcset")]
        if tag == "meta" and ("http-equiv", "Content-Security-Policy") in attrs:
            self.policy = dict(attrs)["content"]
        self._inside = tag == "script"

    def handle_data(self, data):
        if self._inside:
            self.scripts.append(data)
        else:
            self.text += data

    def handle_endtag(self, tag):
        self._inside = False


@pytest.fixture
def page(kbert, checkpoints, tmp_path):
    """Write a page; returns what it shows, and the data that it shows it from."""

    def write(triples, *texts, model="ner", **options):
        graph, output = tmp_path / "mine.spo", tmp_path / "page.html"
        write_triples(triples, graph)
        more = [word for name, value in options.items() for word in (f"--{name}", value)]
        kbert(
            "page", *texts, "--model", checkpoints[model], "--kg", graph, "--output", output, *more
        )
        found = Reader(output.read_text("utf-8"))
        return found, json.loads(found.scripts[0])

    return write


def test_a_page_holds_all_asks_for_nothing_and_may_run_its_one_script(page):
    triples = [Triple("Tim Cook", "CEO", tail) for tail in HOSTILE]
    text = f"Tim Cook {' '.join(HOSTILE)} now"
    found, data = page(triples, text)
    assert not {"iframe", "object", "embed", "link", "form", "base", "img"} & {*found.tags}
    assert not found.asked and not found.handlers and len(found.scripts) == 2
    digest = base64.b64encode(hashlib.sha256(found.scripts[1].encode()).digest()).decode()
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src "
    assert found.policy == f"{policy}'sha256-{digest}'"
    assert text in found.text and "mine, 4 triples" in found.text
    drawn = Reader("".join(state["tree"] + state["prediction"] for state in data["states"]))
    assert {*drawn.tags} <= {"div", "span", "b", "i", "s", "u", "p"} and not drawn.handlers
    assert "<" in drawn.text and ">" in drawn.text


def test_each_set_of_triples_that_can_be_off_is_stored_with_its_prediction(page):
    _, data = page([CITY, CHINA], TEXT)
    city, china = (["Beijing", own.relation, own.tail] for own in (CITY, CHINA))
    assert [state["off"] for state in data["states"]] == [[], [city], [china], [city, china]]
    sizes = [[own["n"] for own in state["maps"]] for state in data["states"]]
    with_both, *single, without = [size for size, same in sizes if size == same]
    assert with_both == sum(single) - without > without == data["before"]["maps"][0]["n"]
    for state, gone in zip(data["states"], (0, 1, 1, 2), strict=True):
        assert state["tree"].count("kb-removed") == gone
        assert state["tree"].count('data-switch="on"') == gone
        assert state["prediction"].count("kb-side") == 2  # before and now
    assert data["before"]["prediction"].count("kb-side") == 1


def test_of_many_triples_each_can_be_switched_alone_and_none_changes_the_others(page):
    """A triple that is off keeps its place: none that was left out comes in."""
    triples = [Triple("Beijing", "is", str(number)) for number in range(9)]
    options = {"max-triples": 9}
    _, data = page(triples, TEXT, **options)
    assert [len(state["off"]) for state in data["states"]] == [0] + 9 * [1]
    assert not any("kb-added" in state["tree"] for state in data["states"])


def test_a_page_of_a_pair_of_texts_and_of_labels(page):
    found, data = page([CITY], TEXT, "Beijing is large", model="pair")
    assert "Beijing is large" in found.text and "%" in data["states"][0]["prediction"]


def test_a_page_speaks_the_language_it_was_asked_for_in(page):
    found, _ = page([CITY], TEXT, language="zh")
    with speaking("zh"):
        assert t("Visible matrix") in found.text and t("with the graph") in found.text
    assert "Visible matrix" in page([CITY], TEXT)[0].text


def test_a_page_that_cannot_be_made_says_why(kbert, checkpoints, tmp_path):
    given = ["page", TEXT, "--model", checkpoints["ner"], "--output", tmp_path]
    assert "can't be written" in kbert(*given, code=2).err
    for blank in ("", " ", "\u200b\u3000"):
        assert "nothing that can be seen" in kbert("page", blank, *given[2:], code=2).err
    given[3] = "models/medical-ner-knowbert"
    assert "grows no tree" in kbert(*given, code=2).err
    given[3] = checkpoints["encoder"]
    assert "without a task head" in kbert(*given, code=2).err
