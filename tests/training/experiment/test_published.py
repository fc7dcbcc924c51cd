"""The published answer is what the committed runs say, and can be made again without the data."""

import re
import shutil
from pathlib import Path

import pytest

from kbert_core import cli
from kbert_core.training.experiment.report import UNCHECKED

ROOT = Path(__file__).resolve().parents[3]
PUBLISHED = ROOT / "docs" / "results.md"


def test_the_report_is_made_of_the_committed_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("KBERT_DATA", raising=False)
    command = next(line for line in PUBLISHED.read_text("utf-8").splitlines() if "`kbert" in line)
    words = command.partition("`kbert ")[2].partition("`")[0].split()
    assert words[0] == "experiment"
    shutil.copytree(PUBLISHED.parent / "decisions", tmp_path / "decisions")  # it links to them
    again = tmp_path / "results.md"
    words[words.index("--report") + 1] = str(again)
    suites = sorted(str(path) for path in Path("results/suites").glob("*.yaml"))
    assert sorted({word for word in words if word.startswith("results/suites/")}) == suites
    assert cli.main(words) == 0
    made = again.read_text("utf-8").replace(str(again), "docs/results.md")
    published = PUBLISHED.read_text("utf-8")
    assert what_was_checked_left_out(made) == what_was_checked_left_out(published)
    for name in (PUBLISHED.parent / "results").iterdir():
        assert (tmp_path / "results" / name.name).is_file()


def what_was_checked_left_out(text):
    """A report without the lines about data and graphs that weren't there to compare with."""
    return re.sub(rf"\n\n{UNCHECKED}: .*", "", text)


def test_the_figures_in_the_readme_are_the_reports():
    section = (ROOT / "README.md").read_text("utf-8").partition("## What we found")[2]
    figures = re.findall(r"\d+\.\d ± \d+\.\d", section.partition("\n## ")[0])
    published = PUBLISHED.read_text("utf-8")
    assert len(figures) == 12
    assert [figure for figure in figures if figure not in published] == []


@pytest.mark.parametrize("what", ["/root", "/work", "/tmp"])
def test_no_result_names_a_path_of_the_machine_it_was_made_on(what):
    for path in (ROOT / "results").rglob("*.json"):
        assert f'"{what}' not in path.read_text("utf-8")
