"""The wheel in a new environment and an empty folder, as a stranger meets it; `make package`."""

import json
import os
import re
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from served import served
from test_docs import RUN, blocks_of, lines_of

from .lab import Lab

pytestmark = pytest.mark.package
ROOT = Path(__file__).parents[2]
COMMANDS = """
import shlex, sys
from kbert_lab import cli
for command in sys.argv[1:]:
    print(f"$ {command}", file=sys.stderr)
    assert cli.main(shlex.split(command)[1:]) == 0
"""


@dataclass(frozen=True)
class Stranger:
    """A new environment with the wheel, and an empty folder."""

    python: Path
    wheel: Path
    folder: Path

    def install(self, *what):
        """Install in the versions of the lock."""
        lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
        pins = self.python.parents[1] / "pins.txt"
        pins.write_text("\n".join(re.findall(r"^[\w.-]+==[\w.]+", lock, re.MULTILINE)))
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "install"]
        run([*pip, "-q", "--no-compile", "--retries", "1", "-c", str(pins), *what], ROOT)

    def kbert(self, *commands):
        """Run commands in one process; return what they print."""
        return run([self.python, "-c", COMMANDS, *commands], self.folder)


def run(command, folder):
    environment = {**os.environ, "PYTHONPATH": "", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert not done.returncode, done.stderr
    return done


@pytest.fixture(scope="module")
def stranger(wheel, tmp_path_factory):
    """With `[app]` alone."""
    place = tmp_path_factory.mktemp("stranger")
    venv.create(place / "env")
    (place / "empty").mkdir()
    scripts = "Scripts" if os.name == "nt" else "bin"
    made = Stranger(place / "env" / scripts / "python", wheel, place / "empty")
    made.install("--no-deps", "--extra-index-url", os.environ["TORCH_CPU"], "torch")
    made.install(f"{wheel}[app]")
    return made


@pytest.fixture(scope="module")
def reader(stranger):
    """With `[notebooks]` too, and a kernel, as Colab and JupyterHub have one."""
    stranger.install(f"{stranger.wheel}[app,notebooks]", "ipykernel")
    return stranger


def test_the_app_alone_opens_on_tree_matrix_and_prediction(stranger, browser, tmp_path):
    lab = [str(stranger.python.with_name("kbert")), "lab", "--no-browser"]
    home = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"), str(tmp_path))
    with served(tmp_path, command=lab, cwd=stranger.folder, PYTHONPATH="", **home) as server:
        page = browser.new_context(locale="en-US").new_page()
        lab = Lab(page, server.url)
        lab.open(shows=".kb-side")  # the prediction; PyTorch is compiled before it
        assert lab.branches()[0] == "is_adisease"
        assert lab.matrix()["kind"] == "visible"
        assert lab.prediction() == [("COPD", "Disease")]
        lab.open("?example=figure2_minilm")  # another that needs the English encoder
        assert "CEOApple" in lab.branches()
        assert [*lab.errors, *lab.outside] == []
    assert not [*stranger.folder.iterdir()]


def test_the_first_notebook_alone_gets_the_rest_and_runs(reader, tmp_path, monkeypatch):
    kernel = tmp_path / "kernels" / "stranger"
    kernel.mkdir(parents=True)
    argv = [str(reader.python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "stranger"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", "")
    notebook = nbformat.read(ROOT / "notebooks" / "00_start_here.ipynb", as_version=4)
    (address,) = set(re.findall(r"--depth 1 (\S+)", str(notebook.cells)))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")  # this repository in place of the published one
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.file://{ROOT}.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", address)
    where = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=300, kernel_name="stranger", resources=where).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    texts = [output.text for output in outputs if output.output_type == "stream"]
    said = "".join(texts)
    assert said.startswith("Getting the rest")
    assert "\nReady: everything is here" in said
    assert "Installing" not in said
    assert not [output.text for output in outputs if output.get("name") == "stderr"]


def test_the_first_command_of_every_page_works_in_an_empty_folder(reader):
    shown = [[block for kind, block, _ in blocks_of(file) if kind == "console"] for file in RUN]
    first = [lines_of(blocks[0])[0] for blocks in shown if blocks]
    assert len(first) > 10
    said = reader.kbert(*first)
    assert said.stdout.count("\n") > 5 * len(first)
    assert "it/s]" not in said.stderr  # a progress bar


def test_the_python_of_the_readme_prints_what_it_says_and_nothing_else(reader):
    block = next(block for kind, block, _ in blocks_of("README.md") if kind == "python")
    done = run([reader.python, "-c", block], reader.folder)
    assert done.stdout.strip()
    assert done.stderr == ""
