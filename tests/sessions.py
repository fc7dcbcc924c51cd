"""A visit's session as tests look at it and change it, without the page's widgets."""

from dataclasses import replace

from kbert_lab.lab.commands import MakeEdits, Write
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


def read_by(at, model, task=None):
    """Have a model read, as it was trained."""
    from app import state

    at.session_state["session"] = session(at).with_model(str(model), state.reads(str(model)), task)
    return at
