"""What rows gain under a suite's conditions, as the map shows it."""

import re
from dataclasses import replace

import pytest
from matplotlib.markers import CARETDOWNBASE, CARETUPBASE

from kbert_core.errors import DataError, OptionError
from kbert_lab.study.statistics import Counts, Difference, packed
from kbert_lab.suites.grid import Experiment
from kbert_lab.suites.results import Tables
from kbert_lab.suites.suite import read_suite
from results.tools import pictures
from results.tools.beside import Rerun
from results.tools.pictures import draw_suite, gains_by_axis
from results.tools.tables import differences, scores

SUITE = """
task: ner
seeds: [1, 2]
data: {folder: data, split: substitution}
kg: graph.spo
compare_with: BERT
conditions:
  - {unseen: 0.25, known: 0.6, right: 0.6}
  - {unseen: 0.5, known: 0.6, right: 0.6}
  - {unseen: 0.25, known: 0, right: 0.6}
  - {unseen: 0.25, known: 0.9, right: 0.2}
runs:
  - {name: BERT, knowledge: none}
  - {name: K-BERT}
"""


@pytest.fixture
def tables(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(SUITE, encoding="utf-8")
    suite = read_suite(path)
    right = {  # of 20 mentions in two sentences, 20 predicted
        "BERT: 25 % new": 10,
        "BERT: 50 % new": 8,
        "K-BERT: 25 % new, 60 % known, 60 % right": 12,
        "K-BERT: 50 % new, 60 % known, 60 % right": 14,
        "K-BERT: 25 % new, 0 % known, 60 % right": 10,
        "K-BERT: 25 % new, 90 % known, 20 % right": 6,
    }
    assert {row.name for row in suite.rows} == {*right}

    def result(count):
        columns = {"right": [count / 2] * 2, "predicted": [10, 10], "gold": [10, 10]}
        sentences = packed(Counts(["a", "b"], columns))
        return {"sentences": sentences, "inputs": {"data": {"sha256": "x"}}, "scores": {}}

    results = {name: {1: result(n), 2: result(n)} for name, n in right.items()}
    return Tables(suite, results, resamples=10)


def test_an_axis_has_the_conditions_that_differ_from_the_centre_in_it_alone(tables):
    found = {
        axis: {name: [(x, round(gain.mean, 3)) for x, gain in of] for name, of in lines.items()}
        for axis, lines in gains_by_axis(tables).items()
    }
    assert found == {
        "unseen": {"K-BERT": [(0.25, 0.1), (0.5, 0.3)]},
        "known": {"K-BERT": [(0.0, 0.0), (0.6, 0.1)]},
    }


@pytest.mark.usefixtures("really_drawn")
def test_a_map_is_drawn_in_place_of_bars_and_curves(tables, tmp_path):
    assert [path.name for path in draw_suite(tables, tmp_path)] == ["small-map.png"]
    assert (tmp_path / "small-map.png").stat().st_size > 5_000
    nothing = Tables(tables.suite, {}, resamples=10)
    assert draw_suite(nothing, tmp_path / "none") == []


def test_a_page_has_a_line_a_row_and_a_column_a_condition_named_by_what_it_varies(tables):
    head = "| F1 | seeds | 25 % new, 60 % known, 60 % right | 50 % new | 0 % known | 90 % known"
    told = scores(tables).replace("\N{NO-BREAK SPACE}", " ")
    first, _, bert, kbert = told.split("\n\n")[0].splitlines()
    assert first == head + ", 20 % right |"
    assert bert == "| BERT | 2 | 50.0 ± 0.0 | 40.0 ± 0.0 | 50.0 ± 0.0 | 50.0 ± 0.0 |"
    assert kbert == "| K-BERT | 2 | 60.0 ± 0.0 | 70.0 ± 0.0 | 50.0 ± 0.0 | 30.0 ± 0.0 |"
    gains = next(line for line in differences(tables).splitlines() if "K-BERT − BERT" in line)
    assert re.findall(r"([+−][\d.]+) \[", gains) == ["+10.0", "+30.0", "+0.0", "−20.0"]

    other = replace(tables, suite=replace(tables.suite, name="other"))
    again = Rerun("BERT: 25 % new", (other, tables), {"F1": Difference(0.1, 0.1, 0.1, 0.1, 2)})
    last = differences(tables, [again]).splitlines()[-1]
    assert last.startswith("| *none:* BERT: 25 % new, run twice (also in [other](other.md)) | 2, ")


def test_a_row_that_gives_a_part_of_a_condition_is_run_under_those_that_agree(tmp_path):
    path = tmp_path / "small.yaml"
    given = "unseen: 0.25, known: [0, 0.6], right: 0.6"
    peer = f"  - {{name: Peer, {given}, train: {{system: plain-text}}}}\n"
    pairs = "also_compare: [[K-BERT, Peer], [K-BERT, BERT]]\n"
    path.write_text(SUITE + peer + pairs, encoding="utf-8")
    suite = read_suite(path)
    agreeing = ["25 % new, 60 % known, 60 % right", "25 % new, 0 % known, 60 % right"]
    assert [r.name for r in suite.rows if "Peer" in r.name] == [f"Peer: {c}" for c in agreeing]
    compared = [(f"K-BERT: {c}", f"Peer: {c}") for c in agreeing]
    assert [tuple(pair) for pair in suite.also_compare if "Peer" in pair[1]] == compared
    assert len(suite.also_compare) == len(compared) + len(suite.conditions)

    path.write_text(SUITE + peer.replace("0.25", "0.3"), encoding="utf-8")
    with pytest.raises(OptionError, match="'Peer' has an unseen, known or right that no condition"):
        read_suite(path)


def test_another_system_is_drawn_with_the_first_row_in_panels_below(tables, monkeypatch, tmp_path):
    panels, draw = [], pictures._draw_gains

    def noted(panel, lines, numbers, within):
        panels.append({name: numbers[name] for name in lines})
        draw(panel, lines, numbers, within)

    monkeypatch.setattr(pictures, "_draw_gains", noted)
    gain = Difference(0.1, 0.0, 0.0, 0.2, 2)
    both = [(0.25, gain), (0.6, gain)]
    axes = {  # the centre alone is no line
        "unseen": {"K-BERT": both, "Constant tail": both, "Peer": both[:1], "Looked up": []},
        "known": {"K-BERT": both, "Constant tail": both, "Peer": both, "Looked up": both},
    }
    monkeypatch.setattr(pictures, "gains_by_axis", lambda _: axes)
    last = tables.suite.runs[-1]
    more = {"name": f"Peer: {last.in_words}", "train": {"system": "plain-text"}}
    peer = replace(last, **more)
    runs = (*tables.suite.runs, peer)
    tables = replace(tables, suite=replace(tables.suite, runs=runs))
    assert pictures._draw_map(tables, tmp_path / "map.png")
    own = {"K-BERT": 1, "Constant tail": 2}
    assert panels == [own, own, {"K-BERT": 1, "Peer": 3}]


def test_an_interval_longer_than_the_map_ends_in_an_arrow_at_its_edge():
    long, short = Difference(0.01, 0.0, -0.4, 0.42, 2), Difference(0.02, 0.0, 0.0, 0.04, 5)
    lines = {"Few seeds": [(0.25, long), (0.6, short)]}
    within = pictures._within({"unseen": lines})
    assert within == pytest.approx((-5.0, 7.0))
    with pictures.drawing(3, 3) as figure:
        panel = figure.subplots()
        pictures._draw_gains(panel, lines, {"Few seeds": 1}, within)
        markers = {line.get_marker(): line.get_xydata() for line in panel.get_lines()}
    assert markers[CARETDOWNBASE].tolist() == [[25.0, within[0]]]
    assert markers[CARETUPBASE].tolist() == [[25.0, within[1]]]


def test_a_row_is_asked_for_under_one_condition_or_under_all(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(SUITE, encoding="utf-8")
    experiment = Experiment(read_suite(path), tmp_path, tmp_path)
    every = [row.name for row in experiment.suite.rows if row.called == "K-BERT"]
    assert len(every) == 4
    assert [cell.row.name for cell in experiment.cells(only=["K-BERT"], seeds=[1])] == every
    (one,) = experiment.cells(only=["K-BERT: 50 % new, 60 % known, 60 % right"], seeds=[1])
    assert one.row.name == every[1]
    with pytest.raises(DataError, match=r"There are: 'BERT', 'K-BERT'\. `--list` shows"):
        experiment.cells(only=["K-BERT: 50 % new"])
