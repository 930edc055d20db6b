"""The lock of the asyncio loop's outbox with Python hands: a test holds it while a pass runs, and sees who
waits."""

from libc.stdint cimport uint64_t

from fila_server.core.state.open_core cimport OpenCore
from fila_server.core.threads.locks cimport pthread_mutex_lock, pthread_mutex_t, pthread_mutex_unlock
from fila_server.core.threads.outbox cimport Outboxes


cdef class OutboxLock:
    """Held within a `with`, by the thread that entered it."""

    cdef OpenCore engine

    def __init__(self, OpenCore engine):
        self.engine = engine

    cdef pthread_mutex_t* _lock(self):
        cdef Outboxes* outboxes = self.engine.core.outboxes
        return &outboxes.boxes[0].lock

    @property
    def address(self):
        """Where it is: what a thread that waits for it names to the kernel."""
        return <uint64_t> self._lock()

    def __enter__(self):
        pthread_mutex_lock(self._lock())
        return self

    def __exit__(self, *raised):
        pthread_mutex_unlock(self._lock())
