"""What is taken away as a file: the Lab's page, a graph, a log. No streamlit.

The page is one file of HTML that works with the network off. It draws as the Lab does. Between
before and now CSS switches; the only script is that of the app's own tree and matrix, which the
file's policy names by its hash. Texts of people and files are escaped.
"""

import base64
import hashlib
import json
import platform
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from kbert_core import KBertTrace, KnowledgeGraph
from kbert_core.kbert.flat_tree import FlatTree
from kbert_core.kbert.sentence_tree import passed_over
from kbert_core.knowledge.io.write import write_triples
from kbert_core.tasks import NerPrediction
from kbert_lab.lab.drawings import bundle, source
from kbert_lab.lab.models import ModelInfo
from kbert_lab.lab.scene import Scene
from kbert_lab.lab.selection import Marks
from kbert_lab.lab.texts import clauses, language, t
from kbert_lab.lab.views import interventions, matrix, prediction
from kbert_lab.lab.views.html import escape, plain, table_html
from kbert_lab.lab.views.knowledge import triple_rows
from kbert_lab.lab.views.matrix import MatrixView, row_of
from kbert_lab.lab.views.names import name_lines
from kbert_lab.lab.views.shared import edits_html, how_it_is_read, model_name
from kbert_lab.lab.views.styles import CSS
from kbert_lab.lab.views.tree import summary, tree_html, tree_view
from kbert_lab.lab.views.why import share_of_layers, visible_in

FORMATS = (".spo", ".tsv", ".csv", ".jsonl", ".nt", ".ttl")
BAR = 60  # pixels of the page above a matrix that is scrolled to
MOST_TRIPLES = 2_000_000  # in the app; the command line writes any number


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
    before: Side | None = None  # the scene compared with, where that could be run
    info: ModelInfo | None = None  # the model; None without one
    task: str = ""  # what the task is called
    window: int = 0  # which row, where a long text was read in windows
    map: str = ""  # which attention is shown, in words
    hung: bool = True  # whether the tree marks what has changed

    @property
    def same(self) -> Side | None:
        """What it is compared with, where that is of the same text."""
        row = self.now.trace.rows[self.window]
        here = self.before is not None and row_of(self.before.trace, self.window, row) is not None
        return self.before if here else None

    @property
    def earlier(self) -> FlatTree | None:
        """The row that the tree marks its changes against."""
        return self.same.trace.rows[self.window] if self.same is not None and self.hung else None


def page_html(page: Page) -> bytes:
    """Write the page."""
    scene, was = page.now.scene, page.same
    sections = [
        ("", "".join(f'<p class="kb-sentence">{escape(text)}</p>' for text in scene.sentences)),
        (t("How it was read"), _facts(page)),
        (
            t("Edits to the graph"),
            edits_html(scene.edits) if scene.edits else _said(t("The graph was not edited.")),
        ),
    ]
    body = _titled(sections)
    if was is not None:
        body += f'<div class="kb-when">{_choice("now", page.now)}{_choice("before", was)}</div>'
        body += f'<div class="kb-before">{_titled(_side(page, was, None))}</div>'
    body += f'<div class="kb-now">{_titled(_side(page, page.now, was))}</div>'
    versions = [(name, version(name)) for name in ("kbert-lab", "torch", "transformers")]
    versions.append(("Python", platform.python_version()))
    body += _titled([(t("Versions"), _definitions(versions))])
    script = f"{bundle('kept')}$kept.draw(document);"
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{allowed}'"
    text = scene.sentences[0]
    title = f"{text if len(text) <= 40 else text[:39] + '…'} · {t('K-BERT Lab')}"
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
        f"<h1>{escape(t('K-BERT Lab'))}</h1>{_said(about)}{body}\n"
        f"<script>{script}</script>\n</body>\n</html>\n"
    ).encode("utf-8", "replace")


def _side(page: Page, side: Side, was: Side | None) -> list[tuple[str, str]]:
    """A scene's prediction, triples, tree and matrices, beside what was before."""
    row, trace, scene = side.trace.rows[page.window], side.trace, side.scene
    earlier = page.earlier if was is not None else None
    over = passed_over(trace.tree, side.graph, scene.options.names)
    lines = [summary(row, trace.ablation), *name_lines(trace.tree, over)]
    made = [interventions.describe(one, row) for one in scene.interventions]
    visible = _visible(page, side)
    group = "now" if side is page.now else "before"
    tree = tree_html(tree_view(trace, page.window, earlier), Marks())
    tree = f'<div class="kb-tree-root">{tree}</div>'
    tree = f'<div class="kb-linked" data-group="{group}">{tree}</div>'
    sections = [
        (t("Prediction"), _prediction(page, side, was)),
        (t("Knowledge for this sentence"), _triples(side, was)),
        (t("Sentence tree"), tree + _said(*lines)),
        (t("Visible matrix"), _matrix(visible, group) + _said(*made)),
    ]
    if side.attention is not None:
        title = f"{t('Attention')}: {page.map}"
        sections.append((title, _matrix(_attention(page, side), group)))
    return sections


