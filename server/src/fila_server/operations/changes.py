"""What an admin's call is told as, once it succeeded: the kind of event, and what of the request may be shown.

Scripts and config values may hold secrets, so they are told by their length.
"""

from __future__ import annotations

from typing import Any

from fila.v1 import admin_pb2, events_pb2, limit_pb2, schedule_pb2
from fila_server.access.admission import Caller
from fila_server.events import emit
from fila_server.operations.audit import Call, carry_out, words_of

REQUEST_BY_METHOD: dict[str, Any] = {
    **{
        name: getattr(admin_pb2, f"{name}Request")
        for name in (
            "CreateQueue", "UpdateQueue", "DeleteQueue", "PurgeQueue", "SetConfig", "Redrive", "CreateChannel",
            "DeleteChannel", "SeekChannel", "PurgeChannel", "SetKeyPolicy", "SkipMessage",
        )
    },
    "DropDeadLetters": events_pb2.DropDeadLettersRequest,
    "SetLimit": limit_pb2.SetLimitRequest,
    "DeleteLimit": limit_pb2.DeleteLimitRequest,
    "ResetLimit": limit_pb2.ResetLimitRequest,
    **{
        name: getattr(schedule_pb2, f"{name}Request")
        for name in ("CreateSchedule", "UpdateSchedule", "PauseSchedule", "DeleteSchedule")
    },
}  # fmt: skip
"""The calls that change something."""

_KIND_BY_METHOD = {
    "CreateQueue": "queue.created",
    "UpdateQueue": "queue.updated",
    "DeleteQueue": "queue.deleted",
    "PurgeQueue": "queue.purged",
    "SetConfig": "config.set",
    "Redrive": "dead_letters.redriven",
    "DropDeadLetters": "dead_letters.dropped_by_hand",
    "CreateChannel": "channel.created",
    "DeleteChannel": "channel.deleted",
    "SeekChannel": "channel.moved",
    "PurgeChannel": "channel.purged",
    "SetKeyPolicy": "key.policy_set",
    "SkipMessage": "key.message_skipped",
    "SetLimit": "limit.set",
    "DeleteLimit": "limit.deleted",
    "ResetLimit": "limit.reset",
    "CreateSchedule": "schedule.created",
    "UpdateSchedule": "schedule.updated",
    "PauseSchedule": "schedule.paused",
    "DeleteSchedule": "schedule.deleted",
}


_COUNT_BY_METHOD: dict[str, tuple[Any, str]] = {
    "Redrive": (admin_pb2.RedriveResponse, "redriven"),
    "DropDeadLetters": (events_pb2.DropDeadLettersResponse, "dropped"),
}
"""Where a reply says how many messages were meant."""
_REPORTED_AS = {"count": "at_most"}
"""Of a request's fields, those that have the name of something else in an event."""


def report(method: str, request: Any, peer: str, principal: str = "", reply: bytes = b"") -> None:
    """Emit the event of a successful call, unless it was asked to change nothing, or found nothing to change."""
    if getattr(request, "validate_only", False):
        return
    count = 1
    if method in _COUNT_BY_METHOD:
        reply_type, field_name = _COUNT_BY_METHOD[method]
        count = getattr(reply_type.FromString(reply), field_name)
        if not count:
            return
    kind = _KIND_BY_METHOD[method]
    details: dict[str, Any] = {}
    about: dict[str, Any] = {"queue": "", "channel": "", "fairness_key": ""}
    for field, value in request.ListFields():
        if field.name in ("name", "dlq_queue"):
            about["queue"] = value
        elif field.name in about:
            about[field.name] = value
        elif field.name == "update_mask":
            details["changed"] = ",".join(value.paths)
        elif field.name in ("config", "settings"):
            details["settings"] = ",".join(inner.name for inner, _ in value.ListFields())
        else:
            details[_REPORTED_AS.get(field.name, field.name)] = _shown(field.name, value)
    if method == "SetConfig" and not request.value:
        kind = "config.deleted"
    if method == "PauseSchedule" and not request.paused:
        kind = "schedule.resumed"
    emit(kind, **about, peer=peer, principal=principal, count=count, **details)


async def carry_out_and_report(
    call: Call, method: str, kind: int, request: Any, caller: Caller | None, *, kept: bytes = b""
) -> bytes:
    """Send a command with the record of its act, and emit its event. `caller` None is the broker itself: no event."""
    reply = await carry_out(call, method, kind, request, caller, kept=kept)
    if caller is not None:
        report(method, request, caller.peer, caller.name if caller.number is not None else "", reply)
    return reply


def _shown(name: str, value: Any) -> str:
    if name == "value":
        return f"{len(value)} characters"
    if name == "offsets":
        return f"{len(value)} named"
    if name == "limit":
        return words_of(value)
    if hasattr(value, "ToJsonString"):
        return str(value.ToJsonString())
    if isinstance(value, bool):
        return "true" if value else "false"  # in no language's own notation
    return str(value)
