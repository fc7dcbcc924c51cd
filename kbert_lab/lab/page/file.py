"""A page as one file: a scene before and now, and what each switch of its triples makes of it.

The file works with the network off, and draws as the Lab does. It holds the Lab's views of the
scene, one for each set of triples that can be off. Its only script shows them; the file's policy
names that by its hash. Texts of people and files are escaped.
"""

import base64
import hashlib
import json
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import combinations, islice
from math import comb
from typing import Any

import numpy as np

from kbert_core.kbert.flat_tree import FlatTree
from kbert_core.kbert.kbert import KBertTrace
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.triple import Triple
from kbert_lab.lab.drawings import bundle, source
from kbert_lab.lab.models import ModelInfo
from kbert_lab.lab.scene import Scene
from kbert_lab.lab.selection import Marks
from kbert_lab.lab.texts import clauses, language, t
from kbert_lab.lab.views import matrix, prediction
from kbert_lab.lab.views.html import CSS, escape
from kbert_lab.lab.views.shared import edits_html, how_it_is_read, model_name
from kbert_lab.lab.views.tree import summary, tree_html, tree_view
from kbert_lab.lab.views.why import in_browser, share_of_layers, visible_in

BAR = 60  # pixels of the page above a matrix that is scrolled to
MOST_SETS = 32  # of triples off
MOST_CELLS = 1_000_000  # of all matrices; 0.2 to 4 MB


@dataclass(frozen=True)
class Side:
    """A scene as it was run."""

    name: str  # what it is called
    scene: Scene  # what was read
    graph: KnowledgeGraph  # with the edits made
    trace: KBertTrace  # of the scene
    # makes the map that the page shows, (N, N); None without a model
    attention: Callable[[], np.ndarray] | None = None


@dataclass(frozen=True)
class Page:
    """What is on the page."""

    now: Side  # the scene
    without: Callable[[Sequence[Triple]], Side]  # runs it with some of its triples off
    before: Side | None = None  # the scene compared with, where that could be run
    info: ModelInfo | None = None  # the model; None without one
    task: str = ""  # what the task is called
    window: int = 0  # which row, where a long text was read in windows
    map: str = ""  # which attention is shown, in words
    hung: bool = True  # whether the tree marks what has changed

    def row(self, side: Side) -> FlatTree:
        """The row of a side that is shown."""
        return side.trace.rows[min(self.window, len(side.trace.rows) - 1)]

    @property
    def same(self) -> Side | None:
        """What it is compared with, where that is of the same text."""
        here = self.before and matrix.row_of(self.before.trace, self.window, self.row(self.now))
        return self.before if here is not None else None


