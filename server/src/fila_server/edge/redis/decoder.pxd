"""A connection's bytes as items to be carried out in order, without the GIL.

    bytes ──RespReader──► RPUSH q m ┐
                          RPUSH q m ├─► ITEM_PUSHES      EnqueueBatchRequest   (one frame a run)
                          RPUSH q m ┘
                          RPUSH q m m ► ITEM_PUSH_MANY   EnqueueBatchRequest   (of its own: all or none)
                          HMGET ──────► ITEM_LEASE       LeaseRequest
                          HDEL  ──────► ITEM_ACKS        AckBatchRequest, or several
                          the rest ───► ITEM_COMMAND     its arguments, for the handlers in Python

The three hot commands are checked and encoded here; what they get wrong becomes a finished error reply in its
place in the order of replies.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint32_t

from fila_server.core.structures.buffer cimport Buffer
from fila_server.edge.redis.resp cimport RespReader

cdef enum ItemKind:
    ITEM_PUSHES = 0      # body: EnqueueBatchRequest of `number` pushes, each on its own: kind ENQUEUE_BATCH
    ITEM_PUSH_MANY = 1   # the same of one push of many, all or nothing
    ITEM_LEASE = 2       # body: LeaseRequest; number: how long it waits, in milliseconds
    ITEM_ACKS = 3        # body: u32 length, AckBatchRequest, ...; number: bytes of the requests
    ITEM_COMMAND = 4     # body: u32 length, argument, ...; number: how many the client sent
    ITEM_REPLY = 5       # body: the reply; answered already
    ITEM_CLOSE = 6       # the same, and then the connection ends

cdef enum:
    QUEUE_BYTES_MAX = 255         # a name of 251 and ".dlq"
    CHANNEL_BYTES_MAX = 251

cdef struct Item:
    int32_t  kind
    int64_t  number
    Buffer   body                 # of its size, from malloc

cdef struct Decoder:
    RespReader reader
    int32_t  batch_messages_max
    int64_t  batch_bytes_max
    uint32_t run_count            # pushes met in a row, in the scratch buffer
    uint32_t run_queue_size       # the run's queue; pushes to others name theirs
    char     run_queue[256]
    Item     found[2]             # a run ends when another command has been found
    uint32_t found_count
    uint32_t found_taken

cdef void decoder_init(
    Decoder* d, int64_t argument_bytes_max, int32_t batch_messages_max,
    int64_t batch_bytes_max) noexcept nogil
cdef void decoder_free(Decoder* d) noexcept nogil
# The next item, whose body is the caller's; False: nothing more is whole. `scratch` is empty between calls,
# and may serve many decoders.
cdef bint decoder_next(Decoder* d, Buffer* scratch, Item* item) noexcept nogil
# Makes a read that would wait one that does not; `number` still says how long it would have.
cdef void lease_at_once(Item* item) noexcept nogil
