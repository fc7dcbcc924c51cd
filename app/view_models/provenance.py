"""Where a triple comes from, in one sentence; plain text."""

from datetime import datetime

from app.catalogue import Catalogue
from app.texts import N_, t
from app.view_models.history import ago
from kbert_core import KBertError, Triple
from kbert_core.knowledge.io import unit_of
from kbert_core.knowledge.store.store import GraphStore

ORIGIN_TEXTS = {"line": N_("line {number}"), "statement": N_("statement {number}")}


def of_visit(catalogue: Catalogue, triple: Triple, now: datetime) -> str:
    """Say where a triple comes from: this visitor's edits, else the graph as it was opened."""
    for step in reversed(catalogue.log.standing):
        for number, edit in enumerate(step.edits):
            if triple not in (edit.triple if edit.action == "add" else None, edit.new):
                continue
            when = ago(step.at, now)
            if step.source:
                line = step.lines[number] if number < len(step.lines) else 0
                return t(
                    "Imported from {file}, {place}, {when} (edit {number}).",
                    file=step.source,
                    place=_place(step.source, line),
                    when=when,
                    number=step.number,
                )
            return t("Edited by you, {when} (edit {number}).", when=when, number=step.number)
    if not catalogue.search.in_memory:
        try:
            with GraphStore(catalogue.search.path) as store:
                return of_store(store, triple, now)
        except KBertError:
            return t("From {file}, as it was opened.", file=catalogue.source)
    line = catalogue.lines.get(triple, 0)
    if line:
        return t(
            "From {file}, {place}.", file=catalogue.source, place=_place(catalogue.source, line)
        )
    return t("From {file}, as it was opened.", file=catalogue.source or catalogue.base.name)


def of_store(store: GraphStore, triple: Triple, now: datetime) -> str:
    """Say where a triple of a graph file comes from.

    Raises:
        GraphEditError: the file has no such triple.
    """
    origin = store.origin(triple)
    entries = {entry.revision: entry for entry in store.history(entity=triple.head)}
    entry = entries.get(origin.revision)
    when = ago(entry.at, now) if entry else ""
    who = entry.who if entry and entry.who else t("somebody")
    if origin.file is None:
        return t(
            "Edited by {who}, {when} (entry {number}).", who=who, when=when, number=origin.revision
        )
    if not origin.line:
        return t("From {file}, as it was opened.", file=origin.file)
    return t("From {file}, {place}.", file=origin.file, place=_place(origin.file, origin.line))


def _place(file: str, number: int) -> str:
    return t(ORIGIN_TEXTS[unit_of(file)], number=number)
