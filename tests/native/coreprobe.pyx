"""What happens to a core from outside, on a driven engine: the disk fills up, the storage engine stalls.

The server's watch thread and RocksDB say both; a driven engine has no such thread, and a stall can't be had
on order.
"""

from fila_server.core.state.open_core cimport OpenCore
from fila_server.core.storage.families cimport Store
from fila_server.core.storage.status cimport STORE_OK, STORE_STALLED


def disk_becomes(OpenCore engine not None, int level):
    """From the next pass on: 0 roomy, 1 low (enqueues are refused), 2 critical (nothing is written)."""
    engine.core.shared.disk_level = level


def store_stalls(OpenCore engine not None, bint stalls):
    """Refuse every write as RocksDB does while it can't flush as fast as it is written to, or no longer.

    Nothing is synced meanwhile: do not commit, it would say that something was.
    """
    cdef Store* store = engine.core.store
    cdef int call
    store.muted = stalls
    for call in range(4):
        store.reported[call] = STORE_STALLED if stalls else STORE_OK
