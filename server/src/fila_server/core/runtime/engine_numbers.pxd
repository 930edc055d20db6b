"""The core's own numbers as dictionaries: for tests, telemetry and what a start says."""

from fila_server.core.state.state cimport Core

cdef dict core_counters(Core* core)
cdef dict opening_found(Core* core)         # all zero after a clean stop of a sound store
cdef dict log_found(Core* core)             # the write-ahead log's part of it, in more detail
