from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint32_t, uint8_t
from libc.stdio cimport snprintf
from libc.string cimport memcmp, strlen

from fila_server.core.protocol cimport v1
from fila_server.core.protocol.commands cimport OK, RESOURCE_EXHAUSTED
from fila_server.core.protocol.protobuf cimport (
    Fields, fields_parse, put_nested, put_number_field, put_text_field,
)
from fila_server.core.structures.buffer cimport (
    Buffer, Slice, buffer_free, buffer_init, buffer_reserve, put_bytes, put_u8,
)
from fila_server.edge.grpc.nghttp2 cimport NGHTTP2_NV_FLAG_NO_COPY_NAME

cdef enum:
    MESSAGE_BYTES_MAX = 1024        # trailers carry it twice, and clients cap them at 8 KiB
    RETRY_MS = 100
    RETRY_QUEUE_MS = 1000
    RETRY_DISK_MS = 5000

cdef const char* DOMAIN = b"fila"
cdef const char* ERROR_INFO = b"type.googleapis.com/google.rpc.ErrorInfo"
cdef const char* RETRY_INFO = b"type.googleapis.com/google.rpc.RetryInfo"
cdef const char* BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
cdef const char* HEX = b"0123456789ABCDEF"


cdef void nv_put(nghttp2_nv* to, const char* name, const char* value, size_t length) noexcept nogil:
    to.name = <uint8_t*> name
    to.namelen = strlen(name)
    to.value = <uint8_t*> value
    to.valuelen = length
    to.flags = NGHTTP2_NV_FLAG_NO_COPY_NAME


cdef inline Slice _text(const char* words) noexcept nogil:
    cdef Slice s
    s.at, s.length = words, <uint32_t> strlen(words)
    return s


cdef uint32_t _retry_ms(const char* reason) noexcept nogil:
    cdef size_t length = strlen(reason)
    if length == 10 and memcmp(reason, b"DISK_FLOOR", 10) == 0:
        return RETRY_DISK_MS
    if length == 10 and (memcmp(reason, b"QUEUE_FULL", 10) == 0 or memcmp(reason, b"HOOKS_FULL", 10) == 0):
        return RETRY_QUEUE_MS
    return RETRY_MS


cdef void _put_any(Buffer* to, const char* type_url, const Buffer* value) noexcept nogil:
    """One google.protobuf.Any of google.rpc.Status.details."""
    cdef Buffer packed
    buffer_init(&packed)
    put_text_field(&packed, v1.ANY_TYPE_URL, _text(type_url))
    put_nested(&packed, v1.ANY_VALUE, value)
    put_nested(to, v1.STATUS_DETAILS, &packed)
    buffer_free(&packed)


