"""Sinks read back from the disk at start: rows, staged frames, and batches that go on where they stopped."""

from fila_server.core.state.state cimport Core

# One record of SINKS; they come in the order of their keys, a sink's row first.
cdef void sink_read(
    Core* core, const char* key, size_t key_length, const char* value, size_t length) noexcept nogil
# All queues and sinks are there: what is on its way is promised again, and what nobody can publish any
# more goes.
cdef void sinks_recovered(Core* core) noexcept nogil
