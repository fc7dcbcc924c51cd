"""The report, from results written by hand."""

import json
import re
from dataclasses import replace

import pytest
from kept_results import keep, result_of, results_of

from kbert_core.errors import ExperimentError
from kbert_lab.study.statistics import Counts, Difference, packed
from kbert_lab.suites.grid import Experiment
from kbert_lab.suites.results import Tables
from kbert_lab.suites.suite import Run, read_suite
from results.tools.beside import Rerun
from results.tools.pictures import draw_suite, gains_by_axis
from results.tools.report import write_report
from results.tools.tables import differences, scores

SKILL = {"BERT": 2, "K-BERT, graph": 3, "dictionary": 1, "BERT + dictionary": 4}  # of 4 right
ABOUT = ", ".join(
    f'{{{{ gain("{suite}", "{row}", "BERT") }}}}'
    for suite, row in {"tiny": "K-BERT, graph", "other": "dictionary", "gone": "dictionary"}.items()
)


def result(experiment, cell, *, right):
    counts = {"right": right, "predicted": 4, "gold": 4, "unseen": 2, "covered": 1}
    counts |= {"unseen_right": min(2, right - 1), "covered_right": min(1, right - 1)}
    columns = {name: [count] * 20 for name, count in counts.items()}
    seed = cell.seed
    f1 = {"f1": right / 4, "release_f1": right / (10 + seed), "release_trunk_f1": right / 8}
    labels = {"D": (right / 5 + seed / 100, 40 + seed), "E": (right / 10, 20)}
    by_label = {label: {"f1": of, "gold": gold} for label, (of, gold) in labels.items()}
    made = {
        **{"format": 1, "suite": experiment.suite.name, "row": cell.row.name, "seed": seed},
        **{"inputs": experiment.inputs(cell), "command": "…", "seconds": 60.0},
        "examples": {"train": 60, "dev": 20, "test": 30},
        "scores": {"test": {**f1, "by_label": by_label}},
        "sentences": packed(Counts([f"s{i}" for i in range(20)], columns)),
    }
    if isinstance(cell.row, Run):
        made["parameters"] = 1234
        made["device"] = "cuda:0" if cell.seed == 1 else "cpu"
        made["versions"] = {"cpu": "a CPU", "cuda": "a GPU"}
        made["learning_curve"] = [{"step": i, "f1": right / 8 * i} for i in (1, 2)]
    if cell.row.name.startswith("K-BERT"):
        made["type_labels"] = {"病": "D"} if cell.seed == 1 else {"病": "D", "查": "E"}
        made["without_knowledge"] = {"test": {"f1": 0.5}}
        shares = {"new": 0.8, "kept": 0.1, "other": 0.0, "lost": 0.1, "others_changed": 0.02}
        made["edit_response"] = {"test": {"unseen": {**shares, "n": 10}, "seen": {"n": 0}}}
    return made


@pytest.fixture
def experiment(written, suite_data):
    suite_data |= {"seeds": [1, 2, 3], "discussion": "Knowledge **helps** here."}
    suite_data["runs"].append({"name": "everything | visible", "ablation": "everything-visible"})
    return Experiment(read_suite(written(suite_data)))


@pytest.fixture
def done(experiment):
    """Results of all but the last run; K-BERT of two seeds."""
    for cell in experiment.cells():
        if cell.row.name in SKILL and (cell.seed < 3 or "K-BERT" not in cell.row.name):
            made = result(experiment, cell, right=SKILL[cell.row.name])
            keep(made)
    return experiment


def page_of(files, name="tiny"):
    """What stands on the page of a suite."""
    (page,) = [file for file in files if file.name == f"{name}.md" and file.parent.name != "docs"]
    return page.read_text("utf-8")


