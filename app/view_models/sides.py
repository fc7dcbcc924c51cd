"""Readings side by side: what they are called, their differences, and why two are equal."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import plotly.graph_objects as go

from app.comparing import Panel
from app.models import ModelInfo
from app.scene import NO_GRAPH, Scene
from app.texts import listed, sentences, t
from app.view_models.diff import code_of
from app.view_models.html import escape, plain, scrolling, shown
from app.view_models.matrix import (
    ABLATED,
    HIDDEN,
    MatrixView,
    attention_view,
    legend_html,
    picked,
    visible_view,
)
from app.view_models.paths import power_of_ten
from app.view_models.selected import Marks
from app.view_models.styles import TRUNK
from app.view_models.targets import answer_name
from kbert_core import FlatTree
from kbert_core.explain.compare import Comparison, Difference
from kbert_core.explain.result import nats
from kbert_core.reader import Reading

# What they are called


def names_of(panels: Sequence[Panel]) -> list[str]:
    """What every panel is called, each another."""
    return [
        t("sides.name." + panel.name) if panel.name else t("sides.number", number=number)
        for number, panel in enumerate(panels, start=1)
    ]


def by_of(panels: Sequence[Panel]) -> list[str]:
    """The same within a sentence: "by BERT"."""
    return [
        t("sides.by." + panel.name) if panel.name else t("sides.by_number", number=number)
        for number, panel in enumerate(panels, start=1)
    ]


def about(scene: Scene, model: str, triples: int) -> str:
    """What a panel reads, and how, as far as it isn't as usual; plain text.

    Args:
        scene: of the panel.
        model: what its model is called; empty where all panels have the same.
        triples: how many stand in the text.
    """
    parts = [model] if model else []
    if scene.graph == NO_GRAPH:
        return listed([*parts, t("sides.no_graph")])
    parts.append(t("sides.triples_one") if triples == 1 else t("sides.triples", count=triples))
    parts += [t("sides.system_" + scene.system)] if scene.system else []
    parts += [t("scene.hard")] if scene.ablation.positions == "hard" else []
    parts += [t("scene.all")] if scene.ablation.visible == "all" else []
    return listed(parts)


def title_html(title: str, about: str) -> str:
    """A column's head, in one line; escaped."""
    return f'<div class="kb-column"><b>{escape(title)}</b> <span>{escape(about)}</span></div>'


def row_html(flat: FlatTree, marks: Marks) -> str:
    """Draw all tokens of a row one after the other, those of triples set off; escaped."""
    drawn = ""
    for place, (text, branch) in enumerate(zip(flat.tokens, flat.branch_ids, strict=True)):
        kind = "kb-branch-tok" if branch > 0 else "kb-trunk"
        kind += " kb-chosen" if place == marks.token else ""
        drawn += (
            f'<span class="kb-tok {kind}" role="button" tabindex="-1" data-token="{place}" '
            f'data-name="{code_of(flat.identities[place])}">'
            f'<span class="kb-text">{shown(text)}</span></span>'
        )
    return f'<div class="kb-tree kb-strip" role="group">{drawn}</div>'


def legend(views: Sequence[MatrixView]) -> str:
    """The categories that occur in any of several matrices."""
    codes = np.concatenate([view.codes.ravel() for view in views])
    return legend_html(replace(views[0], codes=codes))


# What knowledge does to the text

SHADES = 10
STILL = 1e-4  # a state that is moved less hasn't moved: so much rounding makes


