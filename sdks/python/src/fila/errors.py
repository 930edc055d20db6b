"""Every way a call can fail, drawn once. All of it is made from one table at the bottom.

    FilaError                    what was asked for did not happen, unless a class says otherwise
    ├── NotFound
    │   ├── QueueNotFound        .queue
    │   ├── ChannelNotFound      .queue .channel
    │   ├── MessageNotFound      .queue .message_id
    │   └── ConfigKeyNotFound    .config_key
    ├── Exists
    │   ├── QueueExists          .queue
    │   └── ChannelExists        .queue .channel
    ├── Invalid                  .field           the request is wrong; repeating it changes nothing
    │   └── LimitExceeded        .field
    ├── Conflict                                  right once, or right in another state
    │   ├── LeaseLost            .message_id .lease_id
    │   └── SourceQueueGone      .queue
    ├── Overloaded               .retry_after_s   capacity; the same call may succeed later
    │   ├── QueueFull            .queue
    │   ├── HooksFull            .queue
    │   └── DiskFloor
    ├── Unavailable                               the broker could not be reached, or is stopping
    │   ├── AnswerLost                            it may or may not have happened: the answer is missing
    │   └── NotOwner             .owner           another node of the group serves; nothing happened
    ├── NotSupported                              this broker does not do that (yet)
    ├── NotAllowed                                who you are does not permit it
    ├── InternalError                             the broker's own mistake; its log has the rest
    │   └── LogDamaged                            what can't be read, and where to read on
    ├── ClientClosed                              this client was closed
    └── SomeFailed               .results         some items of a batch; results has one entry an item

The broker sends a `reason` with every error (google.rpc.ErrorInfo for a call, ItemStatus for one
item of a batch). A reason this version does not know comes from a newer broker: then the status
code still says which branch of the tree it belongs to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import grpc
from google.rpc import error_details_pb2, status_pb2

ERROR_DOMAIN = "fila"
_DETAILS_KEY = "grpc-status-details-bin"


class FilaError(Exception):
    """The root. `str(error)` is a sentence for people; `code` and `reason` are for programs."""

    code: grpc.StatusCode = grpc.StatusCode.UNKNOWN
    reason: str = ""

    FIELDS: ClassVar[tuple[str, ...]] = ()
    """What the class carries besides its text. Filled in from the answer, else from the request."""

    def __init__(self, message: str, *, known: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        for field in self.FIELDS:
            if known is not None and field in known:
                setattr(self, field, known[field])


class NotFound(FilaError):
    """What was named does not exist."""

    code = grpc.StatusCode.NOT_FOUND
    FIELDS: ClassVar[tuple[str, ...]] = ("queue",)
    queue: str = ""


class QueueNotFound(NotFound):
    """There is no queue of that name. `queue` is the name."""


class ChannelNotFound(NotFound):
    """The queue exists, but has no such channel."""

    FIELDS: ClassVar[tuple[str, ...]] = ("queue", "channel")
    channel: str = ""


class MessageNotFound(NotFound):
    """The message is not stored (done, dropped, purged), or is not leased and no lease was given."""

    FIELDS: ClassVar[tuple[str, ...]] = ("queue", "message_id")
    message_id: str = ""


class ConfigKeyNotFound(NotFound):
    """The runtime config has no such key."""

    FIELDS: ClassVar[tuple[str, ...]] = ("config_key",)
    config_key: str = ""


class Exists(FilaError):
    """What should have been made exists already."""

    code = grpc.StatusCode.ALREADY_EXISTS
    FIELDS: ClassVar[tuple[str, ...]] = ("queue",)
    queue: str = ""


class QueueExists(Exists):
    """A queue of that name exists. `queue` is the name."""


class ChannelExists(Exists):
    """The queue has a channel of that name."""

    FIELDS: ClassVar[tuple[str, ...]] = ("queue", "channel")
    channel: str = ""


class Invalid(FilaError):
    """The request itself is wrong. The text names the field and its bound."""

    code = grpc.StatusCode.INVALID_ARGUMENT
    FIELDS: ClassVar[tuple[str, ...]] = ("field",)
    field: str = ""


class LimitExceeded(Invalid):
    """A bound of the broker's `[limits]` was passed."""


