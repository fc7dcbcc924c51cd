"""Where a training runs: processes that share it, and devices that are made for bfloat16.

Of several processes, as ``torchrun`` starts them, each reads its share of every batch. The first is
the main one, which alone evaluates, logs and writes.
"""

import logging
import os
from collections.abc import Callable
from datetime import timedelta
from multiprocessing import parent_process
from threading import Thread
from typing import TypeVar

import torch
from accelerate import PartialState

from kbert_core.errors import OptionError

LONGEST_WAIT = timedelta(days=1)  # while the main process evaluates or saves
T = TypeVar("T")
log = logging.getLogger(__name__)


def started_together() -> int:
    """How many processes ``torchrun`` says it started; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_main() -> bool:
    """Whether this process evaluates, logs and writes."""
    return started_together() == 1 or os.environ.get("RANK", "0") == "0"


def join(device: torch.device) -> None:
    """Meet the other processes; OptionError where not all are here, or can't keep to the device."""
    if device.type == "cuda" and device.index:
        raise OptionError(
            f"Training takes the first CUDA device it sees, or with torchrun one for each process. "
            f"Instead of {device}, set CUDA_VISIBLE_DEVICES={device.index} and give cuda."
        )
    if (wanted := started_together()) > 1:
        state = PartialState(cpu=device.type == "cpu", timeout=LONGEST_WAIT)
        if state.num_processes != wanted:
            raise OptionError(
                f"{wanted} processes were started and {state.num_processes} train together. "
                "Start them with torchrun."
            )


def shared(work: Callable[[], T]) -> T:
    """Let the main process work while the others wait; all return its result."""
    if started_together() == 1:
        return work()
    box = [work() if is_main() else None]
    torch.distributed.broadcast_object_list(box, src=0)
    return box[0]  # type: ignore[return-value]


def end_with_parent() -> None:
    """End this process when the one that started it is killed, as a kill of its own would."""

    def wait() -> None:
        if (parent := parent_process()) is not None:
            parent.join()
            os._exit(1)

    Thread(target=wait, daemon=True).start()


def leave() -> None:
    """Part from the other processes, at the end of a command."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def check_bf16(device: torch.device) -> None:
    """See whether a device is made for bfloat16; a CPU that isn't is warned of.

    Raises:
        OptionError: a CUDA device that can't compute so.
    """
    if made_for_bf16(device):
        return
    if device.type == "cuda":
        raise OptionError("This CUDA device can't compute in bfloat16. Leave --bf16 out.")
    log.warning(
        "This CPU isn't made for bfloat16, and takes up to three times as long in it. Without "
        "--bf16 it computes in single precision."
    )


def made_for_bf16(device: torch.device) -> bool:
    """Whether a device has instructions for bfloat16 that are faster than single precision's.

    Intel's AVX-512 ones without AMX aren't.
    """
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    # an older PyTorch doesn't tell, and then nothing is said of bfloat16
    told = getattr(torch.cpu, "get_capabilities", lambda: {"bf16": True})()
    able = {name for name, is_there in told.items() if is_there and "bf16" in name}
    return bool(able - {"avx512_bf16"} if "Intel" in str(told.get("cpu_name")) else able)
