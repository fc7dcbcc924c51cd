"""Roof-BERT (Liao and Ma): a second BERT reads the triples, and a roof over both fuses them."""
