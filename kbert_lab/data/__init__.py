"""Labelled data: readers, columns, splits."""
