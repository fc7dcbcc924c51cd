"""A graph as one file on disk: an SQLite database with a log of all edits.

    database.py   the tables, opening safely, making a new file, errors
    log.py        the entries, edits as new versions of triples, undo
    names.py      the index of names beside the file
    snapshot.py   the triples as they were at one revision, for a KnowledgeGraph
    store.py      GraphStore: open, edit, undo, redo, history
    importing.py  many triples at once; large text files, indexed once
    search.py     pages of triples by text, relation and type

Nothing is ever overwritten. A row of the table ``triple`` is one version of a
triple and says from which revision on (``added``) and up to which
(``removed``) it counts; an edit ends versions and begins others under a new
revision. So the graph of any revision can be read while others write, and any
single entry of the log can be undone.
"""
