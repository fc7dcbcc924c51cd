"""About: models with their cards, device, versions, limits, a self-check."""
