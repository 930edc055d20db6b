"""Amounts in doubles, times in milliseconds that are told. Judged by reference.ReferenceLedger."""

from libc.math cimport fabs

# Sums of costs are rounded: what misses by less than this part of the amount is there.
cdef double ROUNDING = 1e-9


cdef int64_t _period_of(Ledger* ledger, int64_t now_ms) noexcept nogil:
    """Rounded down; C rounds towards 0."""
    cdef int64_t since = now_ms - ledger.anchor_ms
    return since // ledger.period_ms - (1 if since < 0 and since % ledger.period_ms else 0)


cdef void ledger_init(
        Ledger* ledger, double amount, int64_t period_ms, int64_t anchor_ms, int64_t now_ms) noexcept nogil:
    ledger.amount = amount
    ledger.period_ms, ledger.anchor_ms = period_ms, anchor_ms
    ledger.spent = 0
    ledger.period = _period_of(ledger, now_ms)


cdef void ledger_configure(
        Ledger* ledger, double amount, int64_t period_ms, int64_t anchor_ms, int64_t now_ms) noexcept nogil:
    if ledger.period_ms != period_ms or ledger.anchor_ms != anchor_ms:
        ledger_init(ledger, amount, period_ms, anchor_ms, now_ms)
        return
    ledger.amount = amount
    ledger_turn(ledger, now_ms)


cdef void ledger_recover(Ledger* ledger, int64_t period, double spent, int64_t now_ms) noexcept nogil:
    ledger.period, ledger.spent = period, spent
    ledger_turn(ledger, now_ms)


cdef void ledger_turn(Ledger* ledger, int64_t now_ms) noexcept nogil:
    cdef int64_t period = _period_of(ledger, now_ms)
    if period > ledger.period:
        ledger.period, ledger.spent = period, 0


cdef bint ledger_has(Ledger* ledger, double cost, double before) noexcept nogil:
    cdef double slack = fabs(ledger.amount) * ROUNDING
    return ledger.amount - ledger.spent - before + slack >= min(cost, ledger.amount)


cdef void ledger_take(Ledger* ledger, double cost) noexcept nogil:
    ledger.spent += cost


cdef void ledger_give_back(Ledger* ledger, double cost) noexcept nogil:
    ledger.spent = max(ledger.spent - cost, 0.0)


cdef void ledger_reset(Ledger* ledger, double spent) noexcept nogil:
    ledger.spent = spent


cdef int64_t ledger_starts_ms(const Ledger* ledger) noexcept nogil:
    return ledger.anchor_ms + ledger.period * ledger.period_ms


cdef int64_t ledger_ends_ms(Ledger* ledger) noexcept nogil:
    """The newest period's end, also while the clock reads less."""
    return ledger.anchor_ms + (ledger.period + 1) * ledger.period_ms


cdef class PeriodLedger:
    """One ledger, for tests."""

    cdef Ledger ledger

    def __init__(self, double amount, int64_t period_ms, int64_t anchor_ms, int64_t now_ms):
        ledger_init(&self.ledger, amount, period_ms, anchor_ms, now_ms)

    def configure(self, double amount, int64_t period_ms, int64_t anchor_ms, int64_t now_ms):
        ledger_configure(&self.ledger, amount, period_ms, anchor_ms, now_ms)

    def recover(self, int64_t period, double spent, int64_t now_ms):
        ledger_recover(&self.ledger, period, spent, now_ms)

    def turn(self, int64_t now_ms):
        ledger_turn(&self.ledger, now_ms)

    def has(self, double cost, double before=0.0):
        return ledger_has(&self.ledger, cost, before)

    def take(self, double cost):
        ledger_take(&self.ledger, cost)

    def give_back(self, double cost):
        ledger_give_back(&self.ledger, cost)

    def reset(self, double spent):
        ledger_reset(&self.ledger, spent)

    def ends_ms(self):
        return ledger_ends_ms(&self.ledger)

    @property
    def spent(self):
        return self.ledger.spent

    @property
    def period(self):
        return self.ledger.period
