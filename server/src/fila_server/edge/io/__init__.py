"""Threads under an epoll loop, without the GIL: sockets, TLS, callers, answers. Begin at iothread.pxd."""
