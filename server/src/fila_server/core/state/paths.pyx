"""Names are looked up in the tables; a queue's first channel is tried before its table, since most have
one.
"""

from libc.string cimport memcmp

from fila_server.core.structures.maps cimport textmap_get


cdef Queue* queue_find(Core* core, Slice name) noexcept nogil:
    return <Queue*> textmap_get(&core.queues, name.at, name.length)


cdef Queue* dlq_source(Core* core, Queue* queue) noexcept nogil:
    cdef Slice name
    cdef Queue* source
    if not queue.is_dlq:
        return NULL
    name.at, name.length = queue.text.bytes, queue.text.length - 4      # without ".dlq"
    source = queue_find(core, name)
    return source if source != NULL and source.dlq == queue else NULL


cdef Share* share_find(Frame* frame, Channel* channel) noexcept nogil:
    cdef Share* share = frame.shares
    while share != NULL and share.channel != channel:
        share = share.next_of_frame
    return share


cdef Channel* channel_find(Queue* queue, Slice name) noexcept nogil:
    cdef Channel* channel = queue.channels
    if name.length == 0:
        name.at, name.length = b"default", 7
    if (
        channel != NULL and channel.text.length == name.length
        and memcmp(channel.text.bytes, name.at, name.length) == 0
    ):
        return channel
    return <Channel*> textmap_get(&queue.channels_by_name, name.at, name.length)
