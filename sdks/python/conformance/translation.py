"""Between the line protocol's JSON and the SDK's arguments and answers, for both Python drivers."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from google.protobuf.message import Message as WireMessage
from opentelemetry import trace

from fila import FilaError, MessageId, NewMessage, SomeFailed
from fila.answers import SeekPreview
from fila.dead_letters import DeadLetterFilter
from fila.messages import LeasedMessage, StoredMessage
from fila.tracing import traced

CARRIED = ("queue", "channel", "message_id", "lease_id", "field", "config_key", "retry_after_s")
"""What an error may carry beside its text."""


def moment(at: datetime) -> int:
    """Return a moment in milliseconds since 1970."""
    return round(at.timestamp() * 1000)


def from_moment(at_ms: int | None) -> datetime | None:
    """Return the moment that a number of milliseconds since 1970 names."""
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC)


def client_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The protocol's names are Python's."""
    return dict(options)


def new_message(given: Mapping[str, Any]) -> NewMessage:
    """Return the message a request describes."""
    return NewMessage(
        payload=base64.b64decode(given.get("payload") or ""),
        headers=given.get("headers"),
        delay_ms=given.get("delay_ms"),
        deliver_at=from_moment(given.get("deliver_at_ms")),
        ttl_ms=given.get("ttl_ms"),
        dedup_key=given.get("dedup_key"),
        replace=given.get("replace", False),
        max_wait_ms=given.get("max_wait_ms", 0),
        fairness_key=given.get("fairness_key", ""),
        weight=given.get("weight", 0),
        cost=given.get("cost", 0),
        priority=given.get("priority"),
    )


def span_answer(message: LeasedMessage, parent: bool) -> dict[str, Any]:
    """What a span begins with that works on a message: its parent, and its links."""
    begins = traced(message, parent=parent)
    span = trace.get_current_span(begins["context"]).get_span_context() if "context" in begins else None
    links = [_span_name(link.context) for link in begins.get("links", ())]
    return {"parent": _span_name(span) if span is not None else "", "links": links}


def _span_name(span: trace.SpanContext) -> str:
    return f"{span.trace_id:032x}-{span.span_id:016x}"


def stored_answer(stored: MessageId) -> dict[str, Any]:
    """Where a message went."""
    return {"message_id": str(stored), "offset": stored.offset}


def message_answer(message: StoredMessage) -> dict[str, Any]:
    """A message as the protocol writes it."""
    letter = message.dead_letter
    answer: dict[str, Any] = {
        "id": message.id,
        "queue": message.queue,
        "channel": message.channel,
        "offset": message.offset,
        "headers": message.headers,
        "payload": base64.b64encode(message.payload).decode(),
        "fairness_key": message.fairness_key,
        "weight": message.weight,
        "cost": message.cost,
        "priority": message.priority,
        "throttle_keys": list(message.throttle_keys),
        "attempt_count": message.attempt_count,
        "enqueued_at_ms": moment(message.enqueued_at),
        "appended_at_ms": moment(message.appended_at),
        "due_at_ms": None if message.due_at is None else moment(message.due_at),
        "dead_letter": None
        if letter is None
        else {
            "source_queue": letter.source_queue,
            "source_channel": letter.source_channel,
            "reason": letter.reason,
            "last_error": letter.last_error,
            "attempts": letter.attempts,
            "at_ms": moment(letter.at),
        },
    }
    if isinstance(message, LeasedMessage):
        answer |= {
            "lease_id": message.lease_id,
            "redelivered": message._wire.metadata.redelivered,
            "came_back": message._wire.metadata.came_back,
            "leased_at_ms": moment(message.leased_at),
            "lease_expires_at_ms": moment(message.lease_expires_at),
        }
    return answer


def error_answer(error: BaseException) -> dict[str, Any]:
    """An error as the protocol writes it."""
    if isinstance(error, (TypeError, ValueError)):
        return {"kind": "Argument", "code": "", "reason": "", "message": str(error)}
    if not isinstance(error, FilaError):
        return {"kind": "Unexpected", "code": "", "reason": "", "message": f"{type(error).__name__}: {error}"}
    answer: dict[str, Any] = {
        "kind": type(error).__name__,
        "code": error.code.name,
        "reason": error.reason,
        "message": str(error),
    }
    answer |= {name: getattr(error, name) for name in CARRIED if name in type(error).FIELDS}
    if isinstance(error, SomeFailed):
        answer["results"] = [
            {"error": error_answer(result)}
            if isinstance(result, FilaError)
            else {"ok": stored_answer(result) if isinstance(result, MessageId) else {}}
            for result in error.results
        ]
    return answer


