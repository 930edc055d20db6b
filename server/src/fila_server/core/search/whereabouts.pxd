"""Where one message is in its channel, as GetMessage says it; what it waits for is its key's to say."""

from fila_server.core.state.state cimport Core, Slot
from fila_server.core.structures.buffer cimport Buffer

# GetMessageResponse, as far as the core knows; `cause`, `blocking_bucket` and `until` of a message that waits
# only where it stands in a bucket's line itself.
cdef void whereabouts_put(Core* core, Buffer* b, Slot* slot) noexcept nogil
