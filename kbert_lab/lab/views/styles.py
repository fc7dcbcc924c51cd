"""Colours that drawings and charts share, and the style sheet. Roles are Okabe–Ito's."""

from kbert_lab.lab.drawings import source

TRUNK = "#0072B2"
BRANCH = "#E69F00"
LINK = "#009E73"
CHANGED = "#CC79A7"
ENTITY_TINTS = ("#009E73", "#56B4E9", "#D55E00", "#F0E442", "#8A7FBF", "#7F8C8D")


def faint(colour: str, share: float) -> str:
    """A colour of which only a share is seen."""
    red, green, blue = bytes.fromhex(colour[1:])
    return f"rgba({red},{green},{blue},{share})"


CSS = f"<style>\n{source('page.css')}{source('start.css')}\n</style>\n"
