"""librdkafka behind the four functions of a Log."""

from libc.stdint cimport int32_t, int64_t, intptr_t, uint32_t, uint64_t, uint8_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from fila_server.core.log.end cimport LogEnd
from fila_server.core.log.librdkafka cimport (
    CONF_OK, ERR_ALL_DOWN, ERR_PARTITION_EOF, ERR_QUEUE_FULL, ERR_RESET, EVENT_DELETED, EVENT_DR,
    EVENT_ERROR, MSG_COPY, RD_CONSUMER, RD_PRODUCER, RdMessage, RdMetadata, RdPartitions, librdkafka_load,
)
from fila_server.core.log.log cimport (
    LOG_FAILED, LOG_OK, LOG_STALLED, Log, LogError, LogRead, LogRecord, LogReport, LogStatus,
)

cdef enum:
    PARTITION = 0


cdef LogStatus kafka_open(
        Kafka* kafka, const char* library, const char* topic, const char** names, const char** values,
        int count, KafkaRole role, int32_t wait_ms, LogError* error) noexcept nogil:
    memset(kafka, 0, sizeof(Kafka))
    kafka.next_offset = -1
    kafka.wait_ms = wait_ms
    kafka.log.held = kafka
    kafka.log.read, kafka.log.truncate = _read, _truncate
    if role == READS_AND_APPENDS:
        kafka.log.append, kafka.log.reports = _append, _reports
    snprintf(kafka.topic_name, sizeof(kafka.topic_name), "%s", topic)
    kafka.lib = librdkafka_load(library, error.text, sizeof(error.text))
    if kafka.lib == NULL:
        return LOG_FAILED
    kafka.consumer = _handle(kafka, RD_CONSUMER, names, values, count, error)
    if kafka.consumer == NULL:
        return LOG_FAILED
    kafka.consumer_queue = kafka.lib.queue_get_main(kafka.consumer)
    kafka.consumer_topic = kafka.lib.topic_new(kafka.consumer, kafka.topic_name, NULL)
    if _topic_is_a_log(kafka, error) != LOG_OK:
        return LOG_FAILED
    if role == READS:
        return LOG_OK
    kafka.producer = _handle(kafka, RD_PRODUCER, names, values, count, error)
    if kafka.producer == NULL:
        return LOG_FAILED
    kafka.producer_queue = kafka.lib.queue_get_main(kafka.producer)
    kafka.producer_topic = kafka.lib.topic_new(kafka.producer, kafka.topic_name, NULL)
    return LOG_OK


cdef void* _handle(
        Kafka* kafka, int kind, const char** names, const char** values, int count,
        LogError* error) noexcept nogil:
    """A producer or a consumer; NULL with a sentence when a setting is refused."""
    cdef void* conf = kafka.lib.conf_new()
    cdef void* handle
    cdef char text[256]
    cdef int i
    for i in range(count):
        if kafka.lib.conf_set(conf, names[i], values[i], text, sizeof(text)) != CONF_OK:
            snprintf(error.text, sizeof(error.text), "librdkafka refuses %s: %s", names[i], text)
            kafka.lib.conf_destroy(conf)
            return NULL
    # What it would print comes as an event instead, or is of no use to anybody.
    kafka.lib.conf_set_log_cb(conf, NULL)
    kafka.lib.conf_set_events(conf, EVENT_DR if kind == RD_PRODUCER else EVENT_ERROR)
    handle = kafka.lib.new_handle(kind, conf, text, sizeof(text))
    if handle == NULL:
        snprintf(error.text, sizeof(error.text), "librdkafka does not start: %s", text)
        kafka.lib.conf_destroy(conf)
    return handle


cdef LogStatus _judge(
        Kafka* kafka, int kind, const char* topic, const char** names, const char** values, int count,
        LogError* error) noexcept nogil:
    """A handle as kafka_open makes it, with its topic, at which some settings are first looked at."""
    cdef void* handle = _handle(kafka, kind, names, values, count, error)
    cdef void* made
    if handle == NULL:
        return LOG_FAILED
    made = kafka.lib.topic_new(handle, topic, NULL)
    if made == NULL:
        snprintf(
            error.text, sizeof(error.text), "librdkafka does not start: %s",
            kafka.lib.err2str(kafka.lib.last_error()))
    _drop(kafka, handle, made, NULL)
    return LOG_FAILED if made == NULL else LOG_OK


cdef void _hear(Kafka* kafka) noexcept nogil:
    """Takes what the consumer tells of brokers, and waits for nothing."""
    cdef void* event = kafka.lib.queue_poll(kafka.consumer_queue, 0)
    while event != NULL:
        # That all of them are down is said behind why each of them is.
        if kafka.lib.event_type(event) == EVENT_ERROR and kafka.lib.event_error(event) != ERR_ALL_DOWN:
            snprintf(
                kafka.trouble, sizeof(kafka.trouble), "%s", kafka.lib.event_error_string(event))
        kafka.lib.event_destroy(event)
        event = kafka.lib.queue_poll(kafka.consumer_queue, 0)


