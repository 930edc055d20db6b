"""A failed call, told in one line: what happened, and what to do next.

The broker's text names field and bound; what it cannot know is how this command line is
used, so the next step is added here, by the reason it sent or else by its status code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import grpc

_NEXT_BY_REASON = {
    "QUEUE_NOT_FOUND": "'fila queue list' shows the queues there are",
    "CHANNEL_NOT_FOUND": "'fila channel list QUEUE' shows its channels",
    "CONFIG_KEY_NOT_FOUND": "'fila config list' shows the keys there are",
    "QUEUE_EXISTS": "change it with 'fila queue update', or choose another name",
    "CHANNEL_EXISTS": "move it with 'fila channel seek', or choose another name",
    "SOURCE_QUEUE_GONE": "create the source queue again, or read the dead letters with 'fila consume'",
    "HOOKS_FULL": "repair the script with 'fila queue update --on-enqueue @file', or use --hook-fallback policy",
    "QUEUE_FULL": "consume some, or raise the bound with 'fila queue update'",
    "SHUTTING_DOWN": "try again once it has restarted",
    "DISK_FLOOR": "free disk space on the broker's machine; acks and deliveries go on meanwhile",
    "NOT_A_DLQ": "give the dead-letter queue, whose name ends in .dlq",
}
_NEXT_BY_CODE = {
    "UNIMPLEMENTED": "this broker is older than this command line: upgrade fila-server",
    "RESOURCE_EXHAUSTED": "try again in a moment",
    "DEADLINE_EXCEEDED": "is the broker overloaded? --timeout waits longer",
    "UNAUTHENTICATED": "check --addr: this broker wants credentials",
    "INTERNAL": "the broker's log says more",
    "UNKNOWN": "the broker's log says more",
}


class BrokerError(click.ClickException):
    """The broker refused or was not there: exit code 1."""

    exit_code = 1


def from_rpc(error: grpc.RpcError, address: str) -> BrokerError:
    """Translate what a stub raised."""
    import grpc

    call: Any = error  # stubs raise calls that failed; grpc's types do not say so
    code = call.code()
    reason = reason_of(call)
    if code is grpc.StatusCode.UNAVAILABLE and not reason:
        return BrokerError(
            f"cannot reach a broker at {address}; start one with 'fila-server', or point --addr or FILA_ADDR at it"
        )
    text = _one_line(call.details() or code.name)
    if step := _NEXT_BY_REASON.get(reason):
        # The broker's own advice speaks of RPCs; whoever typed a command wants a command.
        return BrokerError(f"{text.partition(';')[0]}; {step}")
    step = _next_by_noun(code.name, text) or _NEXT_BY_CODE.get(code.name)
    return BrokerError(text if step is None or ";" in text else f"{text}; {step}")


def reason_of(call: Any) -> str:
    """The machine-readable reason out of google.rpc.ErrorInfo, or nothing."""
    for key, value in call.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            return _reason_in(value if isinstance(value, bytes) else value.encode())
    return ""


def _reason_in(details: bytes) -> str:
    from google.rpc import error_details_pb2, status_pb2

    info = error_details_pb2.ErrorInfo()
    for detail in status_pb2.Status.FromString(details).details:
        if detail.Unpack(info):
            return str(info.reason)
    return ""


def _next_by_noun(code: str, text: str) -> str | None:
    """Fallback for an answer without a reason: the text says what was missing."""
    if code == "NOT_FOUND" and "queue" in text:
        return _NEXT_BY_REASON["QUEUE_NOT_FOUND"]
    return None


def _one_line(text: str) -> str:
    return " ".join(text.split()).rstrip(".")
