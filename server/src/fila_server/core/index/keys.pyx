"""References are counted by entries; a key that an operator set something for outlives them."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fila_server.core.formats.records cimport KEY_BYTES, KEY_PAUSED_BYTES, KEY_RATED_BYTES, key_record_delete
from fila_server.core.scheduling.eligibility cimport (
    cap_set, extras_free, pause_set, rate_limit_recover,
)
from fila_server.core.scheduling.flows cimport flow_free
from fila_server.core.state.paths cimport key_has_policy
from fila_server.core.state.settings cimport WeightRow
from fila_server.core.state.state cimport Flow
from fila_server.core.structures.buffer cimport must_malloc
from fila_server.core.structures.maps cimport text_hash, textmap_get_hashed, textmap_put, textmap_remove


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
    key.refs += 1
    return key


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
    textmap_remove(&key.queue.keys, &key.text)
    core.index_bytes -= sizeof(Key) + key.text.length + 8
    core.keys_count -= 1
    extras_free(core, key)
    free(key)


cdef void key_recover(Core* core, Key* key, const char* value, size_t length) noexcept nogil:
    cdef double rate, burst
    cdef uint32_t cap
    cdef int64_t paused_ms = core.wall_ms       # a record of before does not say
    memcpy(&key.weight, value + 2, 2)
    memcpy(&key.admin_weight, value + 4, 2)
    memcpy(&cap, value + 6, 4)
    cap_set(core, key, cap)
    key.recorded = True
    if length >= KEY_RATED_BYTES:
        memcpy(&rate, value + KEY_BYTES, 8)
        memcpy(&burst, value + KEY_BYTES + 8, 8)
        if rate > 0:
            rate_limit_recover(core, key, rate, burst)
    if length == KEY_PAUSED_BYTES:
        memcpy(&paused_ms, value + KEY_RATED_BYTES, 8)
    pause_set(core, key, value[1] & 1, paused_ms)
