"""What keeps the disk small and safe while nobody waits for it: one slow thread of its own.

    scheduler thread  --- upkeep.live_frame_bytes (stored whole) --->  upkeep thread, each second
    edge threads      --- upkeep.connections_freed (counted up) --->    1. copy the MANIFEST's new bytes, note
                                                                        the log's 2. empty the WAL, if nothing
                                                                        happens 3. give free memory back
                                                                        4. give dead frames' disk back

The rules: the FRAMES family takes at most 1.5 times what is live in it, plus RECLAIM_SLACK_BYTES. Memory that
was freed goes back to the system at most TRIM_EVERY_ROUNDS seconds later if nothing is written for one of
them, and under steady writes too if it is more than RELEASED_BYTES_MIN and a fifth of all; in any case once
in TRIM_ANYWAY_ROUNDS seconds.
"""

from libc.stdint cimport int64_t, uint64_t

from fila_server.core.storage.families cimport Store
from fila_server.core.storage.status cimport StoreError

from fila_server.core.structures.atomics cimport atomic_add

cdef enum:
    RECLAIM_SLACK_BYTES = 67108864      # 64 MiB: below it, rewriting costs more than it gives back
    RELEASED_BYTES_MIN = 33554432       # less than it is not worth a trim while messages flow
    CONNECTION_BYTES = 16384            # about what one has

cdef extern from *:
    struct Disk "fila_disk":            # storage/disk
        pass

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_t:
        pass

cdef struct Upkeep "fila_upkeep":
    Store* store
    Disk* disk                          # watch.pyx's, to read how much is free; or NULL
    int64_t live_frame_bytes            # keys and values of FRAMES that are not
                                        # deleted; the scheduler sets it
    uint64_t writes_seen                # store.counters.writes at the last round
    uint64_t writes_tidied              # ... when the WAL was last looked at in a quiet moment
    uint64_t memtable_bytes             # of all families, as of the last round
    int64_t held_bytes                  # index and payloads in memory; the scheduler sets it
    int64_t held_bytes_most             # ... since free memory was given back
    uint64_t connections_freed          # ever; the edge's threads add
    uint64_t rounds
    uint64_t writes_trimmed             # ... when free memory was given back to the system,
    uint64_t connections_freed_trimmed  # and these then
    uint64_t trim_after                 # not before this round again
    uint64_t trim_count
    uint64_t reclaim_count              # times something was compacted
    uint64_t rewrite_count              # of these, times live payloads had to be rewritten
    StoreError error                    # of the last round that failed
    pthread_t thread
    int stop_fd                         # eventfd: readable when the thread has to end
    bint running


# Starts the thread; before store_close comes upkeep_stop, which also cuts a running compaction short.
cdef int upkeep_start(Upkeep* upkeep, Store* store, Disk* disk) noexcept nogil
cdef void upkeep_stop(Upkeep* upkeep) noexcept nogil
# A connection was freed: what it had may go back to the system. For any thread.
cdef inline void connection_freed(Upkeep* upkeep) noexcept nogil:
    atomic_add(&upkeep.connections_freed, 1)
# One round, as the thread does it each second; tests and the simulation call it themselves.
cdef int upkeep_round(Upkeep* upkeep) noexcept nogil
# The last part of a round. STORE_OK also when there was nothing to do.
cdef int reclaim_frames(Upkeep* upkeep, int64_t live_bytes, StoreError* error) noexcept nogil
