"""All that several threads touch of the core; everything else in Core is the scheduler thread's alone.

    field                       written by                  read by
    wanted, coming              scheduler                   commit, log readers
    durable                     commit                      scheduler, log readers
    stopping                    the thread that stops       scheduler
    blocked, log_stands         scheduler                   submitting threads
    in_group, group             the opening                 scheduler and commit; group has a lock
    disk_level                  watch                       scheduler and submitting threads
    disk_free_bytes             watch                       metrics
    watch                       watch
    upkeep                      upkeep; live_frame_bytes, held_bytes by the scheduler,
                                connections_freed by the edge
    failure                     whichever thread fails first; read by commit
    malformed                   submitting threads (atomic_add)   metrics
    syncs, sync_us              commit

What decides is loaded and stored atomically (structures/atomics.pxd); counts may be a little old.
Mailbox, outboxes and loader have locks of their own, and RocksDB has its own.
"""

from libc.stdint cimport uint64_t


from fila_server.core.state.opaque cimport Group, StoreFailure, Upkeep, Watch

cdef struct Shared:
    uint64_t coming                 # the newest epoch that may have something in the log
    uint64_t wanted                 # sync up to this epoch
    uint64_t durable                # synced up to this epoch
    bint     stopping               # new messages are refused, and nothing is handed out any more
    bint     blocked                # the pass could not be written yet; nothing else runs until it is
    bint     in_group               # what leaves waits until the log that copies share has it
    Group*   group                  # NULL: a single node, or the replay of one of several
    bint     log_stands             # it confirms nothing just now, so nothing more is appended
    uint64_t disk_level             # DiskLevel of the last look
    uint64_t disk_free_bytes
    Watch*   watch
    Upkeep*  upkeep
    StoreFailure* failure           # the owner of the threads stops the server
    uint64_t malformed              # frames refused whole, before they were commands
    uint64_t syncs
    uint64_t sync_us[32]            # how long a sync took, by the bit length of the microseconds
    uint64_t sync_us_sum
