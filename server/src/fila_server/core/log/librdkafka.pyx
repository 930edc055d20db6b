"""Finds each function of librdkafka by its name."""

from libc.stdio cimport snprintf

cdef extern from "<dlfcn.h>" nogil:
    enum:
        RTLD_LOCAL
        RTLD_NOW
    void* dlopen(const char* path, int flags)
    void* dlsym(void* library, const char* name)
    char* dlerror()

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_mutex_t:
        pass
    int pthread_mutex_lock(pthread_mutex_t*)
    int pthread_mutex_unlock(pthread_mutex_t*)

cdef extern from *:
    """
    #include <pthread.h>
    static pthread_mutex_t fila_librdkafka_lock = PTHREAD_MUTEX_INITIALIZER;
    """
    pthread_mutex_t loading "fila_librdkafka_lock"

cdef Librdkafka _loaded

# In the order of the pointers in Librdkafka, behind `library`.
cdef (const char*)[38] NAMES = [
    "rd_kafka_err2str", "rd_kafka_last_error", "rd_kafka_conf_new",
    "rd_kafka_conf_destroy", "rd_kafka_conf_set", "rd_kafka_conf_set_events", "rd_kafka_conf_set_log_cb",
    "rd_kafka_new", "rd_kafka_destroy", "rd_kafka_topic_new", "rd_kafka_topic_destroy", "rd_kafka_metadata",
    "rd_kafka_metadata_destroy", "rd_kafka_queue_get_main", "rd_kafka_queue_destroy", "rd_kafka_queue_new",
    "rd_kafka_queue_poll", "rd_kafka_event_type", "rd_kafka_event_message_next", "rd_kafka_event_error",
    "rd_kafka_event_error_string", "rd_kafka_event_destroy", "rd_kafka_message_broker_id", "rd_kafka_produce",
    "rd_kafka_consume_start", "rd_kafka_consume_stop", "rd_kafka_consume", "rd_kafka_message_destroy",
    "rd_kafka_query_watermark_offsets", "rd_kafka_get_watermark_offsets", "rd_kafka_topic_partition_list_new",
    "rd_kafka_topic_partition_list_add", "rd_kafka_topic_partition_list_destroy",
    "rd_kafka_DeleteRecords_new", "rd_kafka_DeleteRecords_destroy", "rd_kafka_DeleteRecords",
    "rd_kafka_event_DeleteRecords_result", "rd_kafka_DeleteRecords_result_offsets",
]


cdef Librdkafka* librdkafka_load(const char* path, char* text, size_t room) noexcept nogil:
    cdef Librdkafka* found
    pthread_mutex_lock(&loading)
    found = &_loaded if _loaded.library != NULL else _load(path, text, room)
    pthread_mutex_unlock(&loading)
    return found


cdef Librdkafka* _load(const char* path, char* text, size_t room) noexcept nogil:
    cdef void** functions = &(<void**>&_loaded)[1]
    cdef void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL)
    cdef size_t i
    if library == NULL:
        snprintf(text, room, "cannot load librdkafka: %s", dlerror())
        return NULL
    for i in range(sizeof(Librdkafka) // sizeof(void*) - 1):
        functions[i] = dlsym(library, NAMES[i])
        if functions[i] == NULL:
            snprintf(text, room, "%s has no %s: it is too old. Upgrade confluent-kafka", path, NAMES[i])
            return NULL
    _loaded.library = library
    return &_loaded
