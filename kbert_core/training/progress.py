"""Progress of a training, as log lines: step, loss, tokens a second, time left."""

import logging
import time
from collections.abc import Callable
from typing import Any

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


def keep_stdout_clean(trainer: Trainer) -> None:
    """Take away the trainer's own progress, which goes where results go."""
    for callback in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(callback)
