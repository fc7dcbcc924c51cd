"""The published answer is what the committed runs say, and can be made again without the data."""

import json
import re
import shutil
from pathlib import Path

import pytest
from kept_results import results_of

from benchmarks import selection
from kbert_core.knowledge.io.compression import open_unpacked
from results.tools.report import UNCHECKED, main

ROOT = Path(__file__).resolve().parents[3]
PUBLISHED = ROOT / "docs" / "results.md"
PAGES = ROOT / "docs" / "results"


ALONE = ("relations", "sentiment", "weibo-ner")  # no other suite is named on their pages


def test_pages_are_made_of_the_committed_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("KBERT_DATA", raising=False)
    suites = [f"results/suites/{name}.yaml" for name in ALONE]
    main([*suites, "--report", str(tmp_path / "results.md")])
    for name in ALONE:
        made = what_was_checked_left_out(tmp_path / "results" / f"{name}.md")
        assert made == what_was_checked_left_out(PAGES / f"{name}.md")


@pytest.mark.soak
def test_the_report_is_made_of_the_committed_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("KBERT_DATA", raising=False)
    shutil.copytree(PUBLISHED.parent / "decisions", tmp_path / "decisions")  # it links to them
    main(["--report", str(tmp_path / "results.md")])
    assert (tmp_path / "results.md").read_text("utf-8") == PUBLISHED.read_text("utf-8")
    pages = tmp_path / "results"
    assert sorted(p.name for p in pages.glob("*.md")) == sorted(p.name for p in PAGES.glob("*.md"))
    for page in pages.glob("*.md"):
        assert what_was_checked_left_out(page) == what_was_checked_left_out(PAGES / page.name)


def what_was_checked_left_out(page):
    """A page without the lines about data and graphs that weren't there to compare with."""
    return re.sub(rf"\n\n{UNCHECKED}: .*", "", page.read_text("utf-8"))


DISJOINT, PRETRAINING = "medical-ner-disjoint", "medical-ner-pretraining"
DROPPED = "k-bert-recipe-false-matches-dropped"


@pytest.mark.parametrize(
    ("suite", "pairs", "said"),
    [
        (
            DISJOINT,
            [(f"{DROPPED}-seed{n}", f"k-bert-recipe-medicalkg-seed{n}") for n in (1, 2, 3)],
            "{:+.1f}, {:+.1f} and {:+.1f}",
        ),
        (
            PRETRAINING,
            [
                (f"k-bert-recipe-{encoder}-seed1", f"bert-{encoder}-seed1")
                for encoder in ("from-scratch", "the-shipped-encoder")
            ],
            "from scratch the graph adds {:.1f} there, to the shipped one {:.1f}.",
        ),
    ],
)
def test_differences_on_dev_that_the_text_names_are_the_runs(suite, pairs, said):
    runs = results_of(suite, ROOT / "results")

    def dev_f1(run):
        return 100 * runs[run]["scores"]["dev"]["f1"]

    differences = said.format(*(dev_f1(run) - dev_f1(other) for run, other in pairs))
    text = " ".join((PAGES / f"{suite}.md").read_text("utf-8").split())
    assert differences.replace("-", "−") in text


def test_no_result_names_a_path_of_the_machine_it_was_made_on():
    files = [path for end in ("json", "jsonl.xz") for path in (ROOT / "results").rglob(f"*.{end}")]
    assert len(files) > 20
    for path in files:
        with open_unpacked(path) as file:
            text = file.read().decode()
        assert not [where for where in ("/root", "/work", "/tmp") if f'"{where}' in text], path


def test_the_page_on_choosing_triples_is_made_of_the_committed_measurements():
    told = json.loads((selection.RESULTS / "homonyms.json").read_text("utf-8"))
    made = selection.section(told, selection.noise_results())
    assert selection.SECTION.read_text("utf-8") == made
    _, _, page = made.strip().partition("\n")
    pages = selection.ROOT / "docs" / "results"
    assert page in (pages / "choosing-triples.md").read_text("utf-8")
    assert (pages / "../selection/noise.png").is_file()
    assert selection.PICTURE.is_file()
