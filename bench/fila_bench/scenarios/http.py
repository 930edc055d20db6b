"""The HTTP gateway: callers that post and wait for the answer, over connections that are kept."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import psutil
import uvloop

from fila_bench.admin import Admin
from fila_bench.against import server_of
from fila_bench.callers import in_process, percentile
from fila_bench.pairs import in_turn, ratio_of
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.server import Server, ServerFailed, free_port, is_open

_QUEUE = "bench"
_BEFORE = "d9156878"
"""The commit after which the gateway began to bound what strangers may ask of it."""
_PAIRS = 5
_START_S_MAX = 20.0
_PAYLOAD = bytes(1024)
_LENGTH = re.compile(rb"content-length: (\d+)")


class Gateway:
    """`fila http` before a broker, on a port of its own."""

    def __init__(self, broker: str, program: Path | None = None) -> None:
        """`program` is the `fila` to start, where it is not this tree's: of a commit that takes --host and --port."""
        self.port = free_port()
        self._program = program
        self._broker = broker
        self._folder = Path(tempfile.mkdtemp(prefix="fila-gateway-"))
        self._log_path = self._folder / "gateway.log"

    def __enter__(self) -> Self:
        command = self._program or Path(sys.executable).with_name("fila")
        # Another tree is built without what serves HTTP: ours serves there, too.
        paths = [each for each in sys.path if each.endswith("site-packages")] if self._program else []
        environ = os.environ | ({"PYTHONPATH": os.pathsep.join(paths)} if paths else {})
        where = ("--port", str(self.port)) if self._program else ("--listen", f"127.0.0.1:{self.port}")
        with self._log_path.open("wb") as log:
            self._process = subprocess.Popen(
                [command, "http", "--addr", self._broker, *where], stderr=log, env=environ
            )
        until_s = time.monotonic() + _START_S_MAX
        # One of before said so a moment before it did.
        while "serves" not in self._log_path.read_text() or not is_open(self.port):
            if self._process.poll() is not None or time.monotonic() > until_s:
                raise ServerFailed(f"fila http did not start: {self._log_path.read_text()}")
            time.sleep(0.02)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(20)
        shutil.rmtree(self._folder, ignore_errors=True)

    def cpu_s(self) -> float:
        """Of the gateway and of the processes that read JSON for it."""
        gateway = psutil.Process(self._process.pid)
        times = [each.cpu_times() for each in (gateway, *gateway.children())]
        return float(sum(each.user + each.system for each in times))


@dataclass(frozen=True, slots=True, kw_only=True)
class Posts:
    """So many connections, each posting as soon as it was answered."""

    port: int
    path: str
    body: bytes
    content_type: str
    callers: int
    key: str = ""
    """"" for none."""

    warm_up_s: float = 1.0
    seconds: float = 5.0


@benchmark("http", "the HTTP gateway, 1 KB, fsync: batches of 100, and single messages of 50 callers")
def http(budget: Budget) -> Iterator[Finding]:
    message = {"headers": {"tenant": "k"}, "payload": base64.b64encode(_PAYLOAD).decode()}
    batch = json.dumps({"messages": [message] * 100}).encode()
    for case, path, body, kind, callers, messages, reach in (
        ("batches of 100, 4 callers", "/batch", batch, "application/json", 4, 100, 10_000),
        ("single messages, 50 callers", "", _PAYLOAD, "application/octet-stream", 50, 1, 1_500),
    ):
        with Server() as server, Gateway(server.address) as gateway:
            with Admin(server.address) as admin:
                admin.create(_QUEUE, fairness_key_header="tenant")
            plan = Posts(
                port=gateway.port,
                path=f"/v1/queues/{_QUEUE}/messages{path}",
                body=body,
                content_type=kind,
                callers=callers,
                seconds=budget.seconds,
            )
            cpu_s = gateway.cpu_s()
            took = sorted(in_process(post, plan)())
            cpu_s = gateway.cpu_s() - cpu_s
        yield Finding(
            benchmark="http",
            case=case,
            value=len(took) * messages / budget.seconds,
            unit="msg/s",
            reach=reach,
            details={
                "p50 ms": percentile(took, 0.5) / 1e6,
                "p99 ms": percentile(took, 0.99) / 1e6,
                # The warm-up's requests are in the time and, at the same rate, in the count.
                "gateway us/msg": cpu_s * 1e6 / (len(took) * messages * (1 + plan.warm_up_s / plan.seconds)),
            },
        )


@benchmark(
    "http-cpu", f"the HTTP gateway's CPU a message, batches of 100 messages of 100 bytes, beside {_BEFORE}'s"
)
def http_cpu(budget: Budget) -> Iterator[Finding]:
    before = server_of(_BEFORE).with_name("fila")
    message = {"headers": {"tenant": "k"}, "payload": base64.b64encode(bytes(100)).decode()}
    body = json.dumps({"messages": [message] * 100}).encode()

    def us_a_message(program: Path | None) -> float:
        with Server() as server, Gateway(server.address, program) as gateway:
            with Admin(server.address) as admin:
                admin.create(_QUEUE, fairness_key_header="tenant")
            plan = Posts(
                port=gateway.port,
                path=f"/v1/queues/{_QUEUE}/messages/batch",
                body=body,
                content_type="application/json",
                callers=4,
                warm_up_s=0.0,
                seconds=budget.seconds,
            )
            in_process(post, replace(plan, seconds=1.0))()
            cpu_s = gateway.cpu_s()
            took = in_process(post, plan)()
            return (gateway.cpu_s() - cpu_s) * 1e6 / (len(took) * 100)

    pairs = _PAIRS if budget.seconds > 4 else 1
    found = in_turn({"before": partial(us_a_message, before), "now": partial(us_a_message, None)}, pairs)
    ratio = ratio_of(found["before"], found["now"])
    yield Finding(
        benchmark="http-cpu",
        case=f"batches of 100 messages of 100 bytes, now / {_BEFORE}, median of {pairs} pairs",
        value=ratio.median,
        unit="",
        reach=0.5,
        better="less",
        details={
            "90 % interval": ratio.interval,
            "now us/msg": statistics.median(found["now"]),
            "before us/msg": statistics.median(found["before"]),
        },
    )


def post(plan: Posts, pipe: Any) -> None:
    """Process: send back how long each request took, in ns, after the warm-up."""
    pipe.send(uvloop.run(_post(plan)))


async def _post(plan: Posts) -> list[int]:
    head = (
        f"POST {plan.path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {plan.content_type}\r\n"
        f"Content-Length: {len(plan.body)}\r\n"
    )
    head += f"Authorization: Bearer {plan.key}\r\n\r\n" if plan.key else "\r\n"
    request = head.encode() + plan.body
    took: list[int] = []
    measured_from_ns = time.monotonic_ns() + int(plan.warm_up_s * 1e9)
    until_ns = measured_from_ns + int(plan.seconds * 1e9)

    async def loop() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", plan.port)
        while (began := time.monotonic_ns()) < until_ns:
            writer.write(request)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = _LENGTH.search(answer)
            assert length is not None
            body = await reader.readexactly(int(length[1]))
            if not answer.startswith(b"HTTP/1.1 200") or b'"error"' in body:
                raise RuntimeError(f"the gateway answered {answer!r} {body[:500]!r}")
            if began >= measured_from_ns:
                took.append(time.monotonic_ns() - began)
        writer.close()

    await asyncio.gather(*(loop() for _ in range(plan.callers)))
    return took
