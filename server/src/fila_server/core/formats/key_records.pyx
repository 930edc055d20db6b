"""A record ends with the last thing that it says: one that says little is as it was before there was more."""

from libc.stdint cimport uint32_t, uint8_t
from libc.string cimport memcpy, memset

from fila_server.core.formats.records cimport key_value_put
from fila_server.core.state.kinds cimport OWN_CAP, OWN_COMMITTED, OWN_RATE
from fila_server.core.state.paths cimport key_cap, key_committed, key_has_policy, key_own, key_rate_limit
from fila_server.core.state.pending cimport Committed, KeyRateLimit


cdef void key_record_put(Core* core, rocksdb_writebatch_t* batch, Key* key) noexcept nogil:
    cdef char value[KEY_COMMITTED_BYTES]
    cdef uint8_t own = key_own(key)
    cdef KeyRateLimit* rate_limit = key_rate_limit(key) if own & OWN_RATE else NULL
    cdef Committed* committed = key_committed(key) if own & OWN_COMMITTED else NULL
    cdef uint32_t cap = key_cap(key) if own & OWN_CAP else 0
    cdef size_t length = KEY_BYTES
    memset(value, 0, KEY_COMMITTED_BYTES)
    value[0] = VERSION_KEY
    value[1] = <char> (
        (1 if key.paused else 0) | (2 if key_has_policy(key) else 0)
        | (KEY_HAS_NO_CAP if own & OWN_CAP and not cap else 0)
        | (KEY_HAS_NO_RATE if own & OWN_RATE and rate_limit == NULL else 0)
        | (KEY_HAS_NO_COMMITTED if own & OWN_COMMITTED and committed == NULL else 0))
    memcpy(value + 2, &key.weight, 2)
    memcpy(value + 4, &key.admin_weight, 2)
    memcpy(value + 6, &cap, 4)
    if rate_limit != NULL:
        value[0], length = VERSION_KEY_RATE, KEY_RATED_BYTES
        memcpy(value + KEY_BYTES, &rate_limit.bucket.rate, 8)
        memcpy(value + KEY_BYTES + 8, &rate_limit.bucket.burst, 8)
    if key.paused:
        value[0], length = VERSION_KEY_PAUSED, KEY_PAUSED_BYTES
        memcpy(value + KEY_RATED_BYTES, &key.extras.place.rank, 8)
    if committed != NULL:
        value[0], length = VERSION_KEY_COMMITTED, KEY_COMMITTED_BYTES
        memcpy(value + KEY_PAUSED_BYTES, &committed.limit.bucket.rate, 8)
    key_value_put(core, batch, key, value, length)
