"""What the README says to type works."""

import re
import shlex
from pathlib import Path

import pytest

from kbert_core import cli

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, flags=re.DOTALL)
COMMANDS = [
    line
    for kind, block in BLOCKS
    if kind == "console"
    for line in block.splitlines()
    if line.startswith("kbert ")
]


def test_the_python_example_runs_and_an_edit_changes_the_prediction(capsys, monkeypatch):
    (example,) = [block for kind, block in BLOCKS if kind == "python"]
    monkeypatch.chdir(ROOT)
    exec(example, {})
    lines = capsys.readouterr().out.splitlines()
    assert "('胃镜', 'Examine')" in lines[0]
    assert "('胃镜', 'Disease')" in lines[-1]


def test_the_readme_shows_commands():
    assert len(COMMANDS) >= 4


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_readme_runs(command, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    try:
        assert cli.main(shlex.split(command)[1:]) == 0
    except SystemExit as end:  # of --help
        assert end.code == 0
    assert capsys.readouterr().out


def test_every_file_and_folder_the_readme_links_to_is_there():
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_make_targets_of_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("app", "test", "lint", "lab", "notebooks", "bench", "soak", "help"):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
