"""The trainer that all training here uses, and its progress as log lines."""

import logging
import os
import shutil
import time
from collections.abc import Callable, Mapping
from multiprocessing import get_start_method
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import SequentialSampler
from transformers import (
    PrinterCallback,
    ProgressCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from kbert_core.errors import CheckpointError, DataError, OptionError
from kbert_core.training.checkpoints import last_whole, saving, what_is_broken
from kbert_core.training.options import RunOptions
from kbert_core.training.processes import LONGEST_WAIT, Processes

BATCH = "batch"  # of an item: numbers that say which examples it holds
MOST_WORKERS = 8  # of a process that trains
log = logging.getLogger(__name__)


class Progress(TrainerCallback):
    """Logs how far a training is, and how long it takes.

    Args:
        tokens: how many tokens are read before a step, by step.
    """

    def __init__(self, tokens: Callable[[int], float]) -> None:
        self._tokens = tokens
        self._began, self._first, self._before = time.monotonic(), 0, 0.0

    @property
    def seconds(self) -> float:
        """How long the training has taken, an earlier run's checkpoint included."""
        return self._before + time.monotonic() - self._began

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Start the clock."""
        self._began, self._first = time.monotonic(), state.global_step
        self._before = max((e.get("eval_seconds", 0.0) for e in state.log_history), default=0.0)
        if self._first and state.is_world_process_zero:
            log.info("going on at step %d of %d", self._first, state.max_steps)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Let the training loss be logged beside held-out scores."""
        if control.should_evaluate:
            control.should_log = True

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Say how far it is."""
        done = state.global_step - self._first
        if not done or not logs or "loss" not in logs or not state.is_world_process_zero:
            return
        seconds = time.monotonic() - self._began
        read = self._tokens(state.global_step) - self._tokens(self._first)
        left = (state.max_steps - state.global_step) * seconds / done
        log.info(
            "step %d of %d, loss %.3f, %.0f tokens/s, %s left",
            *(state.global_step, state.max_steps, float(logs["loss"])),
            *(read / seconds, duration(left)),
        )


class BestIsHere(TrainerCallback):
    """Finds the best checkpoint beside the others, wherever the folder lay when it was noted.

    The trainer notes its path as it was given, and after a run that goes on
    from elsewhere would keep the last epoch instead, in silence.
    """

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Name the checkpoint anew.

        Raises:
            CheckpointError: it is gone.
        """
        if not (args.load_best_model_at_end and state.best_global_step):
            return
        best = Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.best_global_step}"
        if what_is_broken(best):
            raise CheckpointError(
                f"{best}: the best checkpoint so far is gone or broken. Put it back, or delete "
                f"{best.parent} to start anew."
            )
        state.best_model_checkpoint = str(best)