cdef LogStatus _said(Kafka* kafka, const char* what, int err, LogError* error) noexcept nogil:
    """A sentence of what was refused, and what the library last told of its brokers."""
    _hear(kafka)
    if kafka.trouble[0]:
        snprintf(
            error.text, sizeof(error.text), "%s: %s (%s)", what, kafka.lib.err2str(err), kafka.trouble)
    else:
        snprintf(error.text, sizeof(error.text), "%s: %s", what, kafka.lib.err2str(err))
    return LOG_FAILED


cdef LogStatus _topic_is_a_log(Kafka* kafka, LogError* error) noexcept nogil:
    cdef const RdMetadata* metadata = NULL
    cdef int err = kafka.lib.metadata(kafka.consumer, 0, kafka.consumer_topic, &metadata, kafka.wait_ms)
    cdef int partitions
    if err != 0:
        return _said(kafka, "the brokers do not answer", err, error)
    err = metadata.topics[0].err
    partitions = metadata.topics[0].partition_count
    kafka.lib.metadata_destroy(metadata)
    if err != 0:
        return _said(kafka, "the brokers do not give this topic", err, error)
    if partitions != 1:
        snprintf(
            error.text, sizeof(error.text),
            "topic %s has %d partitions; a log is a topic of one: make another",
            kafka.topic_name, partitions)
        return LOG_FAILED
    return LOG_OK


cdef void _let_go(Kafka* kafka) noexcept nogil:
    """The records of the last read."""
    while kafka.held_count:
        kafka.held_count -= 1
        kafka.lib.message_destroy(kafka.held[kafka.held_count])


cdef void _stop(Kafka* kafka) noexcept nogil:
    if kafka.is_consuming:
        kafka.lib.consume_stop(kafka.consumer_topic, PARTITION)
        kafka.is_consuming = False


cdef void kafka_close(Kafka* kafka) noexcept nogil:
    if kafka.lib == NULL:
        return
    _let_go(kafka)
    _stop(kafka)
    if kafka.report_event != NULL:
        kafka.lib.event_destroy(kafka.report_event)
    _drop(kafka, kafka.consumer, kafka.consumer_topic, kafka.consumer_queue)
    _drop(kafka, kafka.producer, kafka.producer_topic, kafka.producer_queue)
    kafka.consumer = kafka.producer = NULL
    kafka.lib = NULL


cdef void _drop(Kafka* kafka, void* handle, void* topic, void* queue) noexcept nogil:
    if handle == NULL:
        return
    if topic != NULL:
        kafka.lib.topic_destroy(topic)
    if queue != NULL:
        kafka.lib.queue_destroy(queue)
    kafka.lib.destroy(handle)


cdef LogStatus _append(
        void* held, const uint8_t* content, uint32_t length, uint64_t tag, LogError* error) noexcept nogil:
    cdef Kafka* kafka = <Kafka*>held
    cdef int err
    if kafka.lib.produce(
        kafka.producer_topic, PARTITION, MSG_COPY, <void*>content, length, NULL, 0, <void*><intptr_t>tag
    ) == 0:
        return LOG_OK
    err = kafka.lib.last_error()
    snprintf(error.text, sizeof(error.text), "%s", kafka.lib.err2str(err))
    return LOG_STALLED if err == ERR_QUEUE_FULL else LOG_FAILED


cdef uint32_t _reports(void* held, LogReport* out, uint32_t room, int32_t wait_ms) noexcept nogil:
    """An event may hold more reports than there is room for: it is kept until it is empty."""
    cdef Kafka* kafka = <Kafka*>held
    cdef const RdMessage* message
    cdef uint32_t count = 0
    while count < room:
        if kafka.report_event == NULL:
            kafka.report_event = kafka.lib.queue_poll(kafka.producer_queue, wait_ms if count == 0 else 0)
            if kafka.report_event == NULL:
                break
        message = kafka.lib.event_message_next(kafka.report_event)
        if message == NULL:
            kafka.lib.event_destroy(kafka.report_event)
            kafka.report_event = NULL
            continue
        out[count].tag = <uint64_t><intptr_t>message.opaque
        out[count].offset = message.offset if message.offset >= 0 else -1
        out[count].broker = kafka.lib.message_broker_id(message)
        out[count].error = message.err
        count += 1
    return count


