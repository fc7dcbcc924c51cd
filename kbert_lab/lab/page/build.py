"""Build the pages that need no server: ``python -m kbert_lab.lab.page.build DIR``.

Each language has a page with a scene: a shipped model, its demo graph, and example texts. What the
model says of the first text's own switches is stored with it, so that the first answers come before
the model does.
"""

import base64
import json
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any, get_args

from kbert_core.files import shipped
from kbert_core.kbert.flat_tree import CODES
from kbert_core.kbert.sentence_tree import grow_trees
from kbert_core.kbert.visible import FULL, Ablation, Positions, Visible
from kbert_core.knowledge import load_graph
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.pipeline import Pipeline
from kbert_lab.lab.drawings import needed, source
from kbert_lab.lab.examples import EXAMPLES, Example
from kbert_lab.lab.models import type_name
from kbert_lab.lab.page.export import export_model, tables_js
from kbert_lab.lab.scene import GraphRef, Scene
from kbert_lab.lab.share import Shared, to_link
from kbert_lab.lab.texts import N_, speaking, t
from kbert_lab.lab.views.html import escape
from kbert_lab.lab.views.matrix import CANVAS, CELLS
from kbert_lab.lab.views.start import flip_html, play_steps
from kbert_lab.lab.views.why import REASONS, SAID

SCENES = {"en": ("copd", "aspirin"), "zh": ("gastroscopy", "epilepsy", "clinical")}
PAGES = {"en": "index.html", "zh": "zh.html"}
HOMES = {"en": "../index.html", "zh": "../index.zh.html"}  # of the site
NAMES = {"en": "English", "zh": "中文"}
SCRIPTS_OF = {"en": "Latin", "zh": "Han"}
LAB = "http://localhost:8501/"  # where `kbert lab` opens the app
HERE = Path(__file__).parent
SCRIPTS = {path.name: path.read_text("utf-8") for path in sorted(HERE.glob("*.js"))}
TAILS = 6  # of a relation, the commonest, whose answers are stored

HTML = {  # what stands on the page
    "title": N_("K-BERT in your browser"),
    "about": N_("About K-BERT Lab"),
    "intro": N_(
        "A small K-BERT reads this sentence, with triples of a knowledge graph hung on the names "
        "in it. Switch a triple off, type another tail, or add your own, and see what becomes of "
        "the prediction. All of it runs in this page; nothing that you type leaves it."
    ),
    "begins": N_("The page begins. It needs JavaScript, and a web server that hands it out."),
    "sentence": N_("Sentence"),
    "tree": N_("Sentence tree"),
    "undo": N_("Undo"),
    "reset": N_("As it was"),
    "positions": N_("Positions"),
    "soft": N_("Soft positions"),
    "hard": N_("Hard positions"),
    "tree_visible": N_("Visible: along the tree"),
    "all_visible": N_("Everything visible"),
    "prediction": N_("Prediction"),
    "add": N_("Add triples"),
    "triple": N_("head, relation, tail"),
    "add_it": N_("Add"),
    "matrix": N_("Visible matrix"),
    "map": N_("What the matrix shows"),
    "visible": N_("Who may see whom"),
    "attention": N_("Attention, mean of all layers"),
    "open": N_("Open in the Lab"),
    "open_where": N_("In a K-BERT Lab that runs on this computer: kbert lab"),
    "caution": N_("A demonstration of knowledge injection. Not for medical decisions."),
}
TEXTS = {  # what the scripts say
    "before": N_("Before"),
    "now": N_("Now"),
    "nothing": N_("no entity"),
    "loading": N_("The model is coming: {share} % of {size} MB. What is stored is shown already."),
    "failed": N_(
        "The model can't be loaded. Load the page again, or use a newer browser. Tree and matrix "
        "work without it."
    ),
    "empty": N_("Type a sentence, or choose one above."),
    "long": N_("The sentence has {count} tokens, and this page reads up to {most}. Shorten it."),
    "script": N_(
        "The model doesn't read this script; it was trained on English texts. What it says here "
        "means little."
    ),
    "full": N_("Not every triple has room in this sentence. Shorten it to see them all."),
    "no_name": N_("No name of the graph is in this sentence. Add a triple about a word of it."),
    "there": N_("The graph has this triple already."),
    "many": N_(
        "{count} triples at once are too many for this page, which takes {most}. Use the Lab."
    ),
    "three": N_("A triple is a line of three parts: head, relation, tail, with commas or tabs."),
}
CHINESE_SCRIPT = N_(
    "The model doesn't read this script; it was trained on Chinese texts. What it says here means "
    "little."
)
TREE = {  # as in the Lab's own tree
    "trunk": N_("trunk"),
    "mention": N_("mention"),
    "branch": N_("branch"),
    "on": N_("Switch on {triple}"),
    "off": N_("Switch off {triple}"),
    "edit": N_("Change the tail of {triple}"),
    "is_on": N_("on"),
    "is_off": N_("off"),
    "details": N_("Details"),
    "large": N_("Large"),
    "tree": N_("Sentence tree; arrow keys walk over the tokens, Enter chooses one"),
}


