"""What the scheduler thread is asked: a bounded ring of Commands. A full one
refuses a caller at once; waiting here would hide the overload.

The lock is held for a few pointer moves. The scheduler sleeps on the mailbox's condition
(monotonic clock, nanoseconds: an epoll's millisecond would lose a bucket's tokens).
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t

from fila_server.core.protocol.protobuf cimport Item
from fila_server.core.structures.buffer cimport Slice
from fila_server.core.threads.locks cimport pthread_cond_t, pthread_mutex_t

cdef enum Verdict:                  # of the rights of who sends a command; the core answers with it
    ALLOWED = 0
    HIDDEN                          # as if the queue did not exist
    DENIED                          # PERMISSION_DENIED, naming the right

cdef struct HookRoutings:                # packed routings, as a hook returned them
    HookRoutings* next
    char     bytes[1]

cdef struct StageKey:               # of a STAGE command: which frame of which attempt of which batch
    Slice    sink
    uint64_t epoch
    uint64_t batch
    uint64_t attempt
    uint32_t partition
    uint32_t frame
    uint32_t request_length         # of the command's bytes; rewritten bodies stand behind them
    uint32_t checksum               # of the request
    bint     is_repeat

cdef struct Command:
    int32_t  kind
    uint64_t token
    char*    bytes                  # the frame; NULL once a Body owns it
    uint32_t length
    uint32_t rewritten              # of `length`, behind what came over the wire
    Item*    items                  # enqueue kinds
    uint32_t count
    uint32_t duplicates             # items for which an earlier message stands
    StageKey* stage                 # NULL but for STAGE
    uint64_t sequence
    Slice    queue                  # the frame's
    uint64_t queue_number           # whose channels take longest to see it
    bint     durable                # its answer waits for the disk
    uint8_t  verdict
    uint8_t  sees_a_part            # its sender may see a part of the queue: its answer tells no offset,
                                    # which counts everybody's messages, and names no other channel
    void*    firing                 # of a FIRE: the Schedule whose moment it took
    HookRoutings* routings                # behind the items' routings
    int64_t  shown_ns, routed_ns    # for spans: from when to when its scripts had it; 0 = not told
    Command* next

cdef struct Mailbox:
    pthread_mutex_t lock
    pthread_cond_t  changed
    Command* first
    Command* last
    uint32_t count
    uint32_t capacity
    uint64_t refused                # commands that found it full
    bint     asleep
    uint32_t wanted                 # commands that end the sleep; fewer wait for a poke or the time
    bint     poked                  # something else than a command wants a pass

cdef Command* command_new(int32_t kind, uint64_t token, const char* bytes, size_t length) noexcept nogil
# The same without a copy: `bytes` came from malloc and belong to the command from here on.
cdef Command* command_adopt(int32_t kind, uint64_t token, char* bytes, size_t length) noexcept nogil
cdef void command_free(Command* command) noexcept nogil

cdef Mailbox* mailbox_new(uint32_t capacity) noexcept nogil
cdef void mailbox_free(Mailbox* box) noexcept nogil
cdef bint mailbox_post(Mailbox* box, Command* command) noexcept nogil      # False: full
cdef Command* mailbox_take(Mailbox* box, uint32_t most) noexcept nogil      # a list, oldest first
cdef void mailbox_poke(Mailbox* box) noexcept nogil
# Sleeps until `wanted` commands or a poke, at most `wait_ns`; returns whether there is something.
cdef bint mailbox_sleep(Mailbox* box, int64_t wait_ns, uint32_t wanted) noexcept nogil