class Conflict(FilaError):
    """The request was right once, or would be right in another state."""

    code = grpc.StatusCode.FAILED_PRECONDITION


class LeaseLost(Conflict):
    """The message is stored, but this delivery's lease is over: it was, or will be, delivered again."""

    FIELDS: ClassVar[tuple[str, ...]] = ("message_id", "lease_id")
    message_id: str = ""
    lease_id: int = 0


class SourceQueueGone(Conflict):
    """A dead letter cannot go back: the queue it came from was deleted."""

    FIELDS: ClassVar[tuple[str, ...]] = ("queue",)
    queue: str = ""


class Overloaded(FilaError):
    """The broker is at a bound of its capacity and stored nothing."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED
    FIELDS: ClassVar[tuple[str, ...]] = ("retry_after_s",)
    retry_after_s: float | None = None
    """Seconds after which the broker suggests to try again; None when it said nothing."""


class QueueFull(Overloaded):
    """The queue is at its `max_depth` or `max_bytes`."""

    FIELDS: ClassVar[tuple[str, ...]] = ("retry_after_s", "queue")
    queue: str = ""


class HooksFull(Overloaded):
    """Too many messages wait for a queue's script that fails (`hook_fallback = "hold"`)."""


class DiskFloor(Overloaded):
    """The broker's disk is nearly full: enqueues are refused, acks and deliveries go on."""


class Unavailable(FilaError):
    """The broker could not be reached, or is stopping. Nothing happened, unless it is an AnswerLost."""

    code = grpc.StatusCode.UNAVAILABLE


class AnswerLost(Unavailable):
    """The request may have arrived, but no answer came: it may or may not have happened."""


class NotOwner(Unavailable):
    """This node of a group stands by, and another one serves. The client goes there by itself."""

    FIELDS: ClassVar[tuple[str, ...]] = ("owner",)
    owner: str = ""
    """The address of the node that serves; empty: it is not known."""


class NotSupported(FilaError):
    """The broker does not implement this."""

    code = grpc.StatusCode.UNIMPLEMENTED


class NotAllowed(FilaError):
    """Missing or insufficient credentials."""

    code = grpc.StatusCode.PERMISSION_DENIED


class InternalError(FilaError):
    """The broker's own mistake."""

    code = grpc.StatusCode.INTERNAL


class LogDamaged(InternalError):
    """`read_log` came to messages that the broker's disk damaged; the text says from which offset to read on."""

    code = grpc.StatusCode.DATA_LOSS


class ClientClosed(FilaError):
    """The call was made on, or outlived, a closed client."""

    code = grpc.StatusCode.CANCELLED


class SomeFailed(FilaError):
    """Some items of a batch failed; the others went well."""

    def __init__(self, results: Sequence[Any]) -> None:
        failures = [result for result in results if isinstance(result, FilaError)]
        super().__init__(f"{len(failures)} of {len(results)} failed; the first: {failures[0]}")
        self.results = results
        """One entry an item, in order: what that item gave, or its FilaError."""
        self.code = failures[0].code
        self.reason = failures[0].reason

    @property
    def failures(self) -> dict[int, FilaError]:
        """The errors by position in the batch."""
        return {i: result for i, result in enumerate(self.results) if isinstance(result, FilaError)}


