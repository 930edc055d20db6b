"""Looks at the disk and at the data directory ten times a second, on a thread of its own.

A look may wait for the disk (statvfs on a busy or remote file system, freeing the ballast's blocks), so it is
not the scheduler thread's; and a compaction may keep the upkeep thread for many seconds, in which the disk
can fill up.

    watch thread  --- level (DiskLevel) --->  scheduler thread, submitting threads
                  --- failure ------------->  commit thread, which ends the server

Files that are gone while they are open can still be written, and synced, without an error: so a removed
directory or log makes itself heard nowhere else, and all that is answered meanwhile is lost.
"""

from libc.stdint cimport int64_t, uint64_t

from fila_server.core.storage.disk cimport Disk
from fila_server.core.storage.families cimport Store
from fila_server.core.storage.reclaim cimport pthread_t
from fila_server.core.storage.status cimport StoreFailure

cdef struct Watch "fila_watch":
    Disk disk                           # the watch thread's
    uint64_t* level                     # DiskLevel of the last look, and the free bytes it saw: for others
    uint64_t* free_bytes
    Store* store
    StoreFailure* failure
    int64_t newest_log                  # its number; the newest log is in use until there is a newer one
    int64_t changed_ns                  # of the store's directory, when it was listed last,
    bint    is_listed                   # and again a look later: the same moment may have had one more change
    int64_t steps
    pthread_t thread
    int stop_fd                         # eventfd: readable when the thread has to end
    bint running


# The first look, by the thread that opens the store; disk_open has been called.
cdef void watch_begin(
    Watch* watch, Store* store, StoreFailure* failure, uint64_t* level, uint64_t* free_bytes) noexcept nogil
# Starts the thread; watch_stop comes before store_close.
cdef int watch_start(Watch* watch) noexcept nogil
cdef void watch_stop(Watch* watch) noexcept nogil
# One look, as the thread does it ten times a second; tests call it themselves.
cdef void watch_look(Watch* watch) noexcept nogil
