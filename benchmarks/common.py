"""What every benchmark needs: the data folder, the machine's name, a table, a file of results."""

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import torch

from kbert_lab.suites.results import processor

RESULTS = Path(__file__).parent / "results"


def data_folder() -> Path:
    """The folder that KBERT_DATA names; ends the program where it is not set."""
    folder = os.environ.get("KBERT_DATA")
    if not folder:
        sys.exit(
            "KBERT_DATA is not set. Set it to the folder with kbert/medical_ner and "
            "kbert/Medical.spo, both from the K-BERT release; see benchmarks/README.md."
        )
    return Path(folder)


def machine(*packages: str) -> dict[str, Any]:
    """Where a benchmark ran, and with what."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {
        "cpu": processor(),
        "cores": os.cpu_count(),
        "gpu": gpu,
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
    }


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, quartiles and extremes."""
    first, _, third = quantiles(values, n=4, method="inclusive")
    found = {
        "median": median(values),
        "quartiles": [first, third],
        "least": min(values),
        "most": max(values),
    }
    return json.loads(json.dumps(found), parse_float=lambda number: float(f"{float(number):.5g}"))


def write(name: str, result: Mapping[str, Any]) -> None:
    """Keep a result as JSON beside the others, and say where."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / name
    path.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(f"\nWritten to {path.relative_to(Path(__file__).parents[1])}")


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows of text, the first a header, in columns; all but the first right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        print("  ".join(cells))
