"""The batch of new messages is written whole or not at all, so message and record are. Only then does the
schedule stand at its next moment in memory, too: what the disk refuses is due as before.

No change of a schedule, and no deletion of its queue, runs in a pass behind a firing (runtime/passes.pyx):
theirs are the records that are written first.
"""

from libc.stdint cimport uint64_t

from fila_server.core.formats.records cimport schedule_due_put
from fila_server.core.index.schedules cimport schedule_find
from fila_server.core.lifecycle.enqueue cimport enqueue_command
from fila_server.core.protocol cimport seam
from fila_server.core.protocol.protobuf cimport Fields, fields_parse
from fila_server.core.protocol.refusals cimport REFUSED_FIRED
from fila_server.core.state.paths cimport queue_find
from fila_server.core.state.pending cimport Schedule
from fila_server.core.state.state cimport Queue
from fila_server.core.structures.buffer cimport Slice


cdef Schedule* _due(Queue* queue, Slice name, uint64_t due_ms) noexcept nogil:
    """The schedule, where this is its moment and nobody took it in this pass."""
    cdef Schedule* schedule = schedule_find(queue, name)
    if schedule == NULL or schedule.is_firing or due_ms == 0 or schedule.due_ms != due_ms:
        return NULL
    return schedule


cdef bint fire_command(Core* core, Command* command) noexcept nogil:
    cdef Fields fields
    cdef Schedule* schedule = NULL
    cdef Slice name = command.items[0].queue
    cdef Queue* queue = queue_find(core, name) if name.length else NULL
    fields_parse(&fields, command.bytes, command.length - command.rewritten)    # the parse has read it once
    if queue != NULL:
        schedule = _due(queue, fields.text[seam.FIRING_SCHEDULE], fields.number[seam.FIRING_DUE_MS])
        if schedule == NULL and not command.items[0].refused:
            command.items[0].refused = REFUSED_FIRED
    if schedule != NULL:
        schedule.next_ms = fields.number[seam.FIRING_NEXT_MS]
    enqueue_command(core, command)
    if schedule != NULL and not command.items[0].refused:
        schedule.is_firing = True
        command.firing = schedule
        # The command's bytes stay where they are until the frame is built.
        schedule_due_put(core, queue, fields.text[seam.FIRING_SCHEDULE], fields.text[seam.FIRING_RECORD])
    return False
