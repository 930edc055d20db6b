"""The hot methods: what goes to the scheduler without Python."""

from libc.stddef cimport size_t

from fila_server.edges.native.iothread cimport Method

cdef const Method* method_find(const char* path, size_t length) noexcept nogil      # NULL: Python's
