"""The runtime config: keys and values for hooks, and the throttles among them."""

from fila_server.core.protocol.protobuf cimport Fields
from fila_server.core.state.limits cimport Limit, LimitTerms
from fila_server.core.state.state cimport Core
from fila_server.core.structures.buffer cimport Slice
from fila_server.core.threads.mailbox cimport Command

# in memory; recovery calls it too
cdef void config_apply(Core* core, Slice name, Slice value) noexcept nogil
cdef void config_set(Core* core, Command* command, Fields* fields) noexcept nogil
cdef void config_get(Core* core, Command* command, Fields* fields) noexcept nogil
cdef void config_list(Core* core, Command* command, Fields* fields) noexcept nogil

# A limit was set as a whole: the forms of a throttle say its rate, where it is one of messages.
cdef void throttle_forms_put(Core* core, Limit* limit) noexcept nogil
cdef void throttle_forms_delete(Core* core, Limit* limit) noexcept nogil
# The rates that its short form says, or none.
cdef void throttle_terms(const Limit* limit, LimitTerms* terms) noexcept nogil
# Its record, where its short form does not say all of it.
cdef void limit_keep(Core* core, Limit* limit) noexcept nogil
