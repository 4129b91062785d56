"""Arguments in, results out, and what outlives a call."""
