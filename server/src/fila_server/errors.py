"""Every way Fila says no, drawn once. Edges translate from here and from nowhere else.

    FilaServerError                 status (google.rpc.Code)   reason
    ├── Invalid                     INVALID_ARGUMENT           INVALID_FIELD
    │   └── LimitExceeded           INVALID_ARGUMENT           LIMIT_EXCEEDED
    ├── NotFound                    NOT_FOUND                  NOT_FOUND
    │   ├── QueueNotFound                                      QUEUE_NOT_FOUND
    │   ├── ChannelNotFound                                    CHANNEL_NOT_FOUND
    │   ├── MessageNotFound                                    MESSAGE_NOT_FOUND
    │   └── ConfigKeyNotFound                                  CONFIG_KEY_NOT_FOUND
    ├── Exists                      ALREADY_EXISTS             EXISTS
    │   ├── QueueExists                                        QUEUE_EXISTS
    │   └── ChannelExists                                      CHANNEL_EXISTS
    ├── Conflict                    FAILED_PRECONDITION        CONFLICT
    │   ├── LeaseLost                                          LEASE_LOST
    │   └── SourceQueueGone                                    SOURCE_QUEUE_GONE
    ├── VersionStale                ABORTED                    VERSION_STALE
    ├── Overloaded                  RESOURCE_EXHAUSTED         OVERLOADED     (retry_after_ms)
    │   ├── QueueFull                                          QUEUE_FULL
    │   ├── HooksFull                                          HOOKS_FULL
    │   ├── QuotaExceeded                                      QUOTA_EXCEEDED
    │   └── DiskFloor                                          DISK_FLOOR
    ├── Unauthenticated             UNAUTHENTICATED            UNAUTHENTICATED
    ├── PermissionDenied            PERMISSION_DENIED          PERMISSION_DENIED
    ├── Unavailable                 UNAVAILABLE                SHUTTING_DOWN
    │   └── NotOwner                                           NOT_OWNER      (owner)
    ├── LogDamaged                  DATA_LOSS                  LOG_DAMAGED
    ├── Unimplemented               UNIMPLEMENTED              UNIMPLEMENTED
    ├── Internal                    INTERNAL                   INTERNAL
    └── StartError                  never reaches a client; main.py prints it and exits
        ├── ConfigInvalid           file, line, key, advice
        ├── PortTaken
        ├── AccessDamaged
        └── StoreError
            ├── DataDirInUse
            ├── DataDirUnwritable
            ├── FormatTooNew
            └── StoreDamaged

`status` and `reason` travel in `fila.v1.ItemStatus`, and the reason again in
google.rpc.ErrorInfo, so a client needs one table whatever call it made. The core sends
(status, message, reason); `from_reply` makes the error of this tree out of it again.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import ClassVar

# google.rpc.Code, as far as Fila uses it. Plain ints: the core speaks them too.
OK = 0
CANCELLED = 1
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16

RETRY_AFTER_MS_DEFAULT = 100
"""Long enough for a full mailbox to empty many times over, short enough not to idle a producer."""


class FilaServerError(Exception):
    """The root. `str(error)` is the sentence a client may read; it names what was refused and why."""

    status: ClassVar[int] = INTERNAL
    reason: str = "INTERNAL"

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if reason:
            self.reason = reason


class Invalid(FilaServerError):
    """The request itself is wrong; sending it again changes nothing. `bound` finishes the sentence."""

    status = INVALID_ARGUMENT
    reason = "INVALID_FIELD"
    field: str = ""
    bound: str = ""

    def __init__(self, field: str, bound: str, *, reason: str | None = None) -> None:
        super().__init__(f"{field} {bound}", reason=reason)
        self.field = field
        self.bound = bound


class LimitExceeded(Invalid):
    """A per-message or per-request bound of `[limits]` was passed."""

    reason = "LIMIT_EXCEEDED"


class NotFound(FilaServerError):
    status = NOT_FOUND
    reason = "NOT_FOUND"


class QueueNotFound(NotFound):
    reason = "QUEUE_NOT_FOUND"

    def __init__(self, queue: str) -> None:
        super().__init__(f'queue "{queue}" does not exist; check its name, or create it')


class ChannelNotFound(NotFound):
    reason = "CHANNEL_NOT_FOUND"

    def __init__(self, queue: str, channel: str) -> None:
        super().__init__(
            f'queue "{queue}" has no channel "{channel}"; ListChannels tells those it has, CreateChannel makes one'
        )


class MessageNotFound(NotFound):
    reason = "MESSAGE_NOT_FOUND"

    def __init__(self, message_id: str) -> None:
        super().__init__(f"message {message_id} is not stored, or is not leased and no lease_id was given")


class ConfigKeyNotFound(NotFound):
    reason = "CONFIG_KEY_NOT_FOUND"

    def __init__(self, config_key: str) -> None:
        super().__init__(f'config key "{config_key}" is not set; ListConfig shows those that are')


class Exists(FilaServerError):
    status = ALREADY_EXISTS
    reason = "EXISTS"


class QueueExists(Exists):
    reason = "QUEUE_EXISTS"

    def __init__(self, queue: str) -> None:
        super().__init__(f'queue "{queue}" exists already; change it, or choose another name')


class ChannelExists(Exists):
    reason = "CHANNEL_EXISTS"

    def __init__(self, queue: str, channel: str) -> None:
        super().__init__(f'queue "{queue}" has a channel "{channel}" already; use it, or choose another name')


class Conflict(FilaServerError):
    """The request was right once, or would be right in another state."""

    status = FAILED_PRECONDITION
    reason = "CONFLICT"


class LeaseLost(Conflict):
    reason = "LEASE_LOST"

    def __init__(self, message_id: str, lease_id: int) -> None:
        super().__init__(
            f"message {message_id} is no longer held under lease {lease_id}; it may be delivered again"
        )


class SourceQueueGone(Conflict):
    reason = "SOURCE_QUEUE_GONE"

    def __init__(self, dlq: str, source_queue: str) -> None:
        super().__init__(
            f'"{dlq}" cannot be redriven: its source queue "{source_queue}" is gone; create it anew, or drop the dead '
            "letters"
        )


class Overloaded(FilaServerError):
    """Capacity, not the request: the same call may succeed after `retry_after_ms`."""

    status = RESOURCE_EXHAUSTED
    reason = "OVERLOADED"
    retry_after_ms: int = RETRY_AFTER_MS_DEFAULT

    def __init__(self, message: str, *, retry_after_ms: int | None = None, reason: str | None = None) -> None:
        super().__init__(message, reason=reason)
        if retry_after_ms is not None:
            self.retry_after_ms = retry_after_ms


class QueueFull(Overloaded):
    reason = "QUEUE_FULL"
    retry_after_ms = 1000


class HooksFull(Overloaded):
    """Too many messages wait for a script that fails (`hook_fallback = "hold"`)."""

    reason = "HOOKS_FULL"
    retry_after_ms = 1000


class QuotaExceeded(Overloaded):
    """A principal's share of the broker is used up for now, whatever others do."""

    reason = "QUOTA_EXCEEDED"
    retry_after_ms = 1000


