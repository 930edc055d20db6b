"""One list of what is asked for and one of what came back, under one lock that is never held over a
read.
"""

from libc.stdlib cimport free
from libc.string cimport memset

from fila_server.core.storage.status cimport STORE_DAMAGED, STORE_NOT_FOUND, STORE_OK, StoreError
from fila_server.core.storage.store cimport store_get
from fila_server.core.structures.buffer cimport must_malloc, write_u64be
from fila_server.core.threads.locks cimport (
    pthread_cond_destroy, pthread_cond_init, pthread_cond_signal, pthread_cond_wait, pthread_mutex_destroy,
    pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)
from fila_server.core.threads.mailbox cimport mailbox_poke

cdef extern from "<unistd.h>" nogil:
    int usleep(unsigned int)

cdef enum:
    FAILED_READ_US = 20000


cdef Loader* loader_new() noexcept nogil:
    cdef Loader* loader = <Loader*> must_malloc(sizeof(Loader))
    memset(loader, 0, sizeof(Loader))
    pthread_mutex_init(&loader.lock, NULL)
    pthread_cond_init(&loader.changed, NULL)
    return loader


cdef void _free_list(Load* load) noexcept nogil:
    cdef Load* following
    while load != NULL:
        following = load.next
        free(load.bytes)
        free(load)
        load = following


cdef void loader_free(Loader* loader) noexcept nogil:
    _free_list(loader.asked)
    _free_list(loader.answered)
    pthread_cond_destroy(&loader.changed)
    pthread_mutex_destroy(&loader.lock)
    free(loader)


cdef void loader_ask(Loader* loader, int family, uint64_t queue_number, uint64_t first_offset) noexcept nogil:
    cdef Load* load = <Load*> must_malloc(sizeof(Load))
    memset(load, 0, sizeof(Load))
    load.family = family
    load.queue_number = queue_number
    load.first_offset = first_offset
    pthread_mutex_lock(&loader.lock)
    if loader.asked_last == NULL:
        loader.asked = load
        pthread_cond_signal(&loader.changed)
    else:
        loader.asked_last.next = load
    loader.asked_last = load
    pthread_mutex_unlock(&loader.lock)


cdef Load* loader_answers(Loader* loader) noexcept nogil:
    cdef Load* first
    pthread_mutex_lock(&loader.lock)
    first = loader.answered
    loader.answered = loader.answered_last = NULL
    pthread_mutex_unlock(&loader.lock)
    return first


cdef int loader_serve(Loader* loader, Store* store, Mailbox* mailbox, bint wait) noexcept nogil:
    cdef Load* load
    cdef Load* following
    cdef StoreError error
    cdef char key[16]
    cdef int served = 0
    pthread_mutex_lock(&loader.lock)
    while wait and loader.asked == NULL and not loader.stopping:
        pthread_cond_wait(&loader.changed, &loader.lock)
    load = loader.asked
    loader.asked = loader.asked_last = NULL
    pthread_mutex_unlock(&loader.lock)
    while load != NULL:
        following = load.next
        load.next = NULL
        write_u64be(key, load.queue_number)
        write_u64be(key + 8, load.first_offset)
        load.status = store_get(store, load.family, key, 16, &load.bytes, &load.length, &error)
        if load.status != STORE_OK and load.status != STORE_DAMAGED and load.status != STORE_NOT_FOUND:
            usleep(FAILED_READ_US)      # it is asked for again at once
        pthread_mutex_lock(&loader.lock)
        if loader.answered_last == NULL:
            loader.answered = load
        else:
            loader.answered_last.next = load
        loader.answered_last = load
        pthread_mutex_unlock(&loader.lock)
        # One at a time, so that the first frames leave while the last are still being read.
        mailbox_poke(mailbox)
        served += 1
        load = following
    return served


cdef void loader_stop(Loader* loader) noexcept nogil:
    pthread_mutex_lock(&loader.lock)
    loader.stopping = True
    pthread_cond_signal(&loader.changed)
    pthread_mutex_unlock(&loader.lock)
