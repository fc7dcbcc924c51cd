"""Where interventions leave a prediction as it would be otherwise, and why that must be so.

What a token holds after the last layer depends on the tokens it sees there,
on those that these see a layer earlier, and so on. If none of what differs
between two runs gets to what the prediction reads, the two are equal.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from kbert_core import FlatTree, KBertTrace
from kbert_core.tasks import ClassPrediction, MaskPrediction, NerPrediction

Equal = Literal["no_knowledge", "no_change", "not_read"]


def equal_to(trace: KBertTrace) -> Equal | None:
    """Say to what a prediction with interventions must be equal.

    Returns:
        "no_change": to that without interventions, as they change no cell;
        "not_read": to the same, as what they change isn't read; or
        "no_knowledge": to that without any graph; None: to none of these.
    """
    if not trace.interventions or trace.visible_layers is None or trace.prediction is None:
        return None
    base = trace.ablation.visible_in(trace.batch)
    if all(layer.equal(base) for layer in trace.visible_layers):
        return "no_change"
    not_read, no_knowledge = True, trace.ablation.positions == "soft"
    for number, row in enumerate(trace.rows):
        size = len(row)
        tree = base[number, :size, :size].numpy()
        layers = [layer[number, :size, :size].numpy() for layer in trace.visible_layers]
        trunk = np.array(row.branch_ids) == 0
        read = _read(trace, row)
        changed = reached(np.zeros(size, bool), layers, [layer != tree for layer in layers])
        not_read &= not (changed & read).any()
        whole = all(layer[np.ix_(trunk, trunk)].all() for layer in layers)
        no_knowledge &= whole and not (reached(~trunk, layers) & read).any()
    if not_read:
        return "not_read"
    return "no_knowledge" if no_knowledge else None


def reached(
    start: np.ndarray, layers: Sequence[np.ndarray], changed: Sequence[np.ndarray] = ()
) -> np.ndarray:
    """Find the tokens whose last hidden state may depend on some others.

    Args:
        start: (N,) bool, the tokens depended on.
        layers: L of (N, N) bool, True = row may attend to column.
        changed: L of (N, N) bool, cells that differ between two runs: rows
            with one depend on them from that layer on.

    Returns:
        (N,) bool.
    """
    found = start.copy()
    for number, visible in enumerate(layers):
        found = found | visible[:, found].any(axis=1)
        if changed:
            found = found | changed[number].any(axis=1)
    return found


def _read(trace: KBertTrace, row: FlatTree) -> np.ndarray:
    """(N,) bool: the tokens whose last states the prediction is read from."""
    if isinstance(trace.prediction, ClassPrediction):
        return np.arange(len(row)) == 0
    places = list(enumerate(row.trunk_places))
    read = np.zeros(len(row), bool)
    if isinstance(trace.prediction, MaskPrediction):
        masks = {(filling.start, filling.end) for filling in trace.prediction.fillings}
        spans = list(zip(row.trunk_tokens[0].starts, row.trunk_tokens[0].ends, strict=True))
        places = [(i, place) for i, place in places if place[0] == 0 and spans[place[1]] in masks]
    read[[index for index, (sentence, _) in places if sentence >= 0]] = True
    return read


def same(one: Any, other: Any, tolerance: float = 1e-4) -> bool:
    """Say whether two predictions are the same but for rounding.

    Args:
        one, other: of any task.
        tolerance: of a probability.
    """
    if type(one) is not type(other) or _said(one) != _said(other):
        return False
    pairs = zip(_probabilities(one), _probabilities(other), strict=True)
    return all(abs(a - b) <= tolerance for a, b in pairs)


def _said(prediction: Any) -> object:
    """What a prediction says, probabilities aside."""
    if isinstance(prediction, ClassPrediction):
        return prediction.label, tuple(prediction.probabilities)
    if isinstance(prediction, NerPrediction):
        spans = tuple((s.start, s.end, s.label) for s in prediction.spans)
        return spans, tuple((t.start, t.end, t.tag) for t in prediction.tokens)
    if isinstance(prediction, MaskPrediction):
        return tuple(tuple(name for name, _ in f.candidates) for f in prediction.fillings)
    return prediction


def _probabilities(prediction: Any) -> Iterator[float]:
    if isinstance(prediction, ClassPrediction):
        yield from prediction.probabilities.values()
    if isinstance(prediction, NerPrediction):
        for token in prediction.tokens:
            yield from token.probabilities.values()
    if isinstance(prediction, MaskPrediction):
        for filling in prediction.fillings:
            yield from (probability for _, probability in filling.candidates)
