"""How long the notebooks take to read and do, and whether the class fits its two hours.

    python notebooks/pace.py         a row a notebook, a row a part of the class

Reading time is counted, not guessed: words, lines of code, pictures and exercises
of each section, at the rates below, which are those of a slow reader. What the
machine takes isn't in it: cells are run while the text before them is read.
"""

import math
import re
from dataclasses import dataclass
from pathlib import Path

import jupytext

HERE = Path(__file__).resolve().parent
WORDS = 130  # a minute: a text with equations, not in one's first language
LINES = 12  # of code a minute
PICTURE = 0.75  # minutes to look at a picture, or at what is printed
EXERCISE = 4.0  # minutes for one, with its solution
START = ""  # what stands before the first title


@dataclass(frozen=True)
class Part:
    """One part of the class.

    Attributes:
        minutes: that the plan gives it.
        notebook: its number; 0: none.
        last: title of the last section it goes through.
        skipped: titles before it that are left out.
        exercises: how many are done in class.
    """

    minutes: int
    notebook: int
    last: str = START
    skipped: tuple[str, ...] = ()
    exercises: int = 0


CLASS = (  # of two hours, as README.md plans it
    Part(10, 0),
    Part(15, 1, "Flattening: a tree in one line", exercises=1),
    Part(20, 2, "What hard positions do to the trunk", exercises=1),
    Part(20, 3, "What a cell forbids", exercises=1),
    Part(10, 0),
    Part(20, 5, "Which way did it come?"),
    Part(
        20,
        6,
        "Is it really the graph?",
        skipped=("What the model reads", "The training loop by hand"),
    ),
    Part(5, 0),
)


@dataclass
class Section:
    """What stands under one title."""

    title: str
    words: int = 0
    lines: int = 0
    pictures: int = 0
    exercises: int = 0

    @property
    def minutes(self) -> float:
        """Of all but its exercises."""
        return self.words / WORDS + self.lines / LINES + self.pictures * PICTURE


def sections(notebook: int) -> list[Section]:
    """The sections of a notebook, in order; folded solutions don't count."""
    (path,) = HERE.glob(f"{notebook:02}_*.ipynb")
    found = [Section(START)]
    for cell in jupytext.read(path).cells:
        tags = cell.metadata.get("tags", [])
        if "solution" in tags:
            continue
        if cell.cell_type == "code":
            found[-1].exercises += "exercise" in tags
            found[-1].lines += sum(bool(line.strip()) for line in cell.source.splitlines())
            found[-1].pictures += bool(cell.outputs) and "exercise" not in tags
            continue
        for line in cell.source.splitlines():
            title = re.match(r"## (.+)", line)
            if title:
                found.append(Section(title[1].strip()))
            found[-1].words += len(re.findall(r"[A-Za-z0-9’']+|[\u4e00-\u9fff]{1,2}", line))
    return found


def minutes(notebook: int) -> float:
    """A notebook from its first line to its last, exercises and all."""
    return sum(one.minutes + one.exercises * EXERCISE for one in sections(notebook))


def needed(part: Part) -> float:
    """What a part of the class needs; 0 where it is talk alone."""
    if not part.notebook:
        return 0.0
    found = sections(part.notebook)
    titles = [one.title for one in found]
    gone = {titles.index(title) for title in part.skipped}
    chosen = [n for n in range(titles.index(part.last) + 1) if n not in gone]
    return sum(found[n].minutes for n in chosen) + part.exercises * EXERCISE


def rounded(value: float) -> int:
    """To five minutes, upwards."""
    return 5 * math.ceil(value / 5)


def main() -> None:
    """Print both tables."""
    for number in range(1, 11):
        print(f"\nNotebook {number}: {minutes(number):.0f} minutes")
        for one in sections(number):
            print(
                f"  {one.minutes:4.1f}  {one.title or '(beginning)'}: {one.words} words, "
                f"{one.lines} lines, {one.pictures} outputs, {one.exercises} exercises"
            )
    print("\nThe class")
    start = 0
    for part in CLASS:
        what = f"notebook {part.notebook}, needs {needed(part):.1f}" if part.notebook else "talk"
        print(f"  {start:3}–{start + part.minutes:3}  {what}")
        start += part.minutes


if __name__ == "__main__":
    main()
