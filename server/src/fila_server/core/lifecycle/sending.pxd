"""What was picked leaves: once its bytes are here, in the consumer's
order; see deliver.pxd for what comes before.

A Delivery whose bytes are cold waits for the reader thread and holds those that are hot. Here too is the
end of a consumer, whatever was on its way to it.
"""

from libc.stdint cimport uint64_t

from fila_server.core.protocol.protobuf cimport View
from fila_server.core.state.state cimport Consumer, Core, Delivery, Slot

cdef void deliveries_loaded(Core* core) noexcept nogil                    # what the reader thread brought
# frees the consumer of a pull
cdef void send_what_is_ready(Core* core, Consumer* consumer) noexcept nogil
cdef void pull_answer(Core* core, Consumer* consumer) noexcept nogil      # a pull whose time is over: nothing
cdef void delivery_free(Core* core, Delivery* delivery) noexcept nogil
cdef void consumer_unlink(Core* core, Consumer* consumer) noexcept nogil  # nothing is given to it any more
cdef void consumer_forget(Core* core, Consumer* consumer) noexcept nogil


# --- a message as a delivery shows it --------------------------------------------------------
# A message as a delivery or a peek shows it.

cdef void message_view(Core* core, Slot* slot, View* view) noexcept nogil
cdef uint64_t message_bytes(Slot* slot) noexcept nogil            # at most this many, on the wire
