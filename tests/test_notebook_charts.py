"""Charts of numbers that several seeds gave: what is drawn is what was given."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "notebooks"))

from _charts import bar_chart, line_chart

pytest.importorskip("matplotlib")


def test_a_line_is_the_mean_of_its_seeds_and_a_band_their_range():
    lines = {"K-BERT": [[0.2, 0.4], [0.8, 1.0]], "BERT": [0.1, 0.3]}
    figure = line_chart([20, 40], lines, across="step", up="share", levels={"chance": 0.25})
    (panel,) = figure.axes
    drawn = {line.get_label(): list(line.get_ydata()) for line in panel.lines}
    assert drawn["K-BERT"] == pytest.approx([0.3, 0.9])
    assert drawn["BERT"] == pytest.approx([0.1, 0.3])
    assert drawn["chance"] == [0.25, 0.25]
    (band,) = panel.collections  # of K-BERT alone: the other has one value a point
    heights = {float(round(y, 6)) for y in band.get_paths()[0].vertices[:, 1]}
    assert heights == {0.2, 0.4, 0.8, 1.0}
    assert [line.get_xdata()[1] for line in panel.lines[:2]] == [40, 40]


def test_places_that_are_words_stand_at_equal_distances():
    figure = line_chart(["0", "1", "16"], {"F1": [90, 80, 70]}, across="noise", up="F1")
    (panel,) = figure.axes
    assert list(panel.lines[0].get_xdata()) == [0, 1, 2]
    assert [label.get_text() for label in panel.get_xticklabels()] == ["0", "1", "16"]
    assert not figure.legends  # one line needs no name


def test_a_bar_is_the_mean_and_each_seed_a_dot():
    rows = {"K-BERT": {"seen": [0.9, 1.0], "unseen": [0.8]}, "BERT": {"seen": [0.7, 0.9]}}
    figure = bar_chart(rows, across="right", levels={"chance": 0.25}, most=1.1)
    (panel,) = figure.axes
    assert sorted(bar.get_width() for bar in panel.patches) == pytest.approx([0.8, 0.8, 0.95])
    dots = [line for line in panel.lines if line.get_marker() == "o"]
    assert [list(line.get_xdata()) for line in dots] == [[0.9, 1.0], [0.7, 0.9]]
    assert {text.get_text() for text in panel.texts} == {"mean 0.950", "mean 0.800", "0.800"}
    assert [label.get_text() for label in panel.get_yticklabels()] == ["K-BERT", "BERT"]
    assert panel.get_xlim()[1] == pytest.approx(1.1)


def test_each_name_has_its_own_colour_and_marker():
    lines = {f"line {number}": [0.1 * number, 0.2] for number in range(6)}
    (panel,) = line_chart([1, 2], lines, across="x", up="y").axes
    assert len({line.get_color() for line in panel.lines}) == 6
    assert len({line.get_marker() for line in panel.lines}) == 6
