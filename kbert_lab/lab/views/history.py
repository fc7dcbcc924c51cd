"""The log of a graph as it is read: who did what, when; and where a triple comes from."""

from collections.abc import Iterable
from datetime import UTC, datetime

from kbert_core.errors import KBertError
from kbert_core.knowledge.io import unit_of
from kbert_core.knowledge.triple import Triple
from kbert_lab.graphs.store.anywhere import open_store
from kbert_lab.graphs.store.log import Change, Entry, Origin
from kbert_lab.lab.catalogue import Catalogue, kind
from kbert_lab.lab.edit_log import OpenWorkspace
from kbert_lab.lab.history import Edited, Step
from kbert_lab.lab.log import INTERVENED, PUT, Log, entry_of
from kbert_lab.lab.texts import N_, t, tn
from kbert_lab.lab.words import EDIT_TEXTS

AnyLog = Log | OpenWorkspace
SHOWN = 3  # changes of an entry that are told at once


def ago(at: str, now: datetime | None = None) -> str:
    """Say how long ago something was; "" for a time that can't be read."""
    try:
        seconds = ((now or datetime.now(UTC)) - datetime.fromisoformat(at)).total_seconds()
    except ValueError:
        return ""
    minutes = max(0, int(seconds // 60))
    if days := minutes // 1440:
        return tn("1 day ago", "{n} days ago", days)
    if hours := minutes // 60:
        return tn("1 hour ago", "{n} hours ago", hours)
    if minutes:
        return tn("1 minute ago", "{n} minutes ago", minutes)
    return t("just now")


def in_words(change: Change) -> str:
    """Say what was done to one triple; plain text."""
    what = kind(change)
    action = {"added": "add", "removed": "remove", "changed": "replace"}.get(what, f"switch_{what}")
    triple = change.before if change.before is not None else change.after
    return t(EDIT_TEXTS[action], triple=triple, new=change.after or "")


def log_as_rows(log: AnyLog) -> list[dict[str, object]]:
    """A log as plain data, oldest first, for a file."""
    rows = []
    for entry in reversed(log.entries()):
        what, changes = said(log, entry)
        row = {"entry": entry.revision, "at": entry.at, "who": entry.who, "what": what}
        rows.append({**row, "changes": list(changes), "undone": entry.undone})
    return rows


def what(log: AnyLog, entry: Entry | None) -> str | None:
    """Say in a line what an entry did."""
    return said(log, entry)[0] if entry is not None else None


def step(log: AnyLog, step: Step | None) -> str | None:
    """Say in a line what a step of the page did."""
    if step is None:
        return None
    revision = step.what.revision if isinstance(step.what, Edited) else None
    entries = log.entries() if revision is not None else [entry_of(step)]
    return what(log, next((e for e in entries if e.revision == (revision or step.number)), None))


def said(log: AnyLog, entry: Entry) -> tuple[str, tuple[str, ...]]:
    """Say what an entry did, in one line; and triple by triple, where it is several."""
    if entry.action == INTERVENED:
        return t("what is blocked and opened, or the scene"), ()
    changes = tuple(in_words(c) for c in log.of_entry(entry.revision, most=SHOWN))
    if entry.revision == 0:
        what = t("made the graph")
    elif entry.undoes is not None:
        what = t("undid or redid entry {number}", number=entry.undoes)
    elif entry.action == PUT:
        what = t("the graph as it was opened, for another scene")
    elif entry.action == "import":
        text = N_("imported {count} triples from {source}")
        what = t(text, count=f"{entry.edits:,}", source=source_of(log, entry))
    elif len(changes) == 1:
        what, changes = changes[0], ()
    else:
        what = t("{count} edits together", count=f"{entry.edits:,}")
    return what, changes


def source_of(log: AnyLog, entry: Entry) -> str:
    """The file an import came from, as far as one of its triples still says so."""
    for change in log.of_entry(entry.revision, most=SHOWN):
        found = log.origin(change.after) if change.after is not None else None
        if found is not None and found.file:
            return found.file
    return t("a file")


ORIGIN_TEXTS = {
    "line": N_("line {number}"),
    "statement": N_("statement {number}"),
    "row": N_("row {number}"),
}


def origin(catalogue: Catalogue, triple: Triple) -> str:
    """Say where a triple comes from: an edit, or the graph as it was opened."""
    search, log = catalogue.search, catalogue.log
    try:
        if (found := log.origin(triple)) is not None:
            shared = isinstance(log, OpenWorkspace)
            return _of(found, log.entries(), t("somebody") if shared else t("you"))
        if not search.in_memory:
            with open_store(search.path) as file:
                return _of(file.origin(triple), file.history(), t("somebody"))
    except KBertError:
        pass  # it is gone; what is known here is said
    return _from(catalogue.source or catalogue.base.name, catalogue.lines.get(triple))


def _of(origin: Origin, entries: Iterable[Entry], nobody: str) -> str:
    """The same of a log that has the triple.

    Args:
        nobody: what one who edits without a name is called.
    """
    if origin.file is not None:
        return _from(origin.file, origin.line)
    entry = next((entry for entry in entries if entry.revision == origin.revision), None)
    return t(
        "Edited by {who}, {when} (entry {number}).",
        who=(entry.who if entry else "") or nobody,
        when=ago(entry.at) if entry else "",
        number=origin.revision,
    )


def _from(file: str, line: int | None) -> str:
    if not line:
        return t("From {file}, as it was opened.", file=file)
    place = t(ORIGIN_TEXTS[unit_of(file)], number=line)
    return t("From {file}, {place}.", file=file, place=place)
