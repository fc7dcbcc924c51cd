"""A scene as one page of HTML that holds all it shows: no script, and nothing to fetch.

Whatever people or files gave is escaped where it is drawn; the page's own
policy forbids scripts and requests besides.
"""

import base64
import platform
from collections.abc import Sequence
from importlib.metadata import version

import numpy as np
import torch
import transformers

from app.export import Kept, attention_as, bars_of, visible_as
from app.texts import clauses, language, t
from app.view_models import interventions, prediction, tree
from app.view_models.html import escape, shown
from app.view_models.knowledge import triple_rows
from app.view_models.names import name_lines
from app.view_models.shared import edits_html, how_it_is_read, model_name
from app.view_models.styles import CSS
from app.view_models.tree import tree_html
from app.view_models.twins import now_and_before
from kbert_core.kbert.sentence_tree import passed_over
from kbert_core.tasks import ClassPrediction, NerPrediction

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
PAGE_CSS = """
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 "Source Sans", "Noto Sans", "Noto Sans CJK SC", "PingFang SC",
  "Microsoft YaHei", sans-serif; max-width: 1080px; margin: 0 auto; padding: 2rem 1.2rem 4rem;
  background: light-dark(#fff, #12171c); color: light-dark(#1d252c, #e4e9ed); }
h1 { font-size: 1.5rem; margin: 0 0 .2rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
.kb-said { color: light-dark(#5b6771, #a5b0b9); font-size: .88rem; margin: .3rem 0; }
.kb-sentence { font-size: 1.15rem; padding: .7rem .9rem; border-radius: 6px; margin: .6rem 0;
  background: light-dark(#f4f6f8, #1b2229); white-space: pre-wrap; overflow-wrap: anywhere; }
.kb-picture { display: block; max-width: 100%; height: auto; background: #fff; padding: 8px;
  border: 1px solid light-dark(#d9dfe4, #333d46); border-radius: 6px; box-sizing: border-box; }
pre { overflow-x: auto; padding: .8rem .9rem; border-radius: 6px; font-size: .82rem;
  background: light-dark(#f4f6f8, #1b2229); }
.kb-tree, .kb-scroll, .kb-line { max-height: none; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0; }
dt { color: light-dark(#5b6771, #a5b0b9); } dd { margin: 0; overflow-wrap: anywhere; }
</style>
"""


def page_html(kept: Kept, mean: np.ndarray | None, *, task: str, script: str) -> bytes:
    """Write the page.

    Args:
        kept: what is on the page.
        mean: (N, N), attention over all layers and heads; None without a model.
        task: what the task is called.
        script: the lines of Python that run the scene again.
    """
    scene = kept.scene
    sections = [
        ("", "".join(f'<p class="kb-sentence">{escape(text)}</p>' for text in scene.sentences)),
        (t("keep.how"), _facts(kept, task)),
        (t("prediction.title"), _prediction(kept)),
        (t("knowledge.title"), _triples(kept)),
        (t("keep.edits"), edits_html(scene.edits) if scene.edits else _said(t("keep.no_edits"))),
        (t("tree.title"), _tree(kept)),
        (t("keep.matrix"), _picture(visible_as(kept, "svg"), t("keep.matrix")) + _changed(kept)),
    ]
    if mean is not None:
        drawn = attention_as(kept, mean, t("keep.mean"), "svg")
        sections.append((t("keep.attention"), _picture(drawn, t("keep.attention"))))
    sections.append((t("keep.python"), f"<pre>{escape(script)}</pre>"))
    sections.append((t("keep.versions"), _definitions(_versions())))
    body = "".join(
        (f"<h2>{escape(title)}</h2>" if title else "") + html for title, html in sections
    )
    return (
        f'<!doctype html>\n<html lang="{language()}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(_title(kept))}</title>\n{CSS}{PAGE_CSS}</head>\n<body>\n"
        f"<h1>{escape(t('app.title'))}</h1>{_said(t('keep.about'))}{body}\n</body>\n</html>\n"
    ).encode("utf-8", "replace")


