"""What a way in costs: encryption, keys, and neighbours that keep a connection without using it well."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import ssl
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import grpc

from fila.v1 import admin_pb2, admin_pb2_grpc, auth_pb2, auth_pb2_grpc, service_pb2
from fila_bench import go_load
from fila_bench.admin import Admin
from fila_bench.callers import Callers, call, in_process, percentile
from fila_bench.pairs import in_turn, ratio_of
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.server import Server

_QUEUE = "bench"
_PAIRS = 7
_NEIGHBOURS_REACH = 1.25
_VICTIM_CALLS_PER_S = 500
_IDLE = 10_000
_SETTINGS = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)
"""The least that makes a connection one of HTTP/2: the preface and an empty SETTINGS."""


# --- encryption and keys ----------------------------------------------------------------------


@contextlib.contextmanager
def _certificate() -> Iterator[tuple[Path, Path]]:
    """One for 127.0.0.1 that signs itself, and its key."""
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder) / "server.pem", Path(folder) / "server.key"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
             "-days", "2", "-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1",
             "-keyout", str(key), "-out", str(certificate)],
            check=True, capture_output=True,
        )  # fmt: skip
        yield certificate, key


def _life(server: Server, budget: Budget, **flags: str | float) -> float:
    report = go_load.run(
        server.address,
        queue=_QUEUE,
        warm_up=f"{min(1.0, budget.warm_up_s)}s",
        duration=f"{budget.seconds * 3 / 8}s",
        **flags,
    )
    return float(report["acked_per_s"])


def _on_against_off(name: str, reach: float, on: Callable[[], float], off: Callable[[], float]) -> Finding:
    rates = in_turn({"off": off, "on": on}, _PAIRS)
    ratio = ratio_of(rates["off"], rates["on"])
    return Finding(
        benchmark=name,
        case=f"on / off, full life, 1 KB, batch 100, os, median of {_PAIRS} pairs",
        value=ratio.median,
        unit="",
        reach=reach,
        details={
            "90 % interval": ratio.interval,
            "on/s": statistics.median(rates["on"]),
            "off/s": statistics.median(rates["off"]),
        },
    )


def _plain(budget: Budget) -> float:
    with Server(durability="os") as server:
        return _life(server, budget)


@benchmark("tls", "full life with TLS on against off, runs alternating")
def tls(budget: Budget) -> Iterator[Finding]:
    go_load.build()
    with _certificate() as (certificate, key):

        def encrypted() -> float:
            with Server(durability="os", tls__cert_file=str(certificate), tls__key_file=str(key)) as server:
                return _life(server, budget, ca=str(certificate))

        yield _on_against_off("tls", 0.6, encrypted, lambda: _plain(budget))


def _key_for_the_load(server: Server) -> str:
    """One with no more rights than the load needs, and with many grants that are not for its queue."""
    bootstrap = (server.data_dir / "bootstrap-key").read_text().strip()
    as_admin = (("authorization", f"Bearer {bootstrap}"),)
    with grpc.insecure_channel(server.address) as channel:
        auth = auth_pb2_grpc.FilaAuthStub(channel)
        made = auth.CreateKey(auth_pb2.CreateKeyRequest(name="load"), metadata=as_admin)
        patterns = [f"team-{number}.*" for number in range(20)] + [_QUEUE]
        permissions = [
            auth_pb2.Permission(right=right, queue=pattern)
            for pattern in patterns
            for right in (auth_pb2.RIGHT_PRODUCE, auth_pb2.RIGHT_CONSUME, auth_pb2.RIGHT_MANAGE)
        ]
        auth.Grant(auth_pb2.GrantRequest(name="load", permissions=permissions), metadata=as_admin)
    return str(made.key)


@benchmark("keys-on", "full life with keys and rights on against off, runs alternating")
def keys_on(budget: Budget) -> Iterator[Finding]:
    go_load.build()

    def guarded() -> float:
        with Server(durability="os", auth__enabled="true") as server:
            os.environ["FILA_API_KEY"] = _key_for_the_load(server)
            try:
                return _life(server, budget)
            finally:
                del os.environ["FILA_API_KEY"]

    yield _on_against_off("keys-on", 0.97, guarded, lambda: _plain(budget))


# --- neighbours -------------------------------------------------------------------------------


@contextlib.contextmanager
def _a_consumer_that_never_reads(server: Server) -> Iterator[None]:
    queue = f"unread-{time.monotonic_ns()}"
    with Admin(server.address) as admin:
        admin.create(queue)
        admin.enqueue_many(queue, (({}, bytes(4096)) for _ in range(5_000)))
    with grpc.insecure_channel(server.address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        consume: Any = channel.unary_stream(
            "/fila.v1.FilaService/Consume",
            request_serializer=service_pb2.ConsumeRequest.SerializeToString,
        )
        stream = consume(service_pb2.ConsumeRequest(queue=queue, max_in_flight=5_000, max_batch=100))
        yield
        stream.cancel()
    _delete(server, queue)


@contextlib.contextmanager
def _a_producer_that_never_stops(server: Server) -> Iterator[None]:
    """It reads no answer, so what it sends is soon left lying, and its window withheld."""
    queue = f"flooded-{time.monotonic_ns()}"
    with Admin(server.address) as admin:
        admin.create(queue)
    batch = service_pb2.EnqueueBatchRequest(queue=queue)
    for _ in range(100):
        batch.messages.add(payload=bytes(1024))
    frame = service_pb2.EnqueueStreamRequest(sequence=1, batch=batch)

    def for_ever() -> Iterator[service_pb2.EnqueueStreamRequest]:
        while True:
            yield frame
            frame.sequence += 1

    with grpc.insecure_channel(server.address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        produce: Any = channel.stream_stream(
            "/fila.v1.FilaService/EnqueueStream",
            request_serializer=service_pb2.EnqueueStreamRequest.SerializeToString,
        )
        stream = produce(for_ever())
        yield
        stream.cancel()
    _delete(server, queue)


def _delete(server: Server, queue: str) -> None:
    with grpc.insecure_channel(server.address) as channel:
        admin_pb2_grpc.FilaAdminStub(channel).DeleteQueue(
            admin_pb2.DeleteQueueRequest(queue=queue, force=True), timeout=60
        )


@contextlib.contextmanager
def _idle_connections(port: int, context: ssl.SSLContext | None = None) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held: list[socket.socket] = []
    try:
        for number in range(_IDLE):
            # Of one address there are only as many ports; and the broker's backlog of knocks is bounded, too.
            connection = socket.create_connection(("127.0.0.1", port), 10, (f"127.0.0.{2 + number % 4}", 0))
            if context is not None:
                connection = context.wrap_socket(connection, server_hostname="127.0.0.1")
            connection.sendall(_SETTINGS)
            held.append(connection)
        yield
    finally:
        for connection in held:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


_NEIGHBOURS: dict[str, Callable[[Server], AbstractContextManager[None]]] = {
    "a consumer that never reads": _a_consumer_that_never_reads,
    "a producer that never stops": _a_producer_that_never_stops,
    f"{_IDLE:,} idle connections": lambda server: _idle_connections(server.port),
}


def _p99_ms(server: Server, budget: Budget) -> float:
    plan = Callers(
        address=server.address,
        queue=_QUEUE,
        rate_per_s=_VICTIM_CALLS_PER_S,
        warm_up_s=0.5,
        seconds=budget.seconds / 4,
    )
    return percentile(sorted(took_ns for _, took_ns in in_process(call, plan)()), 0.99) / 1e6


@benchmark("neighbours", "p99 of a client's calls beside neighbours that misbehave, against none, in pairs")
def neighbours(budget: Budget) -> Iterator[Finding]:
    for name, neighbour in _NEIGHBOURS.items():
        # A server each: what the flood of one leaves on the disk would be charged to the next.
        with Server() as server:
            with Admin(server.address) as admin:
                admin.create(_QUEUE, fairness_key_header="tenant")
            ms = in_turn(
                {
                    "alone": partial(_p99_ms, server, budget),
                    "beside": partial(_p99_ms_beside, neighbour, server, budget),
                },
                _PAIRS,
            )
        ratio = ratio_of(ms["alone"], ms["beside"])
        yield Finding(
            benchmark="neighbours",
            case=f"p99 of unary Enqueue beside {name} / without, lower end of the interval",
            value=ratio.low,
            unit="",
            reach=_NEIGHBOURS_REACH,
            better="less",
            details={
                "pairs": ratio.pairs,
                "median": ratio.median,
                "to": ratio.high,
                "beside ms": statistics.median(ms["beside"]),
                "alone ms": statistics.median(ms["alone"]),
            },
        )


def _p99_ms_beside(
    neighbour: Callable[[Server], AbstractContextManager[None]], server: Server, budget: Budget
) -> float:
    with neighbour(server):
        time.sleep(0.5)  # it comes to rest
        return _p99_ms(server, budget)


@benchmark("idle-connections", "resident memory with 10,000 idle connections, plain and encrypted")
def idle_connections(_budget: Budget) -> Iterator[Finding]:
    with _certificate() as (certificate, key):
        context = ssl.create_default_context(cafile=str(certificate))
        context.set_alpn_protocols(["h2"])
        encrypted: dict[str, Any] = {"tls__cert_file": str(certificate), "tls__key_file": str(key)}
        cases: tuple[tuple[str, float, dict[str, Any], ssl.SSLContext | None], ...] = (
            ("plain", 150, {}, None),
            ("TLS", 600, encrypted, context),
        )
        for name, reach, settings, trusted in cases:
            with Server(durability="os", **settings) as server:
                before = server.resident_bytes()
                with _idle_connections(server.port, trusted):
                    time.sleep(1)
                    more = server.resident_bytes() - before
            yield Finding(
                benchmark="idle-connections",
                case=f"{_IDLE:,} idle connections, {name}",
                value=more / 1e6,
                unit="MB more",
                reach=reach,
                better="less",
                details={"before MB": before / 1e6, "KB a connection": more / _IDLE / 1e3},
            )
