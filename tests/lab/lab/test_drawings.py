"""The drawings' scripts: modules that fit together, name no host, and reckon as Python does."""

import json
import re
import shutil
import subprocess
from base64 import b64encode
from pathlib import Path

import numpy as np
import pytest

from kbert_core import Ablation, InjectionOptions, KnowledgeGraph, Triple, flatten, grow_trees
from kbert_core.words import Words
from kbert_lab.lab import commands, drawings
from kbert_lab.lab.commands import command_of
from kbert_lab.lab.drawings import EXPORT, IMPORT, bundle, source
from kbert_lab.lab.selection import code_of, identity_of
from kbert_lab.lab.views.why import in_browser, why

FOLDER = Path(drawings.__file__).parent
MODULES = sorted(path.stem for path in FOLDER.glob("*.js"))
CITY = Triple("Beijing", "is_a", "City")
LOOKS, AT = ("trunk", 0, 3), ("branch", 0, 8, CITY, 1)


def in_node(module, expression, *given):
    """The value of an expression of a module, as $module, and of what it is given."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed; only tests use it")
    script = (
        f"{bundle(module)}console.log(JSON.stringify((({expression}))(...{json.dumps(given)})))"
    )
    run = subprocess.run([node, "-e", script], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_what_others_export_and_names_no_host(name):
    text = source(f"{name}.js")
    for names, needed in IMPORT.findall(text):
        given = " ".join(" ".join(found) for found in EXPORT.findall(source(f"{needed}.js")))
        for wanted in names.strip("{ }").split(","):
            assert re.search(rf"\b{wanted.split(' as ')[0].strip()}\b", given), (needed, wanted)
    assert not re.search(r"streamlit|testid|st-key|--st-", text, re.IGNORECASE)
    assert "import " not in bundle(name) and not re.search(r"^export", bundle(name), re.MULTILINE)


def test_a_bundle_has_each_module_once_after_what_it_imports():
    script = bundle("matrix")
    order = re.findall(r"^const \$(\w+) = \(\(\) =>", script, re.MULTILINE)
    assert len(order) == len(set(order)) and order[-1] == "matrix"
    for name in order:
        needed = [other for _, other in IMPORT.findall(source(f"{name}.js"))]
        assert all(order.index(other) < order.index(name) for other in needed)
    assert in_node("layout", "(i) => $layout.clamp(i, 4)", 9) == 3


@pytest.mark.parametrize("identity", [LOOKS, AT, ("special", 0), ("branch", 1, 2, CITY)])
def test_an_identity_is_read_back_from_its_name(identity):
    assert identity_of(code_of(identity)) == identity


@pytest.mark.parametrize(
    ("sent", "command"),
    [
        ({"do": "switch", "on": False}, commands.Switch((CITY,), False)),
        ({"do": "tail", "tail": "Place"}, commands.ReplaceTail(CITY, "Place")),
        ({"do": "triple"}, commands.SelectTriple(CITY)),
        ({"do": "name", "name": "City", "token": None}, commands.SelectTriple(CITY)),
        ({"do": "name", "name": "x", "token": code_of(LOOKS)}, commands.SelectToken(LOOKS)),
        ({"do": "token", "token": code_of(AT)}, commands.SelectToken(AT)),
        ({"do": "token", "token": None}, commands.ClearSelection()),
        (
            {"do": "cell", "looks": code_of(LOOKS), "at": code_of(AT)},
            commands.SelectCell(LOOKS, AT),
        ),
        ({"do": "map", "layer": 2, "head": 3}, commands.SelectMap(2, 3)),
    ],
)
def test_what_a_drawing_sends_says_what_is_meant(sent, command):
    assert command_of({"triple": ["Beijing", "is_a", "City"], **sent}) == command


def test_the_browser_says_why_as_python_does():
    graph = KnowledgeGraph(
        [Triple("Tim Cook", "CEO", "Apple"), Triple("Beijing", "capital", "China"), CITY]
    )
    trees = grow_trees([("Tim Cook and Beijing, Tim Cook {a}",)], graph, InjectionOptions())
    flat = flatten(trees, Words(special=True))[0]
    for visible in ("tree", "all"):
        ablation, places = Ablation(visible=visible), range(len(flat))
        cells = [(i, j) for i in places for j in places]
        data = in_browser(flat, places, ablation)
        each = "(cells, tokens, data) => cells.map((cell) => $why.sayWhy(cell, tokens, data))"
        assert in_node("why", each, cells, flat.tokens, data) == [
            why(flat, *cell, ablation) for cell in cells
        ]


def test_cells_are_unpacked_and_the_largest_of_a_row_are_found():
    random = np.random.default_rng(3)
    shares = random.random((6, 6)) / 3
    fine = np.round(shares / shares.max() * 65_000).astype("<u2")
    view = {"n": 6, "low": 0, "high": float(shares.max()), "categorical": False}
    view["cells"] = b64encode(fine.tobytes()).decode()
    each = """(view) => {
        const { shares } = $layout.unpacked(view);
        return [[...shares], [...$layout.heldByLarger(view, shares)]];
    }"""
    found, held = map(np.array, in_node("layout", each, view))
    assert found == pytest.approx(shares.ravel(), abs=1e-4)
    for row, own in zip(fine.astype(int), held.reshape(6, 6), strict=True):
        for value, share in zip(row, own, strict=True):
            assert share == 100 * row[row > value].sum() // row.sum()


def test_a_matrix_keeps_its_size_and_names_whole_mentions_where_there_is_no_room():
    fitted = "(...given) => $layout.fitted(...given)"
    room = {"width": 590, "height": 900, "above": 347, "letters": 1}
    assert in_node("layout", fitted, 17, 60, room, 0) == {"cell": 26, "left": 76, "top": 76}
    large = in_node("layout", fitted, 300, 60, room, 0)
    assert large["cell"] == 3 and in_node("layout", fitted, 300, 60, room, "fit")["cell"] < 2
    view = {"n": 5, "tokens": ["[CLS]", "Tim", "Cook", "is", "[SEP]"], "groups": [0, 1, 1, 0, 0]}
    runs = "(view) => $layout.runs(view, 20)"
    assert in_node("layout", runs, view) == [[0.5, "[CLS]"], [2, "Tim Cook"], [4.5, "[SEP]"]]
    assert in_node("layout", "(x) => $layout.together(x)", [1, 2, 5]) == [[1, 2], [5, 5]]


def test_colours_are_mixed_between_their_stops():
    stops = [[0, 0, 0], [100, 200, 50], [200, 200, 250]]
    mixed = "(stops, at) => at.map((x) => $colours.mix(stops, x))"
    found = in_node("colours", mixed, stops, [0, 0.25, 0.5, 1])
    assert found == [[0, 0, 0], [50, 100, 25], [100, 200, 50], [200, 200, 250]]


@pytest.mark.parametrize(
    ("categorical", "said"), [(True, ["trunk", "hidden"]), (False, ["hidden"])]
)
def test_the_kinds_of_cell_that_occur_are_named(categorical, said):
    names = {"0": "trunk", "1": "branch", "255": "hidden"}
    view = {"names": names, "categorical": categorical}
    found = in_node("paint", "(m) => $paint.kinds(m)", {"view": view, "codes": [255, 0, 0]})
    assert [name for _, name in found] == said
