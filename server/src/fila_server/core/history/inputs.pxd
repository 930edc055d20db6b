"""What a pass takes in, written down where it takes it: from these rows the core's every decision follows
again.

    BASE        settings, seeds and clocks of an opening; a RECORD for each record of the store; BASE_ENDS
    PASS        both clocks, the durable epoch, the disk's level, whether the broker stops
    COMMAND     what came from the mailbox, in its order, after the PASS that took it
    LOAD        a frame that was read back, or what a sink had staged, in the order taken
    WRITE       the status of a write of this pass that was not OK, counted from 0

A STAGE carries the checksum of its bytes, which a later PUBLISH names: what is left of them has another.
Payloads are replaced by their lengths, and so are headers that are not to be kept (HeadersKept): a command's
bytes are written as cuts (where, how much) and what is left. A replay puts zeros there. What a
row cannot hold goes on in the next one.
"""

from libc.stdint cimport int64_t, uint64_t

from fila_server.core.state.state cimport Core
from fila_server.core.storage.status cimport StoreError
from fila_server.core.threads.mailbox cimport Command
from fila_server.core.threads.reader cimport Load

cdef enum InputKind:
    INPUT_PASS = 1
    INPUT_COMMAND = 2
    INPUT_LOAD = 3
    INPUT_WRITE = 4
    INPUT_BASE = 5
    INPUT_RECORD = 6
    INPUT_BASE_ENDS = 7

cdef enum:
    LOAD_IS_STAGED = 256        # beside a LOAD's status

cdef enum HeadersKept:
    HEADERS_NONE = 0
    HEADERS_POLICY = 1          # those that the queue's settings name
    HEADERS_ALL = 2

# Both are called only where there is a history.
cdef void pass_begins(Core* core) noexcept nogil
cdef void commands_taken(Core* core, Command* first) noexcept nogil
cdef void load_taken(Core* core, const Load* load) noexcept nogil
cdef void write_failed(Core* core, int call, int status) noexcept nogil
cdef void input_put(
    Core* core, int kind, int64_t token, int64_t a, int64_t b, int64_t c, const char* bytes,
    uint64_t length) noexcept nogil


# --- what an opening found -------------------------------------------------------------------
# Where a replay begins: all that an opening found, written down before recovery makes anything of it.
#
# Recovery is a function of the store's records, the clocks and the seeds, so these are the base; the ring,
# the fifos and the clocks that follow from them are not written. Payloads are not read: FRAMES and STAGED are
# left out.

# `head` says with which settings, seeds and clocks. Returns a StoreStatus.
cdef int base_put(Core* core, const char* head, size_t length, StoreError* error) noexcept nogil
