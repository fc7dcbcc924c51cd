"""A graph as one file on disk: an SQLite database with a log of all edits.

Nothing is ever overwritten. A row of the table ``triple`` is one version of a
triple and says from which revision on (``added``) and up to which
(``removed``) it counts; an edit ends versions and begins others under a new
revision. So the graph of any revision can be read while others write, and any
single entry of the log can be undone.
"""
