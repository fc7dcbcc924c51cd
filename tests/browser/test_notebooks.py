"""`make lab` in a browser: the plan of the course, a notebook, what saving it changes, links."""

import json
import os
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from time import monotonic, sleep

import nbformat
import pytest

pytestmark = pytest.mark.browser
pytest.importorskip("jupyterlab")
ROOT = Path(__file__).resolve().parents[2]
FIRST = "notebooks/01_sentence_tree.ipynb"
PATIENCE = 60_000  # ms


def git(folder, *command):
    who = ["-c", "user.name=k", "-c", "user.email=k@localhost"]
    done = subprocess.run(["git", *who, *command], cwd=folder, check=True, capture_output=True)
    return done.stdout.decode()


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A repository with what a student sees."""
    folder = tmp_path_factory.mktemp("repository")
    made = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
    for name in ("notebooks", "docs", "demo_kgs"):
        shutil.copytree(ROOT / name, folder / name, ignore=made)
    for name in ("Makefile", "pyproject.toml", ".gitignore"):
        shutil.copy(ROOT / name, folder)
    for package in ("kbert_core", "kbert_lab"):
        (folder / package).symlink_to(ROOT / package)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "as it came")
    return folder


@pytest.fixture(scope="module")
def lab(repository, tmp_path_factory):
    """The address of a JupyterLab that `make lab` started; nothing of the user's own set-up."""
    own = tmp_path_factory.mktemp("jupyter")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = {"open_browser": False, "port": port, "port_retries": 0}
    config = {"ServerApp": server, "LabApp": server, "IdentityProvider": {"token": ""}}
    (own / "jupyter_server_config.json").write_text(json.dumps(config))
    variables = {"JUPYTER_CONFIG_DIR": own, "JUPYTER_DATA_DIR": own / "data", "IPYTHONDIR": own}
    command = ["make", "lab", "-o", ".venv/.ready", f"BIN={Path(sys.executable).parent}"]
    log = own / "log"
    with (
        log.open("wb") as written,
        subprocess.Popen(
            command,
            cwd=repository,
            env=os.environ | {name: str(path) for name, path in variables.items()},
            stdout=written,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as running,
    ):
        try:
            yield answering(f"http://127.0.0.1:{port}", running, log)
        finally:
            os.killpg(running.pid, 15)


def answering(address, running, log, patience=60):
    until = monotonic() + patience
    while monotonic() < until and running.poll() is None:
        try:
            urllib.request.urlopen(f"{address}/api", timeout=5).close()
            return address
        except (urllib.error.URLError, OSError):
            sleep(0.2)
    pytest.fail(f"JupyterLab didn't start: {log.read_text()}")


def save(page):
    """Save what is open, and wait until the server has done it."""

    def saved(response):
        return "/api/contents/notebooks" in response.url and response.request.method == "PUT"

    with page.expect_response(saved) as answer:
        page.locator(".jp-NotebookPanel-toolbar [data-jp-item-name=save]").click()
    assert answer.value.ok


def run_all(page):
    """Run every cell, once the kernel is there, and wait until it has."""
    page.locator("#jp-main-statusbar").get_by_text("Python 3 (ipykernel) | Idle").wait_for()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.locator(".lm-Menu-item[data-command='runmenu:run-all']").click()
    page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for()


def test_a_branch_is_switched_in_a_cell_and_the_next_cell_has_what_became_of_it(
    browser, lab, repository
):
    source = f"""import os, sys
sys.path.insert(0, {str(ROOT)!r})
os.chdir({str(ROOT)!r})
from kbert_lab.lab.widget import lab
widget = lab("models/medical-ner-kbert", "demo_kgs/medical_zh.spo", "患者行胃镜检查未见异常")
widget"""
    after = """print([span.label for span in widget.prediction.spans], *widget.graph.off)
print([edit.action for edit in widget.session.scene().edits])"""
    cells = [nbformat.v4.new_code_cell(source), nbformat.v4.new_code_cell(after)]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=kernel)
    nbformat.write(notebook, repository / "notebooks/widget.ipynb")
    page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{lab}/lab/tree/notebooks/widget.ipynb")
    run_all(page)
    widget = page.locator(".kb-widget")
    widget.locator(".kb-span", has_text="Examine").wait_for()
    second = page.locator(".jp-Notebook .jp-CodeCell").nth(1)
    second.get_by_text("['Examine']").wait_for()

    widget.locator("[data-name]", has_text="胃").first.hover()  # is marked in both drawings
    widget.locator("[data-name].kb-hover").wait_for()
    widget.get_by_role("switch", name="Switch off (胃镜, 类别, 检查)").click()
    widget.locator(".kb-span", has_text="BodyPart").wait_for()
    second.locator(".jp-InputArea-editor").click()
    page.keyboard.press("Control+Enter")
    second.get_by_text("['BodyPart'] (胃镜, 类别, 检查)").wait_for()
    assert "['switch_off']" in second.inner_text()

    save(page)  # what is shown where there is no kernel
    (output,) = nbformat.read(repository / "notebooks/widget.ipynb", as_version=4).cells[0].outputs
    assert output.data["text/html"].startswith("<em>") and "胃" in output.data["text/html"]
    page.close()
    (repository / "notebooks/widget.ipynb").unlink()


def test_a_student_opens_runs_and_saves_a_notebook_and_no_other_file_changes(
    browser, lab, repository
):
    page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(lab)  # `make lab` opens here
    plan = page.locator(".jp-MarkdownViewer")
    plan.get_by_role("heading", name="Notebooks", exact=True).wait_for()

    plan.get_by_role("link", name="1 Sentence tree").click()
    page.locator(".jp-Notebook").wait_for()
    page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for()
    as_it_came = (repository / FIRST).read_bytes()
    save(page)
    assert (repository / FIRST).read_bytes() == as_it_came
    assert git(repository, "status", "--short") == ""

    page.get_by_role("menuitem", name="Edit", exact=True).click()
    page.locator(".lm-Menu-item[data-command='editmenu:clear-all']").click()
    run_all(page)
    page.locator(".jp-Notebook").get_by_text("Open in the Lab").wait_for()
    page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for()
    save(page)
    assert git(repository, "status", "--short") in ("", f" M {FIRST}\n")
    cells = json.loads((repository / FIRST).read_text(encoding="utf-8"))["cells"]
    kinds = {output["output_type"] for cell in cells for output in cell.get("outputs", [])}
    assert kinds <= {"stream", "display_data", "execute_result"}  # no error

    page.get_by_role("link", name="other ways to run it").click()
    page.locator(".jp-MarkdownViewer").get_by_role("heading", name="Notebooks").first.wait_for()
    assert page.get_by_role("tab", name="install.md").is_visible()
    page.close()
