"""Calls of one frame and one answer, and EnqueueStream: many frames, answered in order.

A unary call is refused where there is no room; a producer's stream is slowed down instead: its frame is kept,
its window is not given back, and it goes on when the scheduler has room.
"""

from fila_server.core.doors.outbox cimport Out
from fila_server.edges.native.iothread cimport Call, Parcel
from fila_server.edges.native.submission cimport Received

cdef void unary_message(Call* call, Received* message) noexcept nogil
cdef void producer_frame(Call* call, Received* message) noexcept nogil
cdef void producer_half_closed(Call* call) noexcept nogil
cdef void producer_retry(Call* call) noexcept nogil                    # its refused command
cdef void producer_drains(Call* call) noexcept nogil                   # what is owed is answered first
cdef void parcel_answer(Call* call, Parcel* parcel, Out* answer) noexcept nogil    # takes the payload
