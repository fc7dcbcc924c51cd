"""A graph as one file on disk: an SQLite database with a log of all edits.

    schema.py    the tables, and opening them: versions, read-only folders, errors
    names.py     the memory-mapped index of names beside the file
    snapshot.py  the triples as they stood at one revision, for a KnowledgeGraph
    store.py     GraphStore: open, edit, undo, redo, history
    edits.py     an edit into the table of triples
    undoing.py   an entry's versions ended, and those it ended begun again
    log.py       the entries, what each did, where a triple comes from
    making.py    a new file, whole or not there
    importing.py many triples at once
    cache.py     large text files, indexed once

Nothing is ever overwritten. A row of the table ``triple`` is one version of a
triple and says from which revision on (``added``) and up to which
(``removed``) it counts; an edit ends versions and begins others under a new
revision. So the graph of any revision can be read while others write, and any
single entry of the log can be undone.
"""
