"""Messages that no page of ours would send: they reach nothing, and nobody else notices."""

import shutil

import pytest
from served import ROOT

from .visitor import Visitor

ADD = "FormSubmitter:lab.add-Add"


@pytest.fixture
def page(app_for_many):
    with Visitor(app_for_many.stream) as visitor:
        visitor.open()
        visitor.unfold("lab.drawer")
        assert visitor.tree()
        yield visitor
    with Visitor(app_for_many.stream) as another:
        another.open()
        assert another.tree()
        assert another.problems == []


def test_a_model_that_is_not_offered_is_not_opened(page, tmp_path):
    path = str(shutil.copytree(ROOT / "models" / "zh-mini", tmp_path / "elsewhere"))
    page.choose("lab.model", path)
    assert page.tree()
    assert "elsewhere" not in page.text()
    assert not any(path.encode() in data for data in page.received)


@pytest.mark.parametrize("key", ["lab.task", "lab.graph", "lab.example"])
def test_an_option_that_is_not_offered_shows_nothing_of_the_machine(page, key):
    page.choose(key, "../../etc/passwd")
    assert "root:" not in page.text()
    assert not any("Traceback" in said or ".py" in said for said in page.problems)


def test_a_number_out_of_bounds_is_not_taken(page):
    state = page._state("lab.max_triples")
    state.int_value = 10**9
    page.run()
    assert len(page.tree()) <= 512
    assert page.problems == []


def test_a_text_longer_than_the_field_allows_is_refused_and_not_read(page):
    page.write("lab.text", "长" * 1_000_000)
    page.run()
    assert page.elements("alert")
    assert "1000000" in page.text().replace(",", "")
    assert page.problems == []


def test_a_field_takes_no_more_than_it_allows(page):
    page.write("lab.add_head", "胃镜")
    page.write("lab.add_relation", "类别")
    page.write("lab.add_tail", "长" * 100_000)
    page.press(ADD)
    assert page.tree().count("长") <= 200
    assert max(map(len, page.received)) < 1_000_000
