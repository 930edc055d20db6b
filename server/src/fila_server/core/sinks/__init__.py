"""Batches that are staged aside, and published once."""
