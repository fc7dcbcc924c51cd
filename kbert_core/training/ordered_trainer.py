"""The trainer that all training here uses, and its progress as log lines."""

import logging
import time
from collections.abc import Callable
from typing import Any

from torch.utils.data import SequentialSampler
from transformers import PrinterCallback, ProgressCallback, Trainer, TrainerCallback

log = logging.getLogger(__name__)


class Progress(TrainerCallback):
    """Logs how far a training is, and remembers how long it took.

    Args:
        tokens_a_step: to tell tokens a second; None: don't.
        on_save: called with the model's scores in mind at each checkpoint.

    Attributes:
        seconds: since this run began; an earlier run's time isn't known.
    """

    def __init__(
        self, tokens_a_step: int | None = None, on_save: Callable[[int, Any], None] | None = None
    ) -> None:
        self.tokens_a_step, self._on_save = tokens_a_step, on_save
        self.seconds = 0.0
        self._began, self._first = time.monotonic(), 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Start the clock."""
        self._began, self._first = time.monotonic(), state.global_step
        if self._first:
            log.info("going on at step %d of %d", self._first, state.max_steps)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Say how far it is."""
        done = state.global_step - self._first
        self.seconds = time.monotonic() - self._began
        if not done or not logs or "loss" not in logs:
            return
        rate = done / self.seconds
        speed = f", {rate * self.tokens_a_step:.0f} tokens/s" if self.tokens_a_step else ""
        left = (state.max_steps - state.global_step) / rate / 60
        log.info(
            "step %d of %d, loss %.3f%s, %.0f min left",
            *(state.global_step, state.max_steps, float(logs["loss"]), speed, left),
        )

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Score what was saved."""
        if self._on_save:
            self._on_save(state.global_step, kwargs["model"])


class OrderedTrainer(Trainer):
    """Hugging Face's trainer, going through a data set in the data set's own order.

    Our data sets fix order and content of every batch by the seed, so that a
    run can go on where it was cut off. The trainer's own progress is taken
    away, since it goes where results go; see :class:`Progress`.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        for callback in (PrinterCallback, ProgressCallback):
            self.remove_callback(callback)

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        return SequentialSampler(train_dataset or self.train_dataset)  # type: ignore[arg-type]
