"""Drawings in the browser: scripts, style sheets and pieces of HTML, without a host."""

from pathlib import Path


def source(*names: str) -> str:
    """The text of files of this folder, one after the other."""
    return "".join((Path(__file__).parent / name).read_text(encoding="utf-8") for name in names)
