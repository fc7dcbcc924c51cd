"""Imports point one way: by package as in the table, by module without a circle.

The core imports nothing of the lab.

Read from the source: an import inside a function or under TYPE_CHECKING counts too.
"""

import ast
import importlib
import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType

import pytest

from kbert_core.checkpoints.encoders import PACKED
from kbert_core.kbert.kbert import FASTER
from kbert_core.knowbert.entity_vectors import KEPT_ARRAYS
from kbert_core.knowbert.knowbert import LINK_TABLE
from kbert_core.knowledge.io.sources import SOURCES
from kbert_core.reader import SHOWN
from kbert_core.systems import SYSTEMS as READERS

ROOT = Path(__file__).parents[1]
PACKAGES = ("kbert_core", "kbert_lab", "results")

LOWEST = "errors files labels markup options tokens"
LOADS = f"{LOWEST} text text_rows knowledge systems layers probing"
BELOW = f"{LOADS} reader checkpoints scoring"  # for systems
SYSTEMS = "kbert knowbert"  # neither imports the other
PEERS = "plain_text roof"  # made of K-BERT's reader, or of its K-Query
PREDICTS = f"{BELOW} words {SYSTEMS} {PEERS} tasks pipeline"
WORKS = f"{PREDICTS} explain lab.files lab.encoders lab.graphs lab.data lab.training lab.explain"

ALLOWED = {  # a part of the core or the lab: what it may import, the lowest first
    "errors": "",
    **dict.fromkeys((*LOWEST.split()[1:], "layers"), "errors"),
    "text": "errors tokens",
    "text_rows": "errors tokens",
    "words": "errors tokens text",
    "knowledge": f"{LOWEST} text",
    "probing": "errors layers",
    "systems": f"{LOWEST} text knowledge",
    "reader": f"{LOWEST} text text_rows knowledge systems layers",
    "checkpoints": f"{LOWEST} text knowledge systems layers reader",
    "scoring": f"{LOADS} reader checkpoints",
    **dict.fromkeys(SYSTEMS.split(), BELOW),
    **dict.fromkeys(PEERS.split(), f"{BELOW} kbert"),
    "tasks": f"{LOWEST} text knowledge systems layers reader",
    "pipeline": f"{BELOW} {SYSTEMS} tasks",
    "explain": PREDICTS,
    "lab.files": "errors",
    "lab.kept_arrays": "",
    "lab.encoders": f"{BELOW} lab.files",
    "lab.fast": f"{BELOW} kbert",
    "lab.lexicon": f"{BELOW} kbert",
    "lab.graphs": f"{LOWEST} text knowledge lab.files",
    "lab.data": f"{LOWEST} text knowledge lab.files lab.graphs",
    "lab.training": f"{PREDICTS} lab.files lab.encoders lab.graphs lab.data",
    "lab.explain": f"{PREDICTS} explain lab.graphs",
    "lab.study": WORKS,
    "lab.lab": f"{WORKS} lab.study",
    "lab.suites": f"{WORKS} lab.study",
    "lab.cli": f"{WORKS} lab.study lab.lab lab.suites",
    "results.tools": f"{WORKS} lab.study lab.suites",
}


def modules():
    """Every module's file, by its name without ``kbert_``, the core's without ``core``, too."""
    found = {}
    for path in sorted(path for root in PACKAGES for path in (ROOT / root).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[short(".".join(parts[:-1] if parts[-1] == "__init__" else parts))] = path
    return {name: path for name, path in found.items() if name not in ("", "lab")}


def short(module):
    return re.sub(r"^kbert_(core\b\.?)?", "", module)


MODULES = modules()


def imported(path):
    """Our modules that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}, line {node.lineno}: a relative import"
            names = [(node.module, alias.name) for alias in node.names]
        for module, name in names:
            if module.partition(".")[0] in PACKAGES:
                inside = short(f"{module}.{name}".strip("."))
                yield inside if inside in MODULES else short(module)


IMPORTS = {name: set(imported(path)) - {name} for name, path in MODULES.items()}


def package(module):
    return re.match(r"((lab|results)\.)?\w*", module)[0]


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_importing_a_module_gives_a_module(name):
    """`import a.b as m` takes the attribute b of a, which a re-exported function would hide."""
    full = ".".join(MODULES[name].relative_to(ROOT).with_suffix("").parts)
    full = full.removesuffix(".__init__")
    module = importlib.import_module(full)
    above, _, last = full.rpartition(".")
    reached = getattr(sys.modules[above], last)
    assert isinstance(reached, ModuleType)
    assert reached is module is sys.modules[full]


def test_the_table_of_packages_names_every_package_and_points_one_way():
    assert {package(name) for name in IMPORTS} <= set(ALLOWED)
    tuple(TopologicalSorter({p: allowed.split() for p, allowed in ALLOWED.items()}).static_order())


def test_the_core_imports_nothing_of_the_lab():
    parts = {package(name): path.relative_to(ROOT).parts[0] for name, path in MODULES.items()}
    order = [parts[name] for name in ALLOWED]
    assert order == sorted(order)  # first all of the core, then the lab; see the tests here


def test_what_the_core_finds_by_name_is_there():
    for name in (*READERS.values(), *SOURCES.values(), FASTER, KEPT_ARRAYS, LINK_TABLE, SHOWN):
        assert callable(resolve_name(name))
    assert all(callable(resolve_name(name).unpacked) for name in PACKED.values())


def test_no_module_imports_a_package_above_it():
    upward = {
        f"{module} → {package(other) or 'the root'}"
        for module, others in IMPORTS.items()
        for other in others
        if package(other) not in (package(module), *ALLOWED[package(module)].split())
    }
    assert not upward, "see the table: import from a package below, or move what is needed"


def test_no_modules_import_each_other_in_a_circle():
    try:
        tuple(TopologicalSorter(IMPORTS).static_order())
    except CycleError as error:
        pytest.fail(f"a circle: {' → '.join(reversed(error.args[1]))}")
