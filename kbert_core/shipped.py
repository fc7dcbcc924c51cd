"""The models, demo graphs and app that come with the program, wherever it is installed.

In a clone of the repository they lie beside ``kbert_core``; an installed package has them in
``kbert_lab``. Both name them as the repository does: ``models/zh-mini``.
"""

import os
from pathlib import Path

FOLDERS = ("app", "demo_kgs", "models")
ROOT = Path(__file__).resolve().parents[1]


def shipped(path: str | Path) -> Path:
    """Find what comes with the program; a path that is here, or another one, stays as it is."""
    place = Path(path)
    if os.path.exists(place):  # a name too long is none
        return place
    if place.parts[:1] and place.parts[0] in FOLDERS and ".." not in place.parts:
        for root in (ROOT / "kbert_lab", ROOT):
            if (root / place).exists():
                return root / place
    return place
