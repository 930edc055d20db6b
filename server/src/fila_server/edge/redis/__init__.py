"""The Redis protocol: what clients' bytes mean, and the commands that no message passes. Start reading at verbs.py."""
