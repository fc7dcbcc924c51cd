"""Model folders: the card, loading and saving, adapters, the released code's .bin."""
