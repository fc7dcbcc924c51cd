"""K-BERT in a page without a server: what JavaScript needs of a model, and the pages themselves."""
