"""What the documents say to type is what the command line takes."""

import re
import shlex
from pathlib import Path

import pytest

from kbert_core.cli import parser

ROOT = Path(__file__).parents[1]
COMMANDS = [
    (file.relative_to(ROOT).as_posix(), line)
    for file in [*sorted((ROOT / "docs").glob("*.md")), ROOT / "models" / "README.md"]
    for block in re.findall(r"```\w*\n(.*?)```", file.read_text(encoding="utf-8"), flags=re.DOTALL)
    for line in block.replace("\\\n", " ").splitlines()
    if line.startswith("kbert ")
]


def test_the_documents_show_commands():
    assert {"docs/encoders.md", "models/README.md"} <= {file for file, _ in COMMANDS}


@pytest.mark.parametrize(("file", "command"), COMMANDS)
def test_a_command_of_a_document_can_be_parsed(file, command):
    assert parser().parse_args(shlex.split(command)[1:]).command


def test_the_python_that_explains_a_prediction_runs(capsys, monkeypatch):
    text = (ROOT / "docs" / "explain.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    monkeypatch.chdir(ROOT)
    exec(example, {})
    first, _, sums, *_ = capsys.readouterr().out.splitlines()
    assert first == "+2.73 True (胃镜, 类别, 检查)"
    assert len(set(sums.split())) == 1  # Shapley values sum to the whole effect
