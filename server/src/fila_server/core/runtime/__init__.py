"""Passes and their write, the engine as Python sees it, and its threads."""
