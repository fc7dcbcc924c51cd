"""Checks of the notebooks' exercises, one module a notebook: each explains what is wrong."""
