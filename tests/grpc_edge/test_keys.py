"""Keys at the edge: who is let in, and what becomes of those who are not."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from fila.v1 import admin_pb2, admin_pb2_grpc, auth_pb2, service_pb2, service_pb2_grpc
from tests.access.guarded_server import Guarded, key_id, make_queue, refusal, with_key
from tests.conftest import do_without
from tests.e2e.conftest import StartServer, launch, start_server, wait_until_started
from tests.grpc_edge.raw_http2 import (
    DATA,
    END_STREAM,
    GOAWAY,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    PING,
    RawClient,
    frame,
    message,
)

__all__ = ["start_server"]

pytestmark = pytest.mark.e2e

CONSUME = "/fila.v1.FilaService/Consume"
ENQUEUE = "/fila.v1.FilaService/Enqueue"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    running = wait_until_started(
        launch(
            folder / "data",
            folder / "server.log",
            FILA_AUTH__ENABLED="true",
            FILA_STORAGE__DURABILITY="os",
        )
    )
    yield Guarded(running)
    assert running.stop() == 0, running.log_file.read_text()


def own_address() -> str:
    """An address of this machine that is not loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
            address = str(probe.getsockname()[0])
        except OSError:
            address = "127.0.0.1"
    if address.startswith("127."):
        do_without("this machine has no address but loopback")
    return address


def authorization(key: str) -> tuple[bytes, bytes]:
    return b"authorization", f"Bearer {key}".encode()


def trailers(stream: int) -> Any:
    return lambda f: f.kind == HEADERS and f.stream == stream and bool(f.flags & END_STREAM)


def test_a_key_is_read_whatever_the_case_of_its_scheme_and_the_first_counts(guarded: Guarded):
    queue = make_queue(guarded, "schemes")
    key = guarded.make_key("schemer", "produce schemes").key
    stub = service_pb2_grpc.FilaServiceStub(guarded.running.channel())
    request = service_pb2.EnqueueRequest(queue=queue)
    for value in (f"Bearer {key}", f"bearer {key}", f"BEARER  {key}"):
        assert stub.Enqueue(request, metadata=(("authorization", value),)).message_id
    two = (("authorization", f"Bearer {key}"), ("authorization", "Bearer fila_a_b"))
    assert stub.Enqueue(request, metadata=two).message_id
    for value in (
        key,
        f"Basic {key}",
        f"Bearer {key[:-1]}",
        f"Bearer x{key}",
        "Bearer",
        f"Bearer {key}{key}",
    ):
        with pytest.raises(grpc.RpcError) as caught:
            stub.Enqueue(request, metadata=(("authorization", value),))
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED, value


def test_two_keys_on_one_connection_are_two_callers(guarded: Guarded):
    queue = make_queue(guarded, "shared.connection")
    producer = guarded.make_key("pro", f"produce {queue}").key
    consumer = guarded.make_key("con", f"consume {queue}").key
    stub = service_pb2_grpc.FilaServiceStub(guarded.running.channel())
    for _ in range(3):
        stub.Enqueue(
            service_pb2.EnqueueRequest(queue=queue), metadata=(("authorization", f"Bearer {producer}"),)
        )
        with pytest.raises(grpc.RpcError) as caught:
            stub.Enqueue(
                service_pb2.EnqueueRequest(queue=queue), metadata=(("authorization", f"Bearer {consumer}"),)
            )
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED


def test_of_a_stranger_nothing_is_kept_while_it_waits_for_its_refusal(guarded: Guarded):
    """Its upload is thrown away, so it is never stopped by a window, and the connection lives on."""
    with RawClient(guarded.running.addresses["grpc"]) as client:
        client.begin(1, ENQUEUE, authorization("fila_nobody_" + "x" * 52))
        client.send(frame(DATA, 0, 1, b"\0" + (60 << 20).to_bytes(4) + bytes(16000)))
        client.until(trailers(1))
        client.send(frame(PING, 0, 0, b"12345678"))
        assert client.until(lambda f: f.kind in (PING, GOAWAY)).kind == PING


def test_a_revoked_consumer_that_reads_nothing_holds_nothing(guarded: Guarded):
    queue = make_queue(guarded, "unread.revoked")
    client = guarded.make_key("unreader", f"consume {queue}")
    for _ in range(3):
        guarded.admin.service.Enqueue(service_pb2.EnqueueRequest(queue=queue, payload=b"x" * 5000))
    with RawClient(guarded.running.addresses["grpc"], {INITIAL_WINDOW_SIZE: 100}) as raw:
        raw.begin(1, CONSUME, authorization(client.key))
        request = service_pb2.ConsumeRequest(queue=queue, max_in_flight=3).SerializeToString()
        raw.send(frame(DATA, END_STREAM, 1, message(request)))
        raw.until(lambda f: f.kind == DATA and f.stream == 1)
        guarded.admin.auth.RevokeKey(auth_pb2.RevokeKeyRequest(key_id=key_id(client)))
        again = service_pb2.LeaseRequest(queue=queue, max_messages=3, wait_ms=5000)
        began, found = time.monotonic(), 0
        while found < 3 and time.monotonic() - began < 10:
            found += len(guarded.admin.service.Lease(again).messages)
        assert found == 3


