"""The arithmetic of one attention weight, as a small table."""

import numpy as np

from app.texts import listed, sentences, t
from app.view_models.heads import map_name
from app.view_models.html import escape
from app.view_models.matrix import share
from kbert_core.explain.attention import CellArithmetic


def table_html(cell: CellArithmetic) -> str:
    """The whole calculation, a step a line."""
    steps = (
        (
            "q · k",
            number(cell.dot),
            t(
                "query of the one times key of the other, {size} numbers in head {head}",
                head=cell.head,
                size=cell.size,
            ),
        ),
        (f"× 1/√{cell.size}", number(cell.scaled), t("scaled by the size of a head")),
        (
            "+ M",
            "0" if cell.visible else "−∞",
            t(
                "the visible matrix opens this cell"
                if cell.visible
                else "the visible matrix closes this cell"
            ),
        ),
        (
            "log Σ e^",
            number(cell.log_sum_exp),
            t("over the {n} tokens that the row sees", n=cell.seen),
        ),
        ("softmax", share(cell.weight), t("e^(score − log Σ): the attention weight")),
    )
    body = "".join(
        f'<tr><th scope="row">{escape(step)}</th><td class="kb-num">{escape(value)}</td>'
        f"<td>{escape(what)}</td></tr>"
        for step, value, what in steps
    )
    return f'<table class="kb-table kb-sum"><tbody>{body}</tbody></table>'


def of_mean(maps: np.ndarray, layer: int, head: int, query: int, key: int) -> str:
    """Say which single maps a mean's value comes from; plain text.

    Args:
        maps: (L, A, N, N) weights.
        layer, head: shown, from 1; 0 is the mean of all, and at least one is.
        query, key: the cell.
    """
    values = maps[:, :, query, key].astype(np.float32)
    if layer:
        values = values[layer - 1 : layer]
    if head:
        values = values[:, head - 1 : head]
    if not values.any():
        return t("Choose one layer and one head to see how the weight is worked out.")
    best = np.argsort(-values, axis=None, kind="stable")[:3]
    found = [np.unravel_index(i, values.shape) for i in best]
    named = [
        t(
            "{map} ({share})",
            map=map_name(layer or i + 1, head or j + 1),
            share=share(float(values[i, j])),
        )
        for i, j in found
    ]
    return sentences(
        [
            t("A mean of {n} maps, the largest: {most}.", n=values.size, most=listed(named)),
            t("Choose one layer and one head to see how the weight is worked out."),
        ]
    )


def number(value: float) -> str:
    """A number as the page writes it."""
    return f"{value:.3f}".replace("-", "−")