def build(folder: Path) -> None:
    """Write the pages, their scripts and their scenes into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    drawings = {f"{name}.js": source(f"{name}.js") for name in needed("matrix", "play", "tree")}
    styles = [source("page.css"), source("start.css"), (HERE / "page.css").read_text("utf-8")]
    style = "".join([*styles, f".kb-matrix {{{source('matrix.css')}}}"])
    logo = shipped("app/logo.svg").read_text("utf-8")
    made = {"tables.js": tables_js(), "page.css": style, "logo.svg": logo}
    for name, text in {**drawings, **SCRIPTS, **made}.items():
        (folder / name).write_text(text, "utf-8")
    for language, keys in SCENES.items():
        examples = [next(one for one in EXAMPLES if one.key == key) for key in keys]
        pipeline = Pipeline.from_pretrained(shipped(f"models/{examples[0].model}"), device="cpu")
        export_model(pipeline, folder / language, 8)
        with speaking(language):
            scene = scene_of(pipeline, examples, language)
            (folder / PAGES[language]).write_text(page_of(language), "utf-8")
        written = json.dumps(scene, ensure_ascii=False)
        (folder / language / "scene.json").write_text(written, "utf-8")


def page_of(language: str) -> str:
    """The page itself."""
    (other,) = {*PAGES} - {language}
    texts = {name: escape(t(text)) for name, text in HTML.items()}
    names = {"other_page": PAGES[other], "other_name": NAMES[other], "home": HOMES[language]}
    template = (HERE / "page.html").read_text("utf-8")
    return template.format(language=language, other=other, **names, **texts)


def scene_of(pipeline: Pipeline, examples: Sequence[Example], language: str) -> dict[str, Any]:
    """All that a page says and knows, in the language that is spoken."""
    first = examples[0]
    graph = load_graph(shipped(f"demo_kgs/{first.graph}.spo"))
    options = replace(pipeline.config.options, keep_places=True)
    named = GraphRef(graph.fingerprint, graph.name)
    shared = Shared(Scene(first.sentences, first.model, named, options=options), "ner")
    texts = TEXTS | ({"script": CHINESE_SCRIPT} if language == "zh" else {})
    types = sorted({label[2:] for label in pipeline.labels.names if label != "O"})
    steps = play_steps(first)
    said = N_("{kind} matrix of {n} tokens; arrow keys move, Enter chooses a cell")
    return {
        "examples": [one.sentences[0] for one in examples],
        "triples": [[triple.head, triple.relation, triple.tail] for triple in graph],
        "script": SCRIPTS_OF[language],
        "lab": LAB,
        "shared": json.loads(unpacked_link(shared)),
        "types": {label: type_name(label) for label in types},
        "texts": _said(texts),
        "tree": _said(TREE),
        "matrix": {
            "cells": {str(code): t(name) for code, name in CELLS.items()},
            "texts": _said(CANVAS),
            "why": _said(REASONS | SAID),
            "label": t(said, kind=t("Visible"), n="{n}"),
        },
        "play": {
            "title": t("K-BERT in your browser"),
            "html": f'<div class="kb-small">{flip_html(first, "off")}</div>',
            "steps": steps,
            "seconds": 20,
            "turn": t("Your turn"),
            "skip": t("Skip"),
        },
        "answers": dict(answers(pipeline, graph, examples)),
    }


def _said(texts: dict[str, str]) -> dict[str, str]:
    return {name: t(text) for name, text in texts.items()}


def unpacked_link(shared: Shared) -> bytes:
    """The JSON that a link to the Lab packs."""
    value = to_link(shared)
    return zlib.decompress(base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)))


def answers(
    pipeline: Pipeline, graph: KnowledgeGraph, examples: Sequence[Example]
) -> Iterator[tuple[str, list[float]]]:
    """What the model says of the examples as they are, and of the first one's own switches.

    Yields:
        The row as the page names it, and the scores of its tokens.
    """
    for number, example in enumerate(examples):
        (text,) = example.sentences
        for changed, ablation in _switched(pipeline, graph, text, first=not number):
            options = replace(pipeline.config.options, keep_places=True)
            trace = pipeline(text, graph=changed, options=options, ablation=ablation)
            (row,) = trace.reading.rows
            ids, soft, branch, anchor, _ = (getattr(row, code) for code in CODES)
            codes = [",".join(map(str, code)) for code in (ids, soft, branch, anchor)]
            scores = trace.logits[0].flatten().tolist()
            key = ";".join([*codes, ablation.positions, ablation.visible])
            yield key, [round(score, 2) for score in scores]


def _switched(
    pipeline: Pipeline, graph: KnowledgeGraph, text: str, *, first: bool
) -> Iterator[tuple[KnowledgeGraph, Ablation]]:
    """A graph with each set of the text's triples off, and with their commonest other tails."""
    used = grow_trees([text], graph, pipeline.config.options)[0].used
    ways = [*product(get_args(Positions), get_args(Visible))] if first else [()]
    for count in range((len(used) if first else 1) + 1):
        for some in combinations(used, count):
            edited = graph.apply(*(Edit("switch_off", triple) for triple in some))
            yield from ((edited, Ablation(*way)) for way in ways)
    for triple in used if first else ():
        tails = Counter(one.tail for one in graph if one.relation == triple.relation)
        for tail, _ in tails.most_common(TAILS):
            new = replace(triple, tail=tail)
            if new not in graph:
                yield graph.apply(Edit("replace", triple, new)), FULL


if __name__ == "__main__":
    build(Path(sys.argv[1]))
