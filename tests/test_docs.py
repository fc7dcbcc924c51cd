"""What the documents say to type is what the command line takes; what they name is there."""

import re
import shlex
import sys
from pathlib import Path
from pkgutil import resolve_name

import pytest

from kbert_core import (
    MaskTransformer,
    Pipeline,
    k_inject,
    k_query,
    load_graph,
    visible_matrix,
)
from kbert_core.cli import parser
from kbert_core.kbert import mask_transformer

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


def test_the_page_on_the_program_names_files_that_are_there():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"[`(]([\w/]+\.py)`", text)) - {"kbert_core/NAME/reader.py"}
    missing = [n for n in named if not any((ROOT / at / n).is_file() for at in ("", "kbert_core"))]
    assert len(named) > 10
    assert not missing


def test_the_walk_of_one_sentence_names_functions_that_are_there():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    steps = re.findall(r"^\d\. `([\w/]+)\.py`, `([\w.]+)`", text, flags=re.MULTILINE)
    assert len(steps) == 8  # files that one sentence meets
    for file, function in steps:
        resolve_name(f"kbert_core.{file.replace('/', '.')}:{function}")


def test_one_sentence_runs_the_files_of_the_walk_and_few_others():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    walk = {f"{file}.py" for file in re.findall(r"^\d\. `([\w/]+)\.py`, `", text, re.MULTILINE)}
    (most,) = re.findall(r"at most (\d+)\s+files of the core run", text)
    pipeline = Pipeline.load(ROOT / "models" / "medical-ner-kbert", device="cpu")
    graph = load_graph(ROOT / "demo_kgs" / "medical_zh.spo")
    run = set()

    def note(frame, event, _):
        _, core, file = frame.f_code.co_filename.rpartition("/kbert_core/")
        if core and event == "call":
            run.add(file)

    def read():
        return list(pipeline.read([("患者行胃镜检查未见异常",)], graph=graph))

    read()  # what is loaded or compared once
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        read()
    finally:
        sys.setprofile(before)
    assert walk <= run
    assert len(run) <= int(most)


def test_each_equation_of_the_paper_is_named_where_it_is_computed():
    for function, equation in ((k_query, 1), (k_inject, 2), (visible_matrix, 3)):
        assert f"Eq. {equation})" in function.__doc__
    assert "Eq. 4-6" in MaskTransformer.forward.__doc__
    assert all(f"(Eq. {number})" in mask_transformer.__doc__ for number in (4, 5, 6))
