"""Whether a device is made for bfloat16."""

import logging
from collections.abc import Mapping
from typing import Any

import torch

from kbert_core.errors import OptionError

log = logging.getLogger(__name__)


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
    told = _instructions()
    able = {name for name, is_there in told.items() if is_there and "bf16" in name}
    return bool(able - {"avx512_bf16"} if "Intel" in str(told.get("cpu_name")) else able)


def _instructions() -> Mapping[str, Any]:
    """What this CPU can; an older PyTorch doesn't tell, and nothing is said of bfloat16."""
    tell = getattr(torch.cpu, "get_capabilities", lambda: {"bf16": True})
    told: Mapping[str, Any] = tell()
    return told
