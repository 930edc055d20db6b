"""How sinks stand on disk: rows, staged frames, INTENT and its cursor; drawn in formats/records.pxd."""

from libc.stdint cimport uint32_t, uint64_t

from fila_server.core.state.sinks cimport Attempt, Sink
from fila_server.core.state.state cimport Core
from fila_server.core.storage.rocksdb cimport rocksdb_writebatch_t
from fila_server.core.structures.buffer cimport Slice
from fila_server.core.threads.mailbox cimport Command

cdef enum:
    SINK_KEY_BYTES = 8
    MARK_KEY_BYTES = 9              # of INTENT and cursor
    NOTE_KEY_BYTES = 40             # of a staged frame
    INTENT_MARK = 0x49
    CURSOR_MARK = 0x43

cdef struct StagedBody:             # a record of STAGED, taken apart
    Slice request
    Slice routings

cdef void sink_record_put(Core* core, Sink* sink) noexcept nogil
cdef void sink_records_delete(Core* core, Sink* sink) noexcept nogil       # and all that is staged
# The frame that the attempt got last: its note, and the command's bytes. With new messages, which a full
# disk may
# refuse.
cdef void staged_record_put(Core* core, Attempt* attempt, Command* command) noexcept nogil
cdef void staged_record_delete(
    Core* core, rocksdb_writebatch_t* batch, Attempt* attempt, uint32_t at) noexcept nogil
cdef bint staged_body_read(StagedBody* body, const char* bytes, size_t length) noexcept nogil
cdef void intent_record_put(Core* core, Sink* sink) noexcept nogil
cdef void intent_records_delete(Core* core, Sink* sink) noexcept nogil
# Goes into the batch that moves a piece.
cdef void cursor_record_put(
    Core* core, rocksdb_writebatch_t* batch, Sink* sink, uint64_t moved, uint64_t duplicates,
    uint64_t lost) noexcept nogil
