"""What a pass decided about messages, as rows of the history; nothing at all where none is recorded.

Messages that the same thing is decided about, one after the other in one pass, are a group, whatever keys
they have; the fair order alternates between keys, so a run of one key's would be one message long.
`decided` adds a message to the group, and when that ends each key in it becomes one row, in the order of
their first messages, a key's own messages in theirs. The order in which it was decided is not lost: each
message says its place in the group. It costs a few comparisons, a look for the key's text, and two copies
of 48 bytes.

Groups, and what else is told, come in the order in which it was decided, so a row says what was true when
it was made; the stages say it right before they act. A pass ends its last group (decisions_reported): a block
that is handed over in between would leave the texts behind that the group names.

The numbers of DecisionKind are those of history_files/columns.py; a test holds the two together.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from fila_server.core.state.state cimport Channel, Core, Frame, Lease, Slot
from fila_server.core.structures.buffer cimport Slice
from fila_server.core.structures.maps cimport Text
from fila_server.core.threads.blocks cimport History, Waited

cdef enum DecisionKind:
    ENQUEUED = 1
    REDRIVEN = 2
    REWOUND = 3             # a seek, or a channel that begins in the past, brings it in
    THROTTLED = 4
    RELEASED = 5
    DELIVERED = 6
    RETURNED = 7            # uncounted
    NACKED = 8
    EXPIRED = 9
    DELAYED_FOR = 10
    ACKED = 11
    DEAD_LETTERED = 12
    DROPPED = 13

cdef struct Detail:                 # what a kind says besides; zero where it says nothing
    uint64_t consumer
    uint64_t replaces               # an offset
    int32_t  held_ms
    const Text* bucket
    Slice    reason
    Waited   waited

cdef inline bint records(Core* core) noexcept nogil:
    cdef History* history = core.history
    return history != NULL and not history.quiet

cdef void decided(
    Core* core, int kind, Channel* channel, Frame* frame, uint32_t index, uint32_t attempts,
    const Detail* detail) noexcept nogil
cdef void slot_decided(Core* core, int kind, Slot* slot, const Detail* detail) noexcept nogil
# Right before the lease ends; who held it, and for how long, comes from it.
cdef void lease_decided(
    Core* core, int kind, Lease* lease, const char* reason, uint32_t reason_length) noexcept nogil
# So many of a key at once, without naming them: `cost` is that of all, in thousandths.
cdef void held(Core* core, Slot* first, const Text* bucket, uint64_t many, uint64_t cost) noexcept nogil

# The group is at its end: its rows are in the block. Before a block is handed over, and at the end of a pass.
cdef void decisions_reported(Core* core) noexcept nogil

# How the message that ends next ends; else it is DROPPED, for what `core.revoking` says.
cdef void ending_is(
    Core* core, int kind, const char* reason, uint64_t consumer, int64_t held_ms) noexcept nogil
cdef void slot_ends(Core* core, Slot* slot) noexcept nogil
