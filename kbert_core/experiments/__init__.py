"""Experiments: a grid of runs from one suite file, with statistics and a report.

``suite`` says what is run, ``runner`` runs it and keeps its results,
``statistics`` compares the runs, ``report`` writes Markdown, HTML and pictures.
"""
