"""What may trouble somebody, so that the edge can say what is wrong: a part of the queues or of the buckets a
command.

    TROUBLES_PAGE  TroublesPage -> TroublesFound: rows of the part from `cursor` on, and where the next page
    goes
                   on (0: that was all). With the first page of the queues, the keys that are paused.

A row says what is so now; for how long it must be so to be told is the edge's to judge. A page looks at so
many cells of a table, and ends sooner where it has found many, so that it costs half a millisecond, whatever
is stored. Keys are not looked through: those that are paused stand in a list.
"""

from fila_server.core.state.state cimport Core
from fila_server.core.threads.mailbox cimport Command

cdef void troubles_page(Core* core, Command* command) noexcept nogil
