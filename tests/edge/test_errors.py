"""The error tree: every error has its row, and what the core says becomes the same error again."""

from __future__ import annotations

import grpc
import pytest
from google.rpc import error_details_pb2

from fila_server import errors
from fila_server.services.status import CODE_BY_STATUS, DOMAIN, MESSAGE_CHARS_MAX, hidden, status_of

ROWS = [
    (errors.Invalid("queue", "must be 1 to 251 bytes"), "INVALID_ARGUMENT", "INVALID_FIELD"),
    (errors.LimitExceeded("payload", "must be at most 1 byte"), "INVALID_ARGUMENT", "LIMIT_EXCEEDED"),
    (errors.NotFound("no"), "NOT_FOUND", "NOT_FOUND"),
    (errors.QueueNotFound("q"), "NOT_FOUND", "QUEUE_NOT_FOUND"),
    (errors.ChannelNotFound("q", "c"), "NOT_FOUND", "CHANNEL_NOT_FOUND"),
    (errors.MessageNotFound("m"), "NOT_FOUND", "MESSAGE_NOT_FOUND"),
    (errors.ConfigKeyNotFound("k"), "NOT_FOUND", "CONFIG_KEY_NOT_FOUND"),
    (errors.Exists("yes"), "ALREADY_EXISTS", "EXISTS"),
    (errors.QueueExists("q"), "ALREADY_EXISTS", "QUEUE_EXISTS"),
    (errors.ChannelExists("q", "c"), "ALREADY_EXISTS", "CHANNEL_EXISTS"),
    (errors.Conflict("late"), "FAILED_PRECONDITION", "CONFLICT"),
    (errors.LeaseLost("m", 7), "FAILED_PRECONDITION", "LEASE_LOST"),
    (errors.SourceQueueGone("q.dlq", "q"), "FAILED_PRECONDITION", "SOURCE_QUEUE_GONE"),
    (errors.VersionStale("q", 2, 3), "ABORTED", "VERSION_STALE"),
    (errors.Overloaded("full"), "RESOURCE_EXHAUSTED", "OVERLOADED"),
    (errors.QueueFull("full"), "RESOURCE_EXHAUSTED", "QUEUE_FULL"),
    (errors.HooksFull("full"), "RESOURCE_EXHAUSTED", "HOOKS_FULL"),
    (errors.QuotaExceeded("enough"), "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED"),
    (errors.DiskFloor("full"), "RESOURCE_EXHAUSTED", "DISK_FLOOR"),
    (errors.Unauthenticated("who?"), "UNAUTHENTICATED", "UNAUTHENTICATED"),
    (errors.PermissionDenied("not you"), "PERMISSION_DENIED", "PERMISSION_DENIED"),
    (errors.Unavailable("bye"), "UNAVAILABLE", "SHUTTING_DOWN"),
    (errors.NotOwner("fila-1:5555"), "UNAVAILABLE", "NOT_OWNER"),
    (errors.LogDamaged("q", 3, 5), "DATA_LOSS", "LOG_DAMAGED"),
    (errors.Unimplemented("later"), "UNIMPLEMENTED", "UNIMPLEMENTED"),
    (errors.Internal("ours"), "INTERNAL", "INTERNAL"),
]


def _tree(root: type[errors.FilaServerError]) -> set[type[errors.FilaServerError]]:
    return {root}.union(*(_tree(child) for child in root.__subclasses__()))


def test_every_error_a_client_can_meet_has_a_row_here() -> None:
    for_clients = _tree(errors.FilaServerError) - _tree(errors.StartError) - {errors.FilaServerError}

    assert {type(error) for error, _, _ in ROWS} == for_clients


@pytest.mark.parametrize(("error", "code", "reason"), ROWS, ids=lambda value: str(value)[:30])
def test_each_error_has_its_status_and_its_reason(
    error: errors.FilaServerError, code: str, reason: str
) -> None:
    status = status_of(error)

    assert CODE_BY_STATUS[status.code] is grpc.StatusCode[code]
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert (info.reason, info.domain) == (reason, DOMAIN)


@pytest.mark.parametrize(("error", "code", "reason"), ROWS, ids=lambda value: str(value)[:30])
def test_what_the_core_says_becomes_the_same_error_again(
    error: errors.FilaServerError, code: str, reason: str
) -> None:
    again = errors.from_reply(error.status, error.message, error.reason)

    assert type(again) is type(error)
    assert (again.status, again.reason, str(again)) == (error.status, reason, str(error))


def test_an_unknown_reason_keeps_its_status_and_its_word() -> None:
    error = errors.from_reply(errors.NOT_FOUND, "no such thing", "THING_NOT_FOUND")

    assert type(error) is errors.NotFound
    assert error.reason == "THING_NOT_FOUND"


def test_only_capacity_errors_say_when_to_come_back() -> None:
    for error, code, _ in ROWS:
        retry = error_details_pb2.RetryInfo()
        found = [detail.Unpack(retry) for detail in status_of(error).details[1:]]
        assert found == ([True] if code == "RESOURCE_EXHAUSTED" else [])

    disk = status_of(errors.DiskFloor("full"))
    disk.details[1].Unpack(retry)
    assert retry.retry_delay.seconds == 5


def test_a_long_message_is_cut_so_that_it_fits_into_trailers() -> None:
    assert len(status_of(errors.Internal("x" * 100_000)).message) == MESSAGE_CHARS_MAX


@pytest.mark.parametrize("error", [KeyError("secret"), errors.StoreDamaged("/secret", "secret")])
def test_what_is_not_meant_for_clients_is_hidden_from_them(error: Exception) -> None:
    seen = hidden(error)

    assert type(seen) is errors.Internal
    assert "secret" not in str(seen)
