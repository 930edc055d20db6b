from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memcmp, strlen

from fila_server.core.protocol.commands cimport ENQUEUE, ENQUEUE_ATOMIC, RESOURCE_EXHAUSTED, UNAVAILABLE
from fila_server.core.requests.rights cimport RightsTable, rights_admit, rights_judge
from fila_server.core.requests.submit cimport (
    DISK_FULL, POSTED, Posted, request_parse, request_parse_adopted, request_post,
)
from fila_server.core.structures.buffer cimport Buffer, Slice
from fila_server.core.structures.maps cimport textmap_get
from fila_server.core.threads.locks cimport pthread_mutex_lock, pthread_mutex_unlock
from fila_server.core.threads.mailbox cimport command_free
from fila_server.edge.grpc.status cimport status_refuse, status_repeat
from fila_server.edge.io.bridge cimport EVENT_FRAME, event_put
from fila_server.edge.io.iothread cimport PRODUCER
from fila_server.edge.io.response cimport call_end, call_refuse
from fila_server.edge.io.sockets cimport atomic_add, atomic_load
from fila_server.edge.io.unread cimport unread_total

cdef const char* DRAINING = b"the server is shutting down; connect again in a moment"


cdef Command* frame_parse(Call* call, int32_t kind, Received* message, Problem* problem) noexcept nogil:
    return frame_take(
        call.connection.thread, call.caller, call.shape == PRODUCER, kind, message, problem)


cdef Command* frame_take(
        IoThread* io, uint64_t caller, bint is_admitted, int32_t kind, Received* message,
        Problem* problem) noexcept nogil:
    cdef RightsTable* table = io.common.rights
    cdef char* owned = message.owned
    cdef Command* command
    problem.retry_ms = 0
    if caller and not is_admitted and not rights_admit(table, caller, kind, io.now_ns, problem):
        return NULL
    if owned == NULL:
        command = request_parse(io.common.core, kind, 0, message.at, message.length, problem)
    else:
        message.owned = NULL
        command = request_parse_adopted(io.common.core, kind, 0, owned, message.length, problem)
    if command == NULL or caller == 0:
        return command
    # Once a frame: offered to a full mailbox again it is not judged, charged or bound again.
    if rights_judge(table, caller, command, io.now_ns, problem):
        return command
    command_free(command)
    return NULL


cdef bint _is_scripted(Common* common, const Command* command) noexcept nogil:
    """Whether a message of the frame goes to a queue with an on_enqueue script."""
    cdef bint found = False
    cdef Slice last
    cdef Slice queue
    cdef uint32_t i
    if atomic_load(&common.scripted_count) == 0:
        return False
    last.at, last.length = NULL, 0
    pthread_mutex_lock(&common.scripted_lock)
    for i in range(command.count):
        queue = command.items[i].queue
        if command.items[i].refused or (queue.at == last.at and queue.length == last.length):
            continue
        last = queue
        if textmap_get(&common.scripted, queue.at, queue.length) != NULL:
            found = True
            break
    pthread_mutex_unlock(&common.scripted_lock)
    return found


cdef HandedOver frame_hand_over(
        Common* common, Command* command, uint64_t token, bint may_wait) noexcept nogil:
    cdef Posted posted
    command.token = token
    if ENQUEUE <= command.kind <= ENQUEUE_ATOMIC and _is_scripted(common, command):
        event_put(common, EVENT_FRAME, token, may_wait, command, NULL)
        return AT_HOOKS
    posted = request_post(common.core, command)
    if posted == POSTED:
        return SUBMITTED
    return NO_DISK if posted == DISK_FULL else NO_ROOM


cdef void refuse_problem(Call* call, const Problem* problem) noexcept nogil:
    call.retry_ms = problem.retry_ms
    call_refuse(call, problem.code, problem.text, problem.reason)


cdef void refuse_unposted(Call* call, HandedOver why) noexcept nogil:
    cdef char text[160]
    if why == NO_DISK:
        call_refuse(
            call, RESOURCE_EXHAUSTED, b"the disk is full; nothing is stored until there is room again",
            b"DISK_FLOOR")
        return
    snprintf(
        text, sizeof(text), b"%u requests are already waiting for the scheduler; try again shortly",
        call.connection.thread.common.core.mailbox.capacity)
    call_refuse(call, RESOURCE_EXHAUSTED, text, b"OVERLOADED")


cdef void refuse_unread(Call* call) noexcept nogil:
    cdef Common* common = call.connection.thread.common
    cdef char text[256]
    snprintf(
        text, sizeof(text),
        b"%lld bytes of answers are not read by their clients yet, and limits.unwritten_bytes_max is %lld; "
        b"read them, or ask for less at a time",
        <long long> unread_total(common), <long long> common.unread_bytes_max)
    # The reason's own time to retry would be too short: clients have to read first.
    call_refuse(call, RESOURCE_EXHAUSTED, text, b"OVERLOADED")


cdef void say_draining(Call* call) noexcept nogil:
    cdef const Buffer* message = &call.connection.thread.common.gone_message
    cdef const Buffer* details = &call.connection.thread.common.gone_details
    if details.length:
        status_repeat(call, UNAVAILABLE, message, details)
    else:
        status_refuse(call, UNAVAILABLE, DRAINING, strlen(DRAINING), b"SHUTTING_DOWN")


cdef void refuse_draining(Call* call) noexcept nogil:
    if not call.is_ended:
        say_draining(call)
        call_end(call)


cdef bint outstanding_is_full(Common* common) noexcept nogil:
    return atomic_load(&common.calls_outstanding) >= common.calls_outstanding_max


cdef bint outstanding_take(Call* call) noexcept nogil:
    cdef Common* common = call.connection.thread.common
    cdef char text[128]
    if atomic_add(&common.calls_outstanding, 1) <= common.calls_outstanding_max:
        return True
    atomic_add(&common.calls_outstanding, -1)
    snprintf(
        text, sizeof(text), b"%lld calls are already waiting for an answer",
        <long long> common.calls_outstanding_max)
    call_refuse(call, RESOURCE_EXHAUSTED, text, b"OVERLOADED")
    return False
