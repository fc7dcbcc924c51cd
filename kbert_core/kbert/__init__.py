"""K-BERT, in the order of the paper: sentence tree, flat tree, visible matrix, mask-transformer."""
