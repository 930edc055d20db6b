"""The end of a pass is its write: one batch of everything but new messages, one of the frames; then the sync.

    scheduler thread  pass_write  build frames, flush what was noted, write, line up what waits for the sync
    commit thread     commit      one sync serves all that was written before it began

Of several copies of a broker, the owner's batches go to the log that they share. What the log confirms is
written, and durable (confirming.pxd).
"""

from libc.stdint cimport int64_t

from fila_server.core.state.state cimport Core

# A pass begins: from here on its writes are counted, of which a history tells those that failed.
cdef void writes_begin(Core* core) noexcept nogil
cdef void pass_write(Core* core) noexcept nogil
# The last one: it waits for the log of a group, though not for ever.
cdef void commit_last(Core* core) noexcept nogil
# as measured by the caller of commit
cdef void sync_took(Core* core, int64_t ns) noexcept nogil
# commit thread: sync what is wanted; True when something was
cdef bint commit_pass(Core* core) noexcept nogil
