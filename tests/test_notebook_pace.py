"""The notebooks' README promises minutes that are counted, and a class that fits them."""

import re
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
sys.path.insert(0, str(FOLDER))

import pace  # noqa: E402

README = (FOLDER / "README.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\d+)–(\d+) \| (.+?) \| ?(\d*) ?\|$", README, re.MULTILINE)


@pytest.mark.parametrize("notebook", range(1, 11))
def test_minutes_in_the_table_are_those_counted(notebook):
    (row,) = re.findall(rf"^\| \[{notebook} .+\|$", README, re.MULTILINE)
    assert int(row.split("|")[-3]) == pace.rounded(pace.minutes(notebook))


def test_the_class_is_the_one_that_was_counted_and_every_part_fits():
    assert len(ROWS) == len(pace.CLASS)
    start = 0
    for (begin, end, what, counted), part in zip(ROWS, pace.CLASS, strict=True):
        assert (int(begin), int(end)) == (start, start + part.minutes)
        start = int(end)
        assert pace.needed(part) <= part.minutes
        if part.notebook:
            assert what.startswith(f"Notebook {part.notebook}")
            assert int(counted) == round(pace.needed(part))
        else:
            assert not counted
    assert start == 120


def test_sections_are_counted_without_their_solutions():
    first = pace.sections(1)
    assert [one.title for one in first][:2] == ["", "A fact is a triple"]
    (exercises,) = (one for one in first if one.title == "Exercises")
    assert exercises.exercises == 3
    with_solutions = (FOLDER / "01_sentence_tree.py").read_text(encoding="utf-8")
    solution = with_solutions.split("<summary>Solution</summary>")[1].split("</details>")[0]
    assert len(solution.split()) > 20
    text = with_solutions.split("# ## Exercises")[1].split("# ## Go on")[0]
    assert exercises.words < len(re.findall(r"\w+", text)) / 2