def _title(kept: Kept) -> str:
    text = kept.scene.sentences[0]
    return f"{text if len(text) <= 40 else text[:39] + '…'} · {t('app.title')}"


def _said(text: str) -> str:
    return f'<p class="kb-said">{escape(text)}</p>'


def _definitions(facts: Sequence[tuple[str, str]]) -> str:
    return f"<dl>{''.join(f'<dt>{escape(k)}</dt><dd>{escape(v)}</dd>' for k, v in facts)}</dl>"


def _facts(kept: Kept, task: str) -> str:
    scene, graph = kept.scene, kept.graph
    base = scene.graph
    facts = [
        (t("lab.task"), task),
        (t("lab.model"), kept.info.name if kept.info else model_name(scene.model)),
        (t("lab.graph"), t("graph.option", name=base.name, count=f"{len(graph):,}")),
        (t("keep.fingerprint"), base.fingerprint),
        (t("options.injection"), clauses(how_it_is_read(scene))),
    ]
    return _definitions(facts)


def _prediction(kept: Kept) -> str:
    now, was = kept.trace.prediction, kept.was
    if isinstance(now, NerPrediction):
        before, after = kept.names
        changes = prediction.span_changes(was.spans if was else (), now.spans)
        said = _said(prediction.headline(changes)) if was is not None else ""
        lines = now_and_before(kept.scene.sentences[0], now, after, was, before)
        return said + lines + prediction.changes_html(changes, compared=was is not None)
    said = ""
    if isinstance(now, ClassPrediction) and kept.info is not None:
        said = _said(prediction.say_class(kept.info, now, was))
    groups = bars_of(kept)
    if not groups:
        return _said(t("keep.no_prediction"))
    if was is not None:
        said += _said(t("keep.compared", name=kept.names[0]))
    return said + "".join(prediction.bars_html(g.before, g.now, head=g.title) for g in groups)


def _triples(kept: Kept) -> str:
    rows = triple_rows(kept.trace, kept.graph, kept.before)
    if not rows:
        return _said(t("knowledge.none"))
    heads = ("knowledge.head", "knowledge.relation", "knowledge.tail", "knowledge.state")
    head = "".join(f"<th>{escape(t(key))}</th>" for key in heads)
    lines = "".join(
        "<tr>"
        + "".join(f"<td>{_named(x)}</td>" for x in (r.triple.head, r.triple.relation))
        + f"<td>{_named(r.triple.tail)}</td><td>{escape(r.state)}</td></tr>"
        for r in rows
    )
    return f'<table class="kb-table"><tr>{head}</tr>{lines}</table>'


def _named(name: str) -> str:
    """A name with what can't be seen made visible, but that a space is a space; escaped."""
    return shown(name).replace("␣", " ")


def _tree(kept: Kept) -> str:
    over = passed_over(kept.trace.tree, kept.graph, kept.scene.options.names)
    lines = [tree.summary(kept.row, kept.trace.ablation), *name_lines(kept.trace.tree, over)]
    return tree_html(kept.tree) + "".join(map(_said, lines))


def _changed(kept: Kept) -> str:
    """What interventions did to the matrix, a line each."""
    made = kept.scene.interventions
    return "".join(_said(interventions.describe(one, kept.row)) for one in made)


def _picture(svg: bytes, name: str) -> str:
    """A picture within the page; as an image, nothing in it can run or be fetched."""
    data = base64.b64encode(svg).decode()
    return f'<img class="kb-picture" alt="{escape(name)}" src="data:image/svg+xml;base64,{data}">'


def _versions() -> list[tuple[str, str]]:
    return [
        ("kbert-lab", version("kbert-lab")),
        ("Python", platform.python_version()),
        ("PyTorch", torch.__version__),
        ("transformers", transformers.__version__),
    ]