def moved_html(
    reading: Reading,
    moved: Mapping[tuple[int, int], float],
    most: float,
    marks: Marks,
    *,
    edit: bool,
) -> str:
    """Draw the text's tokens, each as dark as its last state has moved; escaped.

    Args:
        reading: of the text.
        moved: by (sentence, number of the token), see ``services.moved``.
        most: that is as dark as can be: of all columns, so that they share a scale.
        marks: what is chosen, by number along all tokens.
        edit: whether the last edit has moved them, and not all knowledge.
    """
    drawn = ""
    number = 0
    for sentence, tokens in enumerate(reading.tokens):
        for place, (start, end) in enumerate(zip(tokens.starts, tokens.ends, strict=True)):
            value = moved.get((sentence, place), 0.0)
            shade = max(1, round(SHADES * value / most)) if value > STILL and most else 0
            said = t("columns.moved_by", percent=f"{100 * value:.1f}")
            chosen = " kb-chosen" if marks.token == number else ""
            drawn += (
                f'<span class="kb-tok kb-moved-{shade}{chosen}" role="button" tabindex="-1" '
                f'data-token="{number}" data-name="{code_of(("trunk", sentence, place))}" '
                f'title="{escape(said)}"><span class="kb-text">'
                f"{shown(reading.sentences[sentence][start:end])}</span></span>"
            )
            number += 1
    values = [value for value in moved.values() if value > STILL]
    said = t("columns.edit" if edit else "columns.moved", count=len(values), total=number)
    if values:
        said = t("columns.moved_most", said=said, percent=f"{100 * max(values):.0f}")
    return (
        f'<div class="kb-legend">{escape(said)}</div>'
        f'<div class="kb-tree kb-strip" role="group" aria-label="{escape(said)}">{drawn}</div>'
    )


def entering_chart(reading: Reading, weights: np.ndarray, columns: Sequence[str]) -> go.Figure:
    """Draw how each token of the text attends to the knowledge beside it.

    Args:
        reading: of T tokens.
        weights: (T, C).
        columns: what the C columns are called.
    """
    rows = [
        plain(reading.sentences[number][start:end])
        for number, tokens in enumerate(reading.tokens)
        for start, end in zip(tokens.starts, tokens.ends, strict=True)
    ]
    said = [
        [
            t("columns.attends", a=row, b=column, percent=f"{100 * value:.1f}")
            for column, value in zip(columns, values, strict=True)
        ]
        for row, values in zip(rows, weights.tolist(), strict=True)
    ]
    chart = go.Figure(
        go.Heatmap(
            z=weights,
            text=said,
            hoverinfo="text",
            zmin=0,
            colorscale=[[0, "rgba(0, 114, 178, .04)"], [1, TRUNK]],
            showscale=False,
            xgap=1,
            ygap=1,
        )
    )
    chart.update_layout(
        height=min(440, 60 + 16 * len(rows)), margin={"l": 8, "r": 8, "t": 4, "b": 4}
    )
    ticks = {"tickmode": "array", "showgrid": False, "zeroline": False, "fixedrange": True}
    short = all(len(column) == 1 or column.startswith("[") for column in columns)
    if short:
        columns = ["·" if column.startswith("[") else column for column in columns]
    chart.update_xaxes(
        side="top",
        tickangle=0 if short else None,
        tickvals=list(range(len(columns))),
        ticktext=list(columns),
        **ticks,
    )
    chart.update_yaxes(
        autorange="reversed", tickvals=list(range(len(rows))), ticktext=rows, **ticks
    )
    return chart


def budget(trace: Any, bare: Reading) -> str:
    """Say what knowledge costs the text in tokens, and where it stands; plain text.

    Args:
        trace: of the reading.
        bare: the same text without a graph.
    """
    kept, whole = (sum(map(len, own.tokens)) for own in (trace.reading, bare))
    row = trace.rows[0]
    inside = sum(branch > 0 for branch in getattr(row, "branch_ids", ()))
    beside = len(getattr(row, "kb_ids", ()))
    where = t("columns.nowhere")
    if inside:
        where = t("columns.in_row", count=inside)
    elif beside:
        where = t("columns.in_side", count=beside)
    elif trace.used:
        where = t("columns.in_vectors")
    return sentences([t("columns.lost", lost=whole - kept, whole=whole), where])


# Their differences


def differences_html(comparison: Comparison, names: Mapping[str, str], info: ModelInfo) -> str:
    """Draw a table of every two readings.

    Args:
        comparison: its sides are named by the keys of ``names``.
        names: what they are called.
        info: of a model, for what its labels are called.
    """
    target = comparison.target
    label = answer_name(target.label, info, "") if target is not None else ""
    told = ("prediction", "score", "variation") if target is not None else ()
    heads = ("pair", *told, "tokens", "cells", "moved", "states")
    cells = "".join(
        f'<th class="{"kb-num" if n else ""}" title="{escape(_help(name, label))}">'
        f"{escape(t('sides.column_' + name))}</th>"
        for n, name in enumerate(heads)
    )
    rows = "".join(
        f"<tr>{''.join(_cell(name, pair, names) for name in heads)}</tr>"
        for pair in comparison.pairs
    )
    return scrolling(
        f'<table class="kb-table"><tr>{cells}</tr>{rows}</table>', more="kb-wide-table"
    )


