"""The page of figures is what its command makes of the JSON."""

from benchmarks.report import PAGE, page


def test_every_figure_on_the_page_comes_from_the_json():
    assert PAGE.read_text("utf-8") == page()