cdef LogStatus _read(
        void* held, int64_t first, LogRead* out, int32_t wait_ms, LogError* error) noexcept nogil:
    """Where nothing is behind the offset, or it is not in the log, the brokers are asked for both ends."""
    cdef Kafka* kafka = <Kafka*>held
    cdef uint32_t room = min(out.room, <uint32_t>HELD_MAX)
    cdef RdMessage* message
    out.count = 0
    out.start = out.end = -1
    _let_go(kafka)
    if _seek(kafka, first, error) != LOG_OK:
        return LOG_FAILED
    while out.count < room:
        message = kafka.lib.consume(kafka.consumer_topic, PARTITION, wait_ms if out.count == 0 else 0)
        if message == NULL:
            break
        kafka.held[kafka.held_count] = message
        kafka.held_count += 1
        if message.err != 0:
            return _no_record(kafka, message.err, out, error)
        out.records[out.count] = LogRecord(
            message.offset, <const uint8_t*>message.payload, <uint32_t>message.length)
        out.count += 1
        kafka.next_offset = message.offset + 1
    if out.count:
        _end_of_records(kafka, out)
    return LOG_OK


cdef void _end_of_records(Kafka* kafka, LogRead* out) noexcept nogil:
    """Where the log ended when the brokers sent what was read: while it goes on they tell no more."""
    cdef int64_t low, high
    cdef int err = kafka.lib.get_watermark_offsets(
        kafka.consumer, kafka.topic_name, PARTITION, &low, &high)
    if err == 0 and high >= kafka.next_offset:
        out.end = high


cdef LogStatus _seek(Kafka* kafka, int64_t first, LogError* error) noexcept nogil:
    cdef int err
    if kafka.is_consuming and kafka.next_offset == first:
        return LOG_OK
    _stop(kafka)
    if kafka.lib.consume_start(kafka.consumer_topic, PARTITION, first) != 0:
        err = kafka.lib.last_error()
        return _said(kafka, "the log cannot be read", err, error)
    kafka.is_consuming = True
    kafka.next_offset = first
    return LOG_OK


cdef LogStatus _no_record(Kafka* kafka, int err, LogRead* out, LogError* error) noexcept nogil:
    """What came in place of a record."""
    if err != ERR_PARTITION_EOF and err != ERR_RESET:
        _stop(kafka)
        return _said(kafka, "the log cannot be read", err, error)
    if err == ERR_RESET:
        _stop(kafka)
    err = kafka.lib.query_watermark_offsets(
        kafka.consumer, kafka.topic_name, PARTITION, &out.start, &out.end, kafka.wait_ms)
    if err != 0:
        # As while a leader moves. Nobody knows the end then, and the next read comes to it anew.
        out.start = out.end = -1
        _stop(kafka)
    return LOG_OK


cdef LogStatus _truncate(void* held, int64_t below, LogError* error) noexcept nogil:
    cdef Kafka* kafka = <Kafka*>held
    cdef RdPartitions* partitions = kafka.lib.topic_partition_list_new(1)
    cdef void* queue = kafka.lib.queue_new(kafka.consumer)
    cdef void* request
    cdef void* event
    cdef LogStatus status
    kafka.lib.topic_partition_list_add(partitions, kafka.topic_name, PARTITION).offset = below
    request = kafka.lib.delete_records_new(partitions)
    kafka.lib.delete_records(kafka.consumer, &request, 1, NULL, queue)
    event = kafka.lib.queue_poll(queue, kafka.wait_ms)
    status = _truncated(kafka, event, error)
    if event != NULL:
        kafka.lib.event_destroy(event)
    kafka.lib.delete_records_destroy(request)
    kafka.lib.topic_partition_list_destroy(partitions)
    kafka.lib.queue_destroy(queue)
    return status


cdef LogStatus _truncated(Kafka* kafka, void* event, LogError* error) noexcept nogil:
    cdef int err
    if event == NULL or kafka.lib.event_type(event) != EVENT_DELETED:
        snprintf(error.text, sizeof(error.text), "the brokers did not answer in %d ms", kafka.wait_ms)
        return LOG_FAILED
    err = kafka.lib.event_error(event)
    if err == 0:
        err = kafka.lib.deleted_offsets(kafka.lib.event_deleted(event)).elements[0].err
    if err == 0:
        return LOG_OK
    # What the library told of its brokers belongs to the thread that reads.
    snprintf(error.text, sizeof(error.text), "the log was not truncated: %s", kafka.lib.err2str(err))
    return LOG_FAILED


# ---- for tests and offline tools, never on the message path

class LogRefused(Exception):
    """The log answered with something else than LOG_OK."""


def judge_settings(str library, str topic, dict settings):
    """Makes a consumer and a producer of `settings`, and ends them. LogRefused: the library takes them not.

    No broker is asked if `settings` names none.
    """
    cdef LogError error
    cdef LogStatus status
    cdef Kafka kafka
    cdef Words words = Words(library, topic, settings)
    memset(&kafka, 0, sizeof(Kafka))
    with nogil:
        kafka.lib = librdkafka_load(words.library, error.text, sizeof(error.text))
        status = LOG_FAILED if kafka.lib == NULL else _judge(
            &kafka, RD_CONSUMER, words.topic, words.names, words.values, words.count, &error)
        if status == LOG_OK:
            status = _judge(
                &kafka, RD_PRODUCER, words.topic, words.names, words.values, words.count, &error)
    if status != LOG_OK:
        raise LogRefused(error.text.decode(errors="replace"))


