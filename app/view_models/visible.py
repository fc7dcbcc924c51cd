"""Who sees whom in a trace, whatever made it so."""

import numpy as np
from torch import Tensor

from kbert_core import KBertTrace
from kbert_core.kbert.interventions import intervene


def share_of_layers(trace: KBertTrace, window: int) -> np.ndarray:
    """Say in which share of the layers a row's tokens see each other, interventions included.

    Returns:
        (N, N) float32, 0 to 1; only 0 and 1 where all layers are alike.
    """
    size = len(trace.rows[window])
    layers = trace.visible_layers or (trace.visible,)
    total = np.zeros((size, size), dtype=np.float32)
    for one in {id(one): one for one in layers}.values():
        count = sum(layer is one for layer in layers)
        total += count * one[window, :size, :size].cpu().numpy()
    return total / len(layers)


def visible_in(trace: KBertTrace, window: int, layer: int = 0) -> np.ndarray:
    """Take a row's visible matrix out of a trace, interventions included.

    Args:
        trace: what was run.
        window: its row, N tokens.
        layer: from 1; 0: seen in any layer.

    Returns:
        (N, N) bool, row may attend to column.
    """
    size = len(trace.rows[window])
    layers = trace.visible_layers or (trace.visible,)
    chosen = (layers[layer - 1],) if layer and trace.visible_layers else layers
    seen = np.zeros((size, size), dtype=bool)
    for one in {id(one): one for one in chosen}.values():
        seen |= one[window, :size, :size].cpu().numpy()
    return seen


def layers_without_model(trace: KBertTrace, window: int, count: int) -> list[Tensor]:
    """The visible matrices of a row in as many layers as are asked for, interventions included.

    Returns:
        One (N, N) bool per layer; at least as many as the interventions name.
    """
    size = len(trace.rows[window])
    visible = trace.ablation.visible_in(trace.batch)
    count = max(count, *(layer for one in trace.interventions for layer in one.layers), 1)
    layers = intervene(visible, trace.rows, trace.interventions, count).layers
    return [layer[window, :size, :size] for layer in layers]
