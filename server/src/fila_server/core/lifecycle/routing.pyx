"""A hook's word counts first, then the producer's where the queue lets it, then the queue's settings, then
the defaults."""

from libc.stdint cimport uint16_t, uint64_t
from libc.stdlib cimport free, strtod
from libc.string cimport memcmp, memcpy, strlen

from fila_server.core.formats.key_records cimport key_record_put
from fila_server.core.index.keys cimport key_intern
from fila_server.core.protocol.packed_routing cimport (
    GIVEN_COST, GIVEN_THROTTLE_KEYS, GIVEN_WEIGHT, ROUTING_BYTES_MAX, take_routing,
)
from fila_server.core.protocol.protobuf cimport PRIORITY_MAX, PRIORITY_USUAL, Options, header_find
from fila_server.core.protocol.refusals cimport (
    REFUSED_KEY_LIMIT, REFUSED_PRIORITY_IN_ORDER, REFUSED_PRODUCER_ROUTING, REFUSED_ROUTING_KEY,
    REFUSED_THROTTLE_KEYS,
)
from fila_server.core.scheduling.flows cimport key_reconsider
from fila_server.core.scheduling.throttle cimport set_intern
from fila_server.core.state.paths cimport cost_bits_of
from fila_server.core.state.pending cimport Brought
from fila_server.core.state.settings cimport Policy
from fila_server.core.structures.buffer cimport Cursor, Slice, must_realloc

cdef enum:
    COST_ONE = 1000
    NAME_BYTES_MAX = 4096           # the most that limits.throttle_key_bytes_max may say
    BROUGHT_KEPT_MAX = 4096         # of a pass that brought many weights; the array is not kept for the next


# Put behind a message's own headers by requests/rights.pyx when its producer is bound to a tenant.
# It is stored with the message, so that a redrive routes it as the enqueue did.
cdef const char* TENANT_HEADER = "fila-tenant"


cdef inline Slice _text(const char* text) noexcept nogil:
    cdef Slice s
    s.at, s.length = text, <uint32_t> strlen(text)
    return s


cdef bint _number(Slice text, double* value) noexcept nogil:
    cdef char digits[64]
    cdef char* end
    if text.length == 0 or text.length >= 64:
        return False
    memcpy(digits, text.at, text.length)
    digits[text.length] = 0
    if digits[0] == c' ' or digits[0] == c'\t' or digits[0] == c'\n':
        return False
    value[0] = strtod(digits, &end)
    return end == digits + text.length and value[0] == value[0]


cdef uint32_t _clamp_weight(Queue* queue, double weight) noexcept nogil:
    if weight >= 1 and weight <= 1000:
        return <uint32_t> weight
    queue.counters.clamped += 1
    return 1 if not weight >= 1 else 1000


cdef uint32_t _clamp_cost(Queue* queue, double cost) noexcept nogil:
    """In thousandths, 1 to 10^9."""
    if cost >= 0.001 and cost <= 1000000:
        return <uint32_t> (cost * 1000 + 0.5)
    queue.counters.clamped += 1
    if not cost >= 0.001:
        return 1
    return 1000000000


cdef uint32_t _clamp_priority(Queue* queue, double priority) noexcept nogil:
    if priority > -1 and priority < PRIORITY_MAX + 1:
        return <uint32_t> max(priority, 0.0)
    queue.counters.clamped += 1
    return 0 if priority <= -1 else PRIORITY_MAX


cdef struct Chosen:                 # what a message is shared and limited by, before any of it is made
    Slice    key
    Slice    throttle[32]           # of the queue's headers, and of a hook
    uint32_t throttle_count
    uint32_t weight
    uint32_t cost
    uint32_t priority
    char     key_limit[NAME_BYTES_MAX]      # a name among `throttle`, where the queue has a key_limit


cdef bint _hooked(Item* item, Routing* hooked) noexcept nogil:
    """What a hook decided, read once before it was kept (ParsedFrame.route), so it ends where it says."""
    cdef Cursor c
    if item.routing == NULL:
        return False
    c.at, c.end, c.bad = item.routing, item.routing + ROUTING_BYTES_MAX, False
    take_routing(&c, hooked)
    return True


cdef uint8_t route(Core* core, Queue* queue, Command* command, Item* item, Building* b) noexcept nogil:
    cdef Routing hooked
    return route_as(core, queue, command, item, &hooked if _hooked(item, &hooked) else NULL, b)


cdef uint8_t route_check(Core* core, Queue* queue, Command* command, Item* item) noexcept nogil:
    cdef Routing hooked
    cdef Chosen chosen
    cdef uint64_t clamped = queue.counters.clamped
    cdef uint8_t refused = _choose(
        core, queue, command, item, &hooked if _hooked(item, &hooked) else NULL, &chosen)
    queue.counters.clamped = clamped    # counted when it is routed
    return refused


