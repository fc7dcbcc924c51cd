"""What starts without PyTorch, how much of the core one prediction loads, and its names."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import kbert_core
from kbert_lab import cli

ROOT = Path(__file__).parents[1]
MOST_LINES = 8_110
MOST_FILES = 19
COMMANDS = (
    "--help",
    "train --help",
    "kg show demo_kgs/medical_zh.spo 糖尿病",
    "kg stats --kg demo_kgs/medical_zh.spo",
    "audit --data demo_kgs/example_data/medical_ner --kg demo_kgs/medical_zh.spo --task ner",
)
RUN = """
import shlex, sys
from kbert_lab import cli
for command in sys.argv[1:]:
    try:
        code = cli.main(shlex.split(command))
    except SystemExit as end:
        code = end.code
    print("ENDED", code, *sorted({"torch", "transformers", "datasets"} & set(sys.modules)))
"""


PREDICT = """
import sys
from pathlib import Path
from kbert_core import Pipeline, load_graph
model = Pipeline.from_pretrained("models/medical-ner-kbert", device="cpu")
graph = load_graph("demo_kgs/medical_zh.spo")
files = set()
sys.setprofile(lambda frame, *_: files.add(Path(frame.f_code.co_filename)))
model("患者行胃镜检查未见异常", graph=graph)
sys.setprofile(None)
print(sum(bool({"kbert_core", "kbert_lab"} & {*path.parts}) for path in files))
ours = [m for name, m in sys.modules.items() if name.split(".")[0] in ("kbert_core", "kbert_lab")]
print(sum(len(Path(m.__file__).read_text(encoding="utf-8").splitlines()) for m in ours))
"""


def python(*arguments):
    command = [sys.executable, "-c", *arguments]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=ROOT, check=False)
    assert not done.returncode, done.stderr
    return done.stdout


def test_commands_that_run_no_model_start_without_pytorch():
    printed = python(RUN, *COMMANDS)
    ends = [line for line in printed.splitlines() if line.startswith("ENDED")]
    assert ends == ["ENDED 0"] * len(COMMANDS)
    assert all(len(part) > 100 for part in printed.split("ENDED 0")[: len(COMMANDS)])


def test_one_prediction_loads_a_small_part_of_the_core_and_runs_few_of_its_files():
    files, lines = map(int, python(PREDICT).split()[-2:])
    assert lines <= MOST_LINES
    assert files <= MOST_FILES


def test_the_version_is_that_of_the_package(capsys):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert kbert_core.__version__ == project["version"]
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"kbert {project['version']}\n"


def test_an_old_python_is_told_which_will_do(monkeypatch):
    program = (ROOT / "kbert_core" / "__init__.py").read_text("utf-8")
    monkeypatch.setattr(sys, "version_info", (3, 10, 13))
    with pytest.raises(ImportError, match=r"^K-BERT Lab needs Python 3\.11 to 3\.14\. Make"):
        exec(program, {})


def test_every_public_name_is_there_and_listed():
    assert set(kbert_core.__all__) <= set(dir(kbert_core))
    assert all(hasattr(kbert_core, name) for name in kbert_core.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = kbert_core.nothing
