"""Pictures, numbers, the page and the script: what is kept is what was shown."""

import csv
import io
import json
import re
import struct
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from app import export, export_page
from app.export import Kept
from app.export_python import Source, as_python
from app.models import ModelInfo
from app.scene import NO_GRAPH, GraphRef, Scene
from app.texts import speaking
from app.view_models.figures import Bars, bars_picture, matrix_picture
from app.view_models.matrix import (
    attention_view,
    visible_cells,
    visible_difference,
    visible_view,
)
from app.view_models.sheet import sheet
from app.view_models.tags_picture import pieces
from app.view_models.tree_picture import _lines
from kbert_core import (
    Ablation,
    Card,
    InjectionOptions,
    KnowledgeGraph,
    Pipeline,
    Triple,
    load_graph,
)
from kbert_core.kbert.interventions import Intervention, Tokens, intervene
from kbert_core.kbert.visible import FULL
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.surface_forms import NameRules
from kbert_core.tasks import ClassPrediction, Filling, MaskPrediction, Span

HOSTILE = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "=1+1", "$x_2$ 患者\\")
TEXT = "Tim Cook is visiting Beijing now"
CAPITAL = Triple("Beijing", "capital", "China")
PNG = b"\x89PNG\r\n\x1a\n"


def hostile_graph():
    names = [*HOSTILE, "Tim Cook"]
    triples = [Triple("Tim Cook", relation, tail) for relation in HOSTILE for tail in HOSTILE]
    return KnowledgeGraph([*triples, *(Triple(n, "is", "b") for n in names)], name=HOSTILE[1])


@pytest.fixture
def hostile(run):
    """A page on which whatever people give is hostile; without a model."""
    graph = hostile_graph()
    text = f"Tim Cook {' '.join(HOSTILE)} now"
    options = InjectionOptions(6)
    edits = (Edit("add", Triple(HOSTILE[0], HOSTILE[1], HOSTILE[0])),)
    scene = Scene((text,), "words", GraphRef("f", graph.name), edits, options)
    before = run(graph.remove(next(iter(graph))), text, max_triples=6)
    trace = run(graph, text, max_triples=6)
    return Kept(scene, graph, trace, before, ("<i>before", "<i>now"), None)


@pytest.fixture
def plain(graph, run):
    scene = Scene((TEXT,), "words", GraphRef("f", "figure 2"))
    return Kept(scene, graph, run(graph), run(KnowledgeGraph()), ("before", "now"), None)


def with_prediction(kept, now, was=None, **card):
    before = replace(kept.trace, prediction=was)
    info = ModelInfo("models/x", "<b>x", Card(**card))
    return replace(kept, trace=replace(kept.trace, prediction=now), before=before, info=info)


