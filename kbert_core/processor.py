"""The name of this machine's processor, for results that say where they were made."""

import platform
from pathlib import Path


def processor() -> str:
    """Its model, as Linux knows it; elsewhere its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
