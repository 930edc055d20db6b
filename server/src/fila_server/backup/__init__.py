"""A copy of everything the broker has promised, taken while it runs, and the way back."""
