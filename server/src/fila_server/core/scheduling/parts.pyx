"""A message is judged by all parts before it takes from any. A part that counts costs may fall below 0 or run
over by one message that costs more than the part ever holds; all others keep their bounds to the letter."""

from libc.stdint cimport INT64_MAX, uint32_t
from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.scheduling.following cimport (
    following_configure, following_waits, key_follows, terms_follow,
)
from fila_server.core.state.limits cimport LimitRate, Parts
from fila_server.core.state.paths cimport budget_clock_ms
from fila_server.core.structures.bucket cimport (
    Bucket, bucket_amount_due_ns, bucket_configure, bucket_give_back_amount, bucket_has_amount, bucket_init,
    bucket_refill, bucket_take_amount,
)
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.ledger cimport (
    ledger_configure, ledger_ends_ms, ledger_give_back, ledger_has, ledger_init, ledger_take, ledger_turn,
)

cdef int64_t NS_PER_MS = 1000000

# Of whole tokens, as doubles count them.
cdef double ROUNDING = 1e-9


cdef inline Bucket* _rate(ThrottleKey* key, uint32_t i) noexcept nogil:
    return &key.bucket if i == 0 else &key.parts.more[i - 1]


cdef inline double _amount(bint in_cost, uint64_t cost) noexcept nogil:
    return cost / 1000.0 if in_cost else 1.0


cdef inline double _before(bint in_cost, Counted before) noexcept nogil:
    return before.cost / 1000.0 if in_cost else <double> before.messages


cdef void parts_refill(Core* core, ThrottleKey* key) noexcept nogil:
    cdef LimitTerms* terms = &key.parts.terms
    cdef uint32_t i
    for i in range(terms.rate_count):
        bucket_refill(_rate(key, i), core.mono_ns, key.waiters != NULL)
    if terms.amount > 0:
        ledger_turn(&key.parts.ledger, budget_clock_ms(core))
    if key.waiting and key_follows(key):
        following_waits(core, key)


cdef bint parts_have(ThrottleKey* key, uint64_t cost, Counted before) noexcept nogil:
    cdef LimitTerms* terms = &key.parts.terms
    cdef LimitRate* rate
    cdef uint32_t i
    if terms.slots and key.in_flight + before.messages >= <int64_t> terms.slots:
        return False
    for i in range(terms.rate_count):
        rate = &terms.rates[i]
        if not bucket_has_amount(_rate(key, i), _amount(rate.in_cost, cost), _before(rate.in_cost, before)):
            return False
    if terms.amount > 0:
        return ledger_has(
            &key.parts.ledger, _amount(terms.budget_in_cost, cost), _before(terms.budget_in_cost, before))
    return True


cdef void parts_rates_take(ThrottleKey* key, uint64_t cost) noexcept nogil:
    cdef LimitTerms* terms = &key.parts.terms
    cdef uint32_t i
    for i in range(terms.rate_count):
        bucket_take_amount(_rate(key, i), _amount(terms.rates[i].in_cost, cost))


cdef inline bint _may_be_closed(ThrottleKey* key) noexcept nogil:
    """By its provider, and then nothing may go."""
    return key_follows(key) and key.bucket.level <= 0


cdef void parts_rates_give_back(ThrottleKey* key, uint64_t cost) noexcept nogil:
    cdef LimitTerms* terms = &key.parts.terms
    cdef uint32_t i
    for i in range(terms.rate_count):
        if not (i == 0 and _may_be_closed(key)):
            bucket_give_back_amount(_rate(key, i), _amount(terms.rates[i].in_cost, cost))


cdef void parts_rates_settle(ThrottleKey* key, uint64_t taken, uint64_t cost) noexcept nogil:
    cdef LimitTerms* terms = &key.parts.terms
    cdef uint32_t i
    for i in range(terms.rate_count if cost != taken else 0):
        if not terms.rates[i].in_cost:
            continue
        if cost > taken:
            bucket_take_amount(_rate(key, i), (cost - taken) / 1000.0)
        elif not (i == 0 and _may_be_closed(key)):
            bucket_give_back_amount(_rate(key, i), (taken - cost) / 1000.0)


cdef bint parts_budget_has(Core* core, ThrottleKey* key, uint64_t cost) noexcept nogil:
    cdef LimitTerms* terms = &key.parts.terms
    if terms.amount == 0:
        return True
    ledger_turn(&key.parts.ledger, budget_clock_ms(core))
    return ledger_has(&key.parts.ledger, _amount(terms.budget_in_cost, cost), 0)


cdef void parts_spend(ThrottleKey* key, uint64_t cost) noexcept nogil:
    if key.parts.terms.amount > 0:
        ledger_take(&key.parts.ledger, _amount(key.parts.terms.budget_in_cost, cost))


cdef void parts_take(ThrottleKey* key, uint64_t cost) noexcept nogil:
    parts_rates_take(key, cost)
    parts_spend(key, cost)


cdef void parts_give_back(ThrottleKey* key, uint64_t cost) noexcept nogil:
    parts_rates_give_back(key, cost)
    if key.parts.terms.amount > 0:
        ledger_give_back(&key.parts.ledger, _amount(key.parts.terms.budget_in_cost, cost))


cdef int64_t _period_ends_ns(Core* core, ThrottleKey* key) noexcept nogil:
    return core.mono_ns + max(ledger_ends_ms(&key.parts.ledger) - core.wall_ms, <int64_t> 1) * NS_PER_MS


cdef inline int64_t _rate_due_ns(ThrottleKey* key, uint32_t i, uint64_t cost, Counted before) noexcept nogil:
    cdef LimitRate* rate = &key.parts.terms.rates[i]
    return bucket_amount_due_ns(_rate(key, i), _amount(rate.in_cost, cost), _before(rate.in_cost, before))


