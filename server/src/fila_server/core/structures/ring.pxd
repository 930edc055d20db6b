"""Deficit round robin (Shreedhar & Varghese 1996) whose empty
rounds are skipped. The promise: docs/fairness.md.

    head                                                     tail
     flow at turn -> flow -> flow -> [marker] -> flow -> flow          the list, first in, first out
                                        |
       at the head it ends a round: round + 1, then the flows due       deferred: heap by due_round
       in that round are appended, then the marker itself

A flow whose turn ends goes to the tail. One that needs more than one further grant for its next message does
not walk round after round: it is deferred, in a heap, to the round in which it can pay, and the grants of the
rounds in between are credited when it comes back. So every backlogged flow gets exactly one grant a round,
written down or not, and a pick costs the same with ten flows and with a million.
"""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t, uint8_t

cdef enum Place:
    IDLE = 0             # not backlogged, or parked
    ON_RING = 1          # on the list
    DEFERRED = 2         # in the heap of those deferred


# One flow's place; embedded FIRST in the owner's struct, zeroed but for its weight. A flow is on the list or
# in the heap, never in both, and what it needs for the one shares its words with the other: each key has one.
# Packed, so that what follows it may begin behind its 28 bytes.
cdef extern from *:
    """
    #include <stdint.h>
    typedef struct FilaTurn {
        union { struct FilaTurn *next; int64_t since_round; };
        union { struct FilaTurn *prev; uint32_t deferred_at; };
        int64_t deficit;
        uint16_t weight;
        uint8_t place, carried;
    } __attribute__((packed, aligned(4))) FilaTurn;
    """
    ctypedef struct Turn "FilaTurn":
        Turn*    next        # ON_RING: neighbours on the list
        Turn*    prev
        int64_t  since_round # DEFERRED: the round up to which grants are already in `deficit`
        uint32_t deferred_at # DEFERRED: index in the heap
        int64_t  deficit     # thousandths of a message it may still send; never below 0
        uint16_t weight      # 1..1000
        uint8_t  place       # a Place
        uint8_t  carried     # some of the deficit came through a park, a pass or a refund,
                             # and no turn has ended since


cdef struct Deferral:    # who is deferred, until when: a row of the heap
    int64_t  due_round   # in which it re-enters
    uint64_t seq         # first come, first served within a round
    Turn*    turn


cdef struct Ring:
    Turn     marker      # the end of a round; itself on the list, so a Ring must not be moved
    Turn*    head        # flow at turn, or the marker; the list is a circle, so the tail is head.prev
    Turn*    granted     # the flow at turn once its grant is added, NULL before
    Deferral* deferred   # binary heap by (due_round, seq)
    uint32_t deferred_count
    uint32_t deferred_capacity
    uint32_t ring_count  # flows on the list, the marker not counted
    int64_t  round       # the round that the flows before the marker are in
    int64_t  quantum     # thousandths of a message granted per unit of weight, per round
    uint64_t seq         # last Deferral.seq given
    uint64_t walked      # rounds begun since ever; those that were skipped are not counted


cdef void ring_init(Ring* ring, int64_t quantum) noexcept nogil
cdef void ring_free(Ring* ring) noexcept nogil                      # its flows belong to their owners

# A flow comes and goes. Each is safe from any place.
cdef void ring_join(Ring* ring, Turn* turn) noexcept nogil          # became backlogged: tail, deficit 0
cdef void ring_leave(Ring* ring, Turn* turn) noexcept nogil         # became idle: forfeits its deficit
cdef void ring_park(Ring* ring, Turn* turn) noexcept nogil          # throttled: keeps at most one grant
cdef void ring_rejoin(Ring* ring, Turn* turn) noexcept nogil        # may go again: tail, deficit kept

# The message that goes next is another one than before, and not because it was sent.
cdef void ring_again(Ring* ring, Turn* turn) noexcept nogil

# A pick: turn = ring_turn(); while ring_afford(turn, cost): send, ring_charge(turn, cost).
cdef Turn* ring_turn(Ring* ring) noexcept nogil                     # NULL when nobody is backlogged
# 0: its turn is over, ask ring_turn again
cdef bint ring_afford(Ring* ring, Turn* turn, int64_t cost) noexcept nogil
cdef void ring_charge(Ring* ring, Turn* turn, int64_t cost) noexcept nogil  # after a send
cdef void ring_yield(Ring* ring, Turn* turn) noexcept nogil         # passes its turn unused, to the tail

# a charged delivery came back; up to one grant
cdef void ring_refund(Ring* ring, Turn* turn, int64_t cost) noexcept nogil
cdef void ring_reweigh(Ring* ring, Turn* turn, uint32_t weight) noexcept nogil
