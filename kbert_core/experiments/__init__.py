"""Experiments: a grid of runs from one suite file, with statistics and a report.

``suite`` says what is run, ``runner`` runs it and writes one JSON a run,
``statistics`` compares the runs, ``report`` writes Markdown, HTML and pictures.
"""
