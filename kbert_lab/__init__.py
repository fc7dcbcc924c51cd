"""What works with the core: data, training, studies of data and of graphs, suites, commands.

``kbert_core`` reads a text with a graph and predicts; it imports nothing of this package.
"""
