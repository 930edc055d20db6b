"""The end of a pass is its write: one batch of everything but new messages, one of the frames; then the sync.

    scheduler thread  pass_write  build frames, flush what was noted, write, line up what waits for the sync
    commit thread     commit      one sync serves all that was written before it began
"""

from libc.stdint cimport int64_t

from fila_server.core.state.state cimport Core

cdef void pass_write(Core* core) noexcept nogil
# as measured by whoever called commit
cdef void sync_took(Core* core, int64_t ns) noexcept nogil
# commit thread: sync what is wanted; True when something was
cdef bint commit_pass(Core* core) noexcept nogil
