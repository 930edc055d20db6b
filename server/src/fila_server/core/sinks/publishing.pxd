"""Publish: the one step after which a batch is in its queues, whatever happens; and Drop, which gives one up.

    checks ──► room reserved ──► INTENT, synced: the commit point ──► moving.pyx, into the queues ──► answer

A batch below the sink's next one was published, and a call for it changes nothing. One whose INTENT stands is
on its way: a further call waits for the same end.
"""

from libc.stdint cimport uint32_t

from fila_server.core.state.sinks cimport Intent, Sink
from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

cdef void publish(Core* core, Command* command) noexcept nogil
cdef void drop_staged(Core* core, Command* command) noexcept nogil
# An intent among those that are on their way; `count` attempts are still to be filled in.
cdef Intent* intent_new(Core* core, Sink* sink, uint32_t count) noexcept nogil
# Reserves, in queues and in the table of dedup keys, what is still to be moved.
cdef void intent_promise(Core* core, Intent* intent, bint takes_back) noexcept nogil
