"""The log in the one partition of a topic, over Kafka's protocol (Apache Kafka, Redpanda, or a managed one).

A producer and a consumer of librdkafka, each with a queue of events. No callback is registered, so no
thread of the library runs our code. A report without an offset, a report twice and a gap between offsets are
all the log's right: the owner's rule (owning.pxd) knows what to make of them. The consumer belongs to no
group of Kafka's: it reads where it is told to.
"""

from libc.stdint cimport int32_t, int64_t

from fila_server.core.log.librdkafka cimport Librdkafka, RdMessage
from fila_server.core.log.log cimport Log, LogError, LogStatus

cdef enum:
    HELD_MAX = 256                  # records of one read

cdef struct Kafka:
    Librdkafka* lib
    Log      log
    char     topic_name[250]
    void*    producer               # NULL: it is only read
    void*    producer_topic
    void*    producer_queue
    void*    report_event           # of which not all reports were given out
    void*    consumer
    void*    consumer_topic
    void*    consumer_queue
    bint     is_consuming
    int64_t  next_offset            # that the consumer would give
    RdMessage* held[HELD_MAX]       # of the last read
    int      held_count
    char     trouble[200]           # what the library last told of brokers that it cannot use
    int32_t  wait_ms                # for an answer of the brokers to a question


cdef enum KafkaRole:
    READS = 0
    READS_AND_APPENDS = 1

# `names` and `values` are `count` settings of librdkafka. Asks the brokers for the topic, which must have one
# partition.
cdef LogStatus kafka_open(
    Kafka* kafka, const char* library, const char* topic, const char** names, const char** values, int count,
    KafkaRole role, int32_t wait_ms, LogError* error) noexcept nogil
# What is still in its queue is given up.
cdef void kafka_close(Kafka* kafka) noexcept nogil
