"""Whether a device is made for bfloat16."""

import logging
from collections.abc import Mapping
from typing import Any

import torch

from kbert_core.errors import OptionError

log = logging.getLogger(__name__)


def check_bf16(device: torch.device) -> None:
    """See whether a device is made for bfloat16; a CPU without instructions for it is warned of.

    Raises:
        OptionError: a CUDA device that can't compute so.
    """
    if device.type == "cuda":
        if not torch.cuda.is_bf16_supported(including_emulation=False):
            raise OptionError("This CUDA device can't compute in bfloat16. Leave --bf16 out.")
    elif not any(able for name, able in _instructions().items() if "bf16" in name):
        log.warning(
            "This CPU has no instructions for bfloat16, and takes two to three times as long in "
            "it. Without --bf16 (in a suite, with bf16: false) it computes in single precision."
        )


def _instructions() -> Mapping[str, Any]:
    """What this CPU can; an older PyTorch doesn't tell, and nothing is said of bfloat16."""
    tell = getattr(torch.cpu, "get_capabilities", lambda: {"bf16": True})
    told: Mapping[str, Any] = tell()
    return told