cdef class Words:
    """Texts as C takes them; they live as long as this object."""

    cdef bytes path, name
    cdef list texts
    cdef const char* library
    cdef const char* topic
    cdef const char** names
    cdef const char** values
    cdef int count

    def __cinit__(self, str library, str topic, dict settings):
        cdef bytes text
        cdef int i
        self.path, self.name = library.encode(), topic.encode()
        self.library, self.topic = self.path, self.name
        self.texts = [*map(str.encode, settings.keys()), *map(str.encode, settings.values())]
        self.count = len(settings)
        self.names = <const char**>calloc(2 * self.count + 1, sizeof(char*))
        self.values = self.names + self.count
        for i in range(2 * self.count):
            text = self.texts[i]
            self.names[i] = text

    def __dealloc__(self):
        free(self.names)


cdef class KafkaLog(LogEnd):
    """A log over Kafka's protocol, with Python hands; each method is one of the four functions."""

    cdef Kafka kafka
    cdef bint is_open

    def __init__(self, str library, str topic, dict settings, bint appends=False, int32_t wait_ms=10_000):
        cdef LogError error
        cdef LogStatus status
        cdef Words words = Words(library, topic, settings)
        with nogil:
            status = kafka_open(
                &self.kafka, words.library, words.topic, words.names, words.values, words.count,
                READS_AND_APPENDS if appends else READS, wait_ms, &error)
            if status != LOG_OK:
                kafka_close(&self.kafka)
        if status != LOG_OK:
            raise LogRefused(error.text.decode(errors="replace"))
        self.is_open = True
        self.log = &self.kafka.log

    def close(self):
        if self.is_open:
            self.is_open = False
            with nogil:
                kafka_close(&self.kafka)

    def __dealloc__(self):
        self.close()

    cdef Log* _that_appends(self) except NULL:
        if self.kafka.log.append == NULL:
            raise LogRefused("the log was opened to be read only: open it with appends")
        return &self.kafka.log

    def append(self, bytes content, uint64_t tag):
        """True; False: its queue is full, and nothing was appended."""
        cdef LogError error
        cdef Log* log = self._that_appends()
        cdef LogStatus status = log.append(
            log.held, <const uint8_t*><const char*>content, <uint32_t>len(content), tag, &error)
        if status == LOG_FAILED:
            raise LogRefused(error.text.decode(errors="replace"))
        return status == LOG_OK

    def reports(self, uint32_t room=64, int32_t wait_ms=0):
        """Of each: tag, offset, broker, error."""
        cdef LogReport[64] out
        cdef Log* log = self._that_appends()
        cdef uint32_t count
        with nogil:
            count = log.reports(log.held, out, min(room, <uint32_t>64), wait_ms)
        return [(out[i].tag, out[i].offset, out[i].broker, out[i].error) for i in range(count)]

    def read(self, int64_t first, uint32_t room=HELD_MAX, int32_t wait_ms=0):
        """(records with their offsets, the log's start, its end); -1 where it was not asked."""
        cdef LogRecord[HELD_MAX] records
        cdef LogRead out
        cdef LogError error
        cdef Log* log = &self.kafka.log
        cdef LogStatus status
        out.records, out.room = records, min(room, <uint32_t>HELD_MAX)
        with nogil:
            status = log.read(log.held, first, &out, wait_ms, &error)
        if status != LOG_OK:
            raise LogRefused(error.text.decode(errors="replace"))
        found = [
            (records[i].offset, (<const char*>records[i].content)[:records[i].length])
            for i in range(out.count)
        ]
        return found, out.start, out.end

    def ends(self, int32_t wait_ms=1_000):
        """Offsets of the first record there is, and of the next that comes. A read goes on where it was."""
        cdef Kafka* kafka = &self.kafka
        cdef int64_t start = -1, end = -1
        cdef int err
        with nogil:
            err = kafka.lib.query_watermark_offsets(
                kafka.consumer, kafka.topic_name, PARTITION, &start, &end, wait_ms)
        if err != 0:
            raise LogRefused(kafka.lib.err2str(err).decode(errors="replace"))
        return start, end

    def truncate(self, int64_t below):
        cdef LogError error
        cdef Log* log = &self.kafka.log
        cdef LogStatus status
        with nogil:
            status = log.truncate(log.held, below, &error)
        if status != LOG_OK:
            raise LogRefused(error.text.decode(errors="replace"))
