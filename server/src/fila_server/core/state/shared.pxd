"""All that several threads touch of the core; everything else in Core is the scheduler thread's alone.

    field                       written by                  read by
    wanted, coming              scheduler                   commit, log readers
    durable                     commit                      scheduler, log readers
    stopping                    the thread that stops       scheduler
    blocked                     scheduler                   submitting threads
    watch                       watch                       scheduler (level), upkeep, metrics (free bytes)
    upkeep                      upkeep; live_frame_bytes by the scheduler
    failure                     whichever thread fails first; read by commit
    malformed                   submitting threads (shared_add)   metrics
    syncs, sync_us              commit

What decides is loaded and stored atomically (shared_load, shared_store); counts may be a little old.
Mailbox, outboxes and loader have locks of their own, and RocksDB has its own.
"""

from libc.stdint cimport uint64_t

from fila_server.core.store.reclaim cimport Upkeep
from fila_server.core.store.status cimport StoreFailure
from fila_server.core.store.watch cimport Watch

cdef extern from *:
    """
    #define fila_shared_load(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
    #define fila_shared_store(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
    #define fila_shared_add(p, v) __atomic_add_fetch((p), (v), __ATOMIC_SEQ_CST)
    """
    uint64_t shared_load "fila_shared_load" (uint64_t* p) nogil
    void shared_store "fila_shared_store" (uint64_t* p, uint64_t v) nogil
    uint64_t shared_add "fila_shared_add" (uint64_t* p, uint64_t v) nogil

cdef struct Shared:
    uint64_t coming                 # the newest epoch that may have something in the log
    uint64_t wanted                 # sync up to this epoch
    uint64_t durable                # synced up to this epoch
    bint     stopping               # new messages are refused, and nothing is handed out any more
    bint     blocked                # the pass could not be written yet; nothing else runs until it is
    Watch    watch
    Upkeep   upkeep
    StoreFailure failure            # whoever owns the threads stops the server
    uint64_t malformed              # frames refused whole at the door
    uint64_t syncs
    uint64_t sync_us[32]            # how long a sync took, by the bit length of the microseconds
    uint64_t sync_us_sum
