"""The end of a stop that does not end by itself: a thread of its own, which needs neither the GIL nor a lock.

Python's own timers wait for the GIL, and what hangs may hold it. So this thread says its one line and leaves
without a look at anything else.
"""

import os

from libc.stdint cimport int64_t
from libc.stdlib cimport abort, malloc
from libc.string cimport memcpy

from fila_server.core.storage.posix cimport c_write

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_t:
        pass
    ctypedef struct pthread_attr_t:
        pass
    int pthread_create(
        pthread_t* thread, const pthread_attr_t* attr, void* (*start)(void*) noexcept nogil, void* arg)
    int pthread_detach(pthread_t thread)

cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    int nanosleep(const timespec* wait, timespec* left)

cdef extern from "<unistd.h>" nogil:
    void _exit(int status)

cdef struct Deadline:
    timespec wait
    int      status
    size_t   length
    char     line[1]


cdef void* _run(void* argument) noexcept nogil:
    cdef Deadline* deadline = <Deadline*> argument
    while nanosleep(&deadline.wait, &deadline.wait) != 0:
        pass                            # a signal: what is left of it
    c_write(2, deadline.line, deadline.length)
    _exit(deadline.status)
    return NULL


def leave_after(int64_t ms, str line, int status):
    """End this process with `status` in `ms` milliseconds, and write `line` to stderr first. Nothing calls it
    off.

    OSError when there is no thread to be had.
    """
    cdef bytes text = f"{line}\n".encode()
    cdef const char* at = text
    cdef Deadline* deadline = <Deadline*> malloc(sizeof(Deadline) + len(text))
    cdef pthread_t thread
    if deadline == NULL:
        abort()
    deadline.wait.tv_sec = ms // 1000
    deadline.wait.tv_nsec = ms % 1000 * 1000000
    deadline.status = status
    deadline.length = len(text)
    memcpy(deadline.line, at, deadline.length)
    number = pthread_create(&thread, NULL, _run, deadline)
    if number != 0:
        raise OSError(number, os.strerror(number))
    pthread_detach(thread)
