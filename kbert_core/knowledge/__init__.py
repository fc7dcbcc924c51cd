"""What is known: triples, graphs of them, and the entities a text names."""
