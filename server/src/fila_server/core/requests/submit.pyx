"""While a pass waits for room on a full disk the mailbox is not read, so new messages are refused here,
where their sender hears of it; everything else waits its turn."""

from fila_server.core.protocol.commands cimport ENQUEUE, ENQUEUE_ATOMIC, STAGE
from fila_server.core.requests.parse cimport command_parse, command_parse_adopted
from fila_server.core.storage.disk cimport DISK_CRITICAL
from fila_server.core.structures.atomics cimport atomic_add, atomic_load, flag_load
from fila_server.core.threads.mailbox cimport mailbox_post


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
        flag_load(&core.shared.blocked) and atomic_load(&core.shared.disk_level) == DISK_CRITICAL
        and (ENQUEUE <= command.kind <= ENQUEUE_ATOMIC or command.kind == STAGE)
    ):
        return DISK_FULL                # the scheduler waits for room itself and would let it wait unseen
    return POSTED if mailbox_post(core.mailbox, command) else MAILBOX_FULL
