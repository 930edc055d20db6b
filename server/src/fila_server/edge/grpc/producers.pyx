from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport strlen

from fila_server.core.protocol.commands cimport ENQUEUE, ENQUEUE_STREAM, OK
from fila_server.core.protocol.problem cimport Problem
from fila_server.core.requests.rights cimport rights_admit
from fila_server.core.structures.buffer cimport Buffer, buffer_init
from fila_server.core.threads.mailbox cimport Command, command_free
from fila_server.edge.grpc.status cimport status_of_reply, status_refuse
from fila_server.edge.grpc.submission cimport (
    AT_HOOKS, NO_DISK, NO_ROOM, HandedOver, frame_hand_over, frame_parse, outstanding_take, refuse_problem,
    refuse_unposted, refuse_unread, say_draining,
)
from fila_server.edge.grpc.trace_context cimport trace_put
from fila_server.edge.io.iothread cimport PRODUCER, IoThread
from fila_server.edge.io.response cimport (
    call_end, call_finish, call_queue, call_wait_for_room, parcel_add, parcel_fill, respond,
)
from fila_server.edge.io.sockets cimport atomic_add
from fila_server.edge.io.token_entries cimport entry_free, entry_new, entry_token
from fila_server.edge.io.unread cimport unread_add, unread_is_refused

cdef HandedOver _submit(Call* call, Command* command, bint may_wait) noexcept nogil:
    """With a place in the line of answers."""
    cdef IoThread* io = call.connection.thread
    cdef Parcel* parcel = parcel_add(call)
    cdef uint64_t token
    cdef HandedOver done
    parcel.entry = entry_new(io, call, parcel)
    token = entry_token(io, parcel.entry, False)
    done = frame_hand_over(io.common, command, token, may_wait)
    if done == AT_HOOKS:
        call.is_at_hooks = True         # frames of a stream are stored in their order
        call.hook_token = token
    return done


cdef void unary_message(Call* call, Received* message) noexcept nogil:
    cdef Command* command
    cdef Problem problem
    cdef Received traced
    cdef Buffer with_context
    cdef HandedOver done
    if call.method.refused_when_unread and unread_is_refused(call.connection.thread.common):
        refuse_unread(call)
        return
    if call.traceparent.length and call.method.kind == ENQUEUE:
        buffer_init(&with_context)
        if trace_put(
                &with_context, call, message.at, message.length,
                call.connection.thread.common.core.limits.headers_max):
            traced.at = traced.owned = with_context.data
            traced.length = with_context.length
            command = frame_parse(call, call.method.kind, &traced, &problem)
        else:
            command = frame_parse(call, call.method.kind, message, &problem)
    else:
        command = frame_parse(call, call.method.kind, message, &problem)
    if command == NULL:
        refuse_problem(call, &problem)
        return
    if not outstanding_take(call):
        command_free(command)
        return
    done = _submit(call, command, False)
    if done == NO_ROOM or done == NO_DISK:
        command_free(command)
        refuse_unposted(call, done)


cdef void producer_frame(Call* call, Received* message) noexcept nogil:
    cdef Problem problem
    cdef HandedOver done
    cdef Command* command = frame_parse(call, call.method.kind, message, &problem)
    if command == NULL:
        # Its answer comes in its place: behind those of the frames before it.
        call.retry_ms = problem.retry_ms
        status_refuse(call, problem.code, problem.text, strlen(problem.text), problem.reason)
        _last_is_known(call)
        return
    atomic_add(&call.connection.thread.common.calls_outstanding, 1)
    done = _submit(call, command, True)
    if done == NO_ROOM or done == NO_DISK:
        call.refused_command = command
        call_queue(call)


cdef void producer_retry(Call* call) noexcept nogil:
    cdef Command* command = call.refused_command
    cdef HandedOver done
    cdef uint64_t token
    if command == NULL:
        return
    if call.is_ended:               # nobody is left to be told
        call.refused_command = NULL
        command_free(command)
        return
    token = command.token               # the command may be gone when this returns
    done = frame_hand_over(call.connection.thread.common, command, token, True)
    if done == NO_ROOM or done == NO_DISK:
        call_queue(call)
        return
    call.refused_command = NULL
    if done == AT_HOOKS:
        call.is_at_hooks = True
        call.hook_token = token


cdef void _last_is_known(Call* call) noexcept nogil:
    call.last_is_known = True
    if call.owed == 0:
        call_end(call)


cdef void producer_half_closed(Call* call) noexcept nogil:
    if not call.last_is_known:
        call.status = OK
        _last_is_known(call)


cdef void producer_drains(Call* call) noexcept nogil:
    if not call.last_is_known and not call.is_ended:
        say_draining(call)
        _last_is_known(call)


cdef void producer_ends(Call* call, int32_t code, const char* why, const char* reason) noexcept nogil:
    if not call.last_is_known and not call.is_ended:
        status_refuse(call, code, why, strlen(why), reason)
        _last_is_known(call)


cdef bint producer_is_slowed(Call* call) noexcept nogil:
    cdef IoThread* io = call.connection.thread
    cdef Problem problem
    if call.slowed_until_ns:
        return True
    if rights_admit(io.common.rights, call.caller, ENQUEUE_STREAM, io.now_ns, &problem):
        return False
    call.slowed_until_ns = io.now_ns + problem.retry_ms * <int64_t> 1000000
    call_wait_for_room(call)
    return True


cdef void producer_room(Call* call) noexcept nogil:
    if call.slowed_until_ns and call.connection.thread.now_ns >= call.slowed_until_ns:
        call.slowed_until_ns = 0
        call_queue(call)


cdef void parcel_answer(Call* call, Parcel* parcel, Out* answer) noexcept nogil:
    cdef IoThread* io = call.connection.thread
    if answer.token == call.hook_token:
        call.is_at_hooks = False        # its routing is told later than its answer
    entry_free(io, parcel.entry)
    parcel.entry = 0
    atomic_add(&io.common.calls_outstanding, -1)
    if answer.status != OK:
        status_of_reply(call, answer.status, answer.payload, answer.length)
        free(answer.payload)
        call_end(call)
        return
    parcel_fill(call, parcel, answer.payload, answer.length, unread_add(call.connection, answer.length))
    if call.shape != PRODUCER:
        call_finish(call)
    elif call.last_is_known and call.owed == 0:
        call_end(call)
    else:
        respond(call)
    call_queue(call)
