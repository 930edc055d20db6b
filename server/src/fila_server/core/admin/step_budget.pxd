"""Walks of a command that asks, cut so that it delays nobody: it has so many steps for all that it tells of.

Ages of keys, what holds them back, and what lies before their buckets are found by walks: over the sub-queues
of a key that stand in lines, the places in a line, the consumers of a channel, the timers. Once the steps are
used up the rest is told without buckets and times, and an age is that of the oldest message that was looked
at. What a command looked at counts as work of its stage, so that others that ask wait for the next pass.
"""

from libc.stdint cimport uint32_t, uint64_t

from fila_server.core.state.state cimport Channel, Core, Flow, Slot

cdef enum:
    LOOKS_MAX = 100000                  # more than one key's walks ever take
    SUBQUEUES_MAX = 10000               # of one flow
    LOOKS_PER_WORK = 16                 # what is looked at and left alone, for one that is touched

cdef struct Looks:                      # what is left of the steps of a command
    uint32_t left
    Channel* channel                    # whose consumers were looked at last,
    bint     has_room                   # and whether one had room

cdef inline Looks looks_begin() noexcept nogil:
    cdef Looks looks
    looks.left, looks.channel, looks.has_room = LOOKS_MAX, NULL, False
    return looks

cdef inline bint may_look(Looks* looks) noexcept nogil:
    looks.left -= looks.left > 0
    return looks.left > 0

# So many more were taken, by a walk that is bounded by itself.
cdef inline void looks_spend(Looks* looks, uint32_t steps) noexcept nogil:
    looks.left -= min(looks.left, steps)

# They are counted among what was walked, and as work.
cdef void looks_end(Core* core, const Looks* looks) noexcept nogil

# The flow's ready message with the lowest position, held or not; a step for each of its sub-queues where some
# stand in lines.
cdef Slot* flow_first(Flow* flow, Looks* looks) noexcept nogil
# The age of it in ms: its oldest but for those that came back.
cdef uint64_t flow_age(Core* core, Flow* flow, Looks* looks) noexcept nogil
