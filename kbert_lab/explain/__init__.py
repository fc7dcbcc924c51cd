"""Explanations that go beyond effects and attributions: attention, influence, noise, search.

Each takes a :class:`~kbert_core.explain.case.Case`; see ``kbert_core.explain``.
"""
