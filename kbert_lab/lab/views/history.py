"""The log of a graph as it is read: who did what, when; and where a triple comes from."""

from collections.abc import Iterable
from typing import Any

from kbert_core.errors import KBertError
from kbert_core.knowledge.io import unit_of
from kbert_core.knowledge.triple import Triple
from kbert_lab.graphs.store.log import Change, Entry
from kbert_lab.lab.history import Edited, Step
from kbert_lab.lab.log import INTERVENED, PUT, AnyLog, entry_of
from kbert_lab.lab.texts import N_, clauses, t, tn
from kbert_lab.lab.words import EDIT_TEXTS

SHOWN = 3  # changes of an entry that are told
ORIGIN_TEXTS = {
    "line": N_("From {file}, line {number}."),
    "statement": N_("From {file}, statement {number}."),
    "row": N_("From {file}, row {number}."),
}


def in_words(change: Change) -> str:
    """Say what was done to one triple; plain text."""
    before, after = change.before, change.after
    action = "switch_on" if change.is_on else "switch_off"
    if before is None:
        action = "add"
    elif after is None:
        action = "remove"
    elif before != after:
        action = "replace"
    return t(EDIT_TEXTS[action], triple=before or after, new=after or "")


def rows(log: AnyLog, entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """Entries of a log as plain data, for a table or a file."""
    return [
        {
            "entry": entry.revision,
            "at": entry.at,
            "who": entry.who,
            "what": said(log, entry),
            "undoes": entry.undoes,
            "undone": entry.undone,
        }
        for entry in entries
    ]


def step(log: AnyLog, step: Step | None) -> str | None:
    """Say in a line what a step of the page did, or of the graph whose log this is."""
    if step is None:
        return None
    if not isinstance(step.what, Edited) or step.what.revision is None:
        return said(log, entry_of(step))
    entries = (entry for entry in log.entries() if entry.revision == step.what.revision)
    return next((said(log, entry) for entry in entries), None)


def said(log: AnyLog, entry: Entry) -> str:
    """Say in a line what an entry of a log did; plain text."""
    if entry.action == INTERVENED:
        return t("what is blocked and opened, or the scene")
    if entry.action == PUT:
        return t("the graph as it was opened, for another scene")
    if entry.revision == 0:
        return t("made the graph")
    if entry.undoes is not None:
        return t("undid or redid entry {number}", number=entry.undoes)
    if entry.action == "import":
        source = log.source(entry.revision) or "?"
        return tn(
            "imported 1 triple from {source}",
            "imported {n} triples from {source}",
            entry.edits,
            source=source,
        )
    changes = log.of_entry(entry.revision, most=SHOWN)
    what = clauses(map(in_words, changes))
    rest = entry.edits - len(changes)
    return t("{what}; and {count} more", what=what, count=f"{rest:,}") if rest > 0 else what


def origin(log: AnyLog, triple: Triple) -> str:
    """Say where a triple comes from: an edit, or a file; "" where the graph is gone."""
    try:
        found, entry = log.origin(triple)
    except KBertError:
        return ""
    if found.file is None:
        who = (entry.who if entry else "") or t("somebody")
        return t("Edited by {who} (entry {number}).", who=who, number=found.revision)
    if not found.line:
        return t("From {file}, as it was opened.", file=found.file)
    return t(ORIGIN_TEXTS[unit_of(found.file)], file=found.file, number=found.line)
