"""The sinks there are: which run a sink belongs to, what it published last, and when it is forgotten.

A sink is made by the first OpenSink that names it and belongs to one run at a time. A new run gets a higher
epoch; what runs before it staged is dropped, and their later calls are refused. Its row is the memory of
what was published, so it outlives long pauses: `keep_ms` on the running clock, 30 days unless its user
asked for less.
"""

from libc.stdint cimport uint64_t

from fila_server.core.state.sinks cimport Sink
from fila_server.core.state.state cimport Core
from fila_server.core.structures.buffer cimport Slice
from fila_server.core.threads.mailbox cimport Command

# Not in the order of names yet: an opening makes many, and puts them there at once.
cdef Sink* sink_new(Core* core, Slice name, uint64_t number) noexcept nogil
# The sink of a call that carries this epoch; NULL: there is none, or it belongs to a later run, and the
# call is
# answered so.
cdef Sink* sink_of_call(Core* core, Command* command, Slice name, uint64_t epoch) noexcept nogil
cdef void sink_used(Core* core, Sink* sink) noexcept nogil
cdef void sink_open(Core* core, Command* command) noexcept nogil           # OPEN_SINK
# Some of them: attempts that nobody published for too long go, and sinks that nobody uses.
cdef void sinks_sweep(Core* core) noexcept nogil
cdef void sinks_forget(Core* core) noexcept nogil                           # the core is closed
