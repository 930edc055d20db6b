"""A frame's way from its call to the mailbox: parsed, judged, past the scripts, posted."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint64_t

from fila_server.core.protocol.problem cimport Problem
from fila_server.core.threads.mailbox cimport Command
from fila_server.edge.io.iothread cimport Call, Common, IoThread

cdef struct Received:               # one message as it came, inflated
    const char* at
    size_t   length
    char*    owned                  # the same from malloc: its new owner sets this to NULL

cdef enum HandedOver:
    SUBMITTED = 0
    AT_HOOKS                        # it names a queue with a script: Python submits it
    NO_ROOM                         # the command is still the caller's
    NO_DISK

# Against its sender's quotas (0: anybody, while keys are off), parsed, judged by its sender's rights.
# NULL with `problem` filled. A producer's stream was held up before its frame was read.
cdef Command* frame_take(
    IoThread* io, uint64_t caller, bint is_admitted, int32_t kind, Received* message,
    Problem* problem) noexcept nogil
# The same of a call's.
cdef Command* frame_parse(Call* call, int32_t kind, Received* message, Problem* problem) noexcept nogil
# `may_wait`: what Python does with a script that takes no more, or a full mailbox.
cdef HandedOver frame_hand_over(
    Common* common, Command* command, uint64_t token, bint may_wait) noexcept nogil
cdef void refuse_problem(Call* call, const Problem* problem) noexcept nogil
cdef void refuse_unposted(Call* call, HandedOver why) noexcept nogil           # NO_ROOM, NO_DISK
# nobody reads the answers there are
cdef void refuse_unread(Call* call) noexcept nogil
cdef void refuse_draining(Call* call) noexcept nogil
# as the status; without ending it
cdef void say_draining(Call* call) noexcept nogil
# One more call that waits for an answer; False: refused, and the call has its status.
cdef bint outstanding_take(Call* call) noexcept nogil
cdef bint outstanding_is_full(Common* common) noexcept nogil
