"""Experiments: a grid of runs from one suite file, and a report.

``suite`` says what is run, ``runner`` runs it and keeps its results, ``report`` writes Markdown
and pictures.
"""
