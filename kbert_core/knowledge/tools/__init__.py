"""What is made of a whole graph: checks, shuffled copies, unrelated triples."""
