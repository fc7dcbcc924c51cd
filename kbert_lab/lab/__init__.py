"""The Lab without a host: its session, what may be done in it, and what it shows."""
