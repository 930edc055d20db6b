"""The decoder of the Redis protocol as tests see it: bytes in, items to be carried out in order.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint32_t

from fila_server.core.structures.buffer cimport Buffer, buffer_free, buffer_init, read_u32be
from fila_server.edge.redis cimport decoder
from fila_server.edge.redis.decoder cimport Decoder, Item, decoder_free, decoder_init, decoder_next
from fila_server.edge.redis.resp cimport reader_feed, reader_keep, reader_unread

# What an item of `CommandDecoder.take` is: its first element.
PUSHES = decoder.ITEM_PUSHES        # (PUSHES, EnqueueBatchRequest, count)      each push on its own
PUSH_MANY = decoder.ITEM_PUSH_MANY  # (PUSH_MANY, EnqueueBatchRequest, count)   one push of many: all or none
LEASE = decoder.ITEM_LEASE          # (LEASE, LeaseRequest, wait_ms)
ACKS = decoder.ITEM_ACKS            # (ACKS, [AckBatchRequest, ...], size)
COMMAND = decoder.ITEM_COMMAND      # (COMMAND, [name, first arguments ...], argc)
REPLY = decoder.ITEM_REPLY          # (REPLY, bytes, 0)                         answered already
CLOSE = decoder.ITEM_CLOSE          # (CLOSE, bytes, 0)                         and then the connection ends


cdef class CommandDecoder:
    """One connection's bytes, as items for the connection to carry out in order."""

    cdef Decoder decoder
    cdef Buffer scratch
    cdef bytes fed              # what the reader may still look at

    def __cinit__(self, int64_t argument_bytes_max, int32_t batch_messages_max, int64_t batch_bytes_max):
        if max(argument_bytes_max, batch_bytes_max) + 65536 > 0xFFFFFFFF:
            raise ValueError("offsets within a command are 32 bits wide")
        buffer_init(&self.scratch)
        decoder_init(&self.decoder, argument_bytes_max, batch_messages_max, batch_bytes_max)

    def __dealloc__(self):
        decoder_free(&self.decoder)
        buffer_free(&self.scratch)

    def feed(self, bytes data):
        """Add bytes as they came from the socket."""
        reader_feed(&self.decoder.reader, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
        self.fed = data

    @property
    def kept_bytes(self):
        """Bytes that wait for the rest of their command, or for the next `take`."""
        return reader_unread(&self.decoder.reader)

    def take(self, int limit):
        """Return up to `limit` items; fewer mean that nothing more is whole."""
        cdef list items = []
        cdef Item item
        while len(items) < limit:
            if not decoder_next(&self.decoder, &self.scratch, &item):
                reader_keep(&self.decoder.reader)
                self.fed = None
                break
            try:
                items.append(_for_python(&item))
            finally:
                buffer_free(&item.body)
        return items


cdef tuple _for_python(Item* item):
    if item.kind == decoder.ITEM_ACKS or item.kind == decoder.ITEM_COMMAND:
        return item.kind, _pieces(&item.body), item.number
    return item.kind, PyBytes_FromStringAndSize(item.body.data, item.body.length), item.number


cdef list _pieces(const Buffer* body):
    """u32 length, bytes, u32 length, bytes, ..."""
    cdef list found = []
    cdef size_t at = 0
    cdef uint32_t size
    while at < body.length:
        size = read_u32be(body.data + at)
        found.append(PyBytes_FromStringAndSize(body.data + at + 4, size))
        at += 4 + size
    return found
