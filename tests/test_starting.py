"""What starts without PyTorch, which takes seconds; and that the package's names are there."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import kbert_core

ROOT = Path(__file__).parents[1]
RUN = """
import sys
from kbert_core import cli
try:
    code = cli.main(sys.argv[1:])
except SystemExit as end:
    code = end.code
print("MODULES", *sorted({"torch", "transformers", "datasets"} & set(sys.modules)))
sys.exit(code)
"""


def python(*arguments):
    command = [sys.executable, "-c", *arguments]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=ROOT, check=False)
    assert not done.returncode, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "command",
    [
        "--help",
        "train --help",
        "kg show demo_kgs/medical_zh.spo 糖尿病",
        "kg stats --kg demo_kgs/medical_zh.spo",
        "audit --data demo_kgs/example_data/medical_ner --kg demo_kgs/medical_zh.spo --task ner",
    ],
)
def test_a_command_that_runs_no_model_starts_without_pytorch(command):
    printed = python(RUN, *shlex.split(command))
    assert len(printed) > 100
    assert printed.splitlines()[-1] == "MODULES"


def test_every_public_name_is_there_and_listed():
    assert set(kbert_core.__all__) <= set(dir(kbert_core))
    assert all(hasattr(kbert_core, name) for name in kbert_core.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = kbert_core.nothing
