"""Where a triple comes from, in one sentence; plain text."""

from datetime import datetime

from app.catalogue import Catalogue
from app.texts import N_, t
from app.view_models.history import ago
from kbert_core import KBertError, Triple
from kbert_core.knowledge.io import unit_of
from kbert_core.knowledge.store.store import GraphStore

ORIGIN_TEXTS = {"line": N_("line {number}"), "statement": N_("statement {number}")}


def origin(catalogue: Catalogue, triple: Triple, now: datetime) -> str:
    """Say where a triple comes from: an edit, or the graph as it was opened."""
    search = catalogue.search
    try:
        store = catalogue.log.store
        found = store.origins(triple.head).get(triple)
        if found is not None and (found.revision or store.path == search.path):
            return _of(store, triple, now, t("somebody") if store.path == search.path else t("you"))
        if not search.in_memory:
            with GraphStore(search.path) as file:
                return _of(file, triple, now, t("somebody"))
    except KBertError:
        pass  # it is gone; what is known here is said
    line = catalogue.lines.get(triple, 0)
    if line:
        return t(
            "From {file}, {place}.", file=catalogue.source, place=_place(catalogue.source, line)
        )
    return t("From {file}, as it was opened.", file=catalogue.source or catalogue.base.name)


def _of(store: GraphStore, triple: Triple, now: datetime, nobody: str) -> str:
    """The same of a log that has the triple.

    Args:
        nobody: what one who edits without a name is called.
    """
    origin = store.origin(triple)
    if origin.file is not None:
        if not origin.line:
            return t("From {file}, as it was opened.", file=origin.file)
        return t("From {file}, {place}.", file=origin.file, place=_place(origin.file, origin.line))
    entries = {entry.revision: entry for entry in store.history(entity=triple.head)}
    entry = entries.get(origin.revision)
    return t(
        "Edited by {who}, {when} (entry {number}).",
        who=(entry.who if entry else "") or nobody,
        when=ago(entry.at, now) if entry else "",
        number=origin.revision,
    )


def _place(file: str, number: int) -> str:
    return t(ORIGIN_TEXTS[unit_of(file)], number=number)