cdef uint32_t parts_last_rate(ThrottleKey* key, uint64_t cost, Counted before) noexcept nogil:
    cdef uint32_t i
    cdef uint32_t last = 0
    for i in range(1, key.parts.terms.rate_count):
        if _rate_due_ns(key, i, cost, before) > _rate_due_ns(key, last, cost, before):
            last = i
    return last + 1


cdef int64_t parts_due_ns(Core* core, ThrottleKey* key, uint64_t cost, Counted before) noexcept nogil:
    cdef LimitTerms* terms = &key.parts.terms
    cdef int64_t due_ns = core.mono_ns
    cdef uint32_t i
    if terms.slots and key.in_flight + before.messages >= <int64_t> terms.slots:
        return INT64_MAX
    for i in range(terms.rate_count):
        due_ns = max(due_ns, _rate_due_ns(key, i, cost, before))
    if terms.amount > 0 and not ledger_has(
        &key.parts.ledger, _amount(terms.budget_in_cost, cost), _before(terms.budget_in_cost, before)
    ):
        due_ns = max(due_ns, _period_ends_ns(core, key))
    return due_ns


cdef bint parts_stand_still(Core* core, ThrottleKey* key, uint64_t cost) noexcept nogil:
    cdef Counted before
    cdef uint32_t i
    before.messages = before.cost = 0
    parts_refill(core, key)
    if key_follows(key) and key.parts.learned.open_ns > core.mono_ns:
        return True
    for i in range(key.parts.terms.rate_count):
        if _rate_due_ns(key, i, cost, before) == INT64_MAX:
            return True
    return not parts_budget_has(core, key, cost)


cdef int parts_holding(Core* core, ThrottleKey* key, uint64_t cost, Counted before) noexcept nogil:
    cdef LimitTerms* terms = &key.parts.terms
    if terms.slots and key.in_flight + before.messages >= <int64_t> terms.slots:
        return SLOTS_PART
    if terms.amount > 0 and not ledger_has(
        &key.parts.ledger, _amount(terms.budget_in_cost, cost), _before(terms.budget_in_cost, before)
    ):
        return BUDGET_PART
    return NO_PART if parts_have(key, cost, before) else RATE_PART


# --- what it is made of ------------------------------------------------------------------------

cdef Parts* _parts_of(ThrottleKey* key) noexcept nogil:
    """Those of a plain key are its bucket, which it keeps."""
    if key.parts == NULL:
        key.parts = <Parts*> must_malloc(sizeof(Parts))
        memset(key.parts, 0, sizeof(Parts))
        if key.charged:
            key.parts.terms.rate_count = 1
    return key.parts


cdef void parts_configure(Core* core, ThrottleKey* key, const LimitTerms* terms) noexcept nogil:
    cdef bint had_rate = key.charged and (key.parts == NULL or key.parts.terms.rate_count > 0)
    cdef bint plain = terms_are_plain(terms)
    cdef Parts* parts
    cdef Bucket* bucket
    cdef LimitTerms before
    cdef LimitRate rate
    cdef uint32_t i
    if plain and key.parts == NULL:
        if had_rate:
            bucket_configure(&key.bucket, terms.rates[0].per_second, terms.rates[0].burst, core.mono_ns)
        else:
            bucket_init(&key.bucket, terms.rates[0].per_second, terms.rates[0].burst, core.mono_ns)
        return
    parts = _parts_of(key)
    for i in range(terms.rate_count):
        rate, bucket = terms.rates[i], _rate(key, i)
        if i < parts.terms.rate_count and parts.terms.rates[i].in_cost == rate.in_cost:
            bucket_configure(bucket, rate.per_second, rate.burst, core.mono_ns)
        else:
            bucket_init(bucket, rate.per_second, rate.burst, core.mono_ns)
    if terms.amount > 0 and parts.terms.amount > 0 and parts.terms.budget_in_cost == terms.budget_in_cost:
        ledger_configure(
            &parts.ledger, terms.amount, terms.period_ms, terms.anchor_ms, budget_clock_ms(core))
    elif terms.amount > 0:
        ledger_init(&parts.ledger, terms.amount, terms.period_ms, terms.anchor_ms, budget_clock_ms(core))
    before = parts.terms
    parts.terms = terms[0]
    if terms_follow(terms):
        following_configure(core, key, &before)
    if plain:
        free(parts)
        key.parts = NULL


cdef inline bint _is_full(Bucket* bucket) noexcept nogil:
    return bucket.level >= bucket.burst * (1 - ROUNDING)


cdef bint parts_are_full(Core* core, ThrottleKey* key) noexcept nogil:
    cdef uint32_t i
    if key.parts == NULL:
        bucket_refill(&key.bucket, core.mono_ns, False)
        return _is_full(&key.bucket)
    parts_refill(core, key)
    for i in range(key.parts.terms.rate_count):
        if not _is_full(_rate(key, i)):
            return False
    return key.parts.terms.amount == 0 or key.parts.ledger.spent == 0


cdef int64_t parts_full_ns(Core* core, ThrottleKey* key) noexcept nogil:
    cdef uint32_t i
    cdef int64_t due_ns
    if key.parts == NULL:
        return bucket_amount_due_ns(&key.bucket, key.bucket.burst, 0)
    due_ns = core.mono_ns
    for i in range(key.parts.terms.rate_count):
        due_ns = max(due_ns, bucket_amount_due_ns(_rate(key, i), _rate(key, i).burst, 0))
    if key.parts.terms.amount > 0 and key.parts.ledger.spent > 0:
        due_ns = max(due_ns, _period_ends_ns(core, key))
    return due_ns
