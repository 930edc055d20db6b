"""Replies as bytes, and the one table that turns Fila's errors into Floki's prefixes.

    QNF   queue not found      IPA   invalid parameter      ERR   everything else: capacity, shutdown,
    CNF   channel not found    MPA   missing parameter            our mistakes, and what Redis itself
    QAE   queue exists         ICOM  invalid command              answers with ERR
    CAE   channel exists       UCOM  unknown command
    NOAUTH, NOPERM, WRONGPASS  as Redis has them

The compiled encoders write what is frequent; this is for everything else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fila_server import errors

RESP2 = 2
RESP3 = 3

OK = b"+OK\r\n"
ERROR_TEXT_MAX = 512
"""Longer texts only repeat what the client sent."""

_PREFIX_BY_REASON = {
    errors.QueueNotFound.reason: "QNF",
    errors.ChannelNotFound.reason: "CNF",
    errors.QueueExists.reason: "QAE",
    errors.ChannelExists.reason: "CAE",
    errors.PermissionDenied.reason: "NOPERM",
    errors.Unauthenticated.reason: "NOAUTH",
}
# What to do next, where the broker's own advice names calls that this protocol does not have.
_NEXT_BY_REASON = {
    errors.QueueNotFound.reason: "SETNX queue channel makes both",
    errors.ChannelNotFound.reason: "SETNX queue channel makes it",
    errors.QueueExists.reason: "SETNX queue channel adds a channel to it",
}
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")


class Simple(str):
    """A status such as +OK, as against a bulk string."""


Value = str | bytes | int | float | None | Sequence["Value"] | Mapping[str, "Value"]


def error_reply(prefix: str, text: str) -> bytes:
    """Return `-PREFIX text`, one line whatever the text holds."""
    return f"-{prefix} {_UNPRINTABLE.sub('?', text[:ERROR_TEXT_MAX])}\r\n".encode("ascii")


def status_reply(code: int, message: str, reason: str) -> bytes:
    """Return the error reply for an ItemStatus."""
    prefix = _PREFIX_BY_REASON.get(reason)
    if prefix is None:
        prefix = "IPA" if code == errors.INVALID_ARGUMENT else "ERR"
    if (step := _NEXT_BY_REASON.get(reason)) is not None:
        message = f"{message.partition(';')[0]}; {step}"
    return error_reply(prefix, message)


def refusal(error: errors.FilaServerError) -> bytes:
    """Return the error reply for an error of the broker."""
    text = error.message
    if isinstance(error, errors.Overloaded):
        text = f"{text}; try again in {error.retry_after_ms} ms"
    return status_reply(error.status, text, error.reason)


INTERNAL = error_reply("ERR", "internal error: the server's log says more")


def null_array(protocol: int) -> bytes:
    """Return the reply of a read whose timeout passed."""
    return b"*-1\r\n" if protocol == RESP2 else b"_\r\n"


def integer(number: int) -> bytes:
    """Return an integer reply."""
    return b":%d\r\n" % number


def encode(value: Value, protocol: int) -> bytes:
    """Return any value of the admin commands in the connection's protocol; maps are flat in RESP2."""
    match value:
        case None:
            return b"$-1\r\n" if protocol == RESP2 else b"_\r\n"
        case Simple():
            return b"+%s\r\n" % value.encode()
        case str():
            return _bulk(value.encode())
        case bytes():
            return _bulk(value)
        case int():
            return integer(value)
        case float():
            return _bulk(repr(value).encode()) if protocol == RESP2 else b",%r\r\n" % value
        case Mapping():
            header = b"*%d\r\n" % (2 * len(value)) if protocol == RESP2 else b"%%%d\r\n" % len(value)
            pairs = (encode(part, protocol) for pair in value.items() for part in pair)
            return header + b"".join(pairs)
    return b"*%d\r\n" % len(value) + b"".join(encode(part, protocol) for part in value)


def _bulk(text: bytes) -> bytes:
    return b"$%d\r\n%s\r\n" % (len(text), text)
