"""Readings side by side: what they are called, their differences, and why two are equal."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from kbert_core.explain.result import nats
from kbert_core.kbert.flat_tree import FlatTree
from kbert_core.reader import Reading
from kbert_lab.explain.compare import Comparison, Difference
from kbert_lab.lab.comparing import Panel
from kbert_lab.lab.scene import NO_GRAPH, Scene
from kbert_lab.lab.texts import N_, listed, sentences, t
from kbert_lab.lab.views.diff import code_of
from kbert_lab.lab.views.html import escape, plain, shown
from kbert_lab.lab.views.selected import Marks
from kbert_lab.lab.views.styles import TRUNK
from kbert_lab.lab.words import SIDES_SYSTEM

SIDES_NAME = {
    "k-bert": N_("K-BERT"),
    "knowbert": N_("KnowBert"),
    "roof-bert": N_("Roof-BERT"),
    "plain-text": N_("Plain text"),
    "bert": N_("BERT"),
    "kbert": N_("K-BERT"),
    "hard": N_("Hard positions"),
    "all": N_("Everything visible"),
    "untouched": N_("Matrix by the tree"),
    "intervened": N_("Matrix as edited"),
    "now": N_("Now"),
    "off": N_("Graph off"),
    "twin": N_("Twin"),
    "loaded": N_("Graph as loaded"),
    "edited": N_("Graph as edited"),
}


SIDES_WHY = {
    "NO_BRANCH": N_(
        "no triple of the graph stands in this text, so there is no branch to place or to hide, "
        "and K-BERT reads what BERT reads"
    ),
    "SAME_TRIPLES": N_("the same triples hang at the same mentions"),
    "SAME_MATRIX": N_("positions and visible matrix come out the same for this tree"),
}

# What they are called


def names_of(panels: Sequence[Panel]) -> list[str]:
    """What every panel is called, each another."""
    return [
        t(SIDES_NAME[panel.name]) if panel.name else t("Panel {number}", number=number)
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
        return listed([*parts, t("no graph")])
    parts.append(t("1 triple") if triples == 1 else t("{count} triples", count=triples))
    parts += [t(SIDES_SYSTEM[scene.system])] if scene.system else []
    parts += [t("hard positions")] if scene.ablation.positions == "hard" else []
    parts += [t("everything visible")] if scene.ablation.visible == "all" else []
    return listed(parts)


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
            said = t("moved by {percent} % of its length", percent=f"{100 * value:.1f}")
            chosen = " kb-chosen" if marks.token == number else ""
            drawn += (
                f'<span class="kb-tok kb-moved-{shade}{chosen}" role="button" tabindex="-1" '
                f'data-token="{number}" data-name="{code_of(("trunk", sentence, place))}" '
                f'title="{escape(said)}"><span class="kb-text">'
                f"{shown(reading.sentences[sentence][start:end])}</span></span>"
            )
            number += 1
    values = [value for value in moved.values() if value > STILL]
    said = t(
        "The last edit moves {count} of {total} tokens"
        if edit
        else "Knowledge moves {count} of {total} tokens",
        count=len(values),
        total=number,
    )
    if values:
        said = t("{said}, at most by {percent} %", said=said, percent=f"{100 * max(values):.0f}")
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
            t("“{a}” attends to “{b}”: {percent} %", a=row, b=column, percent=f"{100 * value:.1f}")
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
    short = all(len(column) == 1 or column.startswith("[") for column in columns)
    names = ["·" if short and column.startswith("[") else column for column in columns]
    ticks = {"tickmode": "array", "showgrid": False, "zeroline": False, "fixedrange": True}
    across = {**ticks, "tickvals": list(range(len(names))), "ticktext": names, "side": "top"}
    chart.update_xaxes(across, tickangle=0 if short else None)
    down = {**ticks, "tickvals": list(range(len(rows))), "ticktext": rows}
    chart.update_yaxes(down, autorange="reversed")
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
    where = t("no knowledge is read")
    if inside:
        where = t("{count} of knowledge in the same row", count=inside)
    elif beside:
        where = t("{count} of knowledge in a row of its own", count=beside)
    elif trace.used:
        where = t("knowledge in vectors, no tokens")
    return sentences([t("{lost} of {whole} tokens lost;", lost=whole - kept, whole=whole), where])


# Their differences

DIFFERENCES_HELP = {  # by the heads of the columns
    N_("Score"): N_("Change of the score of {target}, in nats."),
    N_("Distance"): N_(
        "Total variation between the two distributions of labels, from 0 (the same) to 1; of a "
        "span, the mean over its tokens."
    ),
    N_("Tokens"): N_("Tokens that only one of the two has: gone and new."),
    N_("Cells"): N_("Cells of the visible matrix that differ among shared tokens."),
    N_("Moved"): N_("Shared tokens at another position."),
    N_("States"): N_(
        "Largest difference of any number in the last layer's states of shared tokens; none "
        "between two models."
    ),
}


def differences(comparison: Comparison, names: Mapping[str, str]) -> dict[str, list[str]]:
    """Every two readings, as columns; those of a prediction where one is followed.

    Args:
        comparison: its sides are named by the keys of ``names``.
        names: what they are called.
    """
    pairs = comparison.pairs
    said = {None: "–", True: t("flips"), False: t("same")}
    columns = {
        t("From → to"): [
            t("{one} → {other}", one=names[p.one], other=names[p.other]) for p in pairs
        ]
    }
    if comparison.target is not None:
        columns |= {
            t("Prediction"): [said[pair.flips] for pair in pairs],
            t("Score"): ["–" if pair.score is None else nats(pair.score) for pair in pairs],
            t("Distance"): [
                "–" if pair.variation is None else f"{pair.variation:.2f}" for pair in pairs
            ],
        }
    return columns | {
        t("Tokens"): [_gone_and_new(pair) for pair in pairs],
        t("Cells"): [f"{pair.cells:,}" for pair in pairs],
        t("Moved"): [f"{pair.moved:,}" for pair in pairs],
        t("States"): ["–" if pair.largest is None else _size(pair.largest) for pair in pairs],
    }


def _gone_and_new(pair: Difference) -> str:
    parts = (("−", pair.only_one), ("+", pair.only_other))
    return " ".join(f"{sign}{count}" for sign, count in parts if count) or "0"


def _size(value: float) -> str:
    return power_of_ten(value) if value < 0.001 else f"{value:.2g}"


def say_equal(comparison: Comparison, names: Mapping[str, str]) -> str:
    """Say which readings are equal and why, those equal to each other together; plain text."""
    said = []
    for group, pairs in _groups(comparison):
        why = t(SIDES_WHY[pairs[0].why.name]) if pairs[0].why else ""
        largest = max(pair.largest or 0.0 for pair in pairs)
        called = listed(names[name] for name in group)
        text = N_(
            "{names} are equal: {why}. Their states were compared: the largest difference of any "
            "number in the last layer is {largest}."
        )
        said.append(t(text, names=called, why=why, largest=_size(largest)))
    return sentences(said) if said else t("No two of them are equal.")


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


def power_of_ten(value: float) -> str:
    """A very small number: 2 × 10⁻⁷."""
    if value == 0:
        return "0"
    digit, _, power = f"{value:.0e}".partition("e")
    raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{digit} × 10{raised}"