def rows_of(text, first):
    """The cells of the table rows that begin with a name."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith(f"| {first} |")
    ]


@pytest.mark.usefixtures("really_drawn")
def test_the_report_holds_every_row_with_what_is_missing(done, folder):
    files = write_report([done.tables(resamples=200)], folder / "docs" / "results.md")
    assert [f.name for f in files] == [
        *("results.md", "tiny.md", "how-to-read.md", "tiny-scores.png", "tiny-curves.png")
    ]
    assert "| [A tiny suite](results/tiny.md) | 11/15 |" in files[0].read_text("utf-8")
    text = page_of(files)
    assert "\n[results](../results.md) · [how to read a table](how-to-read.md)\n" in text
    assert "![A tiny suite: scores on test](tiny-scores.png)" in text
    scores, labels, edits, _ = rows_of(text, "K-BERT, graph")
    assert "|  | D (41–43) | E (20) |" in text
    assert labels[1:] == ["61.5 ± 0.7", "30.0 ± 0.0"]
    assert "- **K-BERT, graph**: an edit can give D, E (1 of 2 seeds), which tails" in text
    # F1 3/4, unseen 2/2, covered 1/1, uncovered 1/1, graph off, release's own count, in the text
    assert scores[1:] == [
        *("2 of 3", "75.0 ± 0.0", "100.0 ± 0.0", "100.0 ± 0.0", "100.0 ± 0.0"),
        *("50.0 ± 0.0", "26.1 ± 1.6", "37.5 ± 0.0"),
    ]
    assert "| F1, release's own count | F1, release's count in the text alone |" in text
    assert "to compare published figures with" in text
    assert edits[1:] == ["unseen", "20", *(f"{x} ± 0 %" for x in (80, 10, 0, 10, 2))]
    bert, *_ = rows_of(text, "BERT")
    assert bert[1:4] == ["3", "50.0 ± 0.0", "50.0 ± 0.0"]
    assert bert[6] == "–"
    (missing,) = rows_of(text, r"everything \| visible".replace("\\|", "\\|"))
    assert "0 of 3" in missing
    assert "missing" in missing
    for part in ("# A tiny suite", "Invented names.", "Knowledge **helps** here."):
        assert part in text
    assert "- **K-BERT, graph**: With knowledge." in text
    assert "train 60; dev 20; test 30; encoder scratch (1,234 parameters); 2 epochs." in text


@pytest.fixture
def three(done, written, suite_data):
    """The suite above, one of its rows at seed 1 alone, and one that nothing was run of."""
    names = {"tiny": "as it is", "other": "otherwise", "new": "new", "gone": "gone"}
    declared = {"title": "Both ways", "about": "They *differ*: " + ABOUT, "suites": names}
    suite_data |= {"also_compare": [], "side_by_side": declared}
    first = Experiment(read_suite(written(suite_data)))
    others = []
    suite_data |= {"side_by_side": None, "runs": suite_data["runs"][:2]}
    for name in ("other", "new"):
        others.append(Experiment(read_suite(written(suite_data, f"{name}.yaml"))))
    for cell in others[0].cells(seeds=[1]):
        if cell.row.name in ("BERT", "dictionary"):
            right = 2 if cell.row.name == "BERT" else 4
            keep(result(others[0], cell, right=right), suite="other")
    return [experiment.tables(resamples=200) for experiment in (first, *others)]


@pytest.mark.usefixtures("really_drawn")
def test_suites_stand_side_by_side_with_what_is_missing(three, folder):
    files = write_report(three, folder / "docs" / "results.md")
    assert folder / "docs" / "results" / "tiny-side-by-side.png" in files
    assert "| [Both ways](results/tiny-side-by-side.md) |  |" in files[0].read_text("utf-8")
    beside = page_of(files, "tiny-side-by-side")
    assert "- otherwise: [A tiny suite](other.md)" in beside
    assert "They *differ*: +25.0 [+25.0, +25.0]², +50.0¹, missing" in beside
    assert "| F1, % | as it is | otherwise (1 of 3 seeds) | new |" in beside
    # mentions not labelled in training: 2 of 4; of these the graph knows 1 of 2
    (unseen,) = rows_of(beside, "mentions not labelled in training, %")
    assert unseen[1:] == ["50.0 ± 0.0", "50.0", "missing"]
    (sizes,) = rows_of(beside, "to train on")
    assert sizes[1:] == ["60", "60", "missing"]
    f1, recall = rows_of(beside, "K-BERT, graph")
    assert f1[1:] == ["75.0 ± 0.0 (+25.0)² *2 of 3 seeds*", "missing", "missing"]
    assert recall[1:] == ["100.0 ± 0.0 (+50.0)² *2 of 3 seeds*", "missing", "missing"]
    dictionary, _ = rows_of(beside, "dictionary")
    assert dictionary[1:] == ["25.0 ± 0.0 (−25.0)", "100.0 (+50.0)¹", "missing"]
    assert "everything" not in beside  # in one of the suites only
    assert (folder / "docs" / "results" / "tiny-side-by-side.png").stat().st_size > 10_000


def test_differences_have_intervals_and_say_of_how_many_seeds(done, folder):
    tables = done.tables(resamples=200)
    found = tables.differences(tables.metrics[0])
    kbert = found["K-BERT, graph", "BERT"]
    assert (kbert.mean, kbert.low, kbert.high, kbert.seeds) == pytest.approx((0.25, 0.25, 0.25, 2))
    assert kbert.exploratory  # two seeds only
    assert found["dictionary", "BERT"].mean == pytest.approx(-0.25)
    assert not found["dictionary", "BERT"].exploratory
    assert ("everything | visible", "BERT") not in found
    text = page_of(write_report([tables], folder / "results.md"))
    (row,) = rows_of(text, "K-BERT, graph − BERT")
    assert row[1:] == ["2, *exploratory*", "+25.0 [+25.0, +25.0]", "+50.0 [+50.0, +50.0]"]
    assert rows_of(text, "dictionary − BERT")[0][1] == "3"


def test_seeds_of_a_row_and_runs_made_twice_show_what_noise_does(done, written, suite_data, folder):
    experiment = Experiment(done.suite)
    cell = next(c for c in experiment.cells() if c.file_name == "bert-seed2")
    keep(result(experiment, cell, right=3))
    twin = Experiment(read_suite(written(suite_data, "twin.yaml")))
    for cell in twin.cells():
        if cell.row.name == "BERT":
            keep(result(twin, cell, right=1), suite="twin")
    both = [each.tables(resamples=100) for each in (experiment, twin)]
    files = write_report(both, folder / "results.md")
    (null,) = rows_of(page_of(files), "*none:* BERT, one seed and another, at most")
    assert null[1:] == ["1", "25.0", "50.0"]
    (again,) = rows_of(page_of(files), "*none:* BERT, run twice (also in [twin](twin.md))")
    assert again[1] == "3"
    assert again[2].startswith("−33.3 [")  # 1/4 each time for 2/4, 3/4 and 2/4
    reading = page_of(files, "how-to-read")
    # of the pairs of BERT in the first suite two, of K-BERT and in the second none
    assert "more than resampled sentences allow in\n2 of 7 pairs" in reading
    (row,) = rows_of(reading, "BERT: *twin* − *tiny*")
    assert row[1:3] == again[1:3]


def test_outdated_results_of_some_seeds_are_left_out_and_named(done, folder):
    made = result_of("bert-seed2")
    made["inputs"]["options"]["epochs"] = 7
    keep(made)
    tables = Experiment(done.suite).tables(resamples=50)
    assert tables.done(tables.suite.row("BERT")) == 2
    text = page_of(write_report([tables], folder / "results.md"))
    assert "- Stale and left out: BERT, seed 2 (options.epochs was 7 and is 2)." in text
    assert rows_of(text, "BERT")[0][1] == "2 of 3"


def test_rows_of_another_encoder_are_left_out_and_named(done, folder):
    """As while an encoder has been replaced, and one row has been run again with it."""
    for name, made in results_of().items():
        if "bert" not in name:
            continue
        made["inputs"].get("over", made["inputs"])["encoder"]["sha256"] = "another"
        keep(made)
    again = Experiment(done.suite)
    for cell in again.cells():
        if cell.row.name == "everything | visible":
            keep(result(again, cell, right=1))
    tables = again.tables(resamples=50)
    assert [tables.done(row) for row in tables.suite.rows] == [0, 0, 3, 3, 0]
    text = page_of(write_report([tables], folder / "results.md"))
    scores, *_ = rows_of(text, "K-BERT, graph")
    assert scores[1:3] == ["0 of 3", "missing"]
    assert not rows_of(text, "dictionary − BERT")
    assert "- Stale and left out: BERT, seed 3 (encoder has another content)." in text
    assert "(over.encoder has another content)" in text
    assert tables.summary()["BERT"]["stale"]
    assert not tables.summary()["dictionary"]["stale"]


@pytest.fixture
def elsewhere(done, folder):
    """The same suite where there are neither its data nor its graph; the encoder is there."""
    text = (folder / "tiny.yaml").read_text("utf-8")
    text = text.replace("folder: data", "folder: $NO_DATA/x").replace("kg.spo", "$NO_DATA/kg.spo")
    (folder / "tiny.yaml").write_text(text, encoding="utf-8")
    for made in results_of().values():
        made = json.loads(json.dumps(made).replace('"kg.spo"', '"$NO_DATA/kg.spo"'))
        for inputs in (made["inputs"], made["inputs"].get("over", {"data": {}})):
            inputs["data"]["folder"] = "$NO_DATA/x"
        keep(made)
    return Experiment(read_suite("tiny.yaml"))


def test_without_the_data_the_rest_is_checked_and_the_report_says_so(elsewhere, folder, caplog):
    tables = elsewhere.tables(resamples=50)
    assert tables.done(tables.suite.row("BERT")) == 3
    assert list(tables.unchecked) == ["the data", "the graph $NO_DATA/kg.spo"]
    assert "not checked: the data (" in caplog.text
    text = page_of(write_report([tables], folder / "results.md"))
    assert "being up to date where this was made: the data, the graph $NO_DATA/kg.spo." in text
    longer, other = result_of("k-bert-graph-seed1"), result_of("bert-seed1")
    longer["inputs"]["options"]["epochs"] = 7
    other["inputs"]["encoder"]["sha256"] = "another"
    keep(longer, other)
    outdated = elsewhere.tables(resamples=50).outdated
    assert [(s.cell.row.name, s.cell.seed, s.reason) for s in outdated] == [
        ("BERT", 1, "encoder has another content"),
        ("K-BERT, graph", 1, "options.epochs was 7 and is 2"),
    ]


@pytest.mark.parametrize("changed", ["encoder", "data"])
def test_results_of_different_encoders_or_data_are_not_mixed(done, changed):
    before, made = result_of("bert-seed1"), result_of("bert-seed1")
    made["inputs"][changed]["sha256"] = "another"
    results = {"BERT": {1: made}, "K-BERT, graph": {1: before}}
    with pytest.raises(ExperimentError, match="changed between 'BERT' and 'K-BERT, graph'"):
        Tables(done.suite, results).check_same()


def test_figures_published_by_others_and_pages_made_elsewhere_stand_apart(folder):
    published, more = folder / "published.yaml", folder / "more.md"
    table = "columns: [data, F1], rows: [[{}, '94.4']]"
    published.write_text(f"{{title: Published, about: BERT-base., {table.format('X')}}}", "utf-8")
    more.write_text("## More of it\n\n7 of 8.\n", "utf-8")
    made = write_report([], folder / "r.md", published=published, appendices=[more])
    overview = made[0].read_text("utf-8")
    assert "[Published](r/published.md)" in overview
    assert "| [More of it](r/more-of-it.md) |" in overview
    page = page_of(made, "published")
    assert page.startswith("# Published\n\n[r](../r.md)\n\nBERT-base.\n\n| data | F1 |")
    assert page_of(made, "more-of-it") == "# More of it\n\n[r](../r.md)\n\n7 of 8.\n"


def test_a_list_runs_nothing_and_shows_what_came_out(done, folder, kbert):
    listed = kbert("experiment", "tiny.yaml", "tiny.yaml", "--list", "--json")
    made = listed["suites"]["tiny"]
    assert made["scores"]["BERT"]["F1"]["mean"] == pytest.approx(0.5)
    gain = made["differences"]["K-BERT, graph − BERT"]["F1"]
    assert gain["low"] <= gain["mean"] <= gain["high"]
    shown = kbert("experiment", "tiny.yaml", "--list").out
    assert "11 of 15 done" in shown
    assert re.search(r"^BERT +3 +50\.0 ± ", shown, flags=re.MULTILINE)
    assert re.search(r"^K-BERT, graph − BERT +\+", shown, flags=re.MULTILINE)
    assert "everything-visible-seed1" not in results_of()
    said = kbert("experiment", "tiny.yaml", "./tiny.yaml", "--list", code=2).err
    assert "Two suites have the name 'tiny'" in said


@pytest.mark.usefixtures("really_drawn")
def test_a_name_in_any_script_can_be_drawn(written, suite_data, folder):
    suite_data |= {"title": "医学 $x_1$", "also_compare": [], "baselines": []}
    suite_data["runs"][1]["name"] = "知识图谱 $"
    experiment = Experiment(read_suite(written(suite_data)))
    for cell in experiment.cells():
        keep(result(experiment, cell, right=2))
    files = write_report([experiment.tables(resamples=50)], folder / "r.md")
    assert [file.suffix for file in files].count(".png") == 2


@pytest.fixture
def finds(done, folder):
    """Writes a report with these findings."""

    def write(text):
        path = folder / "findings.md"
        path.write_text(text, "utf-8")
        return write_report([done.tables(resamples=50)], folder / "r.md", findings=path)

    return write


def test_figures_of_a_discussion_are_filled_in(done, folder):
    def says(text, summary=""):
        tables = done.tables(resamples=50)
        suite = replace(tables.suite, discussion=text, summary=summary)
        return replace(tables, suite=suite)

    told = says(
        "It adds {{ gain('K-BERT, graph', 'BERT') }}, {{ gain('everything | visible', 'BERT') }}; "
        "it follows {{ followed('K-BERT, graph') }}; BERT gets {{ score('BERT') }}."
    )
    page = page_of(write_report([told], folder / "r.md"))
    assert "It adds +25.0 [+25.0, +25.0]², missing; it follows 80 ± 0 %; BERT gets 50.0" in page
    short = says("It follows {{ followed('K-BERT, graph') }}.", "- BERT gets {{ score('BERT') }}.")
    page = page_of(write_report([short], folder / "r.md"))
    seen, _, folded = page.partition("<details")
    assert "## What it shows\n\n- BERT gets 50.0 ± 0.0.\n" in seen
    assert "\n\nIt follows 80 ± 0 %.\n\n</details>" in folded
    page = page_of(write_report([replace(told, results={})], folder / "r.md"))
    assert "What it shows" not in page  # of nothing
    with pytest.raises(ExperimentError, match=r"tiny\.yaml: tiny has no row 'X'"):
        write_report([says("{{ gain('X', 'BERT') }}")], folder / "r.md")


def test_figures_of_the_findings_are_filled_in_and_linked(finds):
    overview, *_ = finds(
        "BERT gets {{ score('tiny', 'BERT') }}; a graph adds "
        "{{ gain('tiny', 'K-BERT, graph', 'BERT', 'recall, unseen') }}, a dictionary "
        "{{ gain('tiny', 'dictionary', 'BERT', seeds=3) }}. "
        "{{ followed('tiny', 'K-BERT, graph') }}"
    )
    assert (
        "BERT gets [50.0 ± 0.0](r/tiny.md#scores); a graph adds [+50.0 [+50.0, +50.0]², "
        "exploratory](r/tiny.md#differences), a dictionary "
        "[−25.0 [−25.0, −25.0]³](r/tiny.md#differences). [80 ± 0 %](r/tiny.md#edits)"
    ) in overview.read_text("utf-8")


def test_parts_stand_beside_each_other_at_the_seeds_that_all_of_them_have(finds):
    overview, *_ = finds("{{ parts('tiny', {'no graph': 'BERT', 'a graph': 'K-BERT, graph'}) }}")
    text = overview.read_text("utf-8")
    assert "| 2 seeds | F1 | edits followed | other names changed |" in text
    assert rows_of(text, "no graph") == [["no graph", "50.0 ± 0.0", "–", "–"]]
    assert rows_of(text, "a graph") == [["a graph", "75.0 ± 0.0", "80 ± 0 %", "–"]]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{{ score('big', 'BERT') }}", "no suite 'big'. There are: tiny."),
        ("{{ score('tiny', 'Bert') }}", "tiny has no row 'Bert'. There are: BERT; K-BERT, graph"),
        ("{{ score('tiny', 'BERT', 'MRR') }}", "tiny has no 'MRR'. There are: F1,"),
        (
            "{{ gain('tiny', 'K-BERT, graph', 'BERT', seeds=5) }}",
            "'K-BERT, graph − BERT' is claimed on 5 seeds, and tiny holds 2. Run the",
        ),
        ("{{ score('tiny') }}", "can't be filled in"),
        ("{{ scores }}", "'scores' is undefined"),
        ("{% for", "can't be filled in"),
    ],
)
def test_findings_that_the_results_do_not_hold_are_refused_and_nothing_is_overwritten(
    finds, folder, text, error
):
    (folder / "r.md").write_text("as it was", "utf-8")
    with pytest.raises(ExperimentError) as caught:
        finds(text)
    assert str(caught.value).startswith(f"{folder / 'findings.md'}: ")
    assert error in str(caught.value)
    assert (folder / "r.md").read_text("utf-8") == "as it was"
    assert not (folder / "r").exists()


# The map: what rows gain under a suite's conditions


@pytest.fixture
def map_tables(small):
    suite = small()
    right = {  # of 20 mentions in two sentences, 20 predicted
        "BERT: 25 % new": 10,
        "BERT: 50 % new": 8,
        "K-BERT: 25 % new, 60 % known, 60 % right": 12,
        "K-BERT: 50 % new, 60 % known, 60 % right": 14,
        "K-BERT: 25 % new, 0 % known, 60 % right": 10,
        "K-BERT: 25 % new, 90 % known, 20 % right": 6,
    }

    def result(count):
        columns = {"right": [count / 2] * 2, "predicted": [10, 10], "gold": [10, 10]}
        sentences = packed(Counts(["a", "b"], columns))
        return {"sentences": sentences, "inputs": {"data": {"sha256": "x"}}, "scores": {}}

    results = {row.name: dict.fromkeys((1, 2), result(right[row.name])) for row in suite.rows}
    return Tables(suite, results, resamples=10)


def test_an_axis_has_the_conditions_that_differ_from_the_centre_in_it_alone(map_tables):
    found = {
        axis: {name: [(x, round(gain.mean, 3)) for x, gain in of] for name, of in lines.items()}
        for axis, lines in gains_by_axis(map_tables).items()
    }
    assert found == {
        "unseen": {"K-BERT": [(0.25, 0.1), (0.5, 0.3)]},
        "known": {"K-BERT": [(0.0, 0.0), (0.6, 0.1)]},
    }


@pytest.mark.usefixtures("really_drawn")
def test_a_map_is_drawn_in_place_of_bars_and_curves(map_tables, tmp_path):
    assert [path.name for path in draw_suite(map_tables, tmp_path)] == ["small-map.png"]
    assert (tmp_path / "small-map.png").stat().st_size > 5_000
    nothing = Tables(map_tables.suite, {}, resamples=10)
    assert draw_suite(nothing, tmp_path / "none") == []


def test_a_page_has_a_line_a_row_and_a_column_a_condition_named_by_what_it_varies(map_tables):
    head = "| F1 | seeds | 25 % new, 60 % known, 60 % right | 50 % new | 0 % known | 90 % known"
    told = scores(map_tables).replace("\N{NO-BREAK SPACE}", " ")
    first, _, bert, kbert = told.split("\n\n")[0].splitlines()
    assert first == head + ", 20 % right |"
    assert bert == "| BERT | 2 | 50.0 ± 0.0 | 40.0 ± 0.0 | 50.0 ± 0.0 | 50.0 ± 0.0 |"
    assert kbert == "| K-BERT | 2 | 60.0 ± 0.0 | 70.0 ± 0.0 | 50.0 ± 0.0 | 30.0 ± 0.0 |"
    gains = next(line for line in differences(map_tables).splitlines() if "K-BERT − BERT" in line)
    assert re.findall(r"([+−][\d.]+) \[", gains) == ["+10.0", "+30.0", "+0.0", "−20.0"]

    other = replace(map_tables, suite=replace(map_tables.suite, name="other"))
    again = Rerun("BERT: 25 % new", (other, map_tables), {"F1": Difference(0.1, 0.1, 0.1, 0.1, 2)})
    last = differences(map_tables, [again]).splitlines()[-1]
    assert last.startswith("| *none:* BERT: 25 % new, run twice (also in [other](other.md)) | 2, ")