def duration(seconds: float) -> str:
    """Say how long something takes: 45 s, 12 min, 3 h 20 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


class OrderedTrainer(Trainer):
    """Hugging Face's trainer, going through a data set in the data set's own order.

    Our data sets fix order and content of every batch by the seed, so that a
    run can go on where it was cut off. An optimiser step reads as many items
    as there are processes times gradient accumulation, one after the other;
    its loss is the mean over all labels among them, so that it doesn't matter
    how they are shared out.

    The trainer's own progress is taken away, since it goes where results go;
    see :class:`Progress`.

    Args:
        score: the scores of the model on held-out data, for :meth:`evaluate`.
        processes: those that train together.
        describe: says in words what a batch holds, from its ``BATCH`` numbers.
        tokens: how many tokens are read before a step, by step.
        other arguments: as the trainer's.
    """

    loss_is_scaled_for_ga = True  # by compute_loss, see :meth:`mean_loss`

    def __init__(
        self,
        *,
        score: Callable[[], Mapping[str, float]],
        processes: Processes,
        describe: Callable[[list[int]], str],
        tokens: Callable[[int], float],
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.score, self.processes, self.describe = score, processes, describe
        self.model_accepts_loss_kwargs = True  # so that it counts a step's labels
        self.progress = Progress(tokens)
        self.add_callback(self.progress)
        self.add_callback(BestIsHere())
        for callback in (PrinterCallback, ProgressCallback):
            self.remove_callback(callback)

    @property
    def curve(self) -> list[dict[str, float]]:
        """Held-out scores by step, those before an interruption included.

        ``train_loss`` is the mean since the scores before, ``seconds`` the
        time trained.
        """
        found: list[dict[str, float]] = []
        losses: list[tuple[float, float]] = []  # steps, their mean loss
        at = 0.0
        for entry in self.state.log_history:
            if "loss" in entry:
                losses.append((entry["step"] - at, entry["loss"]))
                at = entry["step"]
            scores = {k.removeprefix("eval_"): v for k, v in entry.items() if k[:5] == "eval_"}
            if scores:
                steps = sum(count for count, _ in losses)
                if steps:
                    scores["train_loss"] = sum(count * loss for count, loss in losses) / steps
                found.append({"step": entry["step"], **scores})
                losses = []
        return found

    def train_on(self, last: Path | None) -> None:
        """Train, from a checkpoint if there is one.

        Raises:
            CheckpointError: a checkpoint can't be saved; those before it are kept.
            DataError: the loss is no number; with the batch named.
        """
        try:
            self.train(resume_from_checkpoint=str(last) if last else None)
        except KeyboardInterrupt:
            if self.processes.main:
                saved = last_whole(self.args.output_dir or "")
                log.warning(
                    "stopped after step %d; %s",
                    self.state.global_step,
                    f"run the same command again to go on from {saved.name}"
                    if saved
                    else "there is no checkpoint yet, so the same command begins anew",
                )
            raise
        self.processes.wait()

    def mean_loss(self, total: Tensor, count: Any, inputs: Mapping[str, Any]) -> Tensor:
        """Turn a batch's summed loss into its part of the step's mean loss.

        Args:
            total: summed over the batch's labels.
            count: labels of the whole step, in all processes.
            inputs: the batch, with its ``BATCH`` numbers.

        Raises:
            DataError: it is no finite number.
        """
        if not torch.isfinite(total):
            raise DataError(
                f"The loss is {total.item()} in step {self.state.global_step + 1}, on "
                f"{self.describe(inputs[BATCH].flatten().tolist())}. Lower the learning rate, "
                "or look at these."
            )
        # the processes' gradients are averaged, not summed
        return total * self.processes.count / max(1, int(count))

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Score held-out data, in the main process alone."""
        scores = self.processes.shared(lambda: dict(self.score()))
        self.model_wrapped.train()
        if self.processes.main:
            shown = ", ".join(f"{name} {value:.4f}" for name, value in scores.items())
            log.info("step %d: held out %s", self.state.global_step, shown)
        scores["seconds"] = round(self.progress.seconds, 1)
        metrics = {f"eval_{name}": value for name, value in scores.items()}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, metrics
        )
        return metrics

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        return SequentialSampler(train_dataset or self.train_dataset)  # type: ignore[arg-type]

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        folder = Path(self.args.output_dir or "") / f"checkpoint-{self.state.global_step}"
        try:
            with saving(folder):
                super()._save_checkpoint(model, trial)
        except CheckpointError:
            if self.processes.main:
                shutil.rmtree(folder, ignore_errors=True)  # half written; it takes up room
            raise

    def _save_rng_state(self, output_dir: str) -> None:
        super()._save_rng_state(output_dir)
        self.processes.wait()  # so that the state, written last, says that all else is there


def arguments(
    device: torch.device, checkpoints: Path, run: RunOptions, *, workers: int = 0, **kwargs: Any
) -> TrainingArguments:
    """Make the trainer's arguments that all training here shares.

    Args:
        device: where to train.
        checkpoints: their folder.
        run: seed, precision, and how often to log.
        workers: processes that make batches ahead.
        other arguments: as ``TrainingArguments``.

    Raises:
        OptionError: bf16 on a device that can't.
    """
    cuda = device.type == "cuda"
    able = not cuda or torch.cuda.is_bf16_supported(including_emulation=False)
    if run.bf16 and not able:
        raise OptionError("This CUDA device can't compute in bfloat16. Give --no-bf16.")
    made = TrainingArguments(
        output_dir=str(checkpoints),
        bf16=(cuda and able) if run.bf16 is None else run.bf16,
        use_cpu=not cuda,
        dataloader_pin_memory=cuda,
        dataloader_num_workers=workers,
        ddp_timeout=round(LONGEST_WAIT.total_seconds()),
        save_total_limit=2,
        logging_nan_inf_filter=False,  # we stop at such a loss
        logging_steps=run.log_every,
        remove_unused_columns=False,
        report_to=[],
        disable_tqdm=True,
        seed=run.seed,
        **kwargs,
    )
    made._n_gpu = min(1, made.n_gpu)  # several GPUs are for several processes
    return made


def workers_beside(device: torch.device, processes: int) -> int:
    """Processes that make batches while a GPU trains; none on a CPU, whose cores are at work."""
    if device.type != "cuda" or get_start_method() != "fork":  # others would copy the model
        return 0
    return max(1, min(MOST_WORKERS, len(os.sched_getaffinity(0)) // processes - 1))
