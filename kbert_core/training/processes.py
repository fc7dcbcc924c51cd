"""Several processes that train one model together, as ``torchrun`` starts them.

Each reads its share of every batch; the main one alone evaluates and writes.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
from accelerate import PartialState

from kbert_core.errors import OptionError

LONGEST_WAIT = timedelta(days=1)  # while the main process evaluates or saves
T = TypeVar("T")


@dataclass(frozen=True)
class Processes:
    """Which of how many processes this one is; number 0 is the main one."""

    count: int = 1
    index: int = 0

    @property
    def main(self) -> bool:
        """Whether this process evaluates, logs and writes."""
        return self.index == 0

    def shared(self, work: Callable[[], T]) -> T:
        """Let the main process work while the others wait; all return its result."""
        if self.count == 1:
            return work()
        box = [work() if self.main else None]
        torch.distributed.broadcast_object_list(box, src=0)
        return box[0]  # type: ignore[return-value]

    def wait(self) -> None:
        """Go on when every process is here."""
        if self.count > 1:
            torch.distributed.barrier()


def started_together() -> int:
    """How many processes ``torchrun`` says it started; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_main() -> bool:
    """Whether this process may print: the first of those that train together."""
    return started_together() == 1 or os.environ.get("RANK", "0") == "0"


def join(device: torch.device) -> Processes:
    """Meet the other processes; those on a CPU talk through gloo, on CUDA through NCCL.

    Raises:
        OptionError: a CUDA device was named that training can't keep to;
            not all processes are here.
    """
    if device.type == "cuda" and device.index:
        raise OptionError(
            f"Training takes the first CUDA device it sees, or with torchrun one for each process. "
            f"Instead of {device}, set CUDA_VISIBLE_DEVICES={device.index} and give cuda."
        )
    wanted = started_together()
    if wanted == 1:
        return Processes()
    state = PartialState(cpu=device.type == "cpu", timeout=LONGEST_WAIT)
    if state.num_processes != wanted:
        raise OptionError(
            f"{wanted} processes were started and {state.num_processes} train together. "
            "Start them with torchrun."
        )
    return Processes(state.num_processes, state.process_index)


def leave() -> None:
    """Part from the other processes, at the end of a command."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
