"""Sinks: batches that tasks stage aside and one call publishes; what of them is in memory.

    Core.sinks ── by name ──► Sink ── attempts, by key ──► Attempt ── frames: one StagedFrame a Stage call
                                └─ intent ──► Intent: the batch that is published and still on its way

The messages themselves are on the disk alone. Nothing here points to a queue: it may be deleted meanwhile.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from fila_server.core.state.opaque cimport Load
from fila_server.core.structures.buffer cimport Buffer
from fila_server.core.structures.maps cimport Map64, Text, TextMap
from fila_server.core.threads.mailbox cimport Command

cdef enum:
    ATTEMPT_KEY_BYTES = 28          # epoch, batch, partition, attempt
    PUBLISH_WAITERS_MAX = 8

cdef struct StagedFrame:
    uint64_t serial                 # its key on the disk, under the sink's number
    uint64_t queue_number
    uint32_t bytes                  # as it counts, with what it costs beside its messages
    uint32_t count                  # messages
    uint32_t dedup_keys             # of these, how many carry one
    uint32_t checksum

cdef struct Attempt:
    Text     text                   # first: its key's bytes
    char     key[ATTEMPT_KEY_BYTES]
    Attempt* next                   # of its sink; or of those whose records are being deleted
    Attempt* prev
    uint64_t sink_number
    uint64_t epoch
    uint64_t batch
    uint64_t attempt
    uint32_t partition
    uint32_t first                  # number of frames[0]: those before it were moved or deleted before a
                                    # restart
    StagedFrame* frames
    uint32_t count
    uint32_t capacity
    uint32_t gone                   # of these, moved or deleted, from the front
    bint     listed                 # an INTENT names it
    uint64_t messages               # of all its frames
    uint64_t messages_left          # ... and of those that are neither moved nor deleted
    uint64_t bytes_left
    uint64_t checksum               # the sum of its frames'
    uint64_t staged_pass            # in which it was last added to: not on the disk before that one is
                                    # written

cdef struct Intent:                 # a batch between its commit point and its end
    uint64_t batch
    uint64_t epoch                  # of the core: it moves once this one is durable
    Attempt** attempts
    uint32_t count
    uint32_t at                     # the attempt whose frames move now
    uint64_t messages               # of all attempts, as they were listed
    uint64_t moved
    uint64_t duplicates
    uint64_t lost
    bint     asked                  # of the reader thread, for the frame that is next
    bint     running                # that frame goes with this pass
    int64_t  paused_until_ns        # the disk refused it
    uint64_t waiters[PUBLISH_WAITERS_MAX]       # tokens of the calls to be answered; the first began it
    uint32_t waiter_count
    bint     begun_here             # the first waiter's call began it: not so after a restart

cdef struct Sink:
    Text     text                   # first; the name's bytes stand behind the struct
    uint64_t number                 # never used twice
    uint64_t epoch
    uint64_t next_batch             # those below were published
    uint64_t next_serial
    uint64_t keep_ms
    int64_t  used_ms                # wall clock, as stored
    int64_t  used_ns                # on the running clock: what it is forgotten by
    int64_t  staged_ns              # the same, of the newest Stage: what orphans are swept by
    Buffer   runs                   # names of runs, each behind its length, the present one last
    TextMap  attempts_by_key
    Attempt* attempts
    uint64_t staged_messages        # what its attempts have left
    uint64_t staged_bytes
    Intent*  intent
    Sink*    next_moving            # circular, of those with an intent
    uint64_t cursor_moved           # recovery: as the cursor's record says
    uint64_t cursor_duplicates
    uint64_t cursor_lost

cdef struct SinkCounters:
    uint64_t staged                 # messages
    uint64_t published              # batches
    uint64_t moved                  # messages
    uint64_t duplicates
    uint64_t lost
    uint64_t swept                  # attempts nobody published, gone by age

cdef struct Sinks:
    TextMap  by_name
    Map64    by_number
    Sink**   in_order               # of their names
    uint32_t in_order_count, in_order_capacity
    uint64_t staged_bytes           # on the disk, as StagedFrame.bytes counts
    uint64_t promised_dedup_keys    # of batches on their way
    Attempt* dying                  # their records are still to be deleted
    Sink*    moving                 # circular
    uint32_t moving_count
    uint32_t to_look_at             # of these, since something happened that one of them may wait for
    uint64_t looked_durable         # Core.durable when it did
    Command* staging                # Stage calls of this pass, answered once it is written
    Command* staging_last
    Command* moved                  # pieces that are written
    Command* unmoved                # and those that the disk refused
    Load*    loaded                 # pieces that the reader thread brought
    uint32_t sweep_cursor
    # --- settings
    uint64_t staged_bytes_max
    uint32_t attempts_max           # of a sink
    uint32_t sinks_max
    int64_t  orphan_age_ns
    SinkCounters counters
