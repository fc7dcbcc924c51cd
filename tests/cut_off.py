"""A training that is interrupted."""

import pytest

from kbert_lab.training.finetune import KnowledgeTrainer, train
from kbert_lab.training.options import TrainOptions


def cut_off(options: TrainOptions, *, before: int) -> None:
    """Train until a step, from 1, would begin, and be interrupted there."""
    plain, steps = KnowledgeTrainer.training_step, 0

    def breaking(self, *args, **kwargs):
        nonlocal steps
        steps += 1
        if steps == before:
            raise KeyboardInterrupt
        return plain(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(KnowledgeTrainer, "training_step", breaking)
        train(options)
