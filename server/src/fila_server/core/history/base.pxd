"""Where a replay begins: all that an opening found, written down before recovery makes anything of it.

Recovery is a function of the store's records, the clocks and the seeds, so these are the base; the ring, the
fifos and the clocks that follow from them are not written. Payloads are not read: FRAMES and
STAGED are left out.
"""

from fila_server.core.state.state cimport Core
from fila_server.core.storage.status cimport StoreError

# `head` says with which settings, seeds and clocks. Returns a StoreStatus.
cdef int base_put(Core* core, const char* head, size_t length, StoreError* error) noexcept nogil