class Reader(HTMLParser):
    """Elements, what they ask for, and the text of a page."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.asked, self.handlers, self.text = [], [], [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.asked += [v for k, v in attrs if k in ("src", "href", "action", "data", "srcset")]

    def handle_data(self, data):
        self.text += data


# Pictures


def size_of(png):
    return struct.unpack(">II", png[16:24])


def pictures(kept, form):
    count = len(kept.row)
    weights = np.full((count, count), 1 / count)
    return {
        "tree": export.tree_as(kept, form),
        "visible": export.visible_as(kept, form),
        "attention": export.attention_as(kept, weights, "layer 1", form),
    }


def test_pictures_are_svg_and_png_of_some_size(plain):
    for png in pictures(plain, "png").values():
        assert png.startswith(PNG)
        assert min(size_of(png)) > 300
    for svg in pictures(plain, "svg").values():
        root = ElementTree.fromstring(svg)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"


def test_pictures_of_the_same_page_are_the_same(plain):
    assert pictures(plain, "svg") == pictures(plain, "svg")


def test_svg_holds_no_text_as_text_no_script_and_no_address_outside(hostile):
    for svg in pictures(hostile, "svg").values():
        root = ElementTree.fromstring(svg)  # well-formed, whatever the tokens
        tags = {element.tag.split("}")[-1] for element in root.iter()}
        assert not tags & {"script", "text", "foreignObject", "a"}
        for element in root.iter():
            for name, value in element.attrib.items():
                if name.endswith("href"):
                    assert value.startswith(("#", "data:image/png;base64,"))
                assert not name.lower().startswith("on")


def test_tree_picture_shows_what_was_added_and_what_went(plain, run, graph):
    gone = replace(plain, before=run(graph), trace=run(graph.remove(CAPITAL)))
    drawn = export.tree_as(gone, "svg")
    assert drawn != export.tree_as(replace(gone, before=None), "svg")
    assert drawn != export.tree_as(replace(gone, hung=False), "svg")


@pytest.mark.parametrize("width", range(120, 700, 20))
def test_no_line_of_a_tree_picture_is_sep_alone(plain, width):
    nodes = plain.tree.nodes
    with sheet(width) as page:
        lines = list(_lines(page, plain.tree, nodes))
    assert [node for line in lines for node in line] == list(nodes)
    texts = [[token.text for node in line for token in node.tokens] for line in lines]
    assert ["[SEP]"] not in texts


def test_matrix_picture_colours_every_cell_and_leaves_hidden_ones_open(plain):
    view = visible_view(plain.row, FULL)
    one = matrix_picture(view, "svg", title="x")
    everything = matrix_picture(visible_view(plain.row, Ablation(visible="all")), "svg", title="x")
    assert one != everything
    images = re.findall(rb'xlink:href="data:image/png;base64,([^"]+)"', one.replace(b"\n", b""))
    assert len(images) == 1, "the cells are one picture, not a shape each"


@pytest.mark.parametrize("count", [1, 2, 109, 512])
def test_matrix_picture_takes_any_number_of_tokens(run, count):
    row = run(KnowledgeGraph(), " ".join(["word"] * count)).rows[0]
    weights = np.eye(len(row))
    view = attention_view(row, weights, visible_cells(row, FULL))
    assert matrix_picture(view, "png", title="x").startswith(PNG)


def test_matrix_picture_of_a_difference_has_its_own_legend(plain):
    rows = (plain.before.rows[0], plain.row)
    seen = (visible_cells(rows[0], FULL), visible_cells(rows[1], FULL))
    view = visible_difference(*rows, seen)
    assert matrix_picture(view, "svg", title="x")


def intervened(kept, *made, layers=2):
    visible = intervene(kept.trace.visible, kept.trace.rows, made, layers).layers
    reading = kept.trace.reading
    reading = replace(reading, config=replace(reading.config, interventions=made))
    trace = replace(kept.trace, reading=reading, visible_layers=visible, visible=visible[-1])
    return replace(kept, trace=trace, scene=replace(kept.scene, interventions=made))


def test_an_intervention_is_in_the_pictures_the_numbers_and_the_page(plain):
    everything, nothing = Tokens("all"), Tokens("branches")
    opened = intervened(plain, Intervention("open", everything, everything))
    assert export.visible_of(opened).all() and not export.visible_of(plain).all()
    first = intervened(plain, Intervention("block", Tokens("trunk"), nothing, layers=(1,)))
    assert (export.visible_of(first) == export.visible_of(plain)).all(), "open in layer 2"
    found = np.load(io.BytesIO(export.arrays_npz(first, None)))
    assert found["visible_layers"].shape == (2, len(plain.row), len(plain.row))
    assert not (found["visible_layers"][0] == found["visible_layers"][1]).all()
    assert export.visible_as(opened, "svg") != export.visible_as(plain, "svg")
    weights = np.full((len(plain.row),) * 2, 0.1)
    pictures = {export.attention_as(page, weights, "x", "svg") for page in (plain, opened, first)}
    assert len(pictures) == 2
    assert "layer 1" in Reader(page_of(first)).text
    assert "interventions" in script_of(first.scene, path="x", models=Path())


def test_bars_picture_takes_hostile_names_and_none_before():
    named = dict.fromkeys(HOSTILE, 0.25)
    for before in (None, {"other": 1.0}):
        svg = bars_picture([Bars(HOSTILE[0], named, before)], "svg", title=HOSTILE[3])
        assert ElementTree.fromstring(svg) is not None


def test_prediction_pictures_of_every_task(plain, checkpoints):
    reader = Pipeline.load(checkpoints["ner"])
    ner = [reader("患者有糖尿病史", decode=True).prediction for _ in range(2)]
    text = replace(plain.scene, sentences=("患者有糖尿病史",))
    tags = with_prediction(replace(plain, scene=text), *ner, task="ner")
    label = with_prediction(plain, *[ClassPrediction("a", {"a": 0.7, "<b>": 0.3})] * 2)
    mask = MaskPrediction((Filling(0, 6, (("词", 0.5), ("x", 0.1))),) * 2)
    for page in (tags, label, with_prediction(plain, mask), with_prediction(plain, mask, mask)):
        assert export.prediction_as(page, "png").startswith(PNG)
        assert ElementTree.fromstring(export.prediction_as(page, "svg")) is not None
    assert export.prediction_as(plain, "svg") == b""


def test_pieces_are_the_text_cut_at_its_spans():
    spans = (Span(3, 5, "B", "de", 0.5), Span(0, 2, "A", "ab", 0.5))
    cut = list(pieces("abcdef", spans))
    assert [piece.text for piece in cut] == ["ab", "c", "de", "f"]
    assert [piece.span and piece.span.label for piece in cut] == ["A", None, "B", None]


# Numbers


def table(data):
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"))))


def test_csv_names_tokens_by_what_they_are_and_what_they_read(plain):
    rows = table(export.square_csv(plain.row, export.visible_of(plain)))
    assert rows[0][3:] == plain.row.tokens
    assert [row[1] for row in rows[2:]] == plain.row.tokens
    assert rows[1][3:8] == [
        '["special", 0]',
        '["trunk", 0, 0]',
        '["trunk", 0, 1]',
        '["branch", 0, 0, ["Tim Cook", "CEO", "Apple"], 0]',
        '["branch", 0, 0, ["Tim Cook", "CEO", "Apple"], 1]',
    ]
    assert [row[0] for row in rows[2:]] == rows[1][3:]
    found = np.array([[int(x) for x in row[3:]] for row in rows[2:]], dtype=bool)
    assert (found == export.visible_of(plain)).all()
    assert [int(row[2]) for row in rows[2:]] == plain.row.soft_positions


def test_csv_runs_nothing_in_a_spreadsheet(run):
    graph = KnowledgeGraph([Triple("a", "=cmd()", "@x"), Triple("a", "+1", "-2")])
    kept = Kept(
        Scene(("=1+1 a -x +y @z",), "words", GraphRef("f", "g")),
        *(graph, run(graph, "=1+1 a -x +y @z"), None, ("", ""), None),
    )
    cells = [
        cell for row in table(export.square_csv(kept.row, export.visible_of(kept))) for cell in row
    ]
    assert not [cell for cell in cells if cell[:1] in "=+-@" and cell]
    assert "'=1+1" in cells and "'@x" in cells


def test_csv_of_attention_keeps_six_digits(plain):
    count = len(plain.row)
    weights = np.full((count, count), 1 / 3, dtype=np.float16)
    rows = table(export.square_csv(plain.row, weights))
    assert float(rows[2][3]) == pytest.approx(1 / 3, abs=1e-3)


def test_npz_opens_without_pickle_and_holds_the_row(plain):
    count = len(plain.row)
    maps = np.random.default_rng(0).random((2, 3, count, count)).astype(np.float16)
    found = np.load(io.BytesIO(export.arrays_npz(plain, maps)), allow_pickle=False)
    assert found["tokens"].tolist() == plain.row.tokens
    assert [json.loads(x)[0] for x in found["identities"]] == [x[0] for x in plain.row.identities]
    assert (found["attention"] == maps).all()
    assert (found["visible"] == plain.trace.visible[0].numpy()).all()
    for name in ("soft_positions", "branch_ids", "anchor_ids", "token_type_ids", "input_ids"):
        assert found[name].tolist() == getattr(plain.row, name)
    assert "attention" not in np.load(io.BytesIO(export.arrays_npz(plain, None)))


# The page


def page_of(kept, mean=None):
    return export_page.page_html(kept, mean, task="<u>task", script="print('<b>')").decode()


def test_page_holds_all_and_asks_for_nothing(hostile):
    count = len(hostile.row)
    page = page_of(hostile, np.full((count, count), 1 / count))
    found = Reader(page)
    assert not {"script", "iframe", "object", "embed", "link", "form", "base"} & {*found.tags}
    assert found.tags.count("img") == 2 and not found.handlers
    assert all(asked.startswith("data:image/svg+xml;base64,") for asked in found.asked)
    assert "default-src 'none'" in page and "url(" not in page and "@import" not in page
    for given in (*hostile.scene.sentences, "<u>task", "print('<b>')"):
        assert given in found.text
    for triple in hostile.trace.used:
        assert triple.tail in found.text


def test_page_tells_text_options_edits_graph_and_versions(plain):
    scene = replace(
        plain.scene,
        options=InjectionOptions(
            7, True, ("CEO",), not_relations=("x",), names=NameRules.of(["case"])
        ),
        ablation=Ablation("hard", "all"),
        edits=(Edit("switch_off", Triple("Tim Cook", "CEO", "Apple")),),
    )
    text = Reader(page_of(replace(plain, scene=scene))).text
    for wanted in (
        *(TEXT, "7 triples per mention, tail only", "only CEO", "without x", "English plural"),
        *("switched off (Tim Cook, CEO, Apple)", "figure 2", "hard positions", torch.__version__),
    ):
        assert wanted in text


def test_page_of_a_label_and_of_fillings(plain):
    now, was = (
        ClassPrediction("a", {"a": 0.7, "<b>": 0.3}),
        ClassPrediction("<b>", {"a": 0.1, "<b>": 0.9}),
    )
    found = Reader(page_of(with_prediction(plain, now, was)))
    assert "70.0 %" in found.text and "<b>" in found.text and "+60.0" in found.text
    mask = MaskPrediction((Filling(0, 6, (("<词>", 0.5),)),))
    assert "<词>" in Reader(page_of(with_prediction(plain, mask))).text


def test_page_speaks_the_language_it_was_asked_for_in(plain):
    with speaking("zh"):
        page = page_of(plain)
    assert '<html lang="zh">' in page and "可见矩阵" in page
    assert '<html lang="en">' in page_of(plain)


# As Python


def script_of(scene, before=None, *, path, models, decode=True):
    return as_python(
        *(scene, before),
        source_of=lambda ref: Source(str(path), sure=True),
        model_of=lambda name: str(models / name),
        decode=decode,
        longest=1024,
    )


def ran(script):
    space = {}
    exec(compile(script, "script", "exec"), space)
    return space


@pytest.fixture
def file(tmp_path):
    path = tmp_path / 'it\'s "mine".tsv'
    path.write_text(
        "患者\t有\t'糖\"尿病\\\n糖尿病\t类别\t疾病\n布洛芬\t治疗\t好转\n", encoding="utf-8"
    )
    return path


@pytest.mark.parametrize(
    "options",
    [
        InjectionOptions(),
        InjectionOptions(3, True, ("有", "类别"), names=NameRules.of(["case"])),
        InjectionOptions(5, strategy="rare", threshold=0.1, not_relations=("治疗",)),
    ],
)
@pytest.mark.parametrize("ablation", [FULL, Ablation("hard", "all")])
def test_python_script_makes_the_prediction_of_the_page(file, checkpoints, options, ablation):
    models = checkpoints["ner"].parent
    edits = (
        Edit("add", Triple("糖尿病", "症状", "a'b\"c\\n{x}"), index=0),
        Edit("replace", Triple("布洛芬", "治疗", "好转"), Triple("布洛芬", "类别", "治疗")),
        Edit("switch_off", Triple("糖尿病", "类别", "疾病")),
    )
    graph = load_graph(file)
    ref = GraphRef(graph.fingerprint, "g")
    text = "患者有糖尿病史，给予布洛芬口服"
    now = Scene((text,), "ner", ref, edits, options, ablation)
    before = replace(now, edits=edits[:1])
    space = ran(script_of(now, before, path=file, models=models))
    read = {"options": options, "ablation": ablation}
    pipeline = Pipeline.load(models / "ner")
    wanted = pipeline(text, graph=graph.apply(*edits), **read)
    assert space["trace"].prediction == wanted.prediction
    assert torch.equal(space["trace"].logits, wanted.logits)
    assert space["trace"].rows[0].identities == wanted.rows[0].identities
    seen = pipeline(text, graph=graph.apply(*edits), attentions=True, **read).attentions
    assert torch.equal(space["maps"], torch.stack([x[0] for x in seen]))
    earlier = pipeline(text, graph=graph.apply(*edits[:1]), **read)
    assert torch.equal(space["before"].logits, earlier.logits)


def test_python_script_of_two_texts_and_of_another_model_before(file, checkpoints):
    models = checkpoints["pair"].parent
    now = Scene(("a 'cat'", "two\ncats"), "pair", GraphRef("f", "g"))
    before = replace(now, sentences=("a cat",), model="classify", graph=NO_GRAPH)
    space = ran(script_of(now, before, path=file, models=models))
    graph = load_graph(file)
    pair = Pipeline.load(models / "pair")("a 'cat'", "two\ncats", graph=graph, options=now.options)
    one = Pipeline.load(models / "classify")("a cat", options=now.options)
    assert space["trace"].prediction == pair.prediction
    assert space["before"].prediction == one.prediction


def test_python_script_without_a_model_makes_the_tree_and_the_matrix(file, run, graph, tmp_path):
    scene = Scene((TEXT,), "words", GraphRef("f", "g"), (), InjectionOptions(1))
    path = tmp_path / "figure.spo"
    path.write_text("".join(f"{x.head}\t{x.relation}\t{x.tail}\n" for x in graph))
    space = ran(script_of(scene, replace(scene, graph=NO_GRAPH), path=path, models=tmp_path))
    wanted = run(graph, max_triples=1)
    assert space["trace"].tokens == wanted.rows[0].tokens
    assert space["before"].tokens == run(KnowledgeGraph()).rows[0].tokens


def test_python_script_blocks_and_opens_what_the_page_does(file, checkpoints, run, graph):
    models = checkpoints["ner"].parent
    triple = Triple("糖尿病", "类别", "疾病")
    made = (
        Intervention("block", Tokens("branch", 0, 3, triple), Tokens("trunk"), layers=(2,)),
        Intervention("open", Tokens("token", identity=("special", 0)), Tokens("branches")),
    )
    known = KnowledgeGraph([triple])
    file.write_text("糖尿病\t类别\t疾病\n", encoding="utf-8")
    ref = GraphRef(known.fingerprint, "g")
    now = Scene(("患者有糖尿病史",), "ner", ref, interventions=made)
    space = ran(script_of(now, now.without_interventions(), path=file, models=models))
    pipeline = Pipeline.load(models / "ner")
    read = {"graph": known, "options": now.options, "ablation": now.ablation}
    wanted = pipeline(*now.sentences, interventions=made, **read)
    assert torch.equal(space["trace"].logits, wanted.logits)
    assert torch.equal(space["before"].logits, pipeline(*now.sentences, **read).logits)
    assert not torch.equal(wanted.logits, space["before"].logits)
    bare = ran(script_of(replace(now, model="characters"), path=file, models=models))
    assert bare["visible"][0, 0].all(), "[CLS] was let to see every branch"


def test_python_script_without_a_mask_asks_for_no_prediction(file, checkpoints):
    models = checkpoints["mask"].parent
    scene = Scene(("no mask here",), "mask", GraphRef("f", "g"))
    space = ran(script_of(scene, path=file, models=models, decode=False))
    assert space["trace"].prediction is None


def test_python_script_of_a_graph_that_only_the_page_has_loads_it_as_edited(checkpoints):
    edits = (Edit("switch_off", Triple("a", "b", "c")),)
    scene = Scene(("x",), "ner", GraphRef("f", "mine"), edits)
    script = as_python(
        *(scene, replace(scene, edits=())),
        source_of=lambda ref: Source("mine.spo", edited=True),
        model_of=str,
        decode=True,
        longest=9,
    )
    assert "apply" not in script and "before" not in script
    assert "download it from the page" in script


@pytest.mark.parametrize("text", ['"""', "'''", "\\", "\u2028", "a\nb", "{x}", "# no", "\x00"])
def test_python_script_keeps_any_text_a_text(text):
    scene = Scene((text,), "words", NO_GRAPH)
    script = as_python(
        *(scene, None), source_of=lambda ref: Source(), model_of=str, decode=False, longest=9
    )
    line = next(line for line in script.split("\n") if line.startswith("text = "))
    assert ran(line)["text"] == [text]
