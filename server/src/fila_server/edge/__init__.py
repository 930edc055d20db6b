"""The one edge: threads that serve gRPC and the Redis protocol, and their way to Python. Start reading at server.py."""