cdef void route_plainly(Core* core, Queue* queue, Building* b) noexcept nogil:
    cdef Chosen chosen
    chosen.key.at, chosen.key.length = b"default", 7
    chosen.throttle_count = 0
    b.key = key_intern(core, queue, chosen.key)
    b.set = NULL
    if queue.policy.key_limit.length and _name_key_limit(core, &queue.policy, &chosen) == 0:
        b.set = set_intern(core, chosen.throttle, chosen.throttle_count)
    b.cost_bits, b.weight = COST_ONE, b.key.weight
    queue.counters.clamped += 1


cdef uint8_t route_as(
        Core* core, Queue* queue, Command* command, Item* item, const Routing* hooked,
        Building* b) noexcept nogil:
    cdef Chosen chosen
    cdef uint8_t refused = _choose(core, queue, command, item, hooked, &chosen)
    if refused:
        return refused
    b.cost_bits = cost_bits_of(chosen.cost, chosen.priority)
    b.key = key_intern(core, queue, chosen.key)
    b.set = set_intern(core, chosen.throttle, chosen.throttle_count) if chosen.throttle_count else NULL
    b.weight = chosen.weight
    return 0


cdef void _choose_by_headers(
        Queue* queue, const char* body, uint32_t length, bint bound, Chosen* chosen) noexcept nogil:
    """Fairness key, priority, weight and cost, as the queue's settings take them from headers; of a tenant's
    message (`bound`) the last two say nothing, since they would count beside other tenants' keys."""
    cdef Policy* policy = &queue.policy
    cdef Slice value
    cdef double number
    chosen.key.at, chosen.key.length = b"default", 7
    chosen.weight, chosen.cost, chosen.throttle_count = 1, COST_ONE, 0
    if policy.fairness_key_header.length and header_find(body, length, policy.fairness_key_header, &value):
        if value.length:
            chosen.key = value
    chosen.priority = PRIORITY_USUAL
    if policy.priority_header.length and header_find(body, length, policy.priority_header, &value):
        if _number(value, &number):
            chosen.priority = _clamp_priority(queue, number)
        else:
            queue.counters.clamped += 1
    if bound:
        return
    if policy.weight_header.length and header_find(body, length, policy.weight_header, &value):
        if _number(value, &number):
            chosen.weight = _clamp_weight(queue, number)
        else:
            chosen.weight = _clamp_weight(queue, 0)
    if policy.cost_header.length and header_find(body, length, policy.cost_header, &value):
        if _number(value, &number):
            chosen.cost = _clamp_cost(queue, number)
        else:
            queue.counters.clamped += 1


cdef bint _choose_by_options(const Policy* policy, const Options* o, Chosen* chosen) noexcept nogil:
    """What its producer says; False: the queue does not let it."""
    if o.fairness_key.length == 0 and o.weight == 0 and o.cost == 0:
        return True
    if o.fairness_key.length:
        chosen.key = o.fairness_key
    if o.weight:
        chosen.weight = o.weight
    if o.cost > 0:
        chosen.cost = <uint32_t> (o.cost * 1000 + 0.5)
    return policy.producers_route


cdef uint8_t _name_key_limit(Core* core, Policy* policy, Chosen* chosen) noexcept nogil:
    """Names the limit that the queue has for the fairness key, unless it is named already; 0, or why not.
    Not more are named than `throttle_keys_max` (at most 16)."""
    cdef uint32_t length = policy.key_limit.length + chosen.key.length
    cdef Slice* name = &chosen.throttle[chosen.throttle_count]
    cdef uint32_t i
    if length > min(core.limits.throttle_key_bytes_max, <uint32_t> NAME_BYTES_MAX):
        return REFUSED_KEY_LIMIT
    memcpy(chosen.key_limit, policy.key_limit.at, policy.key_limit.length)
    memcpy(chosen.key_limit + policy.key_limit.length, chosen.key.at, chosen.key.length)
    for i in range(chosen.throttle_count):
        if chosen.throttle[i].length == length:
            if memcmp(chosen.throttle[i].at, chosen.key_limit, length) == 0:
                return 0
    if chosen.throttle_count == core.limits.throttle_keys_max:
        return REFUSED_THROTTLE_KEYS
    name.at, name.length = chosen.key_limit, length
    chosen.throttle_count += 1
    return 0


