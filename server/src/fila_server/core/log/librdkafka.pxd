"""librdkafka, loaded at run time: the library that the wheel of confluent-kafka has inside.

Nothing of it is linked, so a server without a group neither needs nor loads it. The declarations are ours,
and only of what kafka.pyx calls; the library keeps them stable (its soname has been librdkafka.so.1 since
2014).
"""

from libc.stdint cimport int32_t, int64_t

cdef enum:
    RD_PRODUCER = 0
    RD_CONSUMER = 1
    MSG_COPY = 0x2
    EVENT_DR = 0x1
    EVENT_ERROR = 0x8
    EVENT_DELETED = 0x69
    CONF_OK = 0
    ERR_PARTITION_EOF = -191
    ERR_ALL_DOWN = -187
    ERR_QUEUE_FULL = -184
    ERR_RESET = -140                # the offset that was asked for is not in the log

cdef struct RdMessage:              # rd_kafka_message_t
    int     err
    void*   topic
    int32_t partition
    void*   payload
    size_t  length
    void*   key
    size_t  key_length
    int64_t offset
    void*   opaque

cdef struct RdPartition:            # rd_kafka_topic_partition_t
    char*   topic
    int32_t partition
    int64_t offset
    void*   metadata
    size_t  metadata_length
    void*   opaque
    int     err
    void*   internal

cdef struct RdPartitions:           # rd_kafka_topic_partition_list_t
    int     count
    int     size
    RdPartition* elements

cdef struct RdTopicMetadata:        # rd_kafka_metadata_topic
    char*   topic
    int     partition_count
    void*   partitions
    int     err

cdef struct RdMetadata:             # rd_kafka_metadata_t
    int     broker_count
    void*   brokers
    int     topic_count
    RdTopicMetadata* topics
    int32_t broker_id
    char*   broker_name


cdef struct Librdkafka:
    void* library
    const char* (*err2str)(int err) noexcept nogil
    int (*last_error)() noexcept nogil
    void* (*conf_new)() noexcept nogil
    void (*conf_destroy)(void* conf) noexcept nogil
    int (*conf_set)(
        void* conf, const char* name, const char* value, char* text, size_t room) noexcept nogil
    void (*conf_set_events)(void* conf, int events) noexcept nogil
    void (*conf_set_log_cb)(void* conf, void* callback) noexcept nogil
    void* (*new_handle)(int kind, void* conf, char* text, size_t room) noexcept nogil
    void (*destroy)(void* handle) noexcept nogil
    void* (*topic_new)(void* handle, const char* name, void* conf) noexcept nogil
    void (*topic_destroy)(void* topic) noexcept nogil
    int (*metadata)(
        void* handle, int all_topics, void* topic, const RdMetadata** out, int wait_ms) noexcept nogil
    void (*metadata_destroy)(const RdMetadata* metadata) noexcept nogil
    void* (*queue_get_main)(void* handle) noexcept nogil
    void (*queue_destroy)(void* queue) noexcept nogil
    void* (*queue_new)(void* handle) noexcept nogil
    void* (*queue_poll)(void* queue, int wait_ms) noexcept nogil
    int (*event_type)(void* event) noexcept nogil
    const RdMessage* (*event_message_next)(void* event) noexcept nogil
    int (*event_error)(void* event) noexcept nogil
    const char* (*event_error_string)(void* event) noexcept nogil
    void (*event_destroy)(void* event) noexcept nogil
    int32_t (*message_broker_id)(const RdMessage* message) noexcept nogil
    int (*produce)(
        void* topic, int32_t partition, int flags, void* payload, size_t length, const void* key,
        size_t key_length, void* opaque) noexcept nogil
    int (*consume_start)(void* topic, int32_t partition, int64_t offset) noexcept nogil
    int (*consume_stop)(void* topic, int32_t partition) noexcept nogil
    RdMessage* (*consume)(void* topic, int32_t partition, int wait_ms) noexcept nogil
    void (*message_destroy)(RdMessage* message) noexcept nogil
    int (*query_watermark_offsets)(
        void* handle, const char* topic, int32_t partition, int64_t* low, int64_t* high,
        int wait_ms) noexcept nogil
    int (*get_watermark_offsets)(
        void* handle, const char* topic, int32_t partition, int64_t* low, int64_t* high) noexcept nogil
    RdPartitions* (*topic_partition_list_new)(int room) noexcept nogil
    RdPartition* (*topic_partition_list_add)(
        RdPartitions* partitions, const char* topic, int32_t partition) noexcept nogil
    void (*topic_partition_list_destroy)(RdPartitions* partitions) noexcept nogil
    void* (*delete_records_new)(const RdPartitions* partitions) noexcept nogil
    void (*delete_records_destroy)(void* request) noexcept nogil
    void (*delete_records)(
        void* handle, void** requests, size_t count, const void* options, void* queue) noexcept nogil
    const void* (*event_deleted)(void* event) noexcept nogil
    const RdPartitions* (*deleted_offsets)(const void* result) noexcept nogil


# Loads the library at `path`. Returns NULL with a sentence in `text` when it cannot, or when something is
# missing from it.
# It stays loaded: a second call returns the same.
cdef Librdkafka* librdkafka_load(const char* path, char* text, size_t room) noexcept nogil
