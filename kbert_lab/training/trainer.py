"""The trainer that all training here uses, and its progress as log lines."""

import logging
import os
import shutil
import time
from collections.abc import Callable, Collection, Mapping
from multiprocessing import get_start_method
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from transformers import (
    PrinterCallback,
    ProgressCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from kbert_core.errors import CheckpointError, DataError
from kbert_lab.training.batches import BATCH
from kbert_lab.training.checkpoints import checkpoints_in, last_whole, saving, what_is_broken
from kbert_lab.training.devices import (
    LONGEST_WAIT,
    check_bf16,
    is_main,
    made_for_bf16,
    shared,
    started_together,
)
from kbert_lab.training.options import RunOptions

MOST_WORKERS = 8  # of a process that trains
SAVE_MINUTES = 5.0  # between checkpoints, besides those at epochs' ends
log = logging.getLogger(__name__)


class Course(TrainerCallback):
    """Evaluates and saves where an epoch of ours ends, saves every few minutes, and logs progress.

    Args:
        tokens: how many tokens are read before a step, by step.
        ends: the steps after which an epoch ends.
        patience: stop after so many epochs without a better score; 0: never. The trainer's own
            patience goes back to what it was when a run goes on.
    """

    def __init__(
        self, tokens: Callable[[int], float], ends: Collection[int] = (), patience: int = 0
    ) -> None:
        self.tokens, self.ends, self.patience = tokens, {*ends}, patience
        self._began = self._saved = time.monotonic()
        self._first, self._before = 0, 0.0

    @property
    def seconds(self) -> float:
        """How long the training has taken, an earlier run's checkpoint included."""
        return self._before + time.monotonic() - self._began

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Count from here; from a checkpoint, too."""
        self._began = self._saved = time.monotonic()
        self._first = state.global_step
        self._before = max((e.get("eval_seconds", 0.0) for e in state.log_history), default=0.0)
        if self._first and state.is_world_process_zero:
            log.info("going on at step %d of %d", self._first, state.max_steps)
        if args.load_best_model_at_end and state.best_global_step:
            best = Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.best_global_step}"
            if what_is_broken(best):
                raise CheckpointError(
                    f"{best}: the best checkpoint so far is gone or broken. Put it back, or delete "
                    f"{args.output_dir} to start anew."
                )
            # its path is noted as it was given; were it not found, the last epoch would be kept
            state.best_model_checkpoint = str(best)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Have the trainer evaluate and save where it is time to; the training loss is logged."""
        if state.global_step in self.ends:
            control.should_evaluate = control.should_save = True
        # several processes have to agree, and asking takes time
        asked = started_together() == 1 or state.global_step % args.logging_steps == 0
        if asked and shared(lambda: time.monotonic() - self._saved >= 60 * SAVE_MINUTES):
            control.should_save = True
        control.should_log |= control.should_evaluate or control.should_save

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Count the minutes to the next checkpoint."""
        self._saved = time.monotonic()

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Stop where no epoch of the last ones was the best."""
        name = f"eval_{args.metric_for_best_model}"
        scores = [entry[name] for entry in state.log_history if name in entry]
        if self.patience and len(scores) - 1 - scores.index(max(scores)) >= self.patience:
            control.should_training_stop = True

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Say how far the training is, and how long it takes."""
        done = state.global_step - self._first
        if not done or not logs or "loss" not in logs or not state.is_world_process_zero:
            return
        seconds = time.monotonic() - self._began
        read = self.tokens(state.global_step) - self.tokens(self._first)
        left = (state.max_steps - state.global_step) * seconds / done
        log.info(
            "step %d of %d, loss %.3f, %.0f tokens/s, %s left",
            *(state.global_step, state.max_steps, float(logs["loss"])),
            *(read / seconds, duration(left)),
        )


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

    Args:
        train_dataset: has ``described``, what some items hold in words, too.
        total_loss: a batch's loss in nats, summed over its labels, by the model.
        rate_of: by what the learning rate of a parameter is multiplied, by its name.
        score: the scores of the model on held-out data, for :meth:`evaluate`.
        course: when it evaluates and saves.
        other arguments: as the trainer's.
    """

    loss_is_scaled_for_ga = True  # by compute_loss

    def __init__(
        self,
        *,
        train_dataset: Any,
        total_loss: Callable[[nn.Module, dict[str, Any]], Tensor],
        score: Callable[[], Mapping[str, float]],
        course: Course,
        rate_of: Callable[[str], float] = lambda name: 1.0,
        **kwargs: Any,
    ) -> None:
        self.total_loss, self.rate_of = total_loss, rate_of
        both = {"train_dataset": train_dataset, "eval_dataset": train_dataset}
        super().__init__(**both, callbacks=[course], **kwargs)
        self.score, self.course, self.describe = score, course, train_dataset.described
        self.model_accepts_loss_kwargs = True  # so that it counts a step's labels
        for callback in (PrinterCallback, ProgressCallback):  # which print where results go
            self.remove_callback(callback)

    def create_optimizer(self, *given: Any) -> torch.optim.Optimizer:
        """Make the optimiser, with the rates of ``rate_of``."""
        optimizer: torch.optim.Optimizer = super().create_optimizer(*given)
        model: nn.Module = self.model  # type: ignore[assignment]
        names = {id(parameter): name for name, parameter in model.named_parameters()}
        for group in list(optimizer.param_groups):
            by_rate: dict[float, list[Tensor]] = {1.0: []}
            for parameter in group["params"]:
                by_rate.setdefault(self.rate_of(names[id(parameter)]), []).append(parameter)
            group["params"] = by_rate.pop(1.0)
            for rate, params in by_rate.items():
                optimizer.add_param_group({**group, "params": params, "lr": group["lr"] * rate})
        return optimizer

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """A batch's part of the mean loss over the labels of its step, of all processes, in nats.

        Raises:
            DataError: it is no finite number.
        """
        total = self.total_loss(model, inputs)
        if not torch.isfinite(total):
            raise DataError(
                f"The loss is {total.item()} in step {self.state.global_step + 1}, on "
                f"{self.describe(inputs[BATCH].flatten().tolist())}. Lower the learning rate, or "
                "check these rows."
            )
        # the processes' gradients are averaged, not summed
        return total * started_together() / max(1, int(num_items_in_batch))

    @property
    def curve(self) -> list[dict[str, float]]:
        """Held-out scores by step, those before an interruption included.

        ``train_loss`` is the mean since the scores before, ``seconds`` the
        time trained.
        """
        curve: list[dict[str, float]] = []
        steps = total = at = 0.0  # steps and loss since the scores before
        for entry in self.state.log_history:
            if "loss" in entry:
                since = entry["step"] - at
                steps, total, at = steps + since, total + since * entry["loss"], entry["step"]
            scores = {k.removeprefix("eval_"): v for k, v in entry.items() if k[:5] == "eval_"}
            if scores:
                mean = {"train_loss": total / steps} if steps else {}
                curve.append({"step": entry["step"], **scores, **mean})
                steps = total = 0.0
        return curve

    def train_on(self, last: Path | None) -> None:
        """Train, from a checkpoint if there is one; those before one that can't be saved stay.

        Raises:
            CheckpointError: there is no room for a checkpoint.
        """
        folder = Path(self.args.output_dir or "")
        try:
            self.train(resume_from_checkpoint=str(last) if last else None)
        except KeyboardInterrupt:
            if is_main():
                go_on = "there is no checkpoint yet, so the same command begins anew"
                if saved := last_whole(folder):
                    go_on = f"run the same command again to go on from {saved.name}"
                log.warning("stopped after step %d; %s", self.state.global_step, go_on)
            raise
        except (OSError, SafetensorError, RuntimeError):
            if self.control.should_evaluate or not self.control.should_save:
                raise
            half = folder / f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}"
            if is_main():
                shutil.rmtree(half, ignore_errors=True)  # it takes up room
            with saving(half):
                raise
        self.accelerator.wait_for_everyone()

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Score held-out data, in the main process alone."""
        scores = shared(lambda: dict(self.score()))
        self.model_wrapped.train()
        if is_main():
            shown = ", ".join(f"{name} {value:.4f}" for name, value in scores.items())
            log.info("step %d: held out %s", self.state.global_step, shown)
        scores["seconds"] = round(self.course.seconds, 1)
        metrics = {f"eval_{name}": value for name, value in scores.items()}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, metrics
        )
        return metrics


def arguments(device: torch.device, run: RunOptions, **kwargs: Any) -> TrainingArguments:
    """Make the trainer's arguments that all training here shares; others are given by name."""
    cuda = device.type == "cuda"
    by_itself = cuda and made_for_bf16(device)
    if bf16 := by_itself if run.bf16 is None else run.bf16:
        check_bf16(device)
    workers = 0  # make batches while a GPU trains; a CPU's cores are at work
    if cuda and get_start_method() == "fork":  # others would copy the model
        cores = len(os.sched_getaffinity(0)) // started_together()
        workers = max(1, min(MOST_WORKERS, cores - 1))
    made = TrainingArguments(
        output_dir=str(checkpoints_in(run.output)),
        bf16=bf16,
        use_cpu=not cuda,
        activation_checkpointing=run.gradient_checkpointing,
        dataloader_pin_memory=cuda,
        dataloader_num_workers=workers,
        ddp_timeout=round(LONGEST_WAIT.total_seconds()),
        eval_strategy="steps",
        save_total_limit=2,
        logging_nan_inf_filter=False,  # we stop at such a loss
        logging_steps=run.log_every,
        remove_unused_columns=False,
        report_to=[],
        disable_tqdm=True,
        seed=run.seed,
        weight_decay=0.01,
        train_sampling_strategy="sequential",
        **kwargs,
    )
    made._n_gpu = min(1, made.n_gpu)  # several GPUs are for several processes
    return made
