"""Training: data sets, masked-language-model pretraining, fine-tuning, scores."""