class DiskFloor(Overloaded):
    """Free disk is under `storage.min_free_bytes`: nobody frees a disk within milliseconds."""

    reason = "DISK_FLOOR"
    retry_after_ms = 5000


class Unauthenticated(FilaServerError):
    """No key, or one that is not valid. The edge awaits `before_reported()` before it says so."""

    status = UNAUTHENTICATED
    reason = "UNAUTHENTICATED"
    before_reported: Callable[[], Awaitable[None]] | None = None


class PermissionDenied(FilaServerError):
    """The key is valid and has other rights than this one."""

    status = PERMISSION_DENIED
    reason = "PERMISSION_DENIED"

    @classmethod
    def on_queue(cls, right: str, queue: str) -> PermissionDenied:
        """The sentence that the core writes for frames, for what is judged in Python."""
        return cls(
            f'{right}: this key has no such right on queue "{queue}"; an admin gives it with fila auth grant'
        )


class VersionStale(FilaServerError):
    """Somebody else changed the settings since the caller read them."""

    status = ABORTED
    reason = "VERSION_STALE"

    def __init__(self, queue: str, expected: int, version: int) -> None:
        super().__init__(
            f'expected_version: queue "{queue}" has version {version} of its settings by now, not {expected}; look '
            "at what changed, and change it anew"
        )


class Unavailable(FilaServerError):
    status = UNAVAILABLE
    reason = "SHUTTING_DOWN"


class NotOwner(Unavailable):
    """Another node of the group serves. Nothing happened."""

    reason = "NOT_OWNER"
    owner: str
    """Where clients reach the one that serves; empty: it is not known."""

    def __init__(self, owner: str) -> None:
        where = (
            f"{owner} serves the group. Connect there, or give the client all nodes' addresses"
            if owner
            else "no other node is known to serve. Try again in a second, or give the client all nodes' addresses"
        )
        super().__init__(f"this node stands by, and {where}")
        self.owner = owner


class LogDamaged(FilaServerError):
    """Part of a queue's log can't be read; what lies behind it can be, from `behind` on."""

    status = DATA_LOSS
    reason = "LOG_DAMAGED"

    def __init__(self, queue: str, first: int, behind: int) -> None:
        super().__init__(
            f'the messages of queue "{queue}" from offset {first} to below {behind} can\'t be read, as the disk '
            f"damaged them; read on with from_offset {behind}"
        )


