"""The Redis protocol edge: any Redis client pushes, reads and acks. Start reading at server.py."""
