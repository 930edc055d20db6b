"""Counted things: who still needs a frame, its bytes, a key, a slot, and what goes with the last."""
