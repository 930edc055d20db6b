"""What is counted, as plain increments on the scheduler thread; metrics.pyx and stats.pyx read it.

Metrics take a queue's counters from here by their names: a new one is a line here and its metric's in
telemetry/catalog.py.
"""

from libc.stdint cimport int64_t, uint16_t, uint64_t

cdef struct Tally:                  # in how many channels an entry is what
    uint16_t pending                # READY or DELAYED
    uint16_t in_flight              # LEASED or DECIDING
    uint16_t undone                 # anything but DONE

cdef struct QueueCounters:
    uint64_t enqueued
    uint64_t leased
    uint64_t delivered              # begun, which is at the lease where nobody tracks it
    uint64_t acked
    uint64_t nacked
    uint64_t expired
    uint64_t dead_lettered
    uint64_t redriven
    uint64_t stale_acks
    uint64_t ttl_dropped
    uint64_t hard_dropped
    uint64_t clamped
    uint64_t refused
    uint64_t returned
    uint64_t dead_dropped
    uint64_t cancelled, replaced
    uint64_t skipped                # by an operator: these are dead-lettered too
    uint64_t retried_in_place       # failures whose message stays where it stands in its key

cdef struct Failures:               # of a queue, since the first after a quiet time
    int64_t  began_ns, last_ns      # on the monotonic clock; 0 = none yet
    uint64_t acked, failed, dead    # what had been counted when they began

cdef struct Latency:                # enqueue to delivery
    uint64_t by_bits[32]            # by the bit length of the milliseconds
    uint64_t sum_ms

cdef struct Hour:                   # the last hour in twelve parts, see clocks.pxd
    int64_t  part                   # the number of the five minutes that `now` is about
    double   now[8]                 # by the columns of clocks.pxd
    float    parts[12][8]           # part % 12
    double   before[8]              # all parts that are over, since the beginning

cdef struct Rates:                  # what a key had at the last look, and what it did a second up to then
    int64_t  looked_ns              # 0 = never
    uint64_t arrived, delivered
    double   served, due            # cost, in thousandths
    float    arriving, delivering, serving, owing   # owing: as weights give it

cdef struct CoreCounters:
    uint64_t passes, epochs, commands, frames_in, messages_in, refused
    uint64_t lost_ranges, lost_acks, damaged_blocks, lost_messages, loads, loads_bytes, evictions, rewrites
    uint64_t stalls
    uint64_t latency[32]            # enqueue to delivery, by the bit length of the milliseconds
    uint64_t refused_by[32]         # by wire.Refused
    uint64_t batch[32]              # messages of a pass that wrote some, by bit length
    uint64_t batch_messages
    uint64_t frames_built
    uint64_t work                   # messages and timers touched; how many a pass
                                    # may is bounded, see budget.pxd
    uint64_t pass_work_max          # the most that one pass touched
    uint64_t stirs                  # stands still while nobody asks, consumes or holds, and nothing is due
    uint64_t visits                 # of housekeeping at queues, for what time brings: see index/visits.pxd
    uint64_t taken_apart            # queues that were freed after their deletion
    uint64_t walked                 # steps along lists that grow with what is stored: few, whatever is stored
