"""Requests of the wire contract, written by hand as bytes.

A generated message object costs more than a microsecond each, which at 150,000 messages a
second is a fifth of the machine under test. So the hot requests are built once, from these
few functions, and only their sequence number changes afterwards. Field numbers are those of
`proto/fila/v1/service.proto`; `tests/bench` holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

ENQUEUE = "/fila.v1.FilaService/Enqueue"
ENQUEUE_STREAM = "/fila.v1.FilaService/EnqueueStream"
CONSUME_SESSION = "/fila.v1.FilaService/ConsumeSession"
ACK_BATCH = "/fila.v1.FilaService/AckBatch"

_VARINT, _LEN = 0, 2


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """A varint field; zero is the default of proto3 and takes no bytes."""
    return varint(field << 3 | _VARINT) + varint(value) if value else b""


def block(field: int, content: bytes) -> bytes:
    """A length-delimited field, kept even when empty: an empty member of a oneof still counts."""
    return varint(field << 3 | _LEN) + varint(len(content)) + content


def text(field: int, content: str) -> bytes:
    return block(field, content.encode()) if content else b""


def headers(pairs: Mapping[str, str]) -> bytes:
    return b"".join(block(2, text(1, key) + text(2, value)) for key, value in pairs.items())


def enqueue_options(*, delay_ms: int = 0, ttl_ms: int = 0, dedup_key: str = "") -> bytes:
    return number(1, delay_ms) + number(3, ttl_ms) + text(4, dedup_key)


def enqueue_message(
    pairs: Mapping[str, str], payload: bytes, *, queue: str = "", options: bytes = b""
) -> bytes:
    """EnqueueMessage, and EnqueueRequest as well: the two share their numbers."""
    fields = [text(1, queue), headers(pairs), block(3, payload)]
    if options:
        fields.append(block(4, options))
    return b"".join(fields)


def enqueue_batch(queue: str, messages: Iterable[bytes]) -> bytes:
    return text(1, queue) + b"".join(block(2, message) for message in messages)


def enqueue_stream_body(batch: bytes) -> bytes:
    """The constant part of an EnqueueStreamRequest; `sequence` goes before it."""
    return block(2, batch)


def sequence(value: int) -> bytes:
    return b"\x08" + varint(value)


def session_open(
    queue: str, *, channel: str = "", max_in_flight: int, initial_credit: int = 0, tracks_begun: bool = False
) -> bytes:
    opened = text(1, queue) + text(2, channel) + number(3, max_in_flight) + number(4, initial_credit)
    return block(1, opened + number(5, int(tracks_begun)))


def session_begun(packed_lease_ids: bytes) -> bytes:
    return block(7, block(1, packed_lease_ids))


def session_credit(messages: int) -> bytes:
    return number(2, messages)


def session_ack(sequence_number: int, packed_lease_ids: bytes) -> bytes:
    return block(3, sequence(sequence_number) + block(2, packed_lease_ids))
