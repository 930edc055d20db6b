"""What threads and asyncio loop say to each other of Redis clients has one number on both sides."""

from __future__ import annotations

import re
from pathlib import Path

from fila_server.edge import io
from fila_server.edge.redis import port as redis_port
from fila_server.edge.redis import socket_client as redis_client

BRIDGE = Path(str(io.__file__)).with_name("bridge.pxd")


def numbers(prefix: str) -> dict[str, int]:
    found = re.findall(rf"^ +{prefix}(\w+) = (\d+)", BRIDGE.read_text(), re.MULTILINE)
    return {name: int(number) for name, number in found}


def test_python_and_compiled_code_agree_on_what_is_told_of_redis_clients():
    events = numbers("EVENT_REDIS_")
    assert events == {name: vars(redis_port)[f"REDIS_{name}"] for name in ("OPENED", "COMMAND", "GONE")}
    flags = numbers("CLIENT_")
    assert flags == {
        name: vars(redis_client)[name] for name in ("KNOWN", "QUITS", "SPEAKS_3", "LEAVES_AT_ONCE")
    }


def test_what_a_thread_packed_is_unpacked_whole():
    assert redis_port.pieces(b"") == []
    assert redis_port.pieces(b"\0\0\0\2hi\0\0\0\0\0\0\0\1x") == [b"hi", b"", b"x"]
