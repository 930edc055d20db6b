"""The edge: gRPC (nghttp2) and Redis under an epoll loop, no GIL. Begin at server.py, then iothread.pxd."""
