"""Limits and what throttle keys have used of them, on disk and on the wire: BUCKETS, in records.pxd.

A limit's record is its protobuf message. What the short form of the runtime config says is said there alone:
a limit that is one rate of messages has no record, and one that is more has the rate in both; where they
differ, a Fila that knew no limits has changed the short form, and that counts.
"""

from libc.stddef cimport size_t

from fila_server.core.state.limits cimport Limit, LimitTerms
from fila_server.core.state.state cimport Core, ThrottleKey
from fila_server.core.structures.buffer cimport Buffer, Slice

# The short form, in the runtime configuration; an empty value is none.
cdef void config_record_put(Core* core, Slice name, Slice value) noexcept nogil

# A fila.v1.Limit. `name` is a part of `message`; what stands nowhere is as in an empty message.
cdef void limit_put(Buffer* b, const Limit* limit) noexcept nogil
cdef void limit_read(Slice message, Slice* name, LimitTerms* terms) noexcept nogil

cdef void limit_record_put(Core* core, Limit* limit) noexcept nogil
cdef void limit_record_delete(Core* core, Limit* limit) noexcept nogil

# The clock of budgets, as a forgotten throttle key left it.
cdef void clock_record_read(Core* core, Slice record) noexcept nogil

cdef void bucket_record_put(Core* core, ThrottleKey* key) noexcept nogil
cdef void bucket_record_delete(Core* core, ThrottleKey* key) noexcept nogil
# Its levels as they were, plus what has flowed in since. A clock that was set back adds nothing.
cdef void bucket_record_read(Core* core, ThrottleKey* key, const char* value, size_t length) noexcept nogil
