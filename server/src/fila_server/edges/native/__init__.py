"""The native gRPC edge: nghttp2 under an epoll loop, without the GIL. Start reading at server.py, then iothread.pxd."""
