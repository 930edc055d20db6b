"""gRPC over nghttp2, without the GIL: sessions, calls, messages in and out. Begin at session.pxd."""
