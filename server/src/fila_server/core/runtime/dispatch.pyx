"""One branch a family of commands; what a command means is in the module it is handed to."""

from fila_server.core.admin.access cimport access_command
from fila_server.core.admin.admin cimport admin_command
from fila_server.core.admin.metrics cimport metrics_command
from fila_server.core.admin.operation_records cimport operation_records_command
from fila_server.core.admin.peek cimport page_begin
from fila_server.core.admin.seek_preview cimport seek_preview
from fila_server.core.admin.stats cimport in_flight_command, stats_command, stored_command
from fila_server.core.admin.troubles cimport troubles_page
from fila_server.core.admin.waiting_longest cimport waiting_longest_command
from fila_server.core.admin.watch cimport watch_command
from fila_server.core.consumers.joining cimport consumer_open
from fila_server.core.consumers.leaving cimport consumer_command, listened
from fila_server.core.consumers.sessions cimport pull_cancel, session_command
from fila_server.core.lifecycle.answers cimport answer_refused
from fila_server.core.lifecycle.enqueue cimport enqueue_command, fire_command
from fila_server.core.lifecycle.failure cimport decide
from fila_server.core.lifecycle.settle cimport settle_command
from fila_server.core.protocol.commands cimport (
    ACCESS_CHANGE, ACCESS_READ, ACK, AUDIT_READ, CANCEL, CANCEL_MESSAGES, CONSUMER_CLOSE, CONSUME_OPEN,
    DECIDE, DROP_STAGED, ENQUEUE, ENQUEUE_ATOMIC, EXPLAIN_KEY, EXTEND_LEASE, FIND_KEYS, FIRE, GET_MESSAGE,
    GET_STATS, HOLDERS, KEY_POLICIES, LEASE,
    LISTENED, LIST_CHANNELS, LIST_CONSUMERS, LIST_PENDING, LIST_QUEUES, LIST_SINKS, METRICS, OPEN_SINK,
    OPERATION_RECORDS_CHANGE, OPERATION_RECORDS_READ, PEEK_MESSAGES, PUBLISH, REDRIVE_MOVE, SEEK_PREVIEW,
    SESSION, SESSION_OPEN, STAGE, STATS_PAGE, STORED_BYTES, TROUBLES_PAGE,
    WAITING_LONGEST_PAGE, WATCH_ROWS, WRITTEN,
)
from fila_server.core.search.lookups cimport lookup_begin
from fila_server.core.sinks.listing cimport sinks_list
from fila_server.core.sinks.publishing cimport drop_staged, publish
from fila_server.core.sinks.registry cimport sink_open
from fila_server.core.sinks.staging cimport stage
from fila_server.core.threads.mailbox cimport ALLOWED


cdef bint _search(Core* core, Command* command) noexcept nogil:
    """For messages. False: it is answered; True: it was kept, and has its turns later."""
    if command.kind == CANCEL_MESSAGES or command.kind == GET_MESSAGE:
        return not lookup_begin(core, command)
    return page_begin(core, command)


cdef bint command_run(Core* core, Command* command) noexcept nogil:
    """Carry one command out; False when it was kept for later."""
    cdef int kind = command.kind
    if ENQUEUE <= kind <= ENQUEUE_ATOMIC:
        enqueue_command(core, command)  # owned by the pass until it is answered
        return False
    if command.verdict != ALLOWED:
        answer_refused(core, command)
    elif ACK <= kind <= EXTEND_LEASE:
        settle_command(core, command)
    elif kind == LEASE or kind == CONSUME_OPEN or kind == SESSION_OPEN:
        consumer_open(core, command)
    elif kind == SESSION:
        session_command(core, command)
    elif kind == CANCEL:
        pull_cancel(core, command)
    elif kind == WRITTEN or kind == CONSUMER_CLOSE:
        consumer_command(core, command)
    elif kind == LISTENED:
        listened(core)
    elif kind in (PEEK_MESSAGES, LIST_PENDING, REDRIVE_MOVE, CANCEL_MESSAGES, GET_MESSAGE):
        return not _search(core, command)
    elif kind == DECIDE:
        decide(core, command)
    elif kind == STAGE or kind == FIRE:
        return stage(core, command) if kind == STAGE else fire_command(core, command)
    elif kind == OPEN_SINK:
        sink_open(core, command)
    elif kind == PUBLISH:
        publish(core, command)
    elif kind == DROP_STAGED:
        drop_staged(core, command)
    elif kind == LIST_SINKS:
        sinks_list(core, command)
    elif (
        kind == GET_STATS or kind == LIST_QUEUES or kind == LIST_CHANNELS or kind == EXPLAIN_KEY
        or kind == LIST_CONSUMERS or kind == STATS_PAGE
    ):
        stats_command(core, command)
    elif kind == WAITING_LONGEST_PAGE or kind == KEY_POLICIES:
        waiting_longest_command(core, command)
    elif kind == FIND_KEYS or kind == WATCH_ROWS:
        watch_command(core, command)
    elif kind == STORED_BYTES:
        stored_command(core, command)
    elif kind == HOLDERS:
        in_flight_command(core, command)
    elif kind == SEEK_PREVIEW:
        seek_preview(core, command)
    elif kind == OPERATION_RECORDS_CHANGE or kind == OPERATION_RECORDS_READ:
        operation_records_command(core, command)
    elif kind == ACCESS_CHANGE or kind == ACCESS_READ or kind == AUDIT_READ:
        access_command(core, command)
    elif kind == TROUBLES_PAGE:
        troubles_page(core, command)
    elif kind == METRICS:
        metrics_command(core, command)
    else:
        return admin_command(core, command)
    return True
