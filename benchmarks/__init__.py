"""Runnable comparisons: ``python -m benchmarks.NAME``, each printing a table and writing JSON."""
