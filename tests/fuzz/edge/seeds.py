"""Conversations to begin with: each shows the fuzzer a way that it would be long in finding."""

from __future__ import annotations

import struct
from pathlib import Path

from fila.v1 import service_pb2

REDIS, PREFACE, READS_NOTHING, READS_LITTLE, HALF_CLOSES, RESP3 = 1, 2, 4, 8, 16, 32
DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 3, 4, 6, 8
END_STREAM, END_HEADERS = 1, 4
SERVICE = "/fila.v1.FilaService/"


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """One of HTTP/2."""
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def literal(name: bytes, value: bytes) -> bytes:
    """A header field without indexing."""
    return b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value


def call(stream: int, path: str, *messages: bytes, ends: bool = True, more: bytes = b"") -> bytes:
    """A gRPC call's frames."""
    fields = {b":method": b"POST", b":scheme": b"http", b":path": path.encode(), b":authority": b"a",
              b"te": b"trailers", b"content-type": b"application/grpc"}  # fmt: skip
    block = b"".join(literal(name, value) for name, value in fields.items()) + more
    sent = frame(HEADERS, END_HEADERS, stream, block)
    for message in messages:
        sent += frame(DATA, 0, stream, b"\0" + struct.pack(">I", len(message)) + message)
    return sent + (frame(DATA, END_STREAM, stream) if ends else b"")


def command(*words: str | bytes) -> bytes:
    """One of the Redis protocol."""
    parts = [word if isinstance(word, bytes) else word.encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def _grpc() -> dict[str, bytes]:
    enqueue = service_pb2.EnqueueRequest(queue="q", payload=b"x", headers={"tenant": "a"}).SerializeToString()
    batch = service_pb2.EnqueueBatchRequest(
        queue="q", messages=[service_pb2.EnqueueMessage(payload=b"y")] * 3
    )
    stream = service_pb2.EnqueueStreamRequest(sequence=1, batch=batch).SerializeToString()
    lease = service_pb2.LeaseRequest(queue="q", max_messages=3).SerializeToString()
    waiting = service_pb2.LeaseRequest(queue="empty", wait_ms=60_000).SerializeToString()
    consume = service_pb2.ConsumeRequest(queue="q", max_in_flight=3).SerializeToString()
    opening = service_pb2.ConsumeSessionRequest(open={"queue": "q", "tracks_begun": True}).SerializeToString()
    closing = service_pb2.ConsumeSessionRequest(close={"release": True}).SerializeToString()
    ack = service_pb2.AckRequest(queue="q", lease_id=7).SerializeToString()
    timeout = literal(b"grpc-timeout", b"50m")
    gzip = literal(b"grpc-encoding", b"gzip")
    return {
        "enqueue": call(1, SERVICE + "Enqueue", enqueue),
        "batch": call(1, SERVICE + "EnqueueBatch", batch.SerializeToString()),
        "stream": call(1, SERVICE + "EnqueueStream", stream, stream, stream),
        "lease": call(1, SERVICE + "Enqueue", enqueue) + call(3, SERVICE + "Lease", lease),
        "waits": call(1, SERVICE + "Lease", waiting, more=timeout),
        "cancelled": call(1, SERVICE + "Lease", waiting) + frame(RST_STREAM, 0, 1, struct.pack(">I", 8)),
        "consume": call(1, SERVICE + "Enqueue", enqueue) + call(3, SERVICE + "Consume", consume),
        "session": call(1, SERVICE + "ConsumeSession", opening, closing, ends=False),
        "ack": call(1, SERVICE + "Ack", ack) + frame(PING, 0, 0, bytes(8)),
        "python": call(1, "/fila.v1.FilaAdmin/ListQueues", b"") + call(3, "/no.such/Method", b"abc"),
        "unended": call(1, SERVICE + "Enqueue", enqueue, ends=False),
        "gzip": call(1, SERVICE + "Enqueue", enqueue, more=gzip),
        "settings": frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 1)) + call(1, SERVICE + "Lease", lease)
        + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 100)),
        "not-grpc": frame(HEADERS, END_HEADERS | END_STREAM, 1, literal(b":method", b"GET")
        + literal(b":scheme", b"http") + literal(b":path", b"/") + literal(b":authority", b"a")),
    }  # fmt: skip


def _redis() -> dict[str, bytes]:
    push = command("RPUSH", "q", "one")
    return {
        "push": push * 5 + command("RPUSH", "q", "a", "b"),
        "life": push + command("HMGET", "q", "c", "5") + command("HDEL", "q", "c", "1", "2"),
        "waits": command("HMGET", "empty", "c", "1", "60") + push + command("PING"),
        "hello": command("HELLO", "3") + command("PING") + b"ECHO inline\r\n" + command("QUIT"),
        "broken": b"*2\r\n$4\r\nPING\r\n$-1\r\n",
        "lines": b"PING 'a b' \"c\\x41\\n\"\nRPUSH q m\r\n\r\nhmget q c 3 0.5\n",
    }


def write(folder: Path) -> None:
    """Write each, read on and left, in one piece and in many."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, conversation in _grpc().items():
        for how, switches in (
            ("", 0),
            ("-slow", READS_LITTLE),
            ("-deaf", READS_NOTHING),
            ("-half", HALF_CLOSES),
        ):
            (folder / f"grpc-{name}{how}").write_bytes(bytes((PREFACE | switches, 3)) + conversation)
    for name, conversation in _redis().items():
        for how, switches in (("", 0), ("-slow", READS_LITTLE | RESP3), ("-half", HALF_CLOSES)):
            (folder / f"redis-{name}{how}").write_bytes(bytes((REDIS | switches, 0)) + conversation)
