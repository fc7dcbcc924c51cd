"""Checks of the notebooks' exercises, one module a chapter: each explains what is wrong."""