cdef uint8_t _choose(
        Core* core, Queue* queue, Command* command, Item* item, const Routing* hooked,
        Chosen* chosen) noexcept nogil:
    """A hook's word, else the producer's, the queue's settings, defaults; 0, or why it is refused."""
    cdef Policy* policy = &queue.policy
    cdef const char* body = command.bytes + item.at
    cdef Slice value
    cdef uint32_t i
    cdef Slice tenant
    cdef bint bound = header_find(body, item.length, _text(TENANT_HEADER), &tenant) and tenant.length
    _choose_by_headers(queue, body, item.length, bound, chosen)
    if item.options != NULL and item.options.priority >= 0:
        if policy.in_order:
            return REFUSED_PRIORITY_IN_ORDER
        chosen.priority = <uint32_t> item.options.priority
    if item.options != NULL and not bound and not _choose_by_options(policy, item.options, chosen):
        return REFUSED_PRODUCER_ROUTING
    for i in range(0 if bound else policy.throttle_header_count):
        if hooked != NULL and hooked.given & GIVEN_THROTTLE_KEYS:
            break                       # the hook's keys, given below, are the only ones
        if header_find(body, item.length, policy.throttle_headers[i], &value) and value.length:
            if value.length > core.limits.throttle_key_bytes_max:
                return REFUSED_ROUTING_KEY
            chosen.throttle[chosen.throttle_count] = value
            chosen.throttle_count += 1
    if hooked != NULL:
        if hooked.fairness_key.length:  # an empty one is none, as an empty header is
            chosen.key = hooked.fairness_key
        if hooked.given & GIVEN_WEIGHT:
            chosen.weight = _clamp_weight(queue, hooked.weight)
        if hooked.given & GIVEN_COST:
            chosen.cost = _clamp_cost(queue, hooked.cost)
        for i in range(hooked.throttle_count):
            if hooked.throttle[i].length:
                chosen.throttle[chosen.throttle_count] = hooked.throttle[i]
                chosen.throttle_count += 1
    if bound:
        chosen.key = tenant             # over whatever headers, policy and hook say
    if chosen.throttle_count > core.limits.throttle_keys_max:
        return REFUSED_THROTTLE_KEYS
    if chosen.key.length > core.limits.fairness_key_bytes_max:
        return REFUSED_ROUTING_KEY
    return _name_key_limit(core, policy, chosen) if policy.key_limit.length else 0


# --- what a key weighs by its messages -------------------------------------------------------
# Few messages bring another weight than their key has: only those are noted, with what it was before.

cdef void _weigh(Core* core, Key* key, uint16_t weight) noexcept nogil:
    key.weight = weight
    if not key.admin_weight and not key.table_weight:
        key_reconsider(core, key)


cdef void _note(Core* core, Key* key, uint16_t weight, bint is_moved) noexcept nogil:
    cdef Brought* brought
    if core.brought_count == core.brought_capacity:
        core.brought_capacity = core.brought_capacity * 2 + 16
        core.brought = <Brought*> must_realloc(core.brought, core.brought_capacity * sizeof(Brought))
    brought = &core.brought[core.brought_count]
    core.brought_count += 1
    brought.key, brought.weight, brought.before = key, weight, key.weight
    brought.is_moved = is_moved
    brought.was_recorded = False


cdef void weight_brought(Core* core, Key* key, uint32_t weight) noexcept nogil:
    if key.weight == weight:
        return
    _note(core, key, <uint16_t> weight, False)
    _weigh(core, key, <uint16_t> weight)


cdef void weight_moved(Core* core, Key* key, uint32_t weight) noexcept nogil:
    if core.brought_count:              # even the weight that it has: who brought that may be refused
        _note(core, key, <uint16_t> weight, True)
    if key.weight == weight:
        return
    _weigh(core, key, <uint16_t> weight)
    key_record_put(core, core.settles, key)


cdef void weights_record(Core* core) noexcept nogil:
    cdef Brought* brought
    cdef uint32_t i
    for i in range(core.brought_count):         # before any is put: a key may stand here more than once
        brought = &core.brought[i]
        brought.was_recorded = (<Key*> brought.key).recorded
    for i in range(core.brought_count):
        if not core.brought[i].is_moved:
            key_record_put(core, core.enqueues, <Key*> core.brought[i].key)


cdef void weights_written(Core* core, bint refused) noexcept nogil:
    """What was refused is taken back as if it had never come: all of it, the last first, and then what was
    moved here is given again, in its order."""
    cdef Brought* brought
    cdef uint32_t count = core.brought_count
    cdef uint32_t i = count
    core.brought_count = 0
    while refused and i > 0:
        i -= 1
        _weigh(core, <Key*> core.brought[i].key, core.brought[i].before)
    for i in range(count if refused else 0):
        if core.brought[i].is_moved:
            _weigh(core, <Key*> core.brought[i].key, core.brought[i].weight)
    for i in range(count if refused else 0):
        brought = &core.brought[i]
        (<Key*> brought.key).recorded = brought.was_recorded
        if brought.was_recorded:        # with the weight that was refused, where an operator did it just now
            key_record_put(core, core.settles, <Key*> brought.key)
    if core.brought_capacity > BROUGHT_KEPT_MAX:
        free(core.brought)
        core.brought, core.brought_capacity = NULL, 0
