"""K-BERT Lab, the app: sees, edits and compares what kbert_core computes."""

import gc
from importlib import import_module


def load() -> None:
    """Import PyTorch and what needs it, once; a visitor who comes meanwhile waits for it."""
    gc.disable()  # looking through all that is imported takes a quarter of the time
    try:
        import_module("app.state")
    finally:
        gc.freeze()  # it stays, so nobody looks through it later either
        gc.enable()
