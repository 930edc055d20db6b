"""The gRPC edge: bytes in, bytes out. Start reading at server.py."""
