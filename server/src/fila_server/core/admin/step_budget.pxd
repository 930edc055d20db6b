"""Walks of a command that asks, cut so that it delays nobody: it has so many steps for all that it tells of.

Ages of keys, what holds them back, and what lies before their buckets are found by walks: over the sub-queues
of a key that stand in lines, the places in a line, the consumers of a channel, the timers. Once the steps are
used up the rest is told without buckets and times, and an age is that of the oldest message that was looked
at. What a command looked at counts as work of its stage, so that others that ask wait for the next pass.
"""

from libc.stdint cimport uint32_t, uint64_t

from fila_server.core.state.state cimport Channel, Core, Flow, Slot

cdef enum:
    STEPS_MAX = 100000                  # more than one key's walks ever take
    SUBQUEUES_MAX = 10000               # of one flow
    STEPS_PER_WORK = 16                 # what is looked at and left alone, for one that is touched

cdef struct StepBudget:                 # what is left of the steps of a command
    uint32_t left
    Channel* channel                    # whose consumers were looked at last,
    bint     has_room                   # and whether one had room

cdef inline StepBudget steps_begin() noexcept nogil:
    cdef StepBudget steps
    steps.left, steps.channel, steps.has_room = STEPS_MAX, NULL, False
    return steps

cdef inline bint may_step(StepBudget* steps) noexcept nogil:
    steps.left -= steps.left > 0
    return steps.left > 0

# So many more were taken, by a walk that is bounded by itself.
cdef inline void steps_spend(StepBudget* steps, uint32_t taken) noexcept nogil:
    steps.left -= min(steps.left, taken)

# They are counted among what was walked, and as work.
cdef void steps_end(Core* core, const StepBudget* steps) noexcept nogil

# The flow's ready message with the lowest position, held or not; a step for each of its sub-queues where some
# stand in lines.
cdef Slot* flow_first(Flow* flow, StepBudget* steps) noexcept nogil
# The age of it in ms: its oldest but for those that came back.
cdef uint64_t flow_age(Core* core, Flow* flow, StepBudget* steps) noexcept nogil
