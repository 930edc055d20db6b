"""A failed call, told in one line: what happened, and what to do next.

The broker's text names field and bound in the words of the contract; what was typed were flags, with units. So its
text is turned into theirs, and the next step is added here, by the reason it sent or else by its status code.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from fila_cli.address import targets_of
from fila_cli.values import Duration, Size, duration_text, size_text

if TYPE_CHECKING:
    import grpc

_NEXT_BY_REASON = {
    "QUEUE_NOT_FOUND": "'fila queue list' shows the queues there are",
    "CHANNEL_NOT_FOUND": "'fila channel list{queue}' shows its channels",
    "CONFIG_KEY_NOT_FOUND": "'fila config list' shows the keys there are",
    "QUEUE_EXISTS": "change it with 'fila queue update', choose another name, or say --if-not-exists",
    "CHANNEL_EXISTS": "move it with 'fila channel seek', or choose another name",
    "SOURCE_QUEUE_GONE": "create the source queue again, or read the dead letters with 'fila consume'",
    "HOOKS_FULL": "repair the script with 'fila queue update --on-enqueue @file', or use --hook-fallback policy",
    "QUEUE_FULL": "consume some, or raise the bound with 'fila queue update'",
    "SHUTTING_DOWN": "try again once it has restarted",
    "DISK_FLOOR": "free disk space on the broker's machine; acks and deliveries go on meanwhile",
    "NOT_A_DLQ": "give the dead-letter queue, whose name ends in .dlq",
}
_DLQ_SUFFIX = ".dlq"
_NEXT_BY_CODE = {
    "UNIMPLEMENTED": "this broker is older than this command line: upgrade fila-server",
    "RESOURCE_EXHAUSTED": "try again in a moment",
    "DEADLINE_EXCEEDED": "is the broker overloaded? --timeout waits longer",
    "UNAUTHENTICATED": "give a key by FILA_API_KEY or --api-key-file; an admin makes one with 'fila auth key create'",
    "INTERNAL": "the broker's log says more",
    "UNKNOWN": "the broker's log says more",
}


class BrokerError(click.ClickException):
    """The broker refused or was not there: exit code 1."""

    exit_code = 1


def from_rpc(error: grpc.RpcError, address: str, has_right_to: Callable[[str], bool]) -> BrokerError:
    """Translate what a stub raised. `has_right_to` says of a queue whether a key is in use that may know of it: who may
    know of a queue and not of its dead letters is told that these do not exist."""
    import grpc

    call: Any = error  # stubs raise calls that failed; grpc's types do not say so
    code = call.code()
    reason = reason_of(call)
    if code is grpc.StatusCode.UNAVAILABLE and not reason:
        return BrokerError(_why_nobody_answers(address))
    text = in_words_of_flags(_one_line(call.details() or code.name))
    if reason == "CHANNEL_NOT_FOUND" and "; it has " in text:
        # It names the channels that there are; only what follows speaks of RPCs.
        return BrokerError(f"{text.rpartition(':')[0]}; make this one with 'fila channel create'")
    if step := _NEXT_BY_REASON.get(reason):
        # The broker's own advice speaks of RPCs; a user who typed a command wants a command.
        said = text.partition(";")[0]
        queue = re.search(r'queue "([^"]+)"', said)
        dlq = queue[1] if queue and reason == "QUEUE_NOT_FOUND" and queue[1].endswith(_DLQ_SUFFIX) else ""
        if dlq and has_right_to(dlq.removesuffix(_DLQ_SUFFIX)):
            step = f"or this key has no right to it: an admin gives one with 'fila auth grant NAME --consume {dlq}'"
        return BrokerError(f"{said}; {step.replace('{queue}', f' {queue[1]}' if queue else ' QUEUE')}")
    step = _next_by_noun(code.name, text) or _NEXT_BY_CODE.get(code.name)
    return BrokerError(text if step is None or ";" in text else f"{text}; {step}")


def _why_nobody_answers(address: str) -> str:
    from fila_cli.probe import diagnosis

    targets, by_tls = targets_of(address)
    if len(targets) > 1:
        return f"no node at {', '.join(targets)} answers and serves; look at their logs, or give others by --addr"
    (target,) = targets
    host, _, port = target.rpartition(":")
    context = click.get_current_context(silent=True)
    ca_file = getattr(context.obj, "ca_file", "") if context is not None else ""
    return diagnosis(host.strip("[]"), int(port), by_tls=by_tls, ca_file=ca_file)


_BOUND = re.compile(r"(must be )(from )?(at least |at most )?(\d+)( to )?(\d+)?(, got )?(\d+)?$")
_FLAG_BY_FIELD = {
    "rate_per_second": "--rate",
    "max_messages": "--count",
    "max_keys": "--keys",
    "payload": "the payload",
    "options.delay_ms": "--delay",
    "options.ttl_ms": "--ttl",
    "options.deliver_at": "--at",
    "options.dedup_key": "--dedup-key",
    "options.on_duplicate": "--replace",
    "options.max_wait_ms": "--max-wait",
    "options.fairness_key": "--key",
    "options.weight": "--weight",
    "options.cost": "--cost",
    "options.priority": "--priority",
    "extend_ms": "--by",
    "lease_id": "--lease",
    "expires_after_idle_ms": "--expires-after-idle",
    "wait_ms": "--wait",
    "kinds": "--kind",
    "cron": "--cron",
    "every_ms": "--every",
    "time_zone": "--tz",
    "missed": "--missed",
    "ttl_ms": "--ttl",
}


# What commands take as arguments: a sentence about one needs no field before it, a bound names it so.
_ARGUMENT_BY_FIELD = {"message_id": "the ID", "offset": "OFFSET", "id": "the ID", "value": "VALUE"}
_COMMAND_BY_RPC = {
    "CreateChannel": "'fila channel create'",
    "DeleteChannel": "'fila channel delete'",
    "DeleteLimit": "'fila limit delete'",
    "ListChannels": "'fila channel list'",
    "ListConfig": "'fila config list'",
    "ListOperations": "'fila operation list'",
    "ListPending": "'fila message list'",
    "ListQueueVersions": "'fila queue versions'",
    "ListSchedules": "'fila schedule list'",
    "PeekMessages": "'fila queue peek'",
}
_RPC = re.compile(rf"\b({'|'.join(_COMMAND_BY_RPC)})\b")
_BOTH_UNITS = re.compile(r"\d+ \((\d+) (ms|s|m|h|d)\)")


def in_words_of_flags(text: str) -> str:
    """`config.visibility_timeout_ms must be from 1000 to ...` as `--visibility-timeout must be from 1s to ...`.

    RPCs that it names become the commands that call them.
    """
    text = _RPC.sub(lambda rpc: _COMMAND_BY_RPC[rpc[1]], text)
    field, space, rest = text.partition(" ")
    if field.endswith(":"):
        return _without_field(field[:-1], rest) or text
    words = _words_of(field.removeprefix("config.").removeprefix("settings."))
    if not space or words is None:
        return text
    flag, unit = words
    said = (
        re.sub(r"\d+", lambda number: unit(int(number[0])), rest) if unit and _BOUND.fullmatch(rest) else rest
    )
    return f"{flag} {said}"


def _without_field(field: str, rest: str) -> str:
    """`extend_ms: must be 1000 (1 s) to ...` as `--by must be 1s to ...`; nothing for a field that no command sets."""
    words = _words_of(field)
    named = words[0] if words else _ARGUMENT_BY_FIELD.get(field, "")
    if not named:
        return ""
    rest = _BOTH_UNITS.sub(r"\1\2", rest).replace("or give lease_id", "or give --lease")
    if rest.startswith("at most "):
        return f"{named}: {rest}"
    return f"{named} {rest}" if rest.startswith("must ") else rest


def _words_of(field: str) -> tuple[str, Any] | None:
    """The flag that sets `field`, and how its numbers are written."""
    if field in ("retry.base_ms", "retry.cap_ms", "retry.jitter"):
        which = {"base_ms": "first delay", "cap_ms": "longest delay", "jitter": "jitter"}[
            field.partition(".")[2]
        ]
        return f"--retry: the {which}", duration_text if field.endswith("_ms") else None
    if re.fullmatch(r"(paused_)?channels(\[\d+\])?", field):
        return field.replace("_", "-"), None  # a file has them, and no flag does
    from fila_cli.settings import SETTINGS

    for setting in SETTINGS:
        if setting.field == re.sub(r"\[.*\]$", "", field):
            durations, sizes = isinstance(setting.type, Duration), isinstance(setting.type, Size)
            return setting.flag.split("/")[0], duration_text if durations else size_text if sizes else None
    if flag := _FLAG_BY_FIELD.get(field):
        return flag, duration_text if field.endswith("_ms") else None
    return None


def reason_of(call: Any) -> str:
    """The machine-readable reason out of google.rpc.ErrorInfo, or nothing."""
    return str(_info_of(call).reason)


def owner_of(call: Any) -> str:
    """Where the node of a group is that serves, as one says that stands by; nothing where none is known."""
    info = _info_of(call)
    return str(info.metadata.get("owner", "")) if info.reason == "NOT_OWNER" else ""


def _info_of(call: Any) -> Any:
    from google.rpc import error_details_pb2, status_pb2

    info = error_details_pb2.ErrorInfo()
    for key, value in call.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            encoded = value if isinstance(value, bytes) else value.encode()
            for detail in status_pb2.Status.FromString(encoded).details:
                if detail.Unpack(info):
                    break
    return info


def _next_by_noun(code: str, text: str) -> str | None:
    """Fallback for an answer without a reason: the text says what was missing."""
    if code == "NOT_FOUND" and "queue" in text:
        return _NEXT_BY_REASON["QUEUE_NOT_FOUND"]
    return None


def _one_line(text: str) -> str:
    return " ".join(text.split()).rstrip(".")
