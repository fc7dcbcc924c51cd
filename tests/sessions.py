"""A visit's session as tests look at it and change it, without the page's widgets."""

import json
from dataclasses import replace

from kbert_lab.lab.commands import MakeEdits, Write
from kbert_lab.lab.selection import identity_of
from kbert_lab.lab.session import OpenedGraph


def session(at):
    return at.session_state["session"]


def do(at, *commands, **fields):
    """Change the session of a visit by commands, then fields."""
    now = session(at)
    for command in commands:
        now = command(now)
    at.session_state["session"] = replace(now, **fields)
    return at


def write(at, *texts):
    return do(at, Write(texts))


def edit(at, *edits):
    """Make edits to the chosen graph, each as a step."""
    return do(at, *(MakeEdits((own,)) for own in edits))


def add(at, name, graph, **fields):
    """Put a graph among a visit's; see ``do``."""
    return do(at, graphs={**session(at).graphs, name: OpenedGraph(graph)}, **fields)


def add_triple(at, *fields):
    """Type a triple into the Lab, and press its button."""
    for name, text in zip(("head", "relation", "tail"), fields, strict=True):
        at.text_input(key=f"lab.add_{name}").set_value(text)
    at.button[[button.label for button in at.button].index("Add")].click().run()


def read_by(at, model, task=None):
    """Have a model read, as it was trained."""
    from app import state

    at.session_state["session"] = session(at).with_model(str(model), state.reads(str(model)), task)
    return at


def drawn(at, name):
    """The views that the drawings of a name were given, in order."""
    parts = (item.proto for item in at.get("bidi_component"))
    return [json.loads(one.json)[0] for one in parts if one.component_name == f"kbert_{name}"]


def drawn_tokens(at, number=0):
    """The identities of the tokens of a matrix on the page."""
    return list(map(identity_of, drawn(at, "matrix")[number]["identities"]))
