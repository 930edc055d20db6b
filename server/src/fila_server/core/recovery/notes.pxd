"""What recovery reads before it reads the messages: one set of notes a channel."""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t, uint8_t

from fila_server.core.state.pending cimport LeaseGroup
from fila_server.core.state.state cimport Channel, Core, Slot
from fila_server.core.structures.buffer cimport Cursor
from fila_server.core.structures.maps cimport Map64

cdef struct Bits:                   # a SETTLED record
    uint32_t count                  # of the frame's messages; 0 = it does not say
    uint32_t length
    uint8_t bytes[1]

cdef struct LeaseNote:                   # one message of a LEASES record
    uint64_t lease_id
    int64_t expires_ms
    int64_t leased_ms
    LeaseGroup* group
    bint extended                   # it has a record of its own
    bint left                       # begun, and its consumer is gone for good
    uint8_t marks                   # LeaseMark

cdef struct State:                  # a STATES record
    uint8_t kind
    uint16_t attempts
    uint64_t last_lease
    uint64_t a                      # base offset, or due
    uint64_t b
    uint64_t place                  # the offset in whose place it stands; 0 = in its own

cdef struct Returned:               # a slot that came back, and where it stands
    uint64_t base
    uint64_t seq
    Slot* slot

cdef struct Notes:                  # of one channel
    Channel* channel
    Map64 settled                   # first offset -> Bits
    Map64 leases                      # offset -> LeaseNote
    Map64 by_lease                  # lease id -> the same; made when the first
                                    # extension is read, behind all leases
    Map64 states                    # offset -> State
    Returned* returned
    uint32_t returned_count
    uint32_t returned_capacity
    uint32_t returned_at

cdef void note_settled(Core* core, const char* key, const char* value, size_t length) noexcept nogil
cdef void note_state(Core* core, const char* key, Cursor* c) noexcept nogil
cdef void note_lease(Core* core, const char* key, Cursor* c) noexcept nogil
cdef void note_returned(Notes* notes, Slot* slot, State* state) noexcept nogil     # it has a place of its own
# the message is not held after all
cdef void note_unhold(Core* core, LeaseNote* held) noexcept nogil
cdef void notes_free(Core* core, Channel* channel) noexcept nogil
