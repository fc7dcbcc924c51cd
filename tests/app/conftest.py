"""The app is run from the repository root; so are its tests."""

import sys
from functools import cache
from pathlib import Path

import pytest
from streamlit import config
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.testing.v1 import AppTest, local_script_runner

from app import background
from kbert_core import (
    InjectionOptions,
    KnowledgeGraph,
    Triple,
    Words,
    collate,
    flatten,
    grow_trees,
)
from kbert_core.kbert.kbert import KBertReading, KBertTrace
from kbert_core.kbert.visible import FULL, ReadConfig

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
config._main_script_path = str(ROOT / "app" / "main.py")  # its settings lie beside it
config.get_config_options(force_reparse=True)

FIGURE_2 = (
    Triple("Tim Cook", "CEO", "Apple"),
    Triple("Beijing", "capital", "China"),
    Triple("Beijing", "is_a", "City"),
    Triple("Beijing", "located_in", "Asia"),
)
SENTENCE = "Tim Cook is visiting Beijing now"


@pytest.fixture
def trace_of():
    """A trace that no model made."""

    def made(row, batch, ablation):
        reading = KBertReading((row,), ReadConfig(ablation=ablation))
        return KBertTrace(reading, batch=batch, visible=ablation.visible_in(batch))

    return made


@pytest.fixture(scope="session", autouse=True)
def apptest_prepares_once():
    """AppTest lists all installed packages and compiles the page anew for every run.

    That takes longer than the page does, so here it is done once in a session.
    """
    compiled, scan = ScriptCache(), cache(manifest_scanner.scan_component_manifests)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", scan)
        patch.setattr(local_script_runner, "ScriptCache", lambda: compiled)
        yield


@pytest.fixture(autouse=True)
def chinese_example(monkeypatch):
    """A page begins with the same example whatever its language; a test of it says which."""
    from kbert_lab.lab import examples

    monkeypatch.setitem(examples.FIRST, "en", examples.FIRST["zh"])


@pytest.fixture(autouse=True)
def open_drawer(monkeypatch):
    """The Lab's drawer is open, so that what is in it can be chosen; a test of it closes it."""
    begin = AppTest.__init__

    def begun(self, *args, **how):
        begin(self, *args, **how)
        self.session_state["lab.drawer"] = True

    monkeypatch.setattr(AppTest, "__init__", begun)


@pytest.fixture(autouse=True)
def main_module():
    """AppTest leaves a page as ``__main__``, which a process started later would run first."""
    before = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = before


@pytest.fixture(autouse=True)
def all_ended():
    """No test leaves a long run behind."""
    yield
    for run in list(background._going):
        run.stop()
        run.join(240)


@pytest.fixture
def graph() -> KnowledgeGraph:
    return KnowledgeGraph(FIGURE_2, name="figure 2, and one more")


@pytest.fixture
def run(trace_of):
    """Read a sentence without a model: graph → trace."""

    def read(graph, text=SENTENCE, ablation=FULL, max_length=None, **options):
        tree = grow_trees([text], graph, InjectionOptions(**options))[0]
        row = flatten([tree], Words(special=True), max_length=max_length)[0]
        batch = collate([row])
        return trace_of(row, batch, ablation)

    return read
