"""The HTTP gateway beside strangers: what an honest caller waits while 20 connections send what only costs.

Each kind of stranger sends as fast as it is answered, and comes again when it was cut off. The honest caller is alone
on its connection; its wait beside them is told as a ratio to its wait without them, the median of rounds.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import secrets
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import uvloop

from fila_bench.callers import in_process, percentile
from fila_bench.load import LoadFailed
from fila_bench.pairs import in_turn, ratio_of
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.scenarios.http import Gateway, Posts, post
from fila_bench.server import Server

CONNECTIONS = 20
TIMES_QUIET_MAX = 3.0
ROUNDS = 5
"""Each with a quiet stretch and one beside strangers, so that both share their minute of the machine."""

WARM_UP_S = 0.3
_QUEUE = "bench"
_PAYLOAD = bytes(1024)
_JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strangers:
    """So many connections that send one kind of request for so long."""

    port: int
    key: str
    """"" for none, "random" for another one each time."""

    path: str
    body: bytes
    held_back: int = 0
    """So many bytes of each body are never sent."""

    connections: int = CONNECTIONS
    seconds: float


def _items(count: int) -> bytes:
    return b'{"items":[' + b",".join([b"{}"] * count) + b"]}"


def _settled(count: int) -> bytes:
    item = {"messageId": "019ab000-0000-7000-8000-000000000000", "leaseId": "123456789"}
    return json.dumps({"items": [item] * count}).encode()


_ACK = f"/v1/queues/{_QUEUE}/ack/batch"
KINDS: dict[str, tuple[str, bytes, int]] = {
    "lists of 86,000": (_ACK, _items(86_000), 0),
    "lists of 400,000": (_ACK, _items(400_000), 0),
    "lists of 5,000": (_ACK, _items(5_000), 0),
    "whole batches of 10,000": (_ACK, _settled(10_000), 0),
    "bodies without an end": (f"/v1/queues/{_QUEUE}/messages", bytes(8 << 20), 1),
}
"""What they send: where, what, and how much of it they keep back."""
IN_BOUNDS = ("lists of 5,000", "whole batches of 10,000")
"""Kinds that break no bound: of a stranger without a key that is known nothing is read, so they cost nothing new."""

_BATCH = {"messages": [{"payload": base64.b64encode(_PAYLOAD).decode()}] * 100}
HONEST: dict[str, tuple[str, str, bytes]] = {
    "a message": (f"/v1/queues/{_QUEUE}/messages", "application/octet-stream", _PAYLOAD),
    "a batch of 100": (f"/v1/queues/{_QUEUE}/messages/batch", _JSON, json.dumps(_BATCH).encode()),
}
"""What the honest caller posts: where, called what, and its bytes."""


@benchmark(
    "http-strangers",
    "the HTTP gateway: an honest caller's wait beside 20 connections that only cost, by what they send and their key",
)
def http_strangers(budget: Budget) -> Iterator[Finding]:
    with Server(auth__enabled="true") as server:
        admin_key = (server.data_dir / "bootstrap-key").read_text().strip()
        with Gateway(server.address) as gateway:
            keys = _make_keys(gateway.port, admin_key)
        for kind in KINDS:
            for whose, key in (
                ("no key", ""),
                ("random keys", "random"),
                ("a key of least rights", keys["guest"]),
            ):
                if kind in IN_BOUNDS and key != keys["guest"]:
                    continue
                for what in HONEST:
                    # What strangers left behind at one gateway would be in the next one's quiet time.
                    with Gateway(server.address) as gateway:
                        yield _beside(gateway, budget, what, keys["shop"], kind, whose, key)


def _beside(
    gateway: Gateway, budget: Budget, what: str, honest_key: str, kind: str, whose: str, key: str
) -> Finding:
    path, content_type, body = HONEST[what]
    plan = Posts(
        port=gateway.port,
        path=path,
        body=body,
        content_type=content_type,
        callers=1,
        key=honest_key,
        warm_up_s=WARM_UP_S,
        seconds=budget.seconds / 4,
    )
    path, body, held_back = KINDS[kind]
    strangers = Strangers(
        port=gateway.port,
        key=key,
        path=path,
        body=body,
        held_back=held_back,
        seconds=plan.warm_up_s + plan.seconds + 1,
    )
    answers: Counter[str] = Counter()

    def beside() -> list[int]:
        told = in_process(bother, strangers)
        took = _waits(plan)
        answers.update(told())
        return took

    found = in_turn({"quiet": lambda: _waits(plan), "beside": beside}, ROUNDS)
    p99 = {side: [percentile(took, 0.99) / 1e6 for took in runs] for side, runs in found.items()}
    p50 = {side: [percentile(took, 0.5) / 1e6 for took in runs] for side, runs in found.items()}
    ratio = ratio_of(p99["quiet"], p99["beside"])
    return Finding(
        benchmark="http-strangers",
        case=f"{what} beside {kind}, {whose}",
        value=ratio.median,
        unit="times",
        reach=TIMES_QUIET_MAX,
        better="less",
        details={
            "90 % interval": ratio.interval,
            "p99 ms": median(p99["beside"]),
            "quiet p99 ms": median(p99["quiet"]),
            "p50 ms": median(p50["beside"]),
            "quiet p50 ms": median(p50["quiet"]),
            "answered": sum(len(took) for took in found["beside"]),
            "strangers' answers": dict(answers),
        },
    )


def _waits(plan: Posts) -> list[int]:
    """How long each request took, in ns, the shortest first. Where none was answered, one that took all of the time."""
    with contextlib.suppress(LoadFailed):  # it was refused
        if took := sorted(in_process(post, plan)()):
            return took
    return [int(plan.seconds * 1e9)]


def _make_keys(port: int, admin_key: str) -> dict[str, str]:
    """An honest caller's key, and one that may look at another queue."""
    _call(port, admin_key, "/v1/queues", {"name": _QUEUE})
    _call(port, admin_key, "/v1/queues", {"name": "other"})
    keys = {}
    for name, right, queue in (("shop", "RIGHT_PRODUCE", _QUEUE), ("guest", "RIGHT_VIEW", "other")):
        keys[name] = _call(port, admin_key, "/v1/auth/keys", {"name": name})["key"]
        grant = {"name": name, "permissions": [{"right": right, "queue": queue}]}
        _call(port, admin_key, "/v1/auth/grants", grant)
    return keys


