"""Where a pass of a group's owner goes, and what confirms it: a log that copies of the broker share.

    scheduler thread    group_append      a pass becomes a record, or parts, and its epoch waits
    commit thread       group_confirm     what the owner's rule (log/owning) confirms is written to the store,
                                          in order, and its epoch is durable
    a standby           group_follow      takes records as they come, and applies them; its own takeover
                                          among them makes it the owner

This stands in the place of a write and a sync of one's own (commit.pyx): who waits for `durable` waits for
the log, and nobody syncs for an answer.

While nothing is confirmed the core's clock stands still: it runs at most AHEAD_NS before the oldest record
that waits. So no lease, session or delay runs out for a log that stands, and what is due then is due later by
as much. What waits is at most PENDING_BYTES_MAX; beyond that, or STANDS_NS after the oldest was appended,
nothing more is appended, and new work is refused. An owner whose record is not confirmed for UNCONFIRMED_NS,
though the log can be read, resigns: another node may reach what it does not reach.

A read of the store by another thread (ReadLog) has no record of its own. So it asks for one: group_look, and
group_looked once a record that was appended behind it is confirmed.

An owner serves once the first record of its term is confirmed: it has the promises of lease ids. A term that
is over ends the process. What it had in memory is of use to nobody: the store has what was confirmed.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t

from fila_server.core.formats.applying cimport Applying
from fila_server.core.log.log cimport Log, LogError
from fila_server.core.log.owning cimport Owner
from fila_server.core.log.reading cimport Reading
from fila_server.core.log.record cimport Record
from fila_server.core.state.opaque cimport Store, StoreError
from fila_server.core.state.open_core cimport Look
from fila_server.core.state.state cimport Core
from fila_server.core.structures.buffer cimport Buffer
from fila_server.core.threads.locks cimport pthread_mutex_t

cdef enum GroupState:
    GROUP_FOLLOWS = 0
    GROUP_BIDS = 1
    GROUP_OWNS = 2
    GROUP_RESIGNS = 3               # start anew, as one that follows
    GROUP_HALTS = 4                 # the reading says why

cdef enum:
    LIVE_KNOWN_MS = 10000           # into a term an owner has counted what its messages take

cdef uint64_t LIVE_UNKNOWN

cdef struct Sent:                   # a record of the owner that is not applied yet
    uint8_t* content
    uint32_t length
    uint64_t tag
    uint64_t epoch                  # 0: nobody waits for it, or for more than it
    int64_t  host_ns, core_ns       # when it was appended
    uint64_t looks                  # so many had been asked for

cdef struct Group "fila_group":
    pthread_mutex_t lock            # of the owner, and of what was sent
    Log*     log
    Reading  reading
    Owner    owner
    Applying applying
    uint64_t state                  # a GroupState
    uint64_t node, nonce            # of its last bid
    uint64_t synced                 # the log up to here is in the store, and on the disk; any thread reads it
    uint64_t read_bytes             # of all records that were taken or confirmed
    uint64_t live_bytes             # of messages, as the owner knows it; LIVE_UNKNOWN; any thread reads it
    uint64_t answers                # of the log to reads: records, or where it ends
    bint     is_end                 # the last of them had nothing more
    bint     has_looked             # at its last record, whether it is still what it was
    Sent*    sent                   # a ring
    uint32_t first, count, room
    uint32_t given                  # so many of them the log has taken
    uint64_t bytes
    uint64_t confirmed              # records of the term
    uint64_t looks, looked          # asked for; confirmed
    uint64_t looks_sent             # of the scheduler
    int64_t  tried_ns               # of the commit thread: whether the log can be read
    int64_t  waited_ns              # when the newest was appended that is confirmed, and that others wait for
    Buffer   joined                 # of the scheduler
    int64_t  host_ns, beat_ns       # of this pass; when the last record was appended
    int64_t  stood_ns               # for how long the core's clock stood still
    bint     is_ahead               # in this pass the clock stands
    LogError error                  # why it is over, where the log said so


cdef void group_init(
    Group* group, Store* store, StoreError* error, Log* log, uint64_t node) noexcept nogil
cdef void group_free(Group* group) noexcept nogil
# A standby's round: at most some dozens of records. How many it took.
cdef uint32_t group_follow(Group* group, int32_t wait_ms) noexcept nogil
# A standby that halted, or another one, goes on at the end of the log, for a bid of a newer incarnation.
cdef void group_rebase(Group* group, int64_t end) noexcept nogil
# Appends this takeover, of the term that is; False: the log takes nothing just now.
cdef bint group_bid(Group* group, Record* record) noexcept nogil
# The pass's batches, or that there is nothing to write. False: the log stands, and nothing was appended.
cdef bint group_append(Core* core) noexcept nogil
# Some of what was appended waits for room in the log's queue. A record more would wait behind it, so
# commands better gather for one; a confirmed record pokes.
cdef bint group_is_full(Group* group) noexcept nogil
# Nothing was appended for a while: others see by this that the owner lives.
cdef void group_beat(Core* core) noexcept nogil
# Syncs the store. Any thread, one at a time.
cdef int group_sync(Group* group, StoreError* error) noexcept nogil
# Any thread: whether what a read of the store shows is still the newest that was answered. 0: no group.
cdef uint64_t group_look(Core* core) noexcept nogil
cdef Look group_looked(Group* group, uint64_t look) noexcept nogil
# True: an epoch is durable that was not before.
cdef bint group_confirm(Core* core, int32_t wait_ms) noexcept nogil
# The pass's clock, of the host's; and when the host is to run the next pass, of when the core wants one.
cdef int64_t group_now(Group* group, int64_t host_ns) noexcept nogil
cdef int64_t group_wakes(Core* core, int64_t next_ns) noexcept nogil
