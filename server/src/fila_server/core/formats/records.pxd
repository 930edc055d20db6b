"""What every record looks like on disk; the families are in families.pxd.

    family   key                                     value (first byte: its version)
    FRAMES   queue | first offset                    the frame's bytes, as they arrived
    INDEX    queue | first offset                    count, ids, times, its one channel; then of each message:
                                                     routing, place, times, the one that it replaces
    SETTLED  queue | channel | first offset          bitmap, one bit a message: done in this channel; then of
                                                     how many (version 2)
             queue, and queue | channel              what QUEUES says of them, once more (see below)
             "leases", "numbers", "id"               what META says, once more
    LEASES   queue | channel | first lease id        the consumer that tracks them (version 2), expiry, then
                                                     the offsets of one frame sent, ids running on
             queue + 2^63 | channel | lease id       the expiry of a lease that was extended, or that its
                                                     consumer left begun (version 2, consumer 0)
             queue + 2^63 + 2^62 | channel | first lease id
                                                     which of its leases were begun, or came back
    STATES   queue | channel | offset                attempts, and READY (its place), DELAYED (until when),
                                                     RETRY (the same, in the place of its offset), or that it
                                                     came back uncounted, and whether begun; IN_PLACE: it
                                                     stands where another one stood; HELD: it replaces one
                                                     that is leased. Version 2 ends with the offset whose
                                                     place it has
    QUEUES   queue                                   name, created, DLQ, reserved offsets, QueueConfig
             queue | channel                         name, start offset, created, first number, idle time
    KEYS     queue | fairness key                    weights, pause, cap; 2: rate and burst; 3: paused since
    CONFIG   key                                     value
    BUCKETS  throttle key                            level, wall clock; 2, of more than one rate of messages:
                                                     all levels, and what of which period is spent
             0xFF | name                             a limit that is more than one rate of messages: a Limit
    DEDUP    queue | dedup key                       id, offset, when its window ends and began; 3: known
                                                     while its message is pending, when the first of those
                                                     came that it replaced, and which of them was leased
    SINKS    sink                                    name, epoch, next batch, runs, idle time
             sink | "I"                              INTENT: a published batch and its attempts
             sink | "C"                              how far it has got
             sink | epoch | batch | partition | attempt | frame
                                                     a staged frame: its serial, queue, size, checksum
    STAGED   sink | serial                           the Stage request's bytes, and what a hook decided
    META     "leases", "numbers", "id"               reserved lease ids, reserved numbers, newest id's time
             "access"                                the last record of ACCESS, once more
    ACCESS   as fila_server/access says              keys, principals; "!" counts and sums them up
    AUDIT    number                                  wall clock, then as fila_server/operations says
    KEPT     as fila_server/operations says          versions of queues' settings, long operations,
                                                     schedules (index/schedules.pxd)

`queue`, `channel` and `sink` are their numbers (u64), never used twice, so a deleted queue's records
can't be taken for those of a new one of the same name. A queue's and a channel's own records
are kept twice, in two files: without them all their messages would be lost with one damaged
block, or a whole table. Recovery takes whichever it can read, and writes both anew. While they are in the log
only, both copies lie side by side, so they are written once more a block behind (Core.apart), as reservations
are. Numbers are big-endian: RocksDB's byte order is our order, and a scan of INDEX yields a queue first in,
first out. To change a record give it a new version byte, keep reading the old one, and add a database of the
old kind to tests/store/formats.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from fila_server.core.state.pending cimport Dedup, LeaseGroup
from fila_server.core.state.state cimport Channel, Core, Frame, Key, Lease, Queue, Share
from fila_server.core.storage.rocksdb cimport rocksdb_writebatch_t
from fila_server.core.structures.buffer cimport Buffer, Slice

cdef enum:
    AUDIT_MAX = 10000               # records of what admins did; the oldest goes with each that is new
    VERSION = 1
    VERSION_COUNTED = 2             # SETTLED: with the number of messages
    VERSION_TRACKED = 2             # LEASES: a consumer's, that says what it has begun
    WITH_OWN_IDS = 1
    WITH_TIMES = 2
    WITH_ONLY = 4
    WITH_REPLACES = 8
    BUCKET_BYTES = 17
    VERSION_PARTS = 2               # BUCKETS: of a limit with several parts
    VERSION_LIMIT = 3               # BUCKETS: a limit itself; of no name, the clock of budgets
    LIMIT_NAMES = 0xFF              # what its key begins with: no throttle key does, since all are UTF-8
    DEDUP_BYTES = 41
    DEDUP_BYTES_LASTING = 57        # version 3
    DEDUP_BYTES_OF_BEFORE = 33      # version 1: without the window's beginning

# What the keys of extensions and marks add to the queue's number: they sort behind all frames.
cdef extern from *:
    """
    #define FILA_EXTENSION_OF ((uint64_t)1 << 63)
    #define FILA_MARKS_OF ((uint64_t)3 << 62)
    """
    uint64_t EXTENSION_OF "FILA_EXTENSION_OF"
    uint64_t MARKS_OF "FILA_MARKS_OF"

cdef struct Times:                  # per message, only while a frame is built or recovered
    int64_t deliver_at_ms           # 0 = at once
    int64_t expires_ms              # 0 = never
    uint64_t replaces               # the offset of the message that gives way to it; 0 = none
    uint64_t behind                 # of the oldest of its dedup key that is pending, if that is another one;
                                    # not in the frame's record: the dedup key's has it

cdef struct ArrivalTimes:           # Frame.times, until the frame is visible; its messages' Times follow
    int64_t wall_ms, mono_ns        # when it was built: what is left of a time counts from here, however long
                                    # the sync takes and wherever the wall clock is set meanwhile

cdef inline Times* times_of(ArrivalTimes* arrival) noexcept nogil:
    return <Times*> (arrival + 1)

cdef void frame_record_put(
    Core* core, rocksdb_writebatch_t* batch, Frame* frame, const char* bytes, uint32_t length,
    const Times* times) noexcept nogil
cdef void frame_record_delete(Core* core, Frame* frame) noexcept nogil
cdef void settled_record_put(Core* core, Share* share) noexcept nogil
cdef void settled_record_delete(
    Core* core, uint64_t queue, uint64_t channel, uint64_t first_offset) noexcept nogil

cdef void lease_record_put(
    Core* core, Queue* queue, Channel* channel, Lease** leases, uint32_t count) noexcept nogil
cdef void lease_extension_put(Core* core, Lease* lease) noexcept nogil
cdef void lease_extension_delete(Core* core, LeaseGroup* group, uint64_t lease_id) noexcept nogil
cdef void lease_marks_put(Core* core, LeaseGroup* group) noexcept nogil
cdef void lease_marks_delete(
    Core* core, uint64_t queue, uint64_t channel, uint64_t first_lease_id) noexcept nogil
cdef void lease_record_delete(
    Core* core, uint64_t queue, uint64_t channel, uint64_t first_lease_id) noexcept nogil

cdef void state_put(
    Core* core, uint64_t queue, uint64_t channel, uint64_t offset, const Buffer* b) noexcept nogil
cdef void state_delete(Core* core, uint64_t queue, uint64_t channel, uint64_t offset) noexcept nogil

cdef void queue_record_put(Core* core, Queue* queue) noexcept nogil
cdef void channel_record_put(Core* core, Channel* channel) noexcept nogil
cdef void channel_records_delete(Core* core, Channel* channel) noexcept nogil
cdef void queue_records_delete(Core* core, Queue* queue) noexcept nogil
# What key_records.pxd makes of a fairness key.
cdef void key_value_put(
    Core* core, rocksdb_writebatch_t* batch, Key* key, const char* value, size_t length) noexcept nogil
cdef void key_record_delete(Core* core, Key* key) noexcept nogil
cdef void dedup_record_put(Core* core, rocksdb_writebatch_t* batch, Queue* queue, Dedup* row) noexcept nogil
# A schedule's next moment, with the new messages; both records of all schedules of a queue, with all else.
cdef void schedule_due_put(Core* core, Queue* queue, Slice name, Slice record) noexcept nogil
cdef void schedule_records_delete(Core* core, Queue* queue) noexcept nogil
cdef void dedup_record_delete(Core* core, Queue* queue, Dedup* row) noexcept nogil
cdef void meta_record_put(Core* core, const char* name, uint64_t value) noexcept nogil
# The same for what is written seldom and must outlive a damaged block of the log.
cdef void reservation_record_put(Core* core, const char* name, uint64_t value) noexcept nogil
# What an admin did, with this pass's batch.
cdef void audit_record_put(Core* core, Slice what) noexcept nogil
