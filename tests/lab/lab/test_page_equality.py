"""The page's scripts read texts as Python does: the same rows, scores and entities."""

import json
import random
import shutil
import subprocess
from itertools import chain
from pathlib import Path

import pytest
import torch

from kbert_core import Pipeline, load_graph
from kbert_lab.lab.examples import EXAMPLES
from kbert_lab.lab.page.build import SCRIPTS
from kbert_lab.lab.page.export import export_model, tables_js

TEXTS, SCORED = 2000, 60
ANSWERING = Path(__file__).with_name("page_rows.mjs")
CHARACTERS = "患者因有的在行检查未见，。、！？3天前abc-10%éß（）“”"
WORDS = "the patient with and was given no of for 2.5 mg/day type-2 cats boxes ies diseases Drugs's"
ODD = "😀👍🏽\u0301\u200b\u00ad…—·・①㎎ﬁİıſ臺灣後裡発ключΩ\t\u3000\u00a0한글ไทย\U00020000"
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="Node.js is not installed")
chance = random.Random(7)


def wide(name):
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in name)


SPELLINGS = (
    str,
    str,
    str.upper,
    wide,
    lambda name: f"{name}s",
    lambda name: name.replace(" ", chance.choice(["-", "  ", "\u3000", ""])),
    lambda name: name[:2] + chance.choice(" -·") + name[2:],
    lambda name: name.replace("镜", "鏡").replace("药", "藥").replace("炎", "ﾂ炎"),
)


def made_of(graph, words, between):
    """Texts of a graph's names in other spellings, common words, and odd characters."""
    names = sorted({name for triple in graph for name in (triple.head, triple.tail)})
    kinds = (
        lambda: chance.choice(SPELLINGS)(chance.choice(names)),
        lambda: chance.choice(words),
        lambda: chance.choice(ODD),
    )
    while True:
        some = chance.choices(kinds, (4, 5, 1), k=chance.randint(1, 7))
        yield chance.choice(between).join(kind() for kind in some)


@pytest.fixture(scope="module", params=["gastroscopy", "aspirin"])
def example(request):
    return next(one for one in EXAMPLES if one.key == request.param)


@pytest.fixture(scope="module")
def pipeline(example):
    return Pipeline.from_pretrained(f"models/{example.model}", device="cpu")


@pytest.fixture(scope="module")
def graph(example):
    return load_graph(f"demo_kgs/{example.graph}.spo")


def read_by_scripts(folder, pipeline, graph, texts, *, bits, scored):
    export_model(pipeline, folder, bits)
    made = {"tables.js": tables_js(), "package.json": '{"type": "module"}'}
    for name, text in {**SCRIPTS, **made}.items():
        (folder / name).write_text(text, "utf-8")
    triples = [[triple.head, triple.relation, triple.tail] for triple in graph]
    asked = json.dumps({"triples": triples, "texts": texts, "scored": scored})
    run = subprocess.run(
        [NODE, ANSWERING, folder], input=asked, text=True, capture_output=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def spans(prediction):
    return [[own.start, own.end, own.label] for own in prediction.spans]


def test_scripts_read_rows_and_give_scores_as_python_does(example, pipeline, graph, tmp_path):
    english = example.language == "English"
    words, between = (WORDS.split(), ["", " ", " "]) if english else (CHARACTERS, ["", " "])
    shipped = [text for one in EXAMPLES for text in one.sentences]
    generated = made_of(graph, words, between)
    texts = [*shipped, *(next(generated) for _ in range(TEXTS - len(shipped)))]
    answers = read_by_scripts(tmp_path, pipeline, graph, texts, bits=32, scored=SCORED)
    for reading, answer in zip(pipeline.readings(texts, graph=graph), answers, strict=True):
        row = reading.rows[0]
        codes = row.input_ids, row.soft_positions, row.branch_ids, row.anchor_ids, row.tokens
        assert answer["row"] == list(codes), reading.sentences
    for text, answer in zip(texts[:SCORED], answers, strict=False):
        trace = pipeline(text, graph=graph)
        parts = trace.reading.rows[0].trunk_parts
        places = list(chain.from_iterable(range(part.start, part.end) for part in parts))
        scores = torch.tensor(answer["scores"]).view(len(answer["row"][0]), -1)[places]
        assert torch.allclose(scores, trace.logits_on_text(), atol=1e-3), text
        assert answer["entities"] == spans(trace.prediction), text


def test_eight_bits_find_the_entities_of_the_example_texts(example, pipeline, graph, tmp_path):
    folder = Path("demo_kgs/example_data")
    if example.language == "English":
        files = [folder / "medical_ner_en.tsv"]
    else:
        files = sorted((folder / "medical_ner").glob("*.tsv"))
    lines = [line.split("\t")[0] for f in files for line in f.read_text("utf-8").splitlines()[1:]]
    texts = [text if example.language == "English" else text.replace(" ", "") for text in lines]
    texts += [s for one in EXAMPLES if one.language == example.language for s in one.sentences]
    answers = read_by_scripts(tmp_path, pipeline, graph, texts, bits=8, scored=len(texts))
    exact = pipeline.predict(texts, graph=graph)
    same = [a["entities"] == spans(p) for a, p in zip(answers, exact, strict=True)]
    assert sum(same) >= 0.995 * len(texts)
