"""The quota of calls is asked before anything is parsed, the rights once the queue is known. Short frames
are parsed with the GIL in hand: giving it up and taking it back would take longer."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from fila_server import errors
from fila_server.core.protocol.problem cimport Problem
from fila_server.core.requests.rights cimport RightsTable, rights_admit, rights_judge
from fila_server.core.requests.submit cimport request_parse
from fila_server.core.threads.mailbox cimport command_free

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
