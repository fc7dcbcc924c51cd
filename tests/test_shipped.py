"""The program outside a clone: what its wheel holds, what is found by its name, how it starts.

``tests/browser/test_package.py`` installs it.
"""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import kbert_core
from kbert_core import Pipeline, load_graph
from kbert_core.checkpoints.checkpoint import card_of
from kbert_core.errors import CheckpointError, GraphFileError
from kbert_core.files import shipped
from kbert_lab import cli
from kbert_lab.cli import lab
from kbert_lab.data.files import DataFiles
from kbert_lab.data.sources import guess_task, read_present, read_splits

ROOT = Path(__file__).parents[1]
FOLDERS = ("kbert_core", "kbert_lab", "app", "models", "demo_kgs")
MOST = 90_000_000  # bytes; the package index takes 100 MB


def test_the_wheel_holds_core_app_models_and_graphs_and_nothing_else(wheel):
    listed = ["git", "ls-files", "-co", "--exclude-standard", *FOLDERS]
    named = subprocess.run(listed, cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    files = [file for file in named.stdout.splitlines() if (ROOT / file).is_file()]
    expected = {f if f.startswith("kbert_") else f"kbert_lab/{f}" for f in files}
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert held == expected
    assert {"kbert_lab/app/.streamlit/config.toml", "kbert_core/__init__.pyi"} <= held
    assert wheel.stat().st_size < MOST


def test_the_wheel_says_what_it_is_and_what_the_app_needs(wheel):
    with zipfile.ZipFile(wheel) as opened:
        (about,) = [name for name in opened.namelist() if name.endswith("/METADATA")]
        said = opened.read(about).decode()
        commands = opened.read(about.replace("METADATA", "entry_points.txt")).decode()
    for name in lab.NEEDED:
        assert re.search(rf"^Requires-Dist: {name}\b.*extra == 'app'", said, re.MULTILINE), name
    assert "kbert = kbert_lab.cli:main" in commands


def test_the_wheel_states_its_licences_and_holds_their_texts(wheel):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    with zipfile.ZipFile(wheel) as opened:
        held = {name.partition(".dist-info/")[2]: name for name in opened.namelist()}
        assert f"License-Expression: {project['license']}" in opened.read(held["METADATA"]).decode()
        for file in project["license-files"]:
            assert opened.read(held[f"licenses/{file}"]) == (ROOT / file).read_bytes()


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_shipped_model_and_graph_are_found_in_any_folder(elsewhere, kbert):
    assert card_of("models/medical-ner-kbert").task == "ner"
    assert len(load_graph("demo_kgs/figure2.spo")) == 3
    assert "triples: 3" in kbert("kg", "stats", "--kg", "demo_kgs/figure2.spo").out
    data = "demo_kgs/example_data/medical_ner"
    assert read_present(data, "ner").keys() == {"train", "dev", "test"}
    assert guess_task(f"{data}/train.tsv") == "ner"
    assert read_splits(DataFiles(f"{data}/train.tsv", dev=f"{data}/dev.tsv"), "ner")["dev"]
    assert "medical_ner" in kbert("audit", "--data", data, "--kg", "demo_kgs/medical_zh.spo").out


def test_what_lies_here_comes_first_and_nothing_else_is_taken_for_shipped(elsewhere):
    (elsewhere / "demo_kgs").mkdir()
    (elsewhere / "demo_kgs" / "figure2.spo").write_text("a\tb\tc\n", encoding="utf-8")
    assert len(load_graph("demo_kgs/figure2.spo")) == 1
    for path in ("kbert_core/files.py", "models/../pyproject.toml", "", ROOT / "models/none"):
        assert shipped(path) == Path(path)
    with pytest.raises(GraphFileError, match=r"^demo_kgs/none\.spo: can't be read \(No such"):
        load_graph("demo_kgs/none.spo")
    with pytest.raises(CheckpointError, match="Found no model 'models/none'"):
        Pipeline.from_pretrained("models/none")


def test_lab_starts_the_app_that_comes_with_the_program(elsewhere, monkeypatch):
    started = []

    def run(command, check):
        started.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(lab.os, "execv", lambda _, command: None)
    monkeypatch.setattr(lab.subprocess, "run", run)
    for options in (["--port", "9000", "--no-browser"], []):
        with pytest.raises(SystemExit) as ended:
            cli.main(["lab", *options])
        assert ended.value.code == 0
    run = ["-m", "streamlit", "run", str(ROOT / "app" / "main.py")]
    with_options, without = started
    assert with_options[1:] == [*run, "--server.port=9000", "--server.headless=true"]
    assert without[1:] == run  # STREAMLIT_SERVER_PORT and the like say the rest


def test_lab_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(lab, "find_spec", lambda name: None if name == "plotly" else name)
    assert cli.main(["lab"]) == 2
    said = capsys.readouterr().err
    assert "The app needs plotly, not installed here. " in said
    assert 'pip install "kbert-lab[app]"' in said


# What starts without PyTorch, how much of the core a prediction loads, and its names

MOST_LINES = 7_991
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
