"""What is kept is taken from the limit, so everybody else counts without it."""

from fila_server.core.scheduling.following cimport following_takes, key_follows
from fila_server.core.scheduling.parts cimport (
    Counted, parts_budget_has, parts_have, parts_rates_give_back, parts_rates_settle, parts_rates_take,
    parts_refill, parts_spend, parts_stand_still,
)
from fila_server.core.state.paths cimport slot_cost
from fila_server.core.state.state cimport Slot
from fila_server.core.structures.bucket cimport bucket_give_back, bucket_has, bucket_refill, bucket_take
from fila_server.core.structures.fifo cimport fifo_first


cdef inline bint _has_slots(ThrottleKey* key) noexcept nogil:
    return key.parts != NULL and key.parts.terms.slots > 0


cdef bint _has(Core* core, ThrottleKey* key, uint64_t cost) noexcept nogil:
    cdef Counted before
    if key.parts == NULL:
        bucket_refill(&key.bucket, core.mono_ns, True)
        return bucket_has(&key.bucket)
    before.messages = before.cost = 0
    parts_refill(core, key)
    return parts_have(key, cost, before)


cdef bint _gives_slots(Core* core, ThrottleKey* key, uint64_t cost) noexcept nogil:
    """Who waits for it waits for leases to end, and for nothing that may last for a day."""
    return _has_slots(key) and not parts_stand_still(core, key, cost)


cdef bint _keeps_a_slot(Subqueue* sub) noexcept nogil:
    cdef uint32_t i
    for i in range(sub.set.count):
        if is_kept(sub, i) and _has_slots(sub.set.members[i]):
            return True
    return False


cdef Subqueue* keeps_in_vain(Core* core, ThrottleKey* key) noexcept nogil:
    cdef Subqueue* keeper = <Subqueue*> core.limit_table.keeper
    cdef Slot* first
    if keeper == NULL or keeper.waiter == NULL or keeper.waiter.waiters.bucket != key:
        return NULL
    first = <Slot*> fifo_first(&keeper.fifo)
    if first == NULL or not _keeps_a_slot(keeper) or _gives_slots(core, key, slot_cost(first)):
        return NULL
    return keeper


cdef Subqueue* keep(Core* core, Subqueue* sub, ThrottleKey* refusing) noexcept nogil:
    cdef Subqueue* keeper = <Subqueue*> core.limit_table.keeper
    cdef ThrottleKey* key = sub.waiter.waiters.bucket
    cdef uint64_t cost = slot_cost(<Slot*> fifo_first(&sub.fifo))
    cdef uint32_t i = 0
    if keeper == sub:
        keeper = NULL
    elif keeper != NULL:
        if keeper.ticket < sub.ticket:
            return NULL
        keep_ends(core, keeper)
    while sub.set.members[i] != key:
        i += 1
    if (
        is_kept(sub, i) or (_has_slots(key) and not _gives_slots(core, refusing, cost))
        or not _has(core, key, cost)
    ):
        return keeper
    core.limit_table.keeper = sub
    core.limit_table.cost_then[i] = cost
    sub.kept |= 1 << i
    key.in_flight += 1
    if key.parts == NULL:
        bucket_take(&key.bucket)
    else:
        parts_rates_take(key, cost)
    return keeper


cdef bint rest_has(Core* core, Subqueue* sub, uint32_t member, uint64_t cost) noexcept nogil:
    cdef ThrottleKey* key = sub.set.members[member]
    if key_follows(key) and key.parts.learned.open_ns > core.mono_ns:
        return False
    return key.parts == NULL or parts_budget_has(core, key, cost)


cdef void rest_pay(Core* core, Subqueue* sub, uint32_t member, uint64_t cost) noexcept nogil:
    cdef ThrottleKey* key = sub.set.members[member]
    if key.parts != NULL:
        parts_rates_settle(key, core.limit_table.cost_then[member], cost)
        parts_spend(key, cost)
    if key_follows(key):
        following_takes(core, key)
    sub.kept &= ~(<uint32_t> 1 << member)


cdef bint keep_shrinks(Core* core, Subqueue* sub) noexcept nogil:
    cdef uint64_t* cost_then = core.limit_table.cost_then
    cdef uint64_t cost = slot_cost(<Slot*> fifo_first(&sub.fifo))
    cdef bint came_back = False
    cdef uint32_t i
    for i in range(sub.set.count if core.limit_table.keeper == sub else 0):
        if is_kept(sub, i) and cost < cost_then[i] and sub.set.members[i].parts != NULL:
            parts_rates_settle(sub.set.members[i], cost_then[i], cost)
            cost_then[i] = cost
            came_back = True
    return came_back


cdef bint keep_ends(Core* core, Subqueue* sub) noexcept nogil:
    cdef ThrottleKey* key
    cdef uint32_t i
    cdef bint came_back = sub.kept != 0
    if core.limit_table.keeper == sub:
        core.limit_table.keeper = NULL
    for i in range(sub.set.count if came_back else 0):
        if not is_kept(sub, i):
            continue
        key = sub.set.members[i]
        key.in_flight -= 1
        if key.parts == NULL:
            bucket_give_back(&key.bucket)
        else:
            parts_rates_give_back(key, core.limit_table.cost_then[i])
    sub.kept = 0
    return came_back


cdef Subqueue* keeper_at(Core* core, ThrottleKey* key) noexcept nogil:
    cdef Subqueue* keeper = <Subqueue*> core.limit_table.keeper
    cdef uint32_t i
    if keeper == NULL:
        return NULL
    for i in range(keeper.set.count):
        if keeper.set.members[i] == key and is_kept(keeper, i):
            return keeper
    return NULL
