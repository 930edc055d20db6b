"""References are counted by entries; a key that an operator set something for outlives them."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fila_server.core.formats.key_records cimport (
    KEY_BYTES, KEY_COMMITTED_BYTES, KEY_HAS_NO_CAP, KEY_HAS_NO_COMMITTED, KEY_HAS_NO_RATE, KEY_PAUSED_BYTES,
    KEY_RATED_BYTES,
)
from fila_server.core.formats.records cimport key_record_delete
from fila_server.core.scheduling.allowances cimport (
    cap_set, committed_set, extras_free, key_take_defaults, pause_set, rate_limit_set, rates_are_full,
    rates_begin, rates_time_no_more,
)
from fila_server.core.scheduling.flows cimport flow_free
from fila_server.core.state.paths cimport key_has_policy
from fila_server.core.state.pending cimport KeyExtras
from fila_server.core.state.settings cimport Policy, WeightRow
from fila_server.core.state.state cimport Flow
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.heap cimport heap_insert, heap_remove
from fila_server.core.structures.maps cimport text_hash, textmap_get_hashed, textmap_put, textmap_remove

cdef enum:
    RESTING_MAX = 100000                # of all queues: some 50 MB


cdef inline bint _has_defaults(const Policy* policy) noexcept nogil:
    return policy.default_cap != 0 or policy.default_committed != 0 or policy.default_rate > 0


cdef Key* key_intern(Core* core, Queue* queue, Slice text) noexcept nogil:
    """The queue's Key of this text, made when new, with one more reference."""
    cdef uint64_t hash = text_hash(text.at, text.length)
    cdef Key* key = <Key*> textmap_get_hashed(&queue.keys, text.at, text.length, hash)
    cdef WeightRow* row
    cdef char* bytes
    if key == NULL:
        key = <Key*> must_malloc(sizeof(Key) + text.length)
        memset(key, 0, sizeof(Key))
        bytes = <char*> key + sizeof(Key)
        memcpy(bytes, text.at, text.length)
        key.text.bytes = bytes
        key.text.length = text.length
        key.queue = queue
        key.weight = 1
        if queue.policy.weights.count:
            row = <WeightRow*> textmap_get_hashed(&queue.policy.weights, text.at, text.length, hash)
            key.table_weight = <unsigned short> row.weight if row != NULL else 0
        textmap_put(&queue.keys, &key.text)
        core.index_bytes += sizeof(Key) + text.length + 8
        core.keys_count += 1
        if _has_defaults(&queue.policy) and key_take_defaults(core, key):
            rates_begin(core, key)
    elif key.refs == 0 and key.extras != NULL and key.extras.rests:
        _rest_no_more(core, key)
    key.refs += 1
    return key


# --- keys that rest --------------------------------------------------------------------------
# What a key took of its rates is remembered until their buckets are full: from then on it equals a new one. A
# key with a policy is kept anyway.

cdef void _rest_no_more(Core* core, Key* key) noexcept nogil:
    core.key_defaulting.resting = heap_remove(core.key_defaulting.resting, &key.extras.place)
    core.key_defaulting.resting_count -= 1
    key.extras.rests = False
    rates_time_no_more(core, key)


cdef bint _rests(Core* core, Key* key) noexcept nogil:
    """True: it is kept, without flows and without a record, until the timer of its bucket."""
    if key.extras == NULL or rates_are_full(core, key):
        return False
    if not key.extras.rests:
        key.extras.rests = True
        key.extras.place.rank = core.mono_ns // 1000000
        core.key_defaulting.resting = heap_insert(core.key_defaulting.resting, &key.extras.place)
        core.key_defaulting.resting_count += 1
    return True


cdef void _forget_oldest(Core* core) noexcept nogil:
    cdef KeyExtras* oldest = <KeyExtras*> core.key_defaulting.resting
    _drop(core, <Key*> oldest.key)


cdef void key_release(Core* core, Key* key) noexcept nogil:
    key.refs -= 1
    if key.refs == 0:
        key_drop_if_idle(core, key)


cdef void key_drop_if_idle(Core* core, Key* key) noexcept nogil:
    cdef Flow* flow
    if key.refs or key_has_policy(key):
        return
    while key.flows != NULL:
        flow = key.flows
        key.flows = flow.next_of_key
        flow_free(core, flow)
    if key.recorded:
        key_record_delete(core, key)
    if not _rests(core, key):
        _drop(core, key)
        return
    key.weight = 1                      # as its record, which is gone, and as a new key's
    if core.key_defaulting.resting_count > RESTING_MAX:
        _forget_oldest(core)


cdef void _drop(Core* core, Key* key) noexcept nogil:
    if key.extras != NULL:              # most keys have none, and a million of them are dropped in seconds
        if key.extras.rests:
            _rest_no_more(core, key)
        rate_limit_set(core, key, 0, 0, False)
        committed_set(core, key, 0, False)
        extras_free(core, key)
    textmap_remove(&key.queue.keys, &key.text)
    core.index_bytes -= sizeof(Key) + key.text.length + 8
    core.keys_count -= 1
    free(key)


cdef void key_recover(Core* core, Key* key, const char* value, size_t length) noexcept nogil:
    cdef double rate, burst, committed
    cdef uint32_t cap
    cdef int64_t paused_ms = core.wall_ms       # a record of before does not say
    memcpy(&key.weight, value + 2, 2)
    memcpy(&key.admin_weight, value + 4, 2)
    memcpy(&cap, value + 6, 4)
    if cap or value[1] & KEY_HAS_NO_CAP:
        cap_set(core, key, cap, True)
    key.recorded = True
    rate = burst = committed = 0
    if length >= KEY_RATED_BYTES:
        memcpy(&rate, value + KEY_BYTES, 8)
        memcpy(&burst, value + KEY_BYTES + 8, 8)
    if rate > 0 or value[1] & KEY_HAS_NO_RATE:
        rate_limit_set(core, key, rate, burst, True)
    if length == KEY_COMMITTED_BYTES:
        memcpy(&committed, value + KEY_PAUSED_BYTES, 8)
    if committed > 0 or value[1] & KEY_HAS_NO_COMMITTED:
        committed_set(core, key, committed, True)
    rates_begin(core, key)
    if length >= KEY_PAUSED_BYTES:
        memcpy(&paused_ms, value + KEY_RATED_BYTES, 8)
    pause_set(core, key, value[1] & 1, paused_ms)
