"""The hidden states of readings, a few at a time so that memory doesn't grow with their number."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from kbert_core.kbert.ablation import Ablation
from kbert_core.kbert.flat_tree import FlatTree
from kbert_core.kbert.interventions import Intervention
from kbert_core.pipeline import Pipeline

TOKENS_AT_ONCE = 4096  # whose states of all layers are kept together


def states_of(
    pipeline: Pipeline,
    rows: Sequence[FlatTree],
    ablation: Ablation,
    interventions: Sequence[Intervention] = (),
) -> Iterator[Tensor]:
    """Run flat trees and yield the states of each.

    Args:
        pipeline: the model; its task head isn't used.
        rows: of N tokens each, in any order.
        ablation: how they are read.
        interventions: made to their visible matrices.

    Yields:
        (L + 1, N, H) float32 of every row, padding removed.
    """
    at_once = max(1, TOKENS_AT_ONCE // max(map(len, rows), default=1))
    for start in range(0, len(rows), at_once):
        some = rows[start : start + at_once]
        output = pipeline.encode(
            some, ablation=ablation, interventions=interventions, hidden_states=True
        )
        states = torch.stack(list(output["hidden_states"]), dim=1).float().cpu()
        for number, row in enumerate(some):
            yield states[number, :, : len(row)]