ERROR_BY_REASON: dict[str, type[FilaError]] = {
    "VERSION_STALE": Conflict,
    "QUEUE_NOT_FOUND": QueueNotFound,
    "CHANNEL_NOT_FOUND": ChannelNotFound,
    "MESSAGE_NOT_FOUND": MessageNotFound,
    "CONFIG_KEY_NOT_FOUND": ConfigKeyNotFound,
    "NOT_FOUND": NotFound,
    "QUEUE_EXISTS": QueueExists,
    "CHANNEL_EXISTS": ChannelExists,
    "EXISTS": Exists,
    "INVALID_FIELD": Invalid,
    "LIMIT_EXCEEDED": LimitExceeded,
    "CONFLICT": Conflict,
    "LEASE_LOST": LeaseLost,
    "SOURCE_QUEUE_GONE": SourceQueueGone,
    "LOG_DAMAGED": LogDamaged,
    "OVERLOADED": Overloaded,
    "QUEUE_FULL": QueueFull,
    "HOOKS_FULL": HooksFull,
    "DISK_FLOOR": DiskFloor,
    "QUOTA_EXCEEDED": Overloaded,
    "PERMISSION_DENIED": NotAllowed,
    "UNAUTHENTICATED": NotAllowed,
    "SHUTTING_DOWN": Unavailable,
    "NOT_OWNER": NotOwner,
    "UNIMPLEMENTED": NotSupported,
    "INTERNAL": InternalError,
}

ERROR_BY_CODE: dict[grpc.StatusCode, type[FilaError]] = {
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.ALREADY_EXISTS: Exists,
    grpc.StatusCode.INVALID_ARGUMENT: Invalid,
    grpc.StatusCode.OUT_OF_RANGE: Invalid,
    grpc.StatusCode.FAILED_PRECONDITION: Conflict,
    grpc.StatusCode.ABORTED: Conflict,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Overloaded,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: AnswerLost,
    grpc.StatusCode.UNIMPLEMENTED: NotSupported,
    grpc.StatusCode.UNAUTHENTICATED: NotAllowed,
    grpc.StatusCode.PERMISSION_DENIED: NotAllowed,
    grpc.StatusCode.INTERNAL: InternalError,
    grpc.StatusCode.DATA_LOSS: InternalError,
}

_CODE_BY_NUMBER: dict[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}


def from_status(code: int, message: str, reason: str, known: Mapping[str, Any]) -> FilaError:
    """Return the error that (code, message, reason) means.

    `known` is what the request was about (queue, channel, message_id, ...): an error carries from
    it whatever its class has a field for.
    """
    status = _CODE_BY_NUMBER.get(code, grpc.StatusCode.UNKNOWN)
    kind = ERROR_BY_REASON.get(reason)
    if kind is None or kind.code is not status:
        kind = ERROR_BY_CODE.get(status, FilaError)
    error = kind(message or f"the broker answered {status.name} without a text", known=known)
    error.code = status
    error.reason = reason
    return error


def from_rpc_error(failure: grpc.aio.AioRpcError, known: Mapping[str, Any]) -> FilaError:
    """Return the error that a failed call means; its ErrorInfo and RetryInfo included."""
    told = dict(known)
    reason = _read_details(failure, told)
    error = from_status(failure.code().value[0], failure.details() or "", reason, told)
    error.__cause__ = failure
    return error


def _read_details(failure: grpc.aio.AioRpcError, told: dict[str, Any]) -> str:
    """Add what the error details tell to `told`, and return the reason, if there is one."""
    metadata = failure.trailing_metadata()
    encoded = metadata.get(_DETAILS_KEY) if metadata is not None else None
    if not encoded:
        return ""
    reason = ""
    for detail in status_pb2.Status.FromString(encoded).details:
        if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR):
            info = error_details_pb2.ErrorInfo.FromString(detail.value)
            if info.domain == ERROR_DOMAIN:
                reason = info.reason
                told.update(info.metadata)
        elif detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR):
            delay = error_details_pb2.RetryInfo.FromString(detail.value).retry_delay
            told["retry_after_s"] = delay.seconds + delay.nanos / 1e9
    if isinstance(told.get("lease_id"), str):  # ErrorInfo's metadata is text
        told["lease_id"] = int(told["lease_id"])
    return reason


def is_the_brokers_word(error: FilaError) -> bool:
    """Whether the broker itself refused, so that nothing happened; else the transport failed."""
    return bool(error.reason)
