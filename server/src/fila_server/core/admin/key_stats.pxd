"""A queue's keys, and the buckets that what waits in them names, in numbers: `per_key_stats` and
`per_throttle_stats` of GetStats.

Only a walk over the table of keys finds them. Within GET_STATS it goes over tables of at most CELLS_AT_ONCE
cells; of a larger one, or of keys with many sub-queues, the edge asks part after part, so that a million keys
stop nobody:

    STATS_PAGE  StatsPage: at most `most` keys from `cursor` on, none with less pending than `least`
                -> StatsPart: how many keys have something pending, the next cursor (0: that was all), and
                keys and buckets, whose `waiting` counts this part's keys alone

A table that has grown in between is begun anew.
"""

from libc.stdint cimport uint32_t, uint64_t

from fila_server.core.protocol.protobuf cimport Fields
from fila_server.core.state.state cimport Channel, Core, Queue
from fila_server.core.structures.buffer cimport Buffer
from fila_server.core.threads.mailbox cimport Command

cdef enum:
    CELLS_AT_ONCE = 16384           # two to four milliseconds of a pass

cdef struct Walked:
    uint32_t cursor                 # the cell after the last that was looked at
    uint64_t active

# Appends both for the cells from `cursor` to `end`, or to fewer where there is much to look at
# (Walked.cursor); `is_part`: of a larger table.
cdef Walked keys_walk(
    Core* core, Queue* queue, Channel* channel, uint64_t most, uint64_t least, uint32_t cursor, uint32_t end,
    bint is_part, Buffer* b) noexcept nogil

cdef void key_stats_page(Core* core, Command* command, Fields* fields, Queue* queue) noexcept nogil