def test_connections_are_counted_by_the_first_key_they_send(guarded: Guarded):
    client = guarded.make_key("one-line", "produce lines")
    guarded.admin.auth.SetQuotas(
        auth_pb2.SetQuotasRequest(name="one-line", quotas=auth_pb2.Quotas(connections=1))
    )
    me = auth_pb2.GetPrincipalRequest()
    shown = client.auth.GetPrincipal(me).principal
    assert shown.connections == 1
    code, sentence, _ = refusal(lambda: guarded.client(client.key).auth.GetPrincipal(me))
    assert (code, "at most 1 connections" in sentence) == ("RESOURCE_EXHAUSTED", True)
    assert client.auth.GetPrincipal(me).principal.quota_refusals == 1


def channel_to(address: str, running: Any, key: str = "") -> grpc.Channel:
    channel = grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
    running.channels.append(channel)
    return with_key(channel, key)


def port_of(running: Any) -> str:
    return str(running.addresses["grpc"]).rpartition(":")[2]


def test_without_keys_others_are_told_how_to_be_allowed(start_server: StartServer):
    running = start_server(FILA_SERVER__LISTEN_ADDR="0.0.0.0:0")
    here = admin_pb2_grpc.FilaAdminStub(channel_to(f"127.0.0.1:{port_of(running)}", running))
    here.CreateQueue(admin_pb2.CreateQueueRequest(name="mine"), timeout=10)
    elsewhere = channel_to(f"{own_address()}:{port_of(running)}", running)
    for call in (
        lambda: service_pb2_grpc.FilaServiceStub(elsewhere).Enqueue(
            service_pb2.EnqueueRequest(queue="mine"), timeout=10
        ),
        lambda: admin_pb2_grpc.FilaAdminStub(elsewhere).ListQueues(admin_pb2.ListQueuesRequest(), timeout=10),
    ):
        code, sentence, _ = refusal(call)
        assert (code, "server.allow_anonymous" in sentence) == ("UNAUTHENTICATED", True)
    said = running.event("server.serves_itself")
    assert said is not None
    assert "allow_anonymous" in said["detail"]


def test_with_allow_anonymous_others_are_served(start_server: StartServer):
    running = start_server(FILA_SERVER__LISTEN_ADDR="0.0.0.0:0", FILA_SERVER__ALLOW_ANONYMOUS="true")
    elsewhere = channel_to(f"{own_address()}:{port_of(running)}", running)
    admin_pb2_grpc.FilaAdminStub(elsewhere).CreateQueue(admin_pb2.CreateQueueRequest(name="ours"), timeout=10)
    request = service_pb2.EnqueueRequest(queue="ours")
    assert service_pb2_grpc.FilaServiceStub(elsewhere).Enqueue(request, timeout=10).message_id


@pytest.mark.parametrize("allowed", [False, True])
def test_a_key_in_plaintext_comes_from_this_machine_or_where_that_is_allowed(
    start_server: StartServer, tmp_path: Path, allowed: bool
):
    running = start_server(
        FILA_SERVER__LISTEN_ADDR="0.0.0.0:0",
        FILA_REDIS__LISTEN_ADDR="0.0.0.0:0",
        FILA_AUTH__ENABLED="true",
        FILA_SERVER__ALLOW_PLAINTEXT=str(allowed).lower(),
    )
    key = (running.data_dir / "bootstrap-key").read_text().strip()
    elsewhere = channel_to(f"{own_address()}:{port_of(running)}", running, key)
    redis = socket.create_connection((own_address(), int(running.addresses["redis"].rpartition(":")[2])), 10)
    redis.sendall(f"AUTH {key}\r\n".encode())
    lease = service_pb2.LeaseRequest(queue="nowhere")
    code, sentence, _ = refusal(lambda: service_pb2_grpc.FilaServiceStub(elsewhere).Lease(lease, timeout=10))
    with redis:
        said = redis.recv(1000).decode()
    if allowed:
        assert (code, said) == ("NOT_FOUND", "+OK\r\n")
    else:
        assert (code, "server.allow_plaintext" in sentence) == ("UNAUTHENTICATED", True)
        assert said.startswith("-NOAUTH a key must not travel unencrypted")


def test_a_data_directory_that_the_server_makes_is_its_users_alone(start_server: StartServer, tmp_path: Path):
    umask = os.umask(0o022)
    try:
        running = start_server(data_dir=tmp_path / "made" / "here")
    finally:
        os.umask(umask)
    assert running.data_dir.stat().st_mode & 0o777 == 0o700