def admin_arguments(operation: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords of the SDK's method of that name."""
    arguments = dict(given)
    if operation in ("create_queue", "update_queue", "dry_run_policy"):
        arguments |= arguments.pop("config", {})
    elif operation == "create_channel":
        start = arguments.pop("start", None)
        if isinstance(start, dict):
            arguments["start"] = start["offset"] if "offset" in start else from_moment(start["time_ms"])
        elif start is not None:
            arguments["start"] = start
    elif operation == "seek_channel":
        arguments.setdefault("channel", None)
        at_ms = arguments.pop("time_ms", None)
        arguments["target"] = arguments.pop("offset") if at_ms is None else from_moment(at_ms)
    elif (translate := TRANSLATIONS.get(operation)) is not None:
        translate(arguments)
    elif operation in ("create_key", "rotate_key"):
        for name in ("expires_after", "overlap"):
            arguments[name] = arguments.pop(f"{name}_ms", 0)
        if operation == "create_key":
            del arguments["overlap"]
    elif operation == "create_tenant_link":
        arguments["ttl"] = arguments.pop("ttl_ms", 0)
    elif operation == "read_log":
        for name in ("from_time", "to_time"):
            if f"{name}_ms" in arguments:
                arguments[name] = from_moment(arguments.pop(f"{name}_ms"))
    return arguments


def letter_arguments(arguments: dict[str, Any]) -> None:
    """Make of the protocol's arguments about dead letters the SDK's."""
    arguments["dlq"] = arguments.pop("queue", "")
    if "payload" in arguments:
        arguments["payload"] = base64.b64decode(arguments["payload"])
    if "filter" in arguments:
        arguments["filter"] = dead_letter_filter(arguments["filter"])


def schedule_arguments(arguments: dict[str, Any]) -> None:
    """Make of the protocol's settings of a schedule the SDK's keywords."""
    arguments |= arguments.pop("settings")
    if "payload" in arguments:
        arguments["payload"] = base64.b64decode(arguments["payload"])


TRANSLATIONS: dict[str, Callable[[dict[str, Any]], None]] = {
    "redrive": letter_arguments,
    "drop_dead_letters": letter_arguments,
    "edit_dead_letter": letter_arguments,
    "start_operation": letter_arguments,
    "watch_operation": letter_arguments,
    "list_operations": letter_arguments,
    "cancel_operation": letter_arguments,
    "create_schedule": schedule_arguments,
    "update_schedule": schedule_arguments,
}


def dead_letter_filter(given: Mapping[str, Any]) -> DeadLetterFilter:
    """Return the filter a request describes."""
    fields = dict(given)
    for name in ("died_from", "died_before"):
        if f"{name}_ms" in fields:
            fields[name] = from_moment(fields.pop(f"{name}_ms"))
    return DeadLetterFilter(**fields)


def method_of(operation: str, given: dict[str, Any]) -> str:
    """Return the SDK's method for an operation: a seek that only looks is one of its own."""
    return "preview_seek" if operation == "seek_channel" and given.pop("validate_only", False) else operation


def plain(answer: Any) -> Any:
    """Return a dataclass or a wire message as plain JSON, by the proto's field names."""
    if isinstance(answer, WireMessage):
        return plain_wire(answer)
    if dataclasses.is_dataclass(answer) and not isinstance(answer, type):
        result: dict[str, Any] = {}
        for member in dataclasses.fields(answer):
            value = getattr(answer, member.name)
            if isinstance(value, datetime):
                result[f"{member.name}_ms"] = moment(value)
            elif member.name == "next_at":
                result[f"{member.name}_ms"] = [moment(each) for each in value]
            else:
                result[member.name] = plain(value)
        return result
    if isinstance(answer, bytes):
        return base64.b64encode(answer).decode()
    if isinstance(answer, Mapping):
        return {key: plain(value) for key, value in answer.items()}
    if isinstance(answer, Sequence) and not isinstance(answer, (str, bytes)):
        return [plain(item) for item in answer]
    return answer


def plain_wire(message: WireMessage) -> dict[str, Any]:
    """Return a wire message as plain JSON: moments in milliseconds, enums without their prefix."""
    result: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.message_type is not None and field.message_type.full_name == "google.protobuf.Timestamp":
            if message.HasField(field.name):
                result[f"{field.name}_ms"] = value.seconds * 1000 + value.nanos // 1_000_000
        elif field.enum_type is not None:
            prefix = enum_prefix(field.enum_type.name)
            result[field.name] = field.enum_type.values_by_number[value].name.removeprefix(prefix).lower()
        else:
            result[field.name] = plain(value)
    return result


def enum_prefix(name: str) -> str:
    """`HookFallback` begins its values with `HOOK_FALLBACK_`."""
    return "".join("_" + letter if letter.isupper() else letter for letter in name).lstrip("_").upper() + "_"


WRAPPED = {
    "cancel_messages": "outcomes",
    "list_queues": "queues",
    "list_channels": "channels",
    "purge": "purged",
    "purge_channel": "purged",
    "redrive": "redriven",
    "create_channel": "start_offset",
    "seek_channel": "offset",
    "get_config": "value",
    "get_limit": "limit",
    "list_config": "entries",
    "update_queue": "config",
    "list_consumers": "consumers",
    "list_pending": "messages",
    "list_queue_versions": "versions",
    "list_key_policies": "policies",
    "drop_dead_letters": "dropped",
    "edit_dead_letter": "message_id",
    "list_operations": "operations",
    "list_principals": "principals",
    "list_audit": "records",
    "list_tenant_links": "links",
}
"""Answers that the SDK gives bare and the protocol under a name."""


LOOPS = {
    "watch_stats": ("changes", "max_changes"),
    "watch_events": ("events", "max_events"),
    "watch_operation": ("operations", ""),
}
"""Calls that are looped over: under which name their items stand, and what says after how many to stop."""


def admin_answer(operation: str, answer: Any) -> dict[str, Any]:
    """An answer as the protocol writes it."""
    if answer is None and operation != "get_limit":
        return {}
    if operation in ("create_key", "rotate_key"):
        return {"key": answer, "key_id": answer.split("_")[1]}
    if operation in WRAPPED and isinstance(answer, SeekPreview):
        return dict(plain(answer))
    if operation in WRAPPED:
        return {WRAPPED[operation]: plain(answer)}
    result: dict[str, Any] = plain(answer)
    return result
