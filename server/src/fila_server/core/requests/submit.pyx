"""While a pass waits for room on a full disk the mailbox is not read, so new messages are refused here,
where their sender hears of it; everything else waits its turn."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from fila_server import errors
from fila_server.core.protocol.commands cimport ENQUEUE, ENQUEUE_ATOMIC, FIRE, STAGE
from fila_server.core.requests.parse cimport command_parse, command_parse_adopted
from fila_server.core.requests.rights cimport RightsTable, rights_admit, rights_judge
from fila_server.core.storage.disk cimport DISK_CRITICAL
from fila_server.core.structures.atomics cimport atomic_add, atomic_load, flag_load
from fila_server.core.threads.mailbox cimport command_free, mailbox_post


cdef Command* request_parse(
        Core* core, int32_t kind, uint64_t token, const char* bytes, size_t length,
        Problem* problem) noexcept nogil:
    cdef Command* command = command_parse(kind, token, bytes, length, &core.limits, problem)
    if command == NULL:
        atomic_add(&core.shared.malformed, 1)
    return command


cdef Command* request_parse_adopted(
        Core* core, int32_t kind, uint64_t token, char* bytes, size_t length,
        Problem* problem) noexcept nogil:
    cdef Command* command = command_parse_adopted(kind, token, bytes, length, &core.limits, problem)
    if command == NULL:
        atomic_add(&core.shared.malformed, 1)
    return command


cdef Posted request_post(Core* core, Command* command) noexcept nogil:
    if (
        flag_load(&core.shared.blocked)
        and (ENQUEUE <= command.kind <= ENQUEUE_ATOMIC or command.kind == STAGE or command.kind == FIRE)
    ):                                  # the scheduler waits itself and would let it wait unseen
        if atomic_load(&core.shared.disk_level) == DISK_CRITICAL:
            return DISK_FULL
        if flag_load(&core.shared.log_stands):
            return LOG_STANDS
    return POSTED if mailbox_post(core.mailbox, command) else MAILBOX_FULL


# --- requests of Python's --------------------------------------------------------------------
# The quota of calls is asked before anything is parsed, the rights once the queue is known. Short frames
# are parsed with the GIL in hand: giving it up and taking it back would take longer.

cdef enum:
    SHORT_BYTES = 2048                  # parsed sooner than the GIL is handed over and back


cdef object _refused(Problem* problem):
    error = errors.from_reply(
        problem.code, problem.text.decode("utf-8", "replace"), problem.reason.decode())
    if problem.retry_ms:
        error.retry_after_ms = problem.retry_ms
    return error


cdef Command* judged_parse(
        Core* core, Rights rights, int kind, uint64_t token, bytes frame, object caller,
        int64_t now_ns) except NULL:
    cdef Problem problem
    cdef Command* command
    cdef RightsTable* table = &rights.table
    cdef const char* at = PyBytes_AS_STRING(frame)
    cdef size_t length = PyBytes_GET_SIZE(frame)
    cdef bint judged = caller is not None and table.is_on
    cdef uint64_t number = caller if judged else 0
    if judged and not rights_admit(table, number, kind, now_ns, &problem):
        raise _refused(&problem)
    if length > SHORT_BYTES:
        with nogil:
            command = request_parse(core, kind, token, at, length, &problem)
    else:
        command = request_parse(core, kind, token, at, length, &problem)
    if command == NULL:
        raise _refused(&problem)
    if judged and not rights_judge(table, number, command, now_ns, &problem):
        command_free(command)
        raise _refused(&problem)
    return command