class Unimplemented(FilaServerError):
    status = UNIMPLEMENTED
    reason = "UNIMPLEMENTED"


class Internal(FilaServerError):
    """Our mistake. The text never says more than where to look; the log has the rest."""

    status = INTERNAL
    reason = "INTERNAL"


class StartError(FilaServerError):
    """The server cannot start. The text is one line that says what to do."""

    reason = "START_FAILED"


class ConfigInvalid(StartError):
    """A setting is unknown or wrong: where it stands, and what would be right."""

    reason = "CONFIG_INVALID"

    def __init__(self, message: str, *, source: str = "", line: int = 0, key: str = "") -> None:
        place = f"{source}:{line}: " if line else f"{source}: " if source else ""
        super().__init__(f"{place}{message}")
        self.source = source
        self.line = line
        self.key = key


class NotLoaded(StartError):
    """What is compiled cannot be loaded: a library is missing, or nobody built it."""

    def __init__(self, why: ImportError) -> None:
        super().__init__(
            f"a compiled module cannot be loaded: {why}. Run `make build` in a checkout. "
            "A wheel leaves OpenSSL 3 to the system: install it there"
        )


class PortTaken(StartError):
    reason = "PORT_TAKEN"

    def __init__(self, setting: str, address: str, why: str) -> None:
        step = "Stop the program that holds the port, or change" if "in use" in why else "Change"
        super().__init__(f"cannot listen on {address}: {why}. {step} {setting}")
        self.address = address

    @classmethod
    def of(cls, setting: str, address: str, error: OSError) -> PortTaken:
        """Say why in the system's own words: an event loop's text repeats the address."""
        number = error.errno or 0  # below it are the resolver's, which strerror does not know
        why = os.strerror(number) if number > 0 else error.strerror or str(error)
        return cls(setting, address, why.lower())


class AccessDamaged(StartError):
    """Keys may be missing from the store. To serve all the same could open a door that was shut."""

    reason = "ACCESS_DAMAGED"


class StoreError(StartError):
    """The data directory cannot be opened."""

    reason = "STORE_FAILED"
    data_dir: str = ""


class DataDirInUse(StoreError):
    reason = "DATA_DIR_IN_USE"

    def __init__(self, data_dir: str) -> None:
        super().__init__(
            f"data directory {data_dir} is in use by another server. "
            "Stop that server, or point server.data_dir somewhere else"
        )
        self.data_dir = data_dir


class DataDirUnwritable(StoreError):
    reason = "DATA_DIR_UNWRITABLE"

    def __init__(self, data_dir: str, why: str) -> None:
        super().__init__(
            f"cannot write to data directory {data_dir}: {why}. "
            "Give this user write access to it, or change server.data_dir"
        )
        self.data_dir = data_dir


class FormatTooNew(StoreError):
    reason = "FORMAT_TOO_NEW"

    def __init__(self, data_dir: str, found: int, known: int) -> None:
        super().__init__(
            f"data directory {data_dir} has format {found}, but this server reads up to {known}. "
            "Start the newer fila-server that wrote it"
        )
        self.data_dir = data_dir


class StoreDamaged(StoreError):
    reason = "STORE_DAMAGED"

    def __init__(self, data_dir: str, what: str) -> None:
        super().__init__(
            f"data directory {data_dir} is damaged: {what}. "
            'Restore a copy, or start with storage.on_damage = "start" to go on without the lost range'
        )
        self.data_dir = data_dir


def _subclasses(root: type[FilaServerError]) -> list[type[FilaServerError]]:
    found = []
    for child in root.__subclasses__():
        found += [child, *_subclasses(child)]
    return found


_ERROR_BY_REASON: dict[str, type[FilaServerError]] = {
    error.reason: error for error in _subclasses(FilaServerError) if not issubclass(error, StartError)
}
# A reason without a class of its own (a newer core, a finer reason) still has a status.
_ERROR_BY_STATUS: dict[int, type[FilaServerError]] = {
    error.status: error
    for error in (
        Invalid,
        NotFound,
        Exists,
        Conflict,
        Overloaded,
        Unauthenticated,
        PermissionDenied,
        Unavailable,
        Unimplemented,
        Internal,
    )
}


def from_reply(status: int, message: str, reason: str) -> FilaServerError:
    """Return the error the core meant by an ItemStatus."""
    kind = _ERROR_BY_REASON.get(reason)
    if kind is None or kind.status != status:
        kind = _ERROR_BY_STATUS.get(status, Internal)
    # The subclasses' constructors compose a text; this one exists already.
    error = kind.__new__(kind)
    FilaServerError.__init__(error, message, reason=reason)
    return error
