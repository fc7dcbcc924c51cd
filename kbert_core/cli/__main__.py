"""``python -m kbert_core.cli``: the same as ``kbert``."""

from kbert_core.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
