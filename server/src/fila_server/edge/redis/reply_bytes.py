"""Replies as bytes, of everything that no message passes; those of messages and of errors are made by encode.pyx."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fila_server import errors
from fila_server.edge.redis.encode import error_reply, status_reply

__all__ = ["error_reply", "status_reply"]

RESP2 = 2
RESP3 = 3

COMPATIBLE_VERSION = "7.0.0"
"""The Redis whose connection commands these are; some libraries choose features by it."""

OK = b"+OK\r\n"


class Simple(str):
    """A status such as +OK, as against a bulk string."""


Value = str | bytes | int | float | None | Sequence["Value"] | Mapping[str, "Value"]


def refusal(error: errors.FilaServerError) -> bytes:
    """Return the error reply for an error of the broker."""
    text = error.message
    if isinstance(error, errors.Overloaded):
        text = f"{text}; try again in {error.retry_after_ms} ms"
    return status_reply(error.status, text, error.reason)


INTERNAL = error_reply("ERR", "internal error: the server's log says more")


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
