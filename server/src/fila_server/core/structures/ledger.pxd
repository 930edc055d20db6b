"""So much for each of periods of one length, which follow each other without a gap: how much of it was spent.

    anchor        anchor + period         ...      the period that `now` is in: floor((now - anchor) / period)
      |  period 0      |   period 1      |

What was spent counts until a later period begins. A clock that is set back opens no period again: until it
has come back to where it was, the ledger stays in its newest period.
"""

from libc.stdint cimport int64_t

cdef struct Ledger:
    double  amount              # of a period
    double  spent               # within `period`; above `amount` only by one message that cost more than that
    int64_t period              # the newest that was seen
    int64_t period_ms, anchor_ms


# Nothing spent.
cdef void ledger_init(
    Ledger* ledger, double amount, int64_t period_ms, int64_t anchor_ms, int64_t now_ms) noexcept nogil
# What was spent stays where the periods are the same.
cdef void ledger_configure(
    Ledger* ledger, double amount, int64_t period_ms, int64_t anchor_ms, int64_t now_ms) noexcept nogil
# Spent so much in that period, as it was recorded.
cdef void ledger_recover(Ledger* ledger, int64_t period, double spent, int64_t now_ms) noexcept nogil
# Call before any of the following; they speak of the period as of then.
cdef void ledger_turn(Ledger* ledger, int64_t now_ms) noexcept nogil
# Whether `cost` more may be spent behind `before`, which is counted on: what costs more than the amount goes
# first in a period.
cdef bint ledger_has(Ledger* ledger, double cost, double before) noexcept nogil
cdef void ledger_take(Ledger* ledger, double cost) noexcept nogil
cdef void ledger_give_back(Ledger* ledger, double cost) noexcept nogil      # down to nothing spent
cdef void ledger_reset(Ledger* ledger, double spent) noexcept nogil
cdef int64_t ledger_starts_ms(const Ledger* ledger) noexcept nogil          # when the newest one began
cdef int64_t ledger_ends_ms(Ledger* ledger) noexcept nogil                  # when the next period begins
