"""Names are compared byte by byte, as everywhere; the shorter of two that agree comes first."""

from libc.stdlib cimport free, qsort
from libc.string cimport memcmp, memmove

from fila_server.core.structures.buffer cimport must_realloc
from fila_server.core.structures.maps cimport Text, textmap_next


cdef int _compared(Text* text, const char* name, uint32_t length) noexcept nogil:
    cdef int order = memcmp(text.bytes, name, min(text.length, length))
    if order:
        return order
    return -1 if text.length < length else text.length > length


cdef int _in_order(const void* a, const void* b) noexcept nogil:
    cdef Text* other = &(<Sink**> b)[0].text
    return _compared(&(<Sink**> a)[0].text, other.bytes, other.length)


cdef uint32_t name_place(Core* core, Slice name) noexcept nogil:
    cdef uint32_t low = 0
    cdef uint32_t high = core.sinks.in_order_count
    cdef uint32_t middle
    while low < high:
        middle = low + (high - low) // 2
        if _compared(&core.sinks.in_order[middle].text, name.at, name.length) < 0:
            low = middle + 1
        else:
            high = middle
    return low


cdef bint name_is(Sink* sink, Slice name) noexcept nogil:
    return _compared(&sink.text, name.at, name.length) == 0


cdef void _make_room(Core* core, uint32_t count) noexcept nogil:
    if count > core.sinks.in_order_capacity:
        core.sinks.in_order_capacity = count * 2 + 8
        core.sinks.in_order = <Sink**> must_realloc(
            core.sinks.in_order, core.sinks.in_order_capacity * sizeof(void*))


cdef void name_put(Core* core, Sink* sink) noexcept nogil:
    cdef Slice name
    cdef uint32_t place
    cdef Sink** at
    name.at, name.length = sink.text.bytes, sink.text.length
    place = name_place(core, name)
    _make_room(core, core.sinks.in_order_count + 1)
    at = &core.sinks.in_order[place]
    memmove(at + 1, at, (core.sinks.in_order_count - place) * sizeof(void*))
    at[0] = sink
    core.sinks.in_order_count += 1


cdef void name_remove(Core* core, Sink* sink) noexcept nogil:
    cdef Slice name
    cdef Sink** at
    name.at, name.length = sink.text.bytes, sink.text.length
    at = &core.sinks.in_order[name_place(core, name)]
    core.sinks.in_order_count -= 1
    memmove(at, at + 1, <char*> &core.sinks.in_order[core.sinks.in_order_count] - <char*> at)


cdef void names_put_all(Core* core) noexcept nogil:
    cdef uint32_t cursor = 0
    cdef Text* text
    _make_room(core, core.sinks.by_name.count)
    core.sinks.in_order_count = 0
    while True:
        text = textmap_next(&core.sinks.by_name, &cursor)
        if text == NULL:
            break
        core.sinks.in_order[core.sinks.in_order_count] = <Sink*> text
        core.sinks.in_order_count += 1
    if core.sinks.in_order_count:
        qsort(core.sinks.in_order, core.sinks.in_order_count, sizeof(void*), _in_order)


cdef void names_forget(Core* core) noexcept nogil:
    free(core.sinks.in_order)
    core.sinks.in_order = NULL
    core.sinks.in_order_count = core.sinks.in_order_capacity = 0
