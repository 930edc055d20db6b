"""What an operator asks or changes."""
