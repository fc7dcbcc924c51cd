"""Readings side by side: what they are called, their differences, and why two are equal."""

from collections.abc import Mapping, Sequence

import numpy as np

from app.comparing import Panel
from app.models import ModelInfo
from app.scene import NO_GRAPH, Scene
from app.texts import listed, sentences, t
from app.view_models.html import escape, scrolling
from app.view_models.matrix import (
    ABLATED,
    HIDDEN,
    MatrixView,
    attention_view,
    picked,
    visible_view,
)
from app.view_models.paths import power_of_ten
from app.view_models.targets import answer_name
from kbert_core import FlatTree
from kbert_core.explain.compare import Comparison, Difference
from kbert_core.explain.result import nats

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
