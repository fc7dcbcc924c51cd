"""``python -m kbert_lab.cli``: the same as ``kbert``."""

from kbert_lab.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