def page_html(page: Page) -> bytes:
    """Write the page."""
    scene, was = page.now.scene, page.same
    states = [_state(page, side, off) for off, side in _sides(page)]
    before = _state(page, was) if was is not None else None
    when = _choice("now", page.now) + _choice("before", was) if was is not None else ""
    text = scene.sentences[0]
    title = f"{text if len(text) <= 40 else text[:39] + '…'} · {t('K-BERT Lab')}"
    body = "".join(f'<p class="kb-sentence">{escape(text)}</p>' for text in scene.sentences)
    body += f'<div class="kb-when">{when}</div>' if when else ""
    for name, place in (
        (t("Prediction"), '<div id="prediction"></div>'),
        (t("Sentence tree"), '<div id="tree"></div><p class="kb-said" id="summary"></p>'),
        (t("Visible matrix"), MATRIX),
        *([(f"{t('Attention')}: {page.map}", MATRIX)] if page.now.attention else []),
        (t("How it was read"), _facts(page)),
        *([(t("Edits to the graph"), edits_html(scene.edits))] if scene.edits else []),
    ):
        body += f"<h2>{escape(name)}</h2>{place}"
    data = json.dumps({"states": states, "before": before}, ensure_ascii=False)
    data = data.replace("<", "\\u003c")
    script = f"{bundle('kept')}$kept.draw(document);"
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{allowed}'"
    style = f"<style>{source('export.css')}.kb-matrix {{{source('matrix.css')}}}</style>"
    about = t(
        "What a language model makes of a text with injected knowledge (K-BERT). This file "
        "contains everything it shows, and loads nothing from the network."
    )
    return (
        f'<!doctype html>\n<html lang="{language()}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n{CSS}{style}</head>\n<body>\n"
        f'<h1>{escape(t("K-BERT Lab"))}</h1><p class="kb-said">{escape(about)}</p>{body}\n'
        f'<script type="application/json">{data}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    ).encode("utf-8", "replace")


MATRIX = '<div class="kb-matrix"><div class="root"></div></div>'


def _sides(page: Page) -> Iterator[tuple[Sequence[Triple], Side]]:
    """The scene as it is, with each triple off, and with several, where all such sets have room."""
    row = page.row(page.now)
    used = [*dict.fromkeys(placed.branch.triple for placed in row.branches)]
    room = min(MOST_SETS, max(2, MOST_CELLS // len(row) ** 2))
    for count in range(len(used) + 1):
        if count > 1 and comb(len(used), count) > room:
            return
        for off in islice(combinations(used, count), room):
            room -= 1
            yield off, page.without(off) if off else page.now


def _state(page: Page, side: Side, off: Sequence[Triple] = ()) -> Mapping[str, Any]:
    """What the page shows of a side; of the scene with triples off, these are marked."""
    row, trace, was = page.row(side), side.trace, page.same
    earlier = page.row(page.now) if off else None
    if side is page.now and was is not None and page.hung:
        earlier = page.row(was)
    tree = tree_html(tree_view(trace, page.window, earlier), Marks(), off)
    visible = matrix.visible_view(row, side.scene.ablation, share_of_layers(trace, page.window))
    maps = [{**visible.data(), "why": in_browser(row, range(len(row)), side.scene.ablation)}]
    if side.attention is not None:
        seen = visible_in(trace, page.window)
        maps.append(matrix.attention_view(row, side.attention(), seen).data())
    return {
        "off": [[triple.head, triple.relation, triple.tail] for triple in off],
        "prediction": _prediction(page, side),
        "tree": tree,
        "summary": summary(row, trace.ablation),
        "maps": [{**own, "above": BAR} for own in maps],
    }


def _prediction(page: Page, side: Side) -> str:
    now, was = side.trace.prediction, page.same
    if now is None or page.info is None:
        return f'<p class="kb-said">{escape(t("There is no prediction."))}</p>'
    old = was.trace.prediction if was is not None and side is not was else None
    sides = [prediction.Side(t("Before" if side is was else "Now"), side.name, now, page.info)]
    if was is not None and type(old) is type(now):
        sides.insert(0, prediction.Side(t("Before"), was.name, old, page.info))
    said = prediction.headline(side.scene.sentences, page.info, now, old if sides[1:] else None)
    return f"<p>{escape(said)}</p>" + prediction.drawn(side.scene.sentences, sides)


def _choice(when: str, side: Side) -> str:
    checked = " checked" if when == "now" else ""
    head = t("Now" if when == "now" else "Before")
    return (
        f'<label><input type="radio" name="when" id="kb-{when}"{checked}> '
        f"{escape(head)}: {escape(side.name)}</label>"
    )


def _facts(page: Page) -> str:
    scene, count = page.now.scene, f"{len(page.now.graph):,}"
    packages = ("kbert-lab", "torch", "transformers")
    versions = [f"{name} {version(name)}" for name in packages]
    facts = [
        (t("Task"), page.task),
        (t("Model"), page.info.name if page.info else model_name(scene.model)),
        (t("Knowledge graph"), t("{name}, {count} triples", name=scene.graph.name, count=count)),
        (t("Fingerprint"), scene.graph.fingerprint),
        (t("Injection"), clauses(how_it_is_read(scene))),
        (t("Versions"), ", ".join([*versions, f"Python {platform.python_version()}"])),
    ]
    return f"<dl>{''.join(f'<dt>{escape(k)}</dt><dd>{escape(v)}</dd>' for k, v in facts)}</dl>"
