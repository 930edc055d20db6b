"""Calls of one frame and one answer, and EnqueueStream: many frames, answered in order.

A unary call is refused where there is no room; a producer's stream is slowed down instead: its frame is kept,
its window is not given back, and it goes on when the scheduler has room.
"""

from libc.stdint cimport int32_t

from fila_server.core.threads.outbox cimport Out
from fila_server.edge.grpc.submission cimport Received
from fila_server.edge.io.iothread cimport Call, Parcel

cdef void unary_message(Call* call, Received* message) noexcept nogil
cdef void producer_frame(Call* call, Received* message) noexcept nogil
cdef void producer_half_closed(Call* call) noexcept nogil
cdef void producer_retry(Call* call) noexcept nogil                    # its refused command
cdef void producer_drains(Call* call) noexcept nogil                   # what is owed is answered first
# The same with another status.
cdef void producer_ends(Call* call, int32_t code, const char* why, const char* reason) noexcept nogil
# Whether it is beyond its sender's quota; then its window is withheld until `producer_room` finds it is not.
cdef bint producer_is_slowed(Call* call) noexcept nogil
cdef void producer_room(Call* call) noexcept nogil
cdef void parcel_answer(Call* call, Parcel* parcel, Out* answer) noexcept nogil    # takes the payload