cdef void _put_details(Call* call, int32_t code, const char* reason) noexcept nogil:
    cdef Buffer info
    cdef Buffer delay
    cdef Slice message
    cdef uint32_t after_ms
    message.at, message.length = call.message.data, <uint32_t> call.message.length
    call.details.length = 0
    put_number_field(&call.details, v1.STATUS_CODE, code)
    put_text_field(&call.details, v1.STATUS_MESSAGE, message)
    buffer_init(&info)
    put_text_field(&info, v1.ERROR_INFO_REASON, _text(reason))
    put_text_field(&info, v1.ERROR_INFO_DOMAIN, _text(DOMAIN))
    _put_any(&call.details, ERROR_INFO, &info)
    if code == RESOURCE_EXHAUSTED:
        after_ms = <uint32_t> call.retry_ms if call.retry_ms > 0 else _retry_ms(reason)
        buffer_init(&delay)
        if after_ms >= 1000:
            put_number_field(&delay, v1.DURATION_SECONDS, after_ms // 1000)
        if after_ms % 1000:
            put_number_field(&delay, v1.DURATION_NANOS, after_ms % 1000 * 1000000)
        info.length = 0
        put_nested(&info, v1.RETRY_INFO_RETRY_DELAY, &delay)
        _put_any(&call.details, RETRY_INFO, &info)
        buffer_free(&delay)
    buffer_free(&info)


cdef void status_refuse(
        Call* call, int32_t code, const char* message, size_t length, const char* reason) noexcept nogil:
    call.status = code
    call.message.length = 0
    if length > MESSAGE_BYTES_MAX:
        length = MESSAGE_BYTES_MAX - 3
        while length and (<uint8_t> message[length] & 0xC0) == 0x80:     # not inside a character of UTF-8
            length -= 1
        put_bytes(&call.message, message, length)
        put_bytes(&call.message, b"...", 3)
    else:
        put_bytes(&call.message, message, length)
    _put_details(call, code, reason)


cdef void status_repeat(
        Call* call, int32_t code, const Buffer* message, const Buffer* details) noexcept nogil:
    call.status = code
    call.message.length = call.details.length = 0
    put_bytes(&call.message, message.data, message.length)
    put_bytes(&call.details, details.data, details.length)


cdef void status_of_reply(Call* call, int32_t code, const char* item, size_t length) noexcept nogil:
    cdef Fields fields
    cdef Slice text
    cdef char reason[64]
    if not fields_parse(&fields, item, length):
        status_refuse(call, code, b"", 0, b"INTERNAL")
        return
    text = fields.text[v1.ITEM_STATUS_REASON]
    snprintf(reason, sizeof(reason), b"%.*s", <int> text.length, text.at)
    text = fields.text[v1.ITEM_STATUS_MESSAGE]
    status_refuse(call, code, text.at, text.length, reason)


cdef void _put_percent(Buffer* to, const char* at, size_t length) noexcept nogil:
    """Everything but printable ASCII as %XX, and the percent sign itself."""
    cdef size_t i
    cdef uint8_t byte
    buffer_reserve(to, length * 3)
    for i in range(length):
        byte = <uint8_t> at[i]
        if byte < 0x20 or byte > 0x7E or byte == 0x25:
            to.data[to.length] = b"%"
            to.data[to.length + 1] = HEX[byte >> 4]
            to.data[to.length + 2] = HEX[byte & 15]
            to.length += 3
        else:
            to.data[to.length] = <char> byte
            to.length += 1


cdef void _put_base64(Buffer* to, const char* at, size_t length) noexcept nogil:
    """Without padding, as the gRPC document asks of the sender."""
    cdef size_t i = 0
    cdef size_t left
    cdef uint32_t three
    while i < length:
        left = length - i
        three = <uint32_t> <uint8_t> at[i] << 16
        if left > 1:
            three |= <uint32_t> <uint8_t> at[i + 1] << 8
        if left > 2:
            three |= <uint8_t> at[i + 2]
        put_u8(to, BASE64[three >> 18])
        put_u8(to, BASE64[three >> 12 & 63])
        if left > 1:
            put_u8(to, BASE64[three >> 6 & 63])
        if left > 2:
            put_u8(to, BASE64[three & 63])
        i += 3


cdef size_t trailers_put(const Call* call, nghttp2_nv* to, Buffer* room) noexcept nogil:
    cdef size_t message_at, details_at
    cdef size_t count = 1
    # Reserved as a whole first: the entries point into it.
    buffer_reserve(room, 16 + call.message.length * 3 + call.details.length * 4 // 3 + 4)
    room.length += <size_t> snprintf(room.data + room.length, 12, b"%d", call.status)
    nv_put(&to[0], b"grpc-status", room.data, room.length)
    if call.status != OK and call.message.length:
        message_at = room.length
        _put_percent(room, call.message.data, call.message.length)
        nv_put(&to[count], b"grpc-message", room.data + message_at, room.length - message_at)
        count += 1
    if call.status != OK and call.details.length:
        details_at = room.length
        _put_base64(room, call.details.data, call.details.length)
        nv_put(&to[count], b"grpc-status-details-bin", room.data + details_at, room.length - details_at)
        count += 1
    return count
