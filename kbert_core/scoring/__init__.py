"""Scorers that choose triples by what an encoder makes of them; see ``knowledge.selection``."""
