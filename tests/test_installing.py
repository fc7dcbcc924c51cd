"""Locks, container, Space and Binder: their files agree with each other and with the Makefile."""

import os
import platform
import re
import shlex
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from kbert_lab.cli import parser

ROOT = Path(__file__).parents[1]
LOCKS = {
    "requirements.lock": ["requirements.txt"],
    "requirements-dev.lock": ["requirements.txt", "requirements-dev.txt", "requirements-docs.txt"],
}
NAME = re.compile(r"^([A-Za-z0-9_.-]+)==([^\s;]+)", re.MULTILINE)
TOOLS = {  # run, and so imported nowhere
    *("uv", "pre-commit", "ruff", "mypy", "deptry", "pytest-xdist"),
    *("mkdocs-material", "mkdocstrings", "mkdocstrings-python", "jupytext"),
}
IMPORTED_AS = {"axe-playwright-python": "axe_playwright_python", "scikit-learn": "sklearn"}


def text_of(file):
    return (ROOT / file).read_text(encoding="utf-8")


def plain(name):
    """A package's name as an index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(*files):
    """Package → version."""
    found = [pin for file in files for pin in NAME.findall(text_of(file))]
    return {plain(name): version for name, version in found}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_of_a_lock_has_hashes_and_the_version_that_we_ask_for(lock):
    text = text_of(lock)
    entries = re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).strip())
    odd = [e for e in entries if not re.fullmatch(r"\S+==\S+( \\\n    --hash=sha256:\w{64})+", e)]
    assert not odd
    assert "://" not in text  # neither an index nor this or that machine
    locked = {name: version.partition("+")[0] for name, version in pins(lock).items()}
    asked = pins(*LOCKS[lock])
    assert asked
    assert {name: locked.get(name) for name in asked} == asked
    assert pins(lock)["torch"].endswith("+cpu")


def test_the_locks_agree():
    small, large = map(pins, LOCKS)
    assert small.items() <= large.items()


def test_the_lock_has_what_the_package_asks_for():
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    extras = project["optional-dependencies"]
    left_out = {
        "requirements.lock": ("corpus", "neo4j", "chinese"),
        "requirements-dev.lock": (),
    }
    for lock, those in left_out.items():
        some = [of for name, of in extras.items() if name not in those]
        asked = [each for of in (project["dependencies"], *some) for each in of]
        names = {plain(re.match(r"[\w.-]+", each)[0]) for each in asked} - {"kbert-lab"}
        assert names <= pins(lock).keys()


def test_every_package_of_tests_and_site_is_imported():  # deptry looks at the program's own
    listed = ["git", "ls-files", "-co", "--exclude-standard", "*.py"]
    named = subprocess.run(listed, cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    files = [f for f in named.stdout.splitlines() if (ROOT / f).is_file() and f != __file__]
    every = "\n".join(map(text_of, files))
    imported = set(re.findall(r"""(?:^\s*(?:import|from) |importorskip\(")(\w+)""", every, re.M))
    asked = pins("requirements-dev.txt", "requirements-docs.txt").keys()
    assert {n for n in asked if IMPORTED_AS.get(n, n) not in imported} <= TOOLS


# The container

STEPS = re.findall(
    r"^(FROM|RUN|COPY|ENV|USER|EXPOSE|CMD) ((?:.*\\\n)*.*)", text_of("Dockerfile"), re.MULTILINE
)


def steps(kind):
    return [words.replace("\\\n", " ") for own, words in STEPS if own == kind]


def copied(line):
    *sources, _ = [word for word in shlex.split(line) if not word.startswith("--")]
    return sources


def test_the_container_takes_files_that_are_there_and_let_in():
    sources = [source for line in steps("COPY") for source in copied(line)]
    assert all((ROOT / source).exists() for source in sources)
    let_in = {line[1:] for line in text_of(".dockerignore").splitlines() if line.startswith("!")}
    assert let_in == set(sources)
    wheel = tomllib.loads(text_of("pyproject.toml"))["tool"]["hatch"]["build"]["only-include"]
    assert set(wheel) <= set(sources)


