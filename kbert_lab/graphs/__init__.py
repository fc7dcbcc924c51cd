"""Graphs in files, on servers and of other programs: kept, searched, imported and checked."""
