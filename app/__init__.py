"""K-BERT Lab, the app: sees, edits and compares what kbert_core computes."""