def installed(folder, *words):
    """Let make install a lock whose one hash is wrong; return what it says, and what is there."""
    here = f"{platform.system()} {platform.machine()} Python {sys.version.partition(' ')[0]}"
    makefile = text_of("Makefile").replace("Linux x86_64 Python 3.11.", here)  # the lock's platform
    (folder / "Makefile").write_text(makefile, encoding="utf-8")
    (folder / "pyproject.toml").touch()
    (folder / "requirements.txt").write_text("torch==1\n")
    (folder / "requirements.lock").write_text(f"torch==1 \\\n    --hash=sha256:{'0' * 64}\n")
    about = {"METADATA": "Name: torch\nVersion: 1\n", "WHEEL": "Wheel-Version: 1.0\n", "RECORD": ""}
    with zipfile.ZipFile(folder / "torch-1-py3-none-any.whl", "w") as wheel:
        for name, text in about.items():
            wheel.writestr(f"torch-1.dist-info/{name}", text)
    only_here = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder), "PIP_CONFIG_FILE": os.devnull}
    done = subprocess.run(
        ["make", ".venv/.ready", f"PYTHON={sys.executable}", "TORCH_CPU=.", *words],
        **{"cwd": folder, "env": {**os.environ, **only_here}},
        **{"capture_output": True, "encoding": "utf-8", "check": False},
    )
    there = [path.name for path in (folder / ".venv").rglob("*torch-1*")]
    return done.returncode, done.stdout + done.stderr, there, (folder / ".venv/.ready").is_file()


def test_make_installs_nothing_whose_hash_is_wrong_unless_told_to(tmp_path):
    code, said, there, ready = installed(tmp_path)
    assert "DO NOT MATCH THE HASHES" in said
    assert "make UNLOCKED=1 installs without hashes" in said
    assert (code, there, ready) == (2, [], False)
    code, said, there, ready = installed(tmp_path, "UNLOCKED=1")
    assert (code, there, ready) == (0, ["torch-1.dist-info"], True), said


def test_the_container_installs_as_make_does():
    assert steps("FROM") == ["--platform=linux/amd64 python:3.11-slim-bookworm"]  # the lock's
    assert "UNLOCKED" not in text_of("Dockerfile")
    (make,) = [run for run in steps("RUN") if "make " in run and "apt-get" not in run]
    goal = make.split()[-1]
    rule = subprocess.run(
        ["make", "-np", goal], cwd=ROOT, capture_output=True, encoding="utf-8", check=False
    ).stdout
    (needs,) = re.findall(rf"^{re.escape(goal)}: (.*)$", rule, re.MULTILINE)
    at = next(n for n, (_, words) in enumerate(STEPS) if words.endswith(goal))
    before = [s for kind, words in STEPS[:at] if kind == "COPY" for s in copied(words)]
    assert {*needs.split(), "Makefile"} <= set(before)
    command = yaml.safe_load(steps("CMD")[0])
    assert command[0].startswith(goal.split("/")[0])
    assert parser().parse_args(command[1:]).command
    assert steps("USER") == ["1000"]


def test_container_compose_file_and_space_name_the_same_port_and_folder():
    environment = dict(word.split("=") for word in shlex.split(steps("ENV")[0]))
    assert environment["KBERT_OPEN_PATHS"] == "0"
    assert environment["STREAMLIT_SERVER_ALLOWED_HOSTS"].split() == ["localhost", "127.0.0.1"]
    (port,) = steps("EXPOSE")
    (lab,) = yaml.safe_load(text_of("compose.yaml"))["services"].values()
    assert lab["build"] == "."
    assert lab["ports"] == [f"127.0.0.1:{port}:{port}"]  # this machine alone
    assert [v.split(":")[1] for v in lab["volumes"]] == [environment["KBERT_WORKSPACES"]]
    (front,) = re.findall(r"```yaml\n---\n(.*?)---\n```", text_of("docs/install.md"), re.DOTALL)
    space = yaml.safe_load(front)
    assert (space["sdk"], str(space["app_port"])) == ("docker", port)


def test_binder_installs_what_a_clone_does():
    *_, line = text_of(".binder/requirements.txt").splitlines()
    assert (ROOT / ".binder" / line.removeprefix("-r ")).resolve() == ROOT / "requirements.txt"
    minor = text_of(".binder/runtime.txt").strip().removeprefix("python-")
    assert f"python{minor}" in re.search(r"^PYTHON \?= (.*)$", text_of("Makefile"), re.M)[1]