def _help(name: str, label: str) -> str:
    if name in ("pair", "prediction"):
        return ""
    values = {"target": label} if name == "score" else {}
    return t(f"sides.column_{name}_help", **values)


def _cell(name: str, pair: Difference, names: Mapping[str, str]) -> str:
    if name == "pair":
        said = t("sides.pair", one=names[pair.one], other=names[pair.other])
        return f"<td>{escape(said)}</td>"
    if name == "prediction":
        if pair.flips is None:
            return '<td class="kb-num">–</td>'
        said = escape(t("sides.flips" if pair.flips else "sides.stays"))
        badge = f'<span class="kb-badge">{said}</span>' if pair.flips else said
        return f'<td class="kb-num">{badge}</td>'
    values = {
        "score": "–" if pair.score is None else nats(pair.score),
        "variation": "–" if pair.variation is None else f"{pair.variation:.2f}",
        "tokens": _gone_and_new(pair),
        "cells": f"{pair.cells:,}",
        "moved": f"{pair.moved:,}",
        "states": "–" if pair.largest is None else _size(pair.largest),
    }
    return f'<td class="kb-num">{escape(values[name])}</td>'


def _gone_and_new(pair: Difference) -> str:
    parts = [f"−{pair.only_one}"] if pair.only_one else []
    parts += [f"+{pair.only_other}"] if pair.only_other else []
    return " ".join(parts) or "0"


def _size(value: float) -> str:
    return power_of_ten(value) if value < 0.001 else f"{value:.2g}"


def say_equal(comparison: Comparison, names: Mapping[str, str]) -> str:
    """Say which readings are equal and why, those equal to each other together; plain text."""
    said = []
    for group, pairs in _groups(comparison):
        why = t("sides.why." + pairs[0].why.name) if pairs[0].why else ""
        largest = max(pair.largest or 0.0 for pair in pairs)
        called = listed(names[name] for name in group)
        said.append(t("sides.equal", names=called, why=why, largest=_size(largest)))
    return sentences(said) if said else t("sides.none_equal")


def _groups(comparison: Comparison) -> list[tuple[list[str], list[Difference]]]:
    """Sets of readings that are all equal for one reason, with the pairs that say so."""
    groups: list[tuple[list[str], list[Difference]]] = []
    for pair in comparison.equal:
        for names, pairs in groups:
            if pairs[0].why is pair.why and (pair.one in names or pair.other in names):
                names += [name for name in (pair.one, pair.other) if name not in names]
                pairs.append(pair)
                break
        else:
            groups.append(([pair.one, pair.other], [pair]))
    return groups


# Their matrices


def visible_panel(flat: FlatTree, scene: Scene, seen: np.ndarray) -> MatrixView:
    """The visible matrix of one panel, interventions included.

    Args:
        flat: N tokens.
        scene: of the panel.
        seen: (N, N) bool, row may attend to column.
    """
    view = visible_view(flat, scene.ablation)
    codes = view.codes.copy()
    codes[seen & (codes == HIDDEN)] = ABLATED
    codes[~seen] = HIDDEN
    return MatrixView("visible", True, codes, view.tokens, view.roles, view.groups)


def attention_panels(
    flats: Sequence[FlatTree],
    maps: Sequence[np.ndarray],
    seen: Sequence[np.ndarray],
    layer: int,
    head: int,
) -> list[MatrixView]:
    """Attention of every panel under one scale.

    Args:
        flats: their tokens.
        maps: (L, A, N, N) of each.
        seen: (N, N) bool of each, row may attend to column.
        layer, head: from 1; 0 is a mean. Where a model has fewer, its last.
    """
    chosen = [chosen_map(own, layer, head) for own in maps]
    high = max(float(weights.max(initial=0.0)) for weights in chosen)
    return [
        attention_view(flat, weights, own, high=high)
        for flat, weights, own in zip(flats, chosen, seen, strict=True)
    ]


def chosen_map(maps: np.ndarray, layer: int, head: int) -> np.ndarray:
    """One map of (L, A, N, N); where a model has fewer layers or heads, its last."""
    return picked(maps, min(layer, maps.shape[0]), min(head, maps.shape[1]))
