"""What a fairness key keeps over a restart, in KEYS (records.pxd): its weight, and what an operator said."""

from libc.stddef cimport size_t

from fila_server.core.state.state cimport Core, Key
from fila_server.core.storage.rocksdb cimport rocksdb_writebatch_t

cdef enum:
    VERSION_KEY = 1
    VERSION_KEY_RATE = 2            # with a rate
    VERSION_KEY_PAUSED = 3          # with a rate, 0 = none, and since when the key is paused
    VERSION_KEY_COMMITTED = 4       # with these, and a committed rate
    KEY_HAS_NO_CAP = 4              # an operator said so, over the queue's default
    KEY_HAS_NO_RATE = 8
    KEY_HAS_NO_COMMITTED = 16
    KEY_BYTES = 10
    KEY_RATED_BYTES = 26
    KEY_PAUSED_BYTES = 34
    KEY_COMMITTED_BYTES = 42

cdef inline bint key_record_is_known(size_t length) noexcept nogil:
    return (
        length == KEY_BYTES or length == KEY_RATED_BYTES or length == KEY_PAUSED_BYTES
        or length == KEY_COMMITTED_BYTES
    )

cdef void key_record_put(Core* core, rocksdb_writebatch_t* batch, Key* key) noexcept nogil
