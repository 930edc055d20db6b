"""Who may do what to which queue, judged once a frame and queue, without the GIL.

One table a server, written by `fila_server.access` (through rights_table) whenever a key, a grant or a quota
changes, read by every thread that takes frames in. A caller is one key (a number, never used twice in a run);
several belong to one principal, which has the grants, the tenant and the quotas. While keys are off (is_on is
False) everything is allowed to everybody.

    rights_find     key id and the digest of its secret  ->  caller        once a call or a connection
    rights_admit    a frame's bytes against the quotas                     before it is parsed
    rights_judge    a parsed frame                                         before it is posted or hooked
    rights_on       one queue                                              for what is no frame
    rights_take     a stream, a connection, against the quotas             given back when it ends

The edge's I/O threads do the same, in this order; they find the table in `CoreEngine.rights`. What
they keep open is judged again when `generation` moved. The lock is held for a table look-up; decisions are
kept by (principal, queue) and thrown away with the grants they came from, so none is older than the change.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from fila_server.core.protocol.problem cimport Problem
from fila_server.core.structures.buffer cimport Slice
from fila_server.core.structures.maps cimport Map64, Text, TextMap
from fila_server.core.threads.locks cimport pthread_mutex_t
from fila_server.core.threads.mailbox cimport Command

cdef enum Right:
    PRODUCE = 1
    CONSUME = 2
    MANAGE = 4
    ADMIN = 8                       # includes the others, on every queue
    VIEW = 16                       # numbers and events, no message
    CANCEL = 32                     # take messages back
    EVERY_RIGHT = PRODUCE | CONSUME | MANAGE | ADMIN | VIEW | CANCEL

cdef enum:
    DIGEST_BYTES = 32               # SHA-256 of a key's secret
    CALLER_UNKNOWN = 0              # rights_find: no such key, or another secret
    CALLER_EXPIRED = -1             # rights_find: the key's time is over

cdef struct Grant:
    uint32_t rights
    Slice    queue                  # a pattern: `*` stands for any run of bytes
    Slice    channel                # the same; empty = every channel

cdef struct Allowed:                # a decision that is kept
    Text     text                   # the queue's name
    uint32_t everywhere             # rights on each of its channels
    uint32_t somewhere              # on one of them at least; 0 = the queue does not exist for this caller

cdef struct Allowance:              # a quota: a bucket that a frame may overdraw once
    double   rate                   # a second; 0 = no bound
    double   level
    int64_t  refilled_ns

cdef enum:                          # what is counted of a principal at a time
    STREAMS = 0                     # and waiting pulls
    CONNECTIONS
    COUNTED

cdef struct AtATime:
    uint32_t most                   # 0 = no bound
    uint32_t count

cdef struct Principal:
    uint64_t number
    Grant*   grants
    uint32_t grant_count
    uint32_t rights                 # of all grants together
    Slice    tenant                 # the fairness key that is pinned; empty = none
    TextMap  allowed
    Allowance messages
    Allowance bytes
    AtATime  at_a_time[COUNTED]
    uint64_t stored_max             # bytes of its tenant's in all queues; 0 = no bound
    uint64_t stored                 # of these, as the core last counted, and what was let in since
    uint64_t let_in                 # bytes, since the start
    uint32_t in_flight_max          # messages leased by its consumers at a time; 0 = no bound
    uint64_t in_flight              # of these, as the core last told
    uint64_t refused                # frames beyond a quota

cdef struct Caller:
    Text     text                   # the key's id
    uint64_t number
    uint64_t principal
    char     digest[DIGEST_BYTES]
    int64_t  expires_ms             # 0 = never
    bint     is_over                # the clock was past its end at the last look (access/ends.py)

cdef struct RightsTable:
    pthread_mutex_t lock
    bint     is_on                  # False: everybody is caller 0
    uint64_t generation             # counts changes; what is open is judged again when it moved
    Map64    principals             # by number
    Map64    callers                # by number
    TextMap  keys                   # callers by key id

# The caller's number, CALLER_UNKNOWN or CALLER_EXPIRED. `digest` is DIGEST_BYTES long, and compared in
# a time that says nothing about it.
cdef int64_t rights_find(
    RightsTable* table, Slice key_id, const char* digest, int64_t wall_ms) noexcept nogil
# False: beyond a quota of the caller's, and `problem` says when to come back (retry_ms).
cdef bint rights_admit(
    RightsTable* table, uint64_t caller, int32_t kind, int64_t now_ns, Problem* problem) noexcept nogil
# Marks the messages of a frame that its caller may not enqueue, binds the others to its tenant, charges its
# quotas; sets the verdict of other commands, which the core then answers with. False: the key is gone.
cdef bint rights_judge(
    RightsTable* table, uint64_t caller, Command* command, int64_t now_ns, Problem* problem) noexcept nogil
# Rights on each channel of the queue and on at least one; on channel `channel` where it is not empty.
cdef void rights_on(
    RightsTable* table, uint64_t caller, Slice queue, Slice channel,
    uint32_t* everywhere, uint32_t* somewhere) noexcept nogil
# Whether the key is there and belongs to somebody.
cdef bint rights_holds(RightsTable* table, uint64_t caller) noexcept nogil
# One more of these for the caller's principal, whose number it returns for rights_give; 0: there are too
# many, or the key is gone, and `problem` says which.
cdef uint64_t rights_take(
    RightsTable* table, uint64_t caller, int what, Problem* problem) noexcept nogil
cdef void rights_give(RightsTable* table, uint64_t principal, int what) noexcept nogil
# Queue and channel of a settle, a pull or a stream's opening that was parsed; the channel is "default" where
# none is named.
cdef void rights_names(const Command* command, Slice* queue, Slice* channel) noexcept nogil
# Under the lock, as rights_table changes what they speak of.
cdef Principal* principal_of(RightsTable* table, uint64_t caller) noexcept nogil
cdef void allowed_forget(Principal* p) noexcept nogil