def _visible(page: Page, side: Side) -> MatrixView:
    share = share_of_layers(side.trace, page.window)
    return matrix.visible_view(side.trace.rows[page.window], side.scene.ablation, share)


def _attention(page: Page, side: Side) -> MatrixView:
    assert side.attention is not None
    seen = visible_in(side.trace, page.window)
    return matrix.attention_view(side.trace.rows[page.window], side.attention(), seen)


def _choice(when: str, side: Side) -> str:
    checked = " checked" if when == "now" else ""
    head = t("Now" if when == "now" else "Before")
    return (
        f'<label><input type="radio" name="when" id="kb-{when}"{checked}> '
        f"{escape(head)}: {escape(side.name)}</label>"
    )


def _titled(sections: Sequence[tuple[str, str]]) -> str:
    return "".join((f"<h2>{escape(name)}</h2>" if name else "") + html for name, html in sections)


def _said(*texts: str) -> str:
    return "".join(f'<p class="kb-said">{escape(text)}</p>' for text in texts)


def _definitions(facts: Sequence[tuple[str, str]]) -> str:
    return f"<dl>{''.join(f'<dt>{escape(k)}</dt><dd>{escape(v)}</dd>' for k, v in facts)}</dl>"


def _facts(page: Page) -> str:
    scene = page.now.scene
    count = f"{len(page.now.graph):,}"
    facts = [
        (t("Task"), page.task),
        (t("Model"), page.info.name if page.info else model_name(scene.model)),
        (t("Knowledge graph"), t("{name}, {count} triples", name=scene.graph.name, count=count)),
        (t("Fingerprint"), scene.graph.fingerprint),
        (t("Injection"), clauses(how_it_is_read(scene))),
    ]
    return _definitions(facts)


def _prediction(page: Page, side: Side, before: Side | None) -> str:
    now = side.trace.prediction
    if now is None or page.info is None:
        return _said(t("There is no prediction."))
    was = before.trace.prediction if before is not None else None
    was = was if type(was) is type(now) else None
    names = (before.name if before is not None else "", side.name)
    texts, sides = side.scene.sentences, prediction.before_and_now(page.info, now, was, names)
    said = prediction.headline(texts, page.info, now, was)
    html = prediction.drawn(texts, sides)
    lines = [said] if said else []
    if before is not None and was and not isinstance(now, NerPrediction):
        lines.append(t("Compared with: {name}.", name=before.name))
    if isinstance(now, NerPrediction):
        found = prediction.changes(texts[0], was, now)
        html += prediction.changes_html(found, compared=was is not None)
    return _said(*lines) + html


def _triples(side: Side, was: Side | None) -> str:
    rows = triple_rows(side.trace, side.graph, was.trace if was is not None else None)
    if not rows:
        return _said(
            t(
                "The sentence names no entity of this graph, so it is read as plain BERT would "
                "read it."
            )
        )
    heads = (t("head"), t("relation"), t("tail"), t("in the tree?"))
    parts = ((r.triple.head, r.triple.relation, r.triple.tail, r.state) for r in rows)
    return table_html(heads, ([plain(x).replace("␣", " ") for x in row] for row in parts))


def _matrix(view: MatrixView, group: str) -> str:
    """A matrix that the script draws, with the data that it draws."""
    data = {**view.data(), "group": group, "above": BAR}
    data["texts"] = {**data["texts"], "hint": ""}  # type: ignore[dict-item]
    plain = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    return (
        f'<div class="kb-matrix"><div class="root"></div>'
        f'<script type="application/json">{plain}</script></div>'
    )


# Graphs and logs


def graph_as(graph: KnowledgeGraph, ending: str, *, switched_off: bool = False) -> bytes:
    """Write a graph in the format of a file name's ending.

    Args:
        ending: one of ``FORMATS``.
        switched_off: also what is switched off; a file can't say so.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"graph{ending}"
        write_triples((x for x in graph if switched_off or graph.is_on(x)), path)
        return path.read_bytes()


def lines_of(rows: Iterable[Mapping[str, object]]) -> bytes:
    """Write plain data as JSON Lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
