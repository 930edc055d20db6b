"""A standby refuses each call, and says who serves; no client can keep others from being told so."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from typing import Any

import grpc
import msgspec
import pytest
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc

from fila.v1 import admin_pb2, admin_pb2_grpc, cluster_pb2, service_pb2, service_pb2_grpc
from fila_server.cluster import standby_ports
from fila_server.cluster.standby_ports import (
    CONNECTIONS_MAX,
    COST_A_SECOND,
    Allowance,
    StandbyPorts,
    _GrpcClient,
)
from fila_server.config.kinds import Address
from fila_server.config.schema import Config
from fila_server.config.sections import Tls
from fila_server.edge.listening import bound
from fila_server.edge.redis.sentinel import Group, Member
from fila_server.operations.cluster import ClusterCalls
from fila_server.telemetry.group import HALTED, GroupStatus, NodeStatus
from tests.access.test_tls import authority, certificate
from tests.grpc_edge.raw_http2 import frame

WAIT_S = 30
OWNER = "fila-1:5555"
NODES = [Member(f"fila-{number}", f"10.0.0.{number}", 9797, 70 + number) for number in (1, 2, 3)]
GROUP = Group("orders", NODES[1], (NODES[0], NODES[2]), NODES[0])
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000")


def settings(**tls: object) -> Config:
    base = Config()
    return msgspec.structs.replace(
        base,
        server=msgspec.structs.replace(base.server, listen_addr=Address("127.0.0.1:0")),
        redis=msgspec.structs.replace(base.redis, listen_addr=Address("127.0.0.1:0")),
        tls=Tls(**tls),  # type: ignore[arg-type]
    )


@pytest.fixture
def ports():
    made = StandbyPorts(settings(), lambda: GROUP)
    made.name_owner(OWNER)
    yield made
    made.close()


@pytest.fixture
def channel(ports):
    with grpc.insecure_channel(f"127.0.0.1:{ports.ports[0]}") as made:
        yield made


def refusal(call) -> Any:
    with pytest.raises(grpc.RpcError) as refused:
        call()
    return refused.value


def test_calls_of_every_kind_are_refused_and_told_the_owner(channel):
    service, admin = service_pb2_grpc.FilaServiceStub(channel), admin_pb2_grpc.FilaAdminStub(channel)
    calls = [
        lambda: service.Enqueue(service_pb2.EnqueueRequest(queue="q", payload=b"x" * 300_000)),
        lambda: admin.CreateQueue(admin_pb2.CreateQueueRequest(name="q")),
        lambda: next(service.ConsumeSession(iter([service_pb2.ConsumeSessionRequest()]))),
        lambda: next(service.EnqueueStream(iter([service_pb2.EnqueueStreamRequest()] * 50))),
    ]
    for call in calls:
        refused = refusal(call)
        assert refused.code() is grpc.StatusCode.UNAVAILABLE
        assert refused.details() == (
            "this node stands by, and fila-1:5555 serves the group. Connect there, or give the client all nodes' "
            "addresses"
        )
        info = told_by(refused)
        assert (info.domain, info.reason, dict(info.metadata)) == ("fila", "NOT_OWNER", {"owner": OWNER})


def told_by(refused: Any) -> error_details_pb2.ErrorInfo:
    encoded: Any = dict(refused.trailing_metadata())["grpc-status-details-bin"]
    (detail,) = status_pb2.Status.FromString(encoded).details
    return error_details_pb2.ErrorInfo.FromString(detail.value)


def owner_told(refused: Any) -> str | None:
    owner: str | None = told_by(refused).metadata.get("owner")
    return owner


def test_a_connection_that_stands_is_told_the_owner_of_now(channel, ports):
    call = service_pb2_grpc.FilaServiceStub(channel).Lease
    assert owner_told(refusal(lambda: call(service_pb2.LeaseRequest(queue="q")))) == OWNER
    ports.name_owner("fila-3:5555")
    assert owner_told(refusal(lambda: call(service_pb2.LeaseRequest(queue="q")))) == "fila-3:5555"
    ports.name_owner("")
    refused = refusal(lambda: call(service_pb2.LeaseRequest(queue="q")))
    assert owner_told(refused) is None
    assert "no other node is known to serve. Try again" in refused.details()


def asks_how_it_is(channel) -> cluster_pb2.GetClusterStatusResponse:
    stub = admin_pb2_grpc.FilaAdminStub(channel)
    told: cluster_pb2.GetClusterStatusResponse = stub.GetClusterStatus(
        cluster_pb2.GetClusterStatusRequest(), timeout=WAIT_S
    )
    return told


def test_how_the_group_is_is_told_while_nobody_is_known_to_serve(monkeypatch):
    monkeypatch.setattr(standby_ports, "REPORTED_S", 0)
    told = cluster_pb2.GetClusterStatusResponse(
        group="orders", nodes=[cluster_pb2.ClusterNode(node="fila-2", lacks="it has no copy" * 100)]
    )
    made = StandbyPorts(settings(), lambda: GROUP, told.SerializeToString)
    with contextlib.closing(made), grpc.insecure_channel(f"127.0.0.1:{made.ports[0]}") as channel:
        for count in range(30):
            told.term = count
            assert asks_how_it_is(channel) == told
        lease = service_pb2_grpc.FilaServiceStub(channel).Lease
        assert owner_told(refusal(lambda: lease(service_pb2.LeaseRequest()))) is None
        made.name_owner(OWNER)
        assert owner_told(refusal(lambda: asks_how_it_is(channel))) == OWNER
        made.name_owner("")
        assert asks_how_it_is(channel) == told
        told.nodes[0].lacks = "x" * 20_000  # more than some client takes at once
        assert owner_told(refusal(lambda: asks_how_it_is(channel))) is None


def test_where_it_takes_a_key_to_ask_a_standby_tells_of_itself_alone():
    own = NodeStatus(
        "10.0.0.1:5556", "fila-1", 1, HALTED, 5, position=7, lacks="the log lost its end", version="0.1.0",
        differing=("limits.headers_max",), client_addr="10.0.0.1:5555",
    )  # fmt: skip
    calls = ClusterCalls(lambda: GroupStatus("orders", (own, NodeStatus("10.0.0.2:5556", "fila-2"))))
    told = cluster_pb2.GetClusterStatusResponse.FromString(calls.status_of_standby(needs_key=True))
    [node] = told.nodes
    assert (told.group, node.node, node.role) == ("orders", "fila-1", cluster_pb2.NODE_ROLE_HALTED)
    assert (node.position, node.lacks, node.since.ToMilliseconds()) == (7, "the log lost its end", 5)
    assert not (node.peer_addr)
    assert not (node.client_addr)
    assert not (node.version)
    assert not (node.differing_settings)
    assert calls.status_of_standby(needs_key=False) == calls.status()


def test_health_is_not_serving_and_who_watches_it_is_told_once(channel, ports):
    health = health_pb2_grpc.HealthStub(channel)
    for name in ("", "fila.v1.FilaService"):
        asked = health_pb2.HealthCheckRequest(service=name)
        assert health.Check(asked, timeout=WAIT_S).status == health_pb2.HealthCheckResponse.NOT_SERVING
    watched = health.Watch(health_pb2.HealthCheckRequest(), timeout=WAIT_S)
    assert next(watched).status == health_pb2.HealthCheckResponse.NOT_SERVING
    # The connection goes on with other calls beside the watch.
    assert health.Check(health_pb2.HealthCheckRequest(), timeout=WAIT_S).status == 2
    ports.close()
    assert refusal(lambda: next(watched)).code() is grpc.StatusCode.UNAVAILABLE


def redis(ports, sent: bytes, between=None) -> bytes:
    """What comes back until the end; `between` is called once all is sent and something came back."""
    got = b""
    step = 7 if len(sent) < 1000 else len(sent)  # in pieces that end anywhere
    with socket.create_connection(("127.0.0.1", ports.ports[1]), timeout=WAIT_S) as connection:
        for at in range(0, len(sent), step):
            connection.sendall(sent[at : at + step])
        if between:
            got += connection.recv(65536)
            between()
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            while more := connection.recv(65536):
                got += more
    return got


def test_each_redis_command_is_refused(ports):
    words = b"*3\r\n$5\r\nRPUSH\r\n$0\r\n\r\n$9\r\n*1\r\n$4\r\n!\r\n"
    got = redis(ports, words + b"INFO server\r\n" + b"*1\r\n$5\r\nHMGET\r\n")
    line = b"-READONLY this node stands by, and fila-1:5555 serves the group. Connect there, or give the client all "
    assert got == (line + b"nodes' addresses\r\n") * 3


ADDRESS = b"*2\r\n$8\r\n10.0.0.1\r\n$4\r\n9797\r\n"


def test_redis_clients_are_greeted_and_told_the_owner_in_the_order_of_their_questions(ports):
    asked = b"AUTH default secret\r\nPING\r\nCLIENT SETINFO LIB-NAME x\r\nSENTINEL get-master-addr-by-name orders\r\n"
    assert redis(ports, asked) == b"+OK\r\n+PONG\r\n+OK\r\n" + ADDRESS
    assert redis(ports, b"QUIT\r\nPING\r\n") == b"+OK\r\n"


def test_a_piece_with_many_questions_is_refused_the_rest_of_them(ports):
    got = redis(ports, b"SENTINEL get-master-addr-by-name orders\r\n" * 500)
    assert ADDRESS * 64 in got
    assert got.count(ADDRESS) + got.count(b"-READONLY") == 500
    assert b"-READONLY" in got


def test_who_subscribed_hears_of_the_next_owner_once(ports):
    ports.name_owner(OWNER, "10.0.0.1:9797")

    def switch() -> None:
        ports.name_owner("", "")
        for _ in range(2):
            ports.name_owner("fila-3:5555", "10.0.0.3:9797")

    subscribed = b"*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n"
    said = b"orders 10.0.0.1 9797 10.0.0.3 9797"
    got = redis(ports, b"SUBSCRIBE +switch-master\r\n", switch)
    assert got == subscribed + b"*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$%d\r\n%s\r\n" % (
        len(said),
        said,
    )


@pytest.mark.parametrize(
    "junk", [b"*1\r\n:4\r\n", b"*9999999\r\n", b"*1\r\n$-1\r\n", b"*x\r\n", b"a" * 70_000]
)
def test_what_is_no_redis_command_ends_the_connection(ports, junk):
    assert redis(ports, junk).startswith(b"-ERR Protocol error")


@pytest.mark.parametrize(("port", "begun"), [(0, PREFACE[:9]), (1, b"*1\r\n$99999999\r\n")])
def test_rude_clients_hold_no_more_than_their_places_and_others_are_told(ports, channel, port, begun):
    held = []
    for number in range(CONNECTIONS_MAX + 40):
        held.append(socket.create_connection(("127.0.0.1", ports.ports[port]), timeout=WAIT_S))
        if number % 3 == 0:
            held[-1].sendall(begun)
    call = service_pb2_grpc.FilaServiceStub(channel).Lease
    assert owner_told(refusal(lambda: call(service_pb2.LeaseRequest(queue="q"), timeout=WAIT_S))) == OWNER
    for connection in held[:40]:  # the oldest
        with contextlib.suppress(ConnectionError):
            while connection.recv(65536):
                pass
    assert len(ports._places) <= CONNECTIONS_MAX
    for connection in held:
        connection.close()


def test_a_flood_of_calls_is_heard_at_a_pace():
    now_s = 0.0
    allowance = Allowance(lambda: now_s)
    assert allowance.spend(int(COST_A_SECOND), 0) == 0.0
    assert allowance.spend(1, 0) == pytest.approx(1 / COST_A_SECOND)
    assert allowance.spend(0, 512 * 1024) == pytest.approx(513 / COST_A_SECOND)
    assert allowance.spend(0, 1 << 30) == 1.0, "nobody waits for longer, whatever others have cost"
    now_s += 1.5
    assert allowance.spend(0, 0) == 0.0


class FakeTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.reads = True
        self.is_closed = False

    def write(self, data) -> None:
        self.written += data

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True


def test_who_does_not_read_is_not_heard(ports):
    client, transport = _GrpcClient(ports, socket.socket()), FakeTransport()
    client.connection_made(transport)
    client.data_received(PREFACE)
    assert transport.written
    client.pause_writing()
    assert not transport.reads
    client.resume_writing()
    assert transport.reads


def test_who_breaks_the_protocol_is_told_so_and_left(ports):
    client, transport = _GrpcClient(ports, socket.socket()), FakeTransport()
    client.connection_made(transport)
    client.data_received(PREFACE)
    before = len(transport.written)
    client.data_received(frame(1, 5, 2, b""))  # HEADERS of a stream that only servers begin
    assert transport.written[before:][3] == 7, "GOAWAY"
    assert transport.is_closed


def test_one_connection_has_no_more_answers_than_streams(ports):
    client, transport = _GrpcClient(ports, socket.socket()), FakeTransport()
    client.connection_made(transport)
    client.data_received(PREFACE)
    before = len(transport.written)
    headers = bytes.fromhex("838684") + b"\x41\x01a"
    client.data_received(b"".join(frame(1, 5, 1 + 2 * n, headers) for n in range(10_000)))
    assert 10_000 < len(transport.written) - before < 400_000


def test_with_certificates_both_ports_speak_tls_and_ask_for_the_clients(tmp_path):
    authority(tmp_path, "ca")
    certificate(tmp_path, "server", "DNS:localhost,IP:127.0.0.1")
    certificate(tmp_path, "client", "DNS:client")
    files = {"cert_file": str(tmp_path / "server.pem"), "key_file": str(tmp_path / "server.key")}
    ports = StandbyPorts(
        settings(**files, client_ca_file=str(tmp_path / "ca.pem"), require_client_cert=True),
        lambda: GROUP,
    )
    ports.name_owner(OWNER)
    of = {name: (tmp_path / name).read_bytes() for name in ("ca.pem", "client.pem", "client.key")}
    try:
        for shown in (True, False):
            credentials = grpc.ssl_channel_credentials(
                of["ca.pem"], *((of["client.key"], of["client.pem"]) if shown else (None, None))
            )
            with grpc.secure_channel(f"localhost:{ports.ports[0]}", credentials) as channel:
                call = service_pb2_grpc.FilaServiceStub(channel).Lease
                refused = refusal(lambda call=call: call(service_pb2.LeaseRequest(queue="q"), timeout=WAIT_S))
                assert refused.code() is grpc.StatusCode.UNAVAILABLE
                assert ("stands by" in refused.details()) is shown
        context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
        context.load_cert_chain(tmp_path / "client.pem", tmp_path / "client.key")
        with (
            socket.create_connection(("localhost", ports.ports[1]), timeout=WAIT_S) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as connection,
        ):
            connection.sendall(b"RPUSH q m\r\n")
            assert connection.recv(1024).startswith(b"-READONLY")
    finally:
        ports.close()


def told_to_leave(there: socket.socket) -> None:
    """Read up to a frame GOAWAY."""
    told = b""
    while b"\0\0\x08\x07\0" not in told:
        piece = there.recv(4096)
        assert piece, told
        told += piece


def test_once_closed_its_ports_are_free_at_once(ports, channel):
    call = service_pb2_grpc.FilaServiceStub(channel).Lease
    refusal(lambda: call(service_pb2.LeaseRequest(queue="q")))
    held = ports.ports
    ports.close()
    for port in held:
        with socket.create_server(("127.0.0.1", port)):
            pass


def test_who_is_there_when_the_node_owns_is_told_to_connect_again_and_the_port_stays():
    ports = StandbyPorts(settings(), lambda: GROUP)
    number = ports.ports[0]
    with contextlib.closing(socket.create_connection(("127.0.0.1", number), WAIT_S)) as there:
        there.sendall(PREFACE)
        there.recv(1)
        ports.hand_on()
        told_to_leave(there)
    with contextlib.closing(socket.create_connection(("127.0.0.1", number), WAIT_S)) as waits:
        [taken] = bound(settings().server.listen_addr, "server.listen_addr")
        taken.setblocking(True)
        served, _ = taken.accept()
        served.sendall(b"here")
        assert waits.recv(4) == b"here"
        served.close()
    taken.close()
    for left in bound(settings().redis.listen_addr, "redis.listen_addr"):
        left.close()


def test_while_the_node_is_about_to_serve_who_comes_waits_and_who_is_there_comes_again(ports):
    number = ports.ports[0]
    with contextlib.closing(socket.create_connection(("127.0.0.1", number), WAIT_S)) as there:
        there.sendall(PREFACE)
        there.recv(1)
        ports.hold("fila-2:5555")
        told_to_leave(there)
        while there.recv(4096):
            pass
    ports.name_owner(OWNER)
    assert ports.owner == "fila-2:5555", "what was known before is not told any more"
    with contextlib.closing(socket.create_connection(("127.0.0.1", number), WAIT_S)) as waits:
        ports.hand_on()
        [taken] = bound(settings().server.listen_addr, "server.listen_addr")
        taken.setblocking(True)
        served, _ = taken.accept()
        served.sendall(b"here")
        assert waits.recv(4) == b"here"
        served.close()
    taken.close()
    for left in bound(settings().redis.listen_addr, "redis.listen_addr"):
        left.close()


def test_a_node_that_does_not_serve_after_all_refuses_as_before(ports, channel, monkeypatch):
    monkeypatch.setattr(standby_ports, "HOLDS_S", 0.2)
    ports.hold("fila-2:5555")
    ports.hold("fila-2:5555")
    call = service_pb2_grpc.FilaServiceStub(channel).Lease
    refused = refusal(lambda: call(service_pb2.LeaseRequest(queue="q"), timeout=WAIT_S, wait_for_ready=True))
    assert owner_told(refused) == "fila-2:5555"
    ports.name_owner(OWNER)
    assert owner_told(refusal(lambda: call(service_pb2.LeaseRequest(queue="q")))) == OWNER


def test_redis_clients_hear_that_the_node_is_about_to_serve(ports):
    with contextlib.closing(socket.create_connection(("127.0.0.1", ports.ports[1]), WAIT_S)) as there:
        ports.name_owner(OWNER, "10.0.0.1:9797")
        there.sendall(b"SUBSCRIBE +switch-master\r\n")
        there.recv(1024)
        ports.hold("fila-2:5555", "10.0.0.2:9797")
        assert b"orders 10.0.0.1 9797 10.0.0.2 9797" in there.recv(1024)