def _call(port: int, key: str, path: str, value: Any) -> Any:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": _JSON}
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(value).encode(), headers)
    with urllib.request.urlopen(asked, timeout=20) as answer:
        return json.load(answer)


def bother(plan: Strangers, pipe: Any) -> None:
    """Process: send back what was answered, by status."""
    pipe.send(uvloop.run(_bother(plan)))


async def _bother(plan: Strangers) -> dict[str, int]:
    answers: dict[str, int] = {}
    until_s = time.monotonic() + plan.seconds

    async def one() -> None:
        while time.monotonic() < until_s:
            status = "none"
            with contextlib.suppress(OSError, EOFError, TimeoutError):
                async with asyncio.timeout_at(asyncio.get_running_loop().time() + until_s - time.monotonic()):
                    status = await _ask(plan)
            answers[status] = answers.get(status, 0) + 1

    await asyncio.gather(*(one() for _ in range(plan.connections)))
    return answers


async def _ask(plan: Strangers) -> str:
    """One request on a connection of its own; it is cut off when the gateway had enough of it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", plan.port)
    try:
        head = (
            f"POST {plan.path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {_JSON}\r\n"
            f"Content-Length: {len(plan.body)}\r\n"
        )
        key = f"fila_{secrets.token_hex(6)}_{secrets.token_hex(24)}" if plan.key == "random" else plan.key
        if key:
            head += f"Authorization: Bearer {key}\r\n"
        writer.write(f"{head}\r\n".encode())
        sending = asyncio.ensure_future(_send(writer, plan))
        line = await reader.readline()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        return line.split()[1].decode() if line else "cut off"
    finally:
        writer.transport.abort()


async def _send(writer: asyncio.StreamWriter, plan: Strangers) -> None:
    body = memoryview(plan.body)[: len(plan.body) - plan.held_back]
    # uvloop refuses to write where the other side has ended the connection.
    with contextlib.suppress(OSError, RuntimeError):
        for start in range(0, len(body), 64 << 10):
            writer.write(body[start : start + (64 << 10)])
            await writer.drain()
